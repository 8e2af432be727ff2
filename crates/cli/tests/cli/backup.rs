//! `zerohop backup`, `restore` and `check`, from outside: what was acknowledged before is there, units are whole, and
//! what is not whole is not taken for a backup.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

use crate::process::{Run, Scratch, Server, run, zerohop};

const WRITERS: u64 = 3;
/// Units of one writer at most, so that a slow backup does not meet an endless store.
const UNITS_MAX: u64 = 15_000;
const PIPELINE: u64 = 16;

/// One connection that speaks in pipelines.
struct Wire {
    input: BufReader<TcpStream>,
}

impl Wire {
    fn new(port: u16) -> Wire {
        Wire { input: BufReader::new(TcpStream::connect(("127.0.0.1", port)).unwrap()) }
    }

    fn send(&mut self, requests: &[Vec<String>]) -> Option<()> {
        let mut bytes = Vec::new();
        for request in requests {
            write!(bytes, "*{}\r\n", request.len()).unwrap();
            request.iter().for_each(|word| write!(bytes, "${}\r\n{word}\r\n", word.len()).unwrap());
        }
        self.input.get_mut().write_all(&bytes).ok()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.input.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end().to_owned())
    }

    /// The replies to as many requests, each a status.
    fn statuses(&mut self, requests: &[Vec<String>]) -> Option<()> {
        self.send(requests)?;
        for _ in requests {
            assert_eq!(self.line()?, "+OK");
        }
        Some(())
    }

    /// The values of keys, `None` where there is none.
    fn values(&mut self, keys: &[String]) -> Vec<Option<String>> {
        let request = [vec!["MGET".to_owned()], keys.to_vec()].concat();
        self.send(&[request]).unwrap();
        assert_eq!(self.line().unwrap(), format!("*{}", keys.len()));
        keys.iter().map(|_| if self.line().unwrap() == "$-1" { None } else { self.line() }).collect()
    }
}

/// Threads that write numbered units, each an MSET of two keys, which are on two cores as often as not.
struct Load {
    /// By writer: units acknowledged, and units sent.
    counts: Arc<Vec<(AtomicU64, AtomicU64)>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

fn keys(writer: u64, unit: u64) -> [String; 2] {
    [format!("a{writer}:{unit}"), format!("b{writer}:{unit}")]
}

fn value(unit: u64) -> String {
    format!("{unit}-{}", "v".repeat(300))
}

impl Load {
    fn start(port: u16) -> Load {
        let counts = Arc::new((0..WRITERS).map(|_| (AtomicU64::new(0), AtomicU64::new(0))).collect::<Vec<_>>());
        let stop = Arc::new(AtomicBool::new(false));
        let thread = |writer| {
            let (counts, stop) = (Arc::clone(&counts), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut wire = Wire::new(port);
                for first in (1..UNITS_MAX).step_by(PIPELINE as usize) {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let (acknowledged, sent) = &counts[writer as usize];
                    sent.store(first + PIPELINE - 1, Ordering::SeqCst);
                    let unit = |unit| {
                        let [a, b] = keys(writer, unit);
                        vec!["MSET".to_owned(), a, value(unit), b, value(unit)]
                    };
                    let requests: Vec<_> = (first..first + PIPELINE).map(unit).collect();
                    // The node may be killed meanwhile.
                    if wire.statuses(&requests).is_none() {
                        return;
                    }
                    acknowledged.store(first + PIPELINE - 1, Ordering::SeqCst);
                }
            })
        };
        let threads = (0..WRITERS).map(thread).collect();
        Load { counts, stop, threads }
    }

    /// What is acknowledged now, after so much more of it.
    fn after(&self, units: u64) -> Vec<u64> {
        let now =
            || self.counts.iter().map(|(acknowledged, _)| acknowledged.load(Ordering::SeqCst)).collect::<Vec<_>>();
        let goal = (now().iter().sum::<u64>() + units).min(WRITERS * UNITS_MAX / 2);
        while now().iter().sum::<u64>() < goal {
            std::thread::yield_now();
        }
        now()
    }

    fn sent(&self) -> Vec<u64> {
        self.counts.iter().map(|(_, sent)| sent.load(Ordering::SeqCst)).collect()
    }

    fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// A directory that was restored has all that was acknowledged before, whole units, and nothing that was not sent.
fn judge(data: &str, before: &[u64], sent: &[u64], cores: &str) {
    let server = Server::serve(&["--dir", data, "--cores", cores]);
    let mut wire = Wire::new(server.port);
    let mut found = 0;
    for (writer, (before, sent)) in (0..).zip(before.iter().zip(sent)) {
        let units: Vec<u64> = (1..=*sent).collect();
        for units in units.chunks(500) {
            let names: Vec<String> = units.iter().flat_map(|unit| keys(writer, *unit)).collect();
            for (unit, pair) in units.iter().zip(wire.values(&names).chunks(2)) {
                let is_there = pair[0].is_some();
                assert_eq!(is_there, pair[1].is_some(), "half of unit {unit} of writer {writer}");
                assert!(
                    is_there || unit > before,
                    "unit {unit} of writer {writer} is lost, {before} were acknowledged"
                );
                assert!(pair.iter().flatten().all(|found| *found == value(*unit)), "unit {unit} of writer {writer}");
                found += 2 * u64::from(is_there);
            }
        }
    }
    assert_eq!(server.ask(&["dbsize"]), found.to_string(), "keys that nobody wrote");
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
}

fn content(directory: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

fn done(run: &Run) {
    assert_eq!(run.code, 0, "{}{}", run.output, run.errors);
}

fn is_whole(backup: &str) -> bool {
    Path::new(backup).join("BACKUP").exists()
}

#[test]
fn backups_under_load_have_what_was_acknowledged_before_them() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    let server = Server::serve(&["--dir", &data, "--cores", "2"]);
    let port = server.port.to_string();
    let load = Load::start(server.port);
    let mut taken = Vec::new();
    for number in 0..3 {
        let before = load.after(300);
        let (to, base) = (scratch.at(&format!("backup{number}")), scratch.at(&format!("backup{}", number - 1)));
        // By port, by directory, and of a base of which only the description is known.
        let description = format!("{base}/BACKUP");
        let made = match number {
            0 => run(&["backup", "--port", &port, "--to", &to]),
            1 => run(&["backup", "--dir", &data, "--to", &to, "--since", &base]),
            _ => run(&["backup", "--port", &port, "--to", &to, "--since", &description, "--json"]),
        };
        done(&made);
        taken.push((to, before, load.sent()));
    }
    load.stop();
    server.kill();
    let sizes: Vec<u64> =
        taken.iter().map(|(to, ..)| content(to).values().map(|bytes| bytes.len() as u64).sum()).collect();
    for (number, (to, before, sent)) in taken.iter().enumerate() {
        done(&run(&["check", to]));
        let restored = scratch.at(&format!("restored{number}"));
        let run = run(&["restore", to, "--to", &restored, "--json"]);
        done(&run);
        let report: serde_json::Value = serde_json::from_str(&run.output).unwrap();
        assert_eq!(report["bases"].as_array().unwrap().len(), number, "{report}");
        assert!(report["own_bytes"].as_u64() <= Some(sizes[number]));
        judge(&restored, before, sent, ["2", "1", "4"][number]);
    }
}

/// A running command, stopped in the middle of what it does: when `begun` is true and `ended` is not.
fn stop_midway(arguments: &[&str], begun: impl Fn() -> bool, ended: impl Fn() -> bool) -> Option<Child> {
    let mut child =
        zerohop(arguments).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    while !begun() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::STOP).ok();
    if !ended() && child.try_wait().unwrap().is_none() {
        return Some(child);
    }
    kill_process(Pid::from_child(&child), Signal::CONT).ok();
    child.wait().unwrap();
    None
}

/// A store with so much in it that copying it takes a while.
fn large(scratch: &Scratch) -> (Server, String) {
    let data = scratch.at("data");
    let server = Server::serve(&["--dir", &data, "--cores", "2"]);
    let mut wire = Wire::new(server.port);
    let large = "x".repeat(1 << 20);
    for number in 0..48 {
        wire.statuses(&[vec!["SET".to_owned(), format!("large{number}"), large.clone()]]).unwrap();
    }
    (server, data)
}

