//! The processes of a cluster and of its gates: started, killed, stopped and let go again.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::doors::{Door, Doors};
use super::gates::Gate;
use super::ground::Ground;

/// How long one may take to end after it was asked to.
const END_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What all nodes are started with.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The binary zerohop.
    pub(super) zerohop: PathBuf,
    pub(super) lease_ms: u64,
    pub(super) cores: u16,
    pub(super) durability: &'static str,
    pub(super) io: &'static str,
}

/// See the module.
pub(super) struct Fleet {
    pub(super) doors: Doors,
    folder: PathBuf,
    setting: Setting,
    gates: Vec<Gate>,
    /// Of nodes, and behind them of gates.
    places: Vec<Mutex<Option<Child>>>,
}

impl Fleet {
    /// Nodes that will know each other by a list of hosts, and gates to them; none runs yet.
    ///
    /// # Errors
    /// Those of writing the list.
    pub(super) fn new(ground: Ground, folder: &Path, setting: Setting, gates: Vec<Gate>) -> io::Result<Fleet> {
        let of_node = |node| {
            let (host, port) = ground.host_and_port(node);
            format!("{host}:{port}\n")
        };
        fs::write(folder.join("hosts"), (0..ground.nodes()).map(of_node).collect::<String>())?;
        fs::write(folder.join("token"), "00112233445566778899aabbccddeeff\n")?;
        let places = (0..ground.nodes() + ground.gates()).map(|_| Mutex::new(None)).collect();
        let doors = Doors { ground, cores: setting.cores, slowness: 1 };
        Ok(Fleet { doors, folder: folder.to_owned(), setting, gates, places })
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.doors.len()
    }

    /// The places of all processes: of nodes, and behind them of gates.
    pub(super) fn places(&self) -> std::ops::Range<usize> {
        0..self.places.len()
    }

    /// What the process at a place is called.
    pub(super) fn name(&self, place: usize) -> String {
        match place.checked_sub(self.len()) {
            None => format!("node {place}"),
            Some(gate) => format!("gate {gate}"),
        }
    }

    /// Where a node's data lies.
    pub(super) fn data(&self, node: usize) -> PathBuf {
        self.folder.join(format!("data-{node}"))
    }

    /// What the process at a place has printed since the first start.
    pub(super) fn output(&self, place: usize) -> String {
        fs::read_to_string(self.output_path(place)).unwrap_or_default()
    }

    fn output_path(&self, place: usize) -> PathBuf {
        self.folder.join(format!("{}.txt", self.name(place).replace(' ', "-")))
    }

    /// Starts a node on what it left, or a gate.
    ///
    /// # Errors
    /// Those of starting a process.
    pub(super) fn start(&self, place: usize) -> io::Result<()> {
        let output = OpenOptions::new().create(true).append(true).open(self.output_path(place))?;
        let mut command = match place.checked_sub(self.len()) {
            None => self.node_command(place),
            Some(gate) => {
                let nodes: Vec<String> =
                    (0..self.len()).map(|node| self.doors.ground.address(Door::of_core(node, 0))).collect();
                self.gates[gate].command(&self.setting, self.doors.ground.host_and_port(place), &nodes)
            }
        };
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = self.doors.ground.inside(place, || command.spawn())?;
        *self.places[place].lock().expect("nobody panics with it") = Some(child);
        Ok(())
    }

    fn node_command(&self, node: usize) -> Command {
        let place = (self.doors.ground.host_and_port(node).1, &*self.data(node));
        let mut command = self.command(node, place, &self.token_path());
        command.arg("--hosts").arg(self.hosts_path());
        if !self.gates.is_empty() {
            // A planted bug is of those that clients ask.
            command.env_remove("PLANTED_BUG");
        }
        command
    }

    /// Where the token lies.
    pub(super) fn token_path(&self) -> PathBuf {
        self.folder.join("token")
    }

    /// Where the list of all nodes lies.
    pub(super) fn hosts_path(&self) -> PathBuf {
        self.folder.join("hosts")
    }

