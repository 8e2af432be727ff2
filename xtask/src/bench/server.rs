//! A server under measurement: started pinned, awaited, and killed when dropped.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ports::PortBlock;

use crate::{Outcome, workspace};

const READY_WITHIN: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(2);
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How long a server may take to end after SIGTERM before it is killed.
const END_WITHIN: Duration = Duration::from_secs(10);

/// A running server on the loopback address.
#[derive(Debug)]
pub struct Server {
    /// Name in tables.
    pub name: String,
    /// Main port.
    pub port: u16,
    /// Nobody else's while it lives, restarts included.
    _block: PortBlock,
    child: Child,
    folder: PathBuf,
    start: Start,
}

/// A server that is about to be started.
#[derive(Clone, Debug)]
pub struct Start {
    /// Name in tables.
    pub name: String,
    /// Program and arguments; `{port}` and `{dir}` are replaced.
    pub words: Vec<String>,
    /// Environment of the program.
    pub environment: Vec<(String, String)>,
    /// CPUs it may run on, as taskset writes them.
    pub cpus: String,
}

impl Start {
    /// `name`, from `program` with `arguments`, on CPU 0.
    pub fn new(name: &str, program: &Path, arguments: &[&str]) -> Start {
        let program = program.display().to_string();
        let words = std::iter::once(program).chain(arguments.iter().map(|word| (*word).to_owned())).collect();
        Start { name: name.to_owned(), words, environment: Vec::new(), cpus: "0".into() }
    }

    /// Starts it and waits until it accepts connections.
    pub fn ready(self) -> Outcome<Server> {
        let mut server = self.spawn()?;
        server.await_ready()?;
        Ok(server)
    }

    /// Starts it without waiting.
    pub fn spawn(self) -> Outcome<Server> {
        let block = PortBlock::take().map_err(|error| error.to_string())?;
        let port = block.first();
        let folder = data_folder(&self.name, port)?;
        let child = self.launch(port, &folder)?;
        Ok(Server { name: self.name.clone(), port, _block: block, child, folder, start: self })
    }

    fn launch(&self, port: u16, folder: &Path) -> Outcome<Child> {
        let replaced =
            |word: &String| word.replace("{port}", &port.to_string()).replace("{dir}", &folder.display().to_string());
        let messages = fs::File::create(folder.join("messages"))
            .map_err(|error| format!("cannot write in {}: {error}", folder.display()))?;
        // nice, setpriv and taskset become the program, so the process id is the server's own. The signal is for the
        // day this chore is killed and cannot kill its children itself.
        outranking("setpriv")
            .args(["--pdeathsig", "KILL", "taskset", "-c", &self.cpus])
            .args(self.words.iter().map(replaced))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.name))
    }
}