#[test]
fn a_backup_that_is_killed_is_none_and_the_next_one_begins_anew() {
    let scratch = Scratch::new();
    let (server, _data) = large(&scratch);
    let port = server.port.to_string();
    let mut attempts = (0..20).map(|number| scratch.at(&format!("backup{number}")));
    let copied = |to: &str| fs::read_dir(to).is_ok_and(|entries| entries.count() > 1);
    let (to, mut child) = attempts
        .find_map(|to| {
            let child = stop_midway(&["backup", "--port", &port, "--to", &to], || copied(&to), || is_whole(&to))?;
            Some((to, child))
        })
        .expect("one of twenty is stopped in the middle");
    assert!(server.ask(&["info", "persistence"]).contains("backup_under_way:1"));
    let second = run(&["backup", "--port", &port, "--to", &scratch.at("second")]);
    assert_eq!(second.code, 1);
    assert!(second.errors.contains("a backup is under way"), "{}", second.errors);
    assert!(!Path::new(&scratch.at("second")).exists(), "nothing is left of what was refused");
    let same = run(&["backup", "--port", &port, "--to", &to]);
    assert_eq!(same.code, 3, "{}", same.errors);
    assert!(same.errors.contains("another backup is written to"), "{}", same.errors);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!is_whole(&to));
    for refused in [run(&["restore", &to, "--to", &scratch.at("restored")]), run(&["check", &to])] {
        assert_eq!(refused.code, 1);
        assert!(refused.errors.contains("ended early"), "{}", refused.errors);
    }
    assert!(!Path::new(&scratch.at("restored")).exists());
    // Its connection is gone, and the node knows as soon as it looks.
    while !server.ask(&["info", "persistence"]).contains("backup_under_way:0") {}
    let again = run(&["backup", "--port", &port, "--to", &to]);
    done(&again);
    assert!(again.errors.contains("it is begun anew"), "{}", again.errors);
    done(&run(&["restore", &to, "--to", &scratch.at("restored")]));
}

#[test]
fn a_node_that_is_killed_during_a_backup_starts_and_the_backup_says_that_it_is_none() {
    let scratch = Scratch::new();
    let (server, data) = large(&scratch);
    let port = server.port.to_string();
    let mut attempts = (0..20).map(|number| scratch.at(&format!("backup{number}")));
    // Before the first file is whole: the node is asked once more behind the last one.
    let begun = |to: &str| fs::read_dir(to).is_ok_and(|entries| entries.count() > 1);
    let has_all = |to: &str| is_whole(to) || fs::read_dir(to).is_ok_and(|entries| entries.count() > 3);
    let (to, child) = attempts
        .find_map(|to| {
            let child = stop_midway(&["backup", "--port", &port, "--to", &to], || begun(&to), || has_all(&to))?;
            Some((to, child))
        })
        .expect("one of twenty is stopped in the middle");
    server.kill();
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    let ended: Run = child.wait_with_output().unwrap().into();
    assert_eq!(ended.code, 1);
    assert!(ended.errors.contains("the backup is none"), "{}", ended.errors);
    assert!(!is_whole(&to));
    let server = Server::serve(&["--dir", &data]);
    assert_eq!(server.ask(&["dbsize"]), "48");
    done(&run(&["backup", "--dir", &data, "--to", &to]));
}

/// A small store, stopped or crashed, with a backup.
fn small(scratch: &Scratch, signal: Signal) -> (String, String) {
    let (data, to) = (scratch.at("data"), scratch.at("backup"));
    let server = Server::serve(&["--dir", &data]);
    for number in 0..8 {
        assert_eq!(server.ask(&["set", &format!("key{number}"), "value"]), "OK");
    }
    server.stop(signal);
    done(&run(&["backup", "--dir", &data, "--to", &to]));
    (data, to)
}

#[test]
fn a_stopped_store_is_backed_up_and_left_alone() {
    for signal in [Signal::TERM, Signal::KILL] {
        let scratch = Scratch::new();
        let (data, to) = small(&scratch, signal);
        let before = content(&data);
        done(&run(&["backup", "--dir", &data, "--to", &scratch.at("another")]));
        assert!(content(&data) == before, "backup wrote something");
        // The store goes on, and the next backup has only that.
        let server = Server::serve(&["--dir", &data]);
        assert_eq!(server.ask(&["set", "key8", "value"]), "OK");
        server.stop(signal);
        let next = scratch.at("next");
        done(&run(&["backup", "--dir", &data, "--to", &next, "--since", &to]));
        done(&run(&["restore", &to, &next, "--to", &scratch.at("restored")]));
        let restored = Server::serve(&["--dir", &scratch.at("restored")]);
        assert_eq!(restored.ask(&["dbsize"]), "9");
        assert_eq!(restored.ask(&["set", "key9", "mine"]), "OK");
        restored.stop(signal);

        // What the restored store became since is no base for the original.
        done(&run(&["backup", "--dir", &scratch.at("restored"), "--to", &scratch.at("fork"), "--since", &next]));
        let server = Server::serve(&["--dir", &data]);
        assert_eq!(server.ask(&["set", "key9", "other"]), "OK");
        let refused = run(&["backup", "--dir", &data, "--to", &scratch.at("mixed"), "--since", &scratch.at("fork")]);
        assert_eq!(refused.code, 1, "{}", refused.output);
        assert!(refused.errors.contains("went another way"), "{}", refused.errors);
        assert!(!Path::new(&scratch.at("mixed")).exists());
    }
}