    /// What starts a process at a node's place, on this port and directory, with the token in that file; whom it joins is to be added.
    pub(super) fn command(&self, node: usize, (port, data): (u16, &Path), token: &Path) -> Command {
        let (host, _) = self.doors.ground.host_and_port(node);
        let lease_ms = self.setting.lease_ms.to_string();
        // What is started by it dies with the thread that started it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.setting.zerohop);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ZEROHOP_")) {
            command.env_remove(name);
        }
        command.args(["serve", "--port", &port.to_string(), "--bind", host, "--announce-host", host]).arg("--dir");
        command.arg(data).args(["--machine", &format!("m{node}"), "--protected-mode", "no"]);
        command.arg("--token-file").arg(token);
        command.args(["--lease-ms", &lease_ms, "--durability", self.setting.durability, "--io", self.setting.io]);
        command.args(["--cores", &self.setting.cores.to_string()]);
        command.stdin(Stdio::null());
        command
    }

    /// Starts something at a node's place, which says what it says to `beside.txt`.
    ///
    /// # Errors
    /// Those of starting a process.
    pub(super) fn beside(&self, node: usize, mut command: Command) -> io::Result<Child> {
        let output = File::create(self.folder.join("beside.txt"))?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        self.doors.ground.inside(node, || command.spawn())
    }

    /// Waits until a node has ended that was asked to.
    pub(super) fn ended(&self, node: usize) {
        self.await_end(node).ok();
    }

    /// Starts something at a node's place that is to end by itself: its exit code, if it did, and all that it said.
    ///
    /// # Errors
    /// Those of starting a process.
    pub(super) fn attempt(&self, node: usize, mut command: Command) -> io::Result<(Option<i32>, String)> {
        let path = self.folder.join("attempt.txt");
        let output = File::create(&path)?;
        command.stdout(output.try_clone()?).stderr(output);
        let mut child = self.doors.ground.inside(node, || command.spawn())?;
        let mut waited = Duration::ZERO;
        while child.try_wait()?.is_none() && waited < END_WITHIN {
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        let code = child.try_wait()?.map(|status| status.code().unwrap_or(-1));
        child.kill().and_then(|()| child.wait()).ok();
        Ok((code, fs::read_to_string(&path)?))
    }

    /// Sends a signal to the process at a place; whether it ran.
    pub(super) fn signal(&self, place: usize, signal: Signal) -> bool {
        let mut child = self.places[place].lock().expect("nobody panics with it");
        let Some(child) = child.as_mut() else { return false };
        matches!(child.try_wait(), Ok(None)) && kill_process(Pid::from_child(child), signal).is_ok()
    }

    /// Kills a process with SIGKILL, and returns when it is gone; whether it ran until then.
    pub(super) fn kill(&self, place: usize) -> bool {
        let Some(mut child) = self.places[place].lock().expect("nobody panics with it").take() else { return false };
        let ran = matches!(child.try_wait(), Ok(None));
        // Both fail only where there is nothing left to do.
        child.kill().and_then(|()| child.wait()).ok();
        ran
    }

    /// How a process has ended that nobody killed; nothing if it runs, or was killed.
    pub(super) fn has_ended(&self, place: usize) -> Option<ExitStatus> {
        let mut child = self.places[place].lock().expect("nobody panics with it");
        child.as_mut().and_then(|child| child.try_wait().ok().flatten())
    }

    /// Asks all to stop (SIGTERM), waits, and says who did not as it has to.
    pub(super) fn stop_all(&self) -> Vec<String> {
        for place in self.places() {
            self.signal(place, Signal::TERM);
        }
        self.places().filter_map(|place| self.await_end(place).err()).collect()
    }

    fn await_end(&self, place: usize) -> Result<(), String> {
        let mut waited = Duration::ZERO;
        loop {
            match self.has_ended(place) {
                Some(status) if status.success() => break,
                Some(status) => {
                    return Err(format!("{} ended with {status} when it was asked to stop", self.name(place)));
                }
                None if waited > END_WITHIN => return Err(format!("{} does not end", self.name(place))),
                None => std::thread::sleep(LOOK_EVERY),
            }
            waited += LOOK_EVERY;
        }
        self.places[place].lock().expect("nobody panics with it").take();
        Ok(())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for place in self.places() {
            self.kill(place);
        }
    }
}
