//! Processes that are not what they say they are, beside a cluster under clients (AT-28, and the lost disk of AT-23): each is refused with
//! words that say what is wrong, or does nothing; none of them serves, votes, or costs anybody what was acknowledged.
//!
//! ```text
//!   two of one directory · another token · another cluster's directory · an older copy of a directory, twice, in the node's place and
//!   beside it · a disk that is lost, and the way back · a backup that wants to join
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::client::{Client, Course, Stage};
use super::doors::Door;
use super::faults::Fired;
use super::plan::{Fault, Kind, Step};
use super::run::Verdict;
use super::scene::{Played, Scene};
use super::standing::Standing;
use super::whole::await_whole;
use crate::reply::Reply;

/// Clients meanwhile.
const CLIENTS: usize = 8;
/// The node that it is about; it is no founder.
const VICTIM: usize = 2;
/// From a node's port to the one of a process beside it.
const BESIDE: u16 = 16;
/// How long the cluster may take to know that a node is down, and for an order to be obeyed.
const WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long clients write between two cases.
const BETWEEN: Duration = Duration::from_millis(500);

/// What is tried, and what was wrong with how it ended.
struct Cases<'a> {
    scene: &'a Scene<'a>,
    stage: &'a Stage<'a>,
    fired: Vec<Fired>,
    problems: Vec<String>,
}

/// All of them, one after the other.
///
/// # Errors
/// When a process cannot be started, or a file not be copied.
pub(super) fn play(scene: &Scene<'_>) -> io::Result<Verdict> {
    let course = Course::new();
    let stage = Stage::new(&scene.fleet.doors, &course);
    let seed = scene.options.seed;
    let mut cases = Cases { scene, stage: &stage, fired: Vec::new(), problems: Vec::new() };
    let (history, done) = thread::scope(|scope| {
        let stage = &stage;
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || Client::new(stage, number, seed).run())).collect();
        thread::sleep(BETWEEN);
        let done = cases.all();
        if done.is_ok() {
            thread::sleep(BETWEEN);
        }
        stage.is_over.store(true, Ordering::Relaxed);
        let history = clients.into_iter().flat_map(|client| client.join().expect("it does not panic")).collect();
        (history, done)
    });
    let Cases { fired, problems, .. } = cases;
    let mut verdict = Verdict::default();
    verdict.checks.push(("who is not what it says is refused", problems));
    let healed = done.map_err(|error| error.to_string());
    let played = Played { history, fired, moves: None, healed, besides: 0, gaps: Vec::new() };
    scene.judge(&stage, played, &mut verdict, || ("", Vec::new()))?;
    scene.tell_checks(&verdict);
    Ok(verdict)
}