#[test]
fn one_changed_bit_is_refused_by_name_wherever_it_is() {
    let scratch = Scratch::new();
    let (_, to) = small(&scratch, Signal::KILL);
    for name in content(&to).into_keys() {
        let path = Path::new(&to).join(&name);
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 1;
        fs::write(&path, &bad).unwrap();
        for refused in [run(&["check", &to]), run(&["restore", &to, "--to", &scratch.at("restored")])] {
            assert_eq!(refused.code, 4, "{name}: {}", refused.errors);
            assert!(refused.errors.contains(&format!("{to}/{name} is damaged: ")), "{}", refused.errors);
            assert!(name == "BACKUP" || refused.errors.contains(" have digest "), "{}", refused.errors);
        }
        assert!(!Path::new(&scratch.at("restored")).exists(), "nothing is written from a damaged backup");
        if name != "BACKUP" {
            fs::remove_file(&path).unwrap();
            let refused = run(&["check", &to]);
            assert!(refused.code == 4 && refused.errors.contains(&format!("{name} is missing")), "{}", refused.errors);
        }
        fs::write(&path, &good).unwrap();
    }
    done(&run(&["check", &to]));
}

#[test]
fn a_damaged_store_is_not_backed_up() {
    let scratch = Scratch::new();
    let (data, _) = small(&scratch, Signal::TERM);
    let name = content(&data).into_keys().find(|name| name.ends_with(".run")).unwrap();
    let path = Path::new(&data).join(&name);
    let mut bytes = fs::read(&path).unwrap();
    bytes[200] ^= 1;
    fs::write(&path, bytes).unwrap();
    let refused = run(&["backup", "--dir", &data, "--to", &scratch.at("rotten")]);
    assert_eq!(refused.code, 4);
    assert!(refused.errors.contains(&format!("{name} at offset ")), "{}", refused.errors);
    // A node reads its runs at starts only; the copy is read before it is called a backup.
    assert!(!is_whole(&scratch.at("rotten")));
}

#[test]
fn directories_that_are_somebody_elses_are_refused() {
    let scratch = Scratch::new();
    let (data, to) = small(&scratch, Signal::TERM);
    let before = content(&data);
    for (arguments, text) in [
        (vec!["restore", &to, "--to", &data], "is not empty"),
        (vec!["backup", "--dir", &data, "--to", &to], "is a backup already"),
        (vec!["backup", "--dir", &data, "--to", &data], "has something else in it"),
        (vec!["backup", "--dir", &to, "--to", "/proc/none"], "cannot make"),
        (vec!["restore", &data, "--to", "/proc/none"], "is no backup"),
        (vec!["backup", "--port", "1", "--to", "/proc/none"], "cannot make"),
    ] {
        let refused = run(&arguments);
        assert_eq!(refused.code, 1, "{arguments:?}");
        assert!(refused.errors.contains(text), "{arguments:?}: {}", refused.errors);
    }
    assert!(content(&data) == before);
    // A node that started there would change the backup.
    let before = content(&to);
    let refused = run(&["serve", "--port", "0", "--dir", &to]);
    assert!(refused.code == 4 && refused.errors.contains("is a backup: restore it"), "{}", refused.errors);
    assert!(content(&to) == before);
    let other = Scratch::new();
    let (other_data, _) = small(&other, Signal::TERM);
    let refused = run(&["backup", "--dir", &other_data, "--to", &scratch.at("x"), "--since", &to]);
    assert!(refused.code == 1 && refused.errors.contains("the base is of store"), "{}", refused.errors);
    let unclear = run(&["restore", &to, &other.at("backup"), "--to", &scratch.at("x")]);
    assert!(unclear.code == 1 && unclear.errors.contains("no bases of each other"), "{}", unclear.errors);
}

#[test]
fn a_base_that_is_missing_is_named() {
    let scratch = Scratch::new();
    let (data, to) = small(&scratch, Signal::KILL);
    let next = scratch.at("next");
    done(&run(&["backup", "--dir", &data, "--to", &next, "--since", &to]));
    let (moved, elsewhere) = (scratch.at("away"), scratch.at("away/base"));
    fs::create_dir(&moved).unwrap();
    fs::rename(&to, &elsewhere).unwrap();
    let refused = run(&["restore", &next, "--to", &scratch.at("restored")]);
    assert_eq!(refused.code, 1);
    assert!(refused.errors.contains(&format!("which was in {to}")), "{}", refused.errors);
    let own = run(&["check", &next]);
    done(&own);
    assert!(own.output.contains("own files are whole") && own.output.contains("not found"), "{}", own.output);
    done(&run(&["restore", &next, &elsewhere, "--to", &scratch.at("restored")]));
}