impl Server {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a connection is accepted.
    pub fn await_ready(&mut self) -> Outcome<()> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if connect(self.port).is_some() {
                return Ok(());
            }
            self.check_alive()?;
            if Instant::now() > deadline {
                return Err(format!("{} accepts no connection within {READY_WITHIN:?}", self.name));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Asks it, and takes no other answer.
    pub fn expect(&self, command: &str, answer: &str) -> Outcome<()> {
        match self.ask(command)? {
            said if said == answer => Ok(()),
            said => Err(format!("{} answers {command} with {said:?}", self.name)),
        }
    }

    /// Waits until it says that its cluster serves every slot.
    pub fn await_cluster(&self) -> Outcome<()> {
        let deadline = Instant::now() + READY_WITHIN;
        while !self.ask("CLUSTER INFO")?.contains("cluster_state:ok") {
            if Instant::now() > deadline {
                return Err(format!("the cluster of {} does not serve within {READY_WITHIN:?}", self.name));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Waits until it acknowledges a write: a node of a cluster listens before it has a lease.
    pub fn await_writes(&mut self) -> Outcome<()> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            self.check_alive()?;
            let answer = self.ask("SET key:ready 1");
            if answer.as_deref() == Ok("+OK") {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("{} acknowledges no write within {READY_WITHIN:?}: {answer:?}", self.name));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// An error with the server's own words if it has ended.
    pub fn check_alive(&mut self) -> Outcome<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                let messages = fs::read_to_string(self.folder.join("messages")).unwrap_or_default();
                let last = messages.lines().last().unwrap_or("it said nothing");
                Err(format!("{} ended ({status}): {last}", self.name))
            }
            Err(error) => Err(format!("{} was lost: {error}", self.name)),
        }
    }

    /// Kills it as a power button would, without a word, and leaves its folder.
    pub fn kill(&mut self) -> Outcome<()> {
        self.child
            .kill()
            .and_then(|()| self.child.wait())
            .map(|_| ())
            .map_err(|error| format!("{} cannot be killed: {error}", self.name))
    }

    /// Starts it again in its folder and on its port, without waiting.
    pub fn start_again(&mut self) -> Outcome<()> {
        self.child = self.start.launch(self.port, &self.folder)?;
        Ok(())
    }

    /// From now on it is started as `start` says, in its folder and on its port.
    pub fn become_start(&mut self, start: Start) {
        self.name.clone_from(&start.name);
        self.start = start;
    }

    /// What it leaves on the disk; gone when this is dropped.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Time on a CPU of all its threads, by the scheduler's account.
    pub fn run_time_ns(&self) -> Outcome<u64> {
        self.scheduled_ns(0)
    }

    /// Time that its threads were ready to run and somebody else had the CPU.
    pub fn run_delay_ns(&self) -> Outcome<u64> {
        self.scheduled_ns(1)
    }

    fn scheduled_ns(&self, field: usize) -> Outcome<u64> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid()))
            .map_err(|error| format!("{} is gone: {error}", self.name))?;
        let of_task = |path: PathBuf| -> Option<u64> {
            fs::read_to_string(path.join("schedstat")).ok()?.split_whitespace().nth(field)?.parse().ok()
        };
        Ok(tasks.flatten().filter_map(|task| of_task(task.path())).sum())
    }

    /// Bytes of its memory as the kernel counts them: `VmRSS`, or `VmHWM` for the most it ever had.
    pub fn memory_bytes(&self, line: &str) -> Outcome<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))
            .map_err(|error| format!("{} is gone: {error}", self.name))?;
        status
            .lines()
            .find_map(|text| text.strip_prefix(line)?.strip_prefix(':')?.split_whitespace().next()?.parse::<f64>().ok())
            .map(|kilobytes| kilobytes * 1024.0)
            .ok_or_else(|| format!("{} does not tell its memory", self.name))
    }

    /// `VmHWM` is from now on the most that it has had since now.
    ///
    /// # Errors
    /// When the kernel cannot forget it.
    pub fn reset_peak(&self) -> Outcome<()> {
        fs::write(format!("/proc/{}/clear_refs", self.pid()), "5")
            .map_err(|error| format!("the highest memory of {} cannot be reset: {error}", self.name))
    }

    /// The parts of its memory, as its INFO tells them.
    pub fn memory_parts(&self) -> Outcome<String> {
        let info = self.ask("INFO memory")?;
        let is_part =
            |line: &&str| line.starts_with("used_memory_") && !line.contains("human") && !line.contains("peak");
        Ok(info
            .lines()
            .filter(is_part)
            .map(|line| line.trim_start_matches("used_memory_"))
            .collect::<Vec<_>>()
            .join(", "))
    }

    /// The text that an inline command is answered with.
    pub fn ask(&self, command: &str) -> Outcome<String> {
        let lost = |error: std::io::Error| format!("{} does not answer {command}: {error}", self.name);
        let mut stream = connect(self.port).ok_or_else(|| format!("{} accepts no connection", self.name))?;
        stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(lost)?;
        stream.write_all(format!("{command}\r\n").as_bytes()).map_err(lost)?;
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        reader.read_line(&mut head).map_err(lost)?;
        let Some(length) = head.strip_prefix('$') else { return Ok(head.trim().to_owned()) };
        let length = length.trim().parse().map_err(|_| format!("{} answers {command} with {head:?}", self.name))?;
        let mut text = vec![0; length];
        reader.read_exact(&mut text).map_err(lost)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// So many lines of what requests are answered with.
    pub fn lines(&self, requests: &[u8], count: usize) -> Outcome<Vec<String>> {
        let lost = |error: std::io::Error| format!("{} does not answer: {error}", self.name);
        let mut stream = connect(self.port).ok_or_else(|| format!("{} accepts no connection", self.name))?;
        stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(lost)?;
        stream.write_all(requests).map_err(lost)?;
        BufReader::new(stream).lines().take(count).collect::<Result<_, _>>().map_err(lost)
    }

    /// Ends it with SIGTERM, so that it may write what it has to, and keeps its folder until the returned value drops.
    pub fn end(&mut self) -> Outcome<PathBuf> {
        let status = Command::new("kill").arg(self.pid().to_string()).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("cannot signal {}", self.name));
        }
        let deadline = Instant::now() + END_WITHIN;
        while Instant::now() < deadline {
            // Under valgrind a signal is delivered only when the server's wait returns: give it something to return for.
            drop(connect(self.port));
            match self.child.try_wait() {
                Ok(Some(_)) => return Ok(self.folder.clone()),
                Ok(None) => std::thread::sleep(LOOK_EVERY),
                Err(error) => return Err(format!("{} was lost: {error}", self.name)),
            }
        }
        Err(format!("{} did not end within {END_WITHIN:?} of SIGTERM", self.name))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing of it remains afterwards.
        if self.child.kill().is_ok() && self.child.wait().is_err() {
            eprintln!("{} could not be waited for", self.name);
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

/// `program`, preferred over whatever else runs on the machine where that is allowed, and as usual where not: entrants
/// and generator alike, so that a neighbour's time slice is not taken for a server's latency.
pub fn outranking(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "-15"]).arg(program);
    command
}

/// `program`, which takes the processor whenever it has something to do, where that is allowed: for a generator that sleeps beside
/// another one. Even one that only has what nobody wants is not sent away from the kernel before its slice of 4 ms ends.
pub fn in_real_time(program: impl AsRef<OsStr>) -> Command {
    let real_time = || {
        let mut command = Command::new("chrt");
        command.args(["--fifo", "10"]);
        command
    };
    if !real_time().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return outranking(program);
    }
    let mut command = real_time();
    command.arg(program);
    command
}

/// A connection to `port` on the loopback address, if one is accepted.
pub fn connect(port: u16) -> Option<TcpStream> {
    TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), CONNECT_TIMEOUT).ok()
}

fn data_folder(name: &str, port: u16) -> Outcome<PathBuf> {
    let folder = workspace::root().join("target/bench-data").join(format!("{name}-{port}"));
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    Ok(folder)
}
