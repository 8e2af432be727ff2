//! `kill -9` of a program that uses the store, and a disk that has no more room.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use zerohop::Store;
use zerohop::testing::Scratch;

use crate::reading::{all_by_cores, all_of};
use crate::sequence::{Model, expect};

/// An example, built beside the tests.
fn example(name: &str) -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples").join(name)
}

fn writes(mut command: Command, directory: &Path, durability: &str, first: u64) -> Child {
    command.arg(directory).args([durability, &first.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// What has to be there behind the acknowledged changes: exactly they, or the one behind them as well, whole.
fn check(found: &Model, model: &mut Model, acknowledged: &mut u64) {
    if found != model {
        expect(model, *acknowledged);
        *acknowledged += 1;
    }
    let differs = found.keys().chain(model.keys()).find(|key| found.get(*key) != model.get(*key));
    let shown = differs.map(|key| String::from_utf8_lossy(key).into_owned());
    assert!(differs.is_none(), "after {acknowledged} changes {shown:?} is not what it should be");
}

#[test]
fn what_was_acknowledged_survives_kill_9_and_batches_are_whole() {
    for durability in ["interval", "commit"] {
        let scratch = Scratch::new("kill");
        let (mut model, mut acknowledged) = (Model::new(), 0);
        for round in 0..6 {
            let mut child =
                writes(Command::new(example("acknowledged_writes")), scratch.path(), durability, acknowledged);
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let wanted = if durability == "commit" { 20 + 7 * round } else { 150 + 400 * round };
            for _ in 0..wanted {
                assert_eq!(lines.next().unwrap().unwrap(), acknowledged.to_string());
                expect(&mut model, acknowledged);
                acknowledged += 1;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            // What it said before it died and nobody has read yet.
            for line in lines {
                assert_eq!(line.unwrap(), acknowledged.to_string());
                expect(&mut model, acknowledged);
                acknowledged += 1;
            }
            let found = if round % 2 == 0 {
                all_by_cores(scratch.path(), 1 + round as u16)
            } else {
                all_of(&Store::open(scratch.path()).unwrap())
            };
            check(&found, &mut model, &mut acknowledged);
        }
    }
}

/// A disk of 12 MiB that nobody else sees: the first segment of the log fits, a later one does not, which is told at once.
const SMALL_DISK: &str = r#"
    mkdir -p "$2" && mount -t tmpfs -o size=12m tmpfs "$2" || { echo "no disk of its own"; exit 0; }
    exec "$1" "$2/data" interval 0"#;

#[test]
fn a_full_disk_refuses_writes_by_name_and_takes_them_again() {
    let scratch = Scratch::new("full");
    let mut shell = Command::new("unshare");
    shell.args(["-rm", "sh", "-c", SMALL_DISK, "sh"]).arg(example("acknowledged_writes")).arg(scratch.path());
    let child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(child) = child else { return not_tested("there is no program unshare") };
    let mut process = Ended(child);
    let child = &mut process.0;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut model, mut acknowledged) = (Model::new(), 0);
    let refusal = loop {
        match lines.next().map(|line| line.unwrap()) {
            Some(line) if line.starts_with("full: ") => break line,
            Some(line) if line.parse() == Ok(acknowledged) => expect(&mut model, acknowledged),
            other => {
                assert_eq!(acknowledged, 0, "{other:?}");
                return not_tested("no file system can be mounted here");
            }
        }
        acknowledged += 1;
    };
    let segment = format!("{}/data/00000001-000-000000000", scratch.path().display());
    let (named, _) = refusal.split_once(".log: ").expect("it names a file");
    assert!(refusal.starts_with("full: the log has no room: ") && named.contains(&segment), "{refusal}");
    // Its disk, as it sees it.
    let root = PathBuf::from(format!("/proc/{}/root", child.id())).join(scratch.path().strip_prefix("/").unwrap());
    let pid_shown = child.id().to_string();
    let enter = ["--preserve-credentials", "-U", "-m", "-t", &pid_shown, "mount", "-o", "remount,size=64m"];
    assert!(Command::new("nsenter").args(enter).arg(scratch.path()).status().unwrap().success());
    writeln!(child.stdin.as_mut().unwrap()).unwrap();
    for _ in 0..20 {
        assert_eq!(lines.next().unwrap().unwrap(), acknowledged.to_string());
        expect(&mut model, acknowledged);
        acknowledged += 1;
    }
    // The disk goes with the process: it stands still while its files are read, and is killed then.
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::STOP).unwrap();
    waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
    let copy = Scratch::new("full-copy");
    std::fs::create_dir(copy.path()).unwrap();
    for file in std::fs::read_dir(root.join("data")).unwrap().map(|file| file.unwrap()) {
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for line in lines {
        assert_eq!(line.unwrap(), acknowledged.to_string());
        expect(&mut model, acknowledged);
        acknowledged += 1;
    }
    check(&all_of(&Store::open(copy.path()).unwrap()), &mut model, &mut acknowledged);
}

/// A process that ends with the test, whatever comes of that: it writes as long as it lives.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _it_may_be_gone = self.0.kill();
        let _as_well = self.0.wait();
    }
}

fn not_tested(why: &str) {
    eprintln!("a full disk was not tested: {why}");
}