impl Cases<'_> {
    fn all(&mut self) -> io::Result<()> {
        let data = self.scene.fleet.data(VICTIM);
        let beside = self.port() + BESIDE;
        self.refused("a second process on a directory", (self.port(), &data), None, (3, "in use by"))?;
        let (empty, other) = (self.at("empty"), self.at("other-token"));
        fs::write(&other, "ffffffffffffffffffffffffffffffff\n")?;
        self.refused(
            "a newcomer with another token",
            (beside, &empty),
            Some(&other),
            (1, "the token is not this cluster's"),
        )?;
        self.another_cluster()?;
        self.older_copy()?;
        self.backup()?;
        self.lost_disk()
    }

    fn port(&self) -> u16 {
        self.scene.fleet.doors.ground.host_and_port(VICTIM).1
    }

    fn at(&self, name: &str) -> PathBuf {
        self.scene.folder.join(name)
    }

    /// A process at the victim's place, on this port and directory: it has to end by itself, with that code and these words.
    fn refused(
        &mut self,
        what: &str,
        place: (u16, &Path),
        token: Option<&Path>,
        wanted: (i32, &str),
    ) -> io::Result<()> {
        let fleet = self.scene.fleet;
        let mut command = fleet.command(VICTIM, place, token.unwrap_or(&fleet.token_path()));
        match place.0 == self.port() {
            true => command.arg("--hosts").arg(fleet.hosts_path()),
            false => command.arg("--join").arg(fleet.doors.ground.address(Door::plain(0))),
        };
        let (code, said) = fleet.attempt(VICTIM, command)?;
        let last = said.lines().last().unwrap_or_default();
        println!("  {what}: {last}");
        if code != Some(wanted.0) || !said.contains(wanted.1) {
            let code = code.map_or("did not end".to_owned(), |code| format!("ended with {code}"));
            self.problems.push(format!("{what} {code}, without `{}`: {}", wanted.1, said.trim()));
        }
        thread::sleep(BETWEEN);
        Ok(())
    }

    fn another_cluster(&mut self) -> io::Result<()> {
        let fleet = self.scene.fleet;
        let (host, port) = fleet.doors.ground.host_and_port(VICTIM);
        let (data, port) = (self.at("other-cluster"), port + BESIDE);
        let mut founder = Command::new(&self.scene.options.zerohop);
        founder.args([
            "serve",
            "--cluster",
            "new",
            "--bind",
            host,
            "--announce-host",
            host,
            "--port",
            &port.to_string(),
        ]);
        founder.args(["--protected-mode", "no", "--dir"]).arg(&data);
        let mut founder = fleet.beside(VICTIM, founder)?;
        let begun = Instant::now();
        while !fs::read_to_string(self.at("beside.txt"))?.contains("ready on") && begun.elapsed() < WITHIN {
            thread::sleep(LOOK_EVERY);
        }
        thread::sleep(BETWEEN);
        founder.kill()?;
        founder.wait()?;
        self.with_victim_away(|cases| {
            let place = (cases.port(), &*data);
            cases.refused("another cluster's directory", place, None, (1, "of another cluster"))
        })
    }

    /// The victim is killed, something is tried in its place, and it comes back as it was.
    fn with_victim_away(&mut self, attempt: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        let begun_us = self.stage.now_us();
        let has_worked = self.scene.fleet.kill(VICTIM);
        attempt(self)?;
        self.scene.fleet.start(VICTIM)?;
        let step = Step { kind: Kind::Kill, fault: Fault::Kill { node: VICTIM }, begin_ms: begun_us / 1000, end_ms: 0 };
        self.fired.push(Fired { step, begun_us, ended_us: self.stage.now_us(), has_worked });
        self.whole()
    }

    fn whole(&self) -> io::Result<()> {
        await_whole(&self.scene.fleet.doors, || false).map(drop).map_err(io::Error::other)
    }

    fn older_copy(&mut self) -> io::Result<()> {
        let data = self.scene.fleet.data(VICTIM);
        let copies = ["copy", "copy-beside"].map(|name| self.at(name));
        self.with_victim_away(|_| copies.iter().try_for_each(|copy| copy_folder(&data, copy)))?;
        // The next start of a copy has the number of the node's last but one.
        self.with_victim_away(|_| Ok(()))?;
        thread::sleep(BETWEEN);
        let [copy, beside] = &copies;
        let place = (self.port() + BESIDE, &**beside);
        self.refused("a copy of the directory beside its node", place, None, (1, "older copy"))?;
        self.with_victim_away(|cases| {
            let place = (cases.port(), &**copy);
            cases.refused("an older copy in its node's place", place, None, (1, "older copy"))?;
            // By now its start has a number that nobody had.
            cases.refused("the same copy once more", place, None, (1, "older copy"))
        })
    }

    /// What `zerohop backup` made has keys and does not know of any cluster.
    fn backup(&mut self) -> io::Result<()> {
        let (to, restored) = (self.at("backup"), self.at("restored"));
        let (data, zerohop) = (self.scene.fleet.data(VICTIM), self.scene.options.zerohop.clone());
        self.with_victim_away(|cases| {
            let run = |command: &mut Command| match command.output()? {
                output if output.status.success() => Ok(()),
                output => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
            };
            run(Command::new(&zerohop).arg("backup").arg("--dir").arg(&data).arg("--to").arg(&to))?;
            run(Command::new(&zerohop).arg("restore").arg(&to).arg("--to").arg(&restored))?;
            cases.refused("a restored backup", (cases.port(), &*restored), None, (1, "a node that joins brings none"))
        })
    }

    /// Nothing is left of the directory: the node is not who it was, whatever its address; taken out, it may come as somebody new.
    fn lost_disk(&mut self) -> io::Result<()> {
        let fleet = self.scene.fleet;
        let begun_us = self.stage.now_us();
        let has_worked = fleet.kill(VICTIM);
        let data = fleet.data(VICTIM);
        fs::rename(&data, self.at("lost"))?;
        let what = "an empty directory at the address of a node that is not out";
        self.refused(what, (self.port(), &data), None, (1, "zerohop cluster remove"))?;
        let known = || {
            Standing::of(&fleet.doors, 0).and_then(|one| one.node(VICTIM).map(|(node, state)| (node, state.to_owned())))
        };
        let (begun, mut said) = (Instant::now(), None);
        let number = loop {
            let node = known();
            if let Some((number, _)) = node.filter(|(_, state)| state == "down") {
                let words = ["ZH.CLUSTER", "REMOVE", &number.to_string(), "ABANDON"];
                said = fleet.doors.ask(Door::of_core(0, 0), &words).ok();
                if matches!(said, Some(Reply::Status(_))) {
                    break number;
                }
            }
            if begun.elapsed() > WITHIN {
                return Err(io::Error::other(format!("a lost node could not be taken out: {said:?}")));
            }
            thread::sleep(LOOK_EVERY);
        };
        fs::remove_dir_all(&data)?;
        fleet.start(VICTIM)?;
        let step = Step { kind: Kind::Kill, fault: Fault::Kill { node: VICTIM }, begin_ms: begun_us / 1000, end_ms: 0 };
        self.fired.push(Fired { step, begun_us, ended_us: self.stage.now_us(), has_worked });
        self.whole()?;
        let now = known().map(|(number, _)| number);
        println!("  node {number} of the cluster was lost and taken out; at its address is {now:?} now");
        if now.is_none_or(|now| now <= number) {
            self.problems.push(format!("who came with an empty directory is {now:?}, and the lost one was {number}"));
        }
        // Its directory is found again.
        let found = self.at("lost");
        fleet.signal(VICTIM, Signal::TERM);
        fleet.ended(VICTIM);
        self.refused("the directory of a node that was taken out", (self.port(), &found), None, (1, "was removed"))?;
        fleet.start(VICTIM)?;
        self.whole()
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
