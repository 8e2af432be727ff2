//! `up --nodes`: several processes as one store, started, asked, killed one by one, stopped.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Instant;

use ports::PortBlock;
use rustix::process::{Pid, Signal, kill_process};

use crate::process::{PATIENCE, Scratch, processes_on, run, zerohop};

/// Of a machine that does much else: a node that is not heard of for so long is one that was killed.
const LEASE_MS: &str = "2000";

/// A running `up --nodes`.
struct Up {
    child: Child,
    lines: BufReader<ChildStdout>,
    said: String,
    /// Ports of the nodes' cores.
    ports: Vec<u16>,
    /// Their processes.
    process_ids: Vec<i32>,
}

impl Up {
    /// Starts it, or those that lie there, and reads what it says until all is ready.
    fn start(port: u16, arguments: &[&str]) -> Up {
        Up::start_in("/tmp", port, arguments)
    }

    /// The same with another directory for what is temporary.
    fn start_in(temporary: &str, port: u16, arguments: &[&str]) -> Up {
        let port = port.to_string();
        let mut command = zerohop(&[&["up", "--port", &port], arguments].concat());
        command.env("TMPDIR", temporary);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut up = Up { child, lines, said: String::new(), ports: Vec::new(), process_ids: Vec::new() };
        loop {
            let line = up.line();
            if let Some((_, rest)) = line.split_once("cluster clients on port ") {
                let numbers: Vec<i32> = rest.split([',', ' ']).filter_map(|word| word.parse().ok()).collect();
                up.ports.push(u16::try_from(numbers[0]).unwrap());
                up.process_ids.push(numbers[1]);
            }
            if line.starts_with("Ctrl-C stops") {
                return up;
            }
        }
    }

    /// The next line that it says.
    fn line(&mut self) -> String {
        let mut line = String::new();
        if self.lines.read_line(&mut line).unwrap() == 0 {
            let mut errors = String::new();
            self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            panic!("it ended: {}{errors}", self.said);
        }
        self.said.push_str(&line);
        line
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn kill(&self, node: usize) {
        kill_process(Pid::from_raw(self.process_ids[node]).unwrap(), Signal::KILL).unwrap();
    }

    /// Stops it; exit code and what it said last.
    fn stop(mut self) -> (Option<i32>, String) {
        self.signal(Signal::TERM);
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }

    /// Asks through a node until somebody serves, as `cli -c` does.
    fn ask(&self, node: usize, words: &[&str]) -> String {
        let (begun, port) = (Instant::now(), self.ports[node].to_string());
        loop {
            let told = run(&[&["cli", "-c", "-p", &port], words].concat());
            if told.code == 0 {
                return told.output.trim_end().to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "{words:?} was never answered: {}{}", told.output, told.errors);
            std::thread::yield_now();
        }
    }

    /// Asks all of them until one serves the key and the others send whoever asks there. Nodes that just came up still
    /// take their shares: a slot that goes on between two questions is served at both.
    fn await_one_that_serves(&self, key: &str, value: &str) {
        let begun = Instant::now();
        loop {
            let told = self.ports.iter().map(|port| run(&["cli", "-p", &port.to_string(), "get", key]).output);
            let told: Vec<_> = told.collect();
            let sent_to =
                told.iter().filter_map(|told| Some(told.strip_prefix("MOVED ")?.trim_end().rsplit_once(':')?.1));
            let sent_to: Vec<_> = sent_to.filter_map(|port| port.parse().ok()).collect();
            let serves =
                (self.ports.iter().zip(&told)).find(|(_, told)| told.trim_end() == value).map(|(port, _)| *port);
            if sent_to.len() + 1 == told.len() && sent_to.iter().all(|port| Some(*port) == serves) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "never one that serves {key}, and others that say so: {told:?}");
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Cleanly, because it stops the others; already gone when the test stopped it.
        kill_process(Pid::from_child(&self.child), Signal::TERM).ok();
        self.child.wait().ok();
    }
}

#[test]
fn three_nodes_come_up_as_one_store_outlive_one_and_come_back_where_they_were() {
    let (scratch, block) = (Scratch::new(), PortBlock::take().unwrap());
    let (data, port) = (scratch.at("data"), block.first());
    let mut up = Up::start(port, &["--nodes", "3", "--dir", &data, "--lease-ms", LEASE_MS]);
    assert_eq!(up.ports, [port + 1, port + 3, port + 5]);
    let (core, first) = (port + 1, up.process_ids[0]);
    let again = format!("zerohop serve --port {port} --dir {data}/node-1\n");
    for text in [
        format!("redis-cli -c -p {core}\n"),
        format!("RedisCluster(\"127.0.0.1\", {core})\n"),
        format!("zerohop cli -c -p {core}\n"),
        format!("kill -9 {first}\n"),
        format!("  {again}"),
        "copies       two of everything".to_owned(),
        "durability   interval".to_owned(),
    ] {
        assert!(up.said.contains(&text), "{text:?} is not in {}", up.said);
    }
    assert_eq!(processes_on(&data).len(), 4, "the nodes and who started them");
    assert_eq!(up.ask(0, &["set", "key", "value"]), "OK");
    up.await_one_that_serves("key", "value");
    assert_eq!((0..3).map(|node| up.ask(node, &["get", "key"])).collect::<Vec<_>>(), ["value"; 3]);

    let second = run(&["up", "--nodes", "3", "--dir", &data]);
    let expected = format!("{data} is in use by process {}, port {port}, since 20", up.child.id());
    assert!(second.code == 3 && second.errors.contains(&expected), "{} {}", second.code, second.errors);

    up.kill(0);
    let line = up.line();
    let expected = format!("node-1 (pid {first}) was killed by signal 9; the others go on. To start it again: {again}");
    assert_eq!(line, expected);
    assert_eq!([1, 2].map(|node| up.ask(node, &["get", "key"])), ["value"; 2].map(str::to_owned));
    assert_eq!(up.ask(1, &["set", "key", "later"]), "OK");
    let (code, last) = up.stop();
    let stopped = |node: usize| last.contains(&format!("node-{node}: stopped: the log is sealed and synced\n"));
    assert!(code == Some(0) && stopped(2) && stopped(3), "{code:?} {last}");
    assert_eq!(processes_on(&data), [""; 0]);
    assert_eq!(std::fs::read_to_string(Path::new(&data).join("LOCK")).unwrap(), "");

    let up = Up::start(0, &["--nodes", "3", "--dir", &data]);
    assert_eq!(up.ports, [port + 1, port + 3, port + 5]);
    assert_eq!(up.ask(2, &["get", "key"]), "later");
    assert_eq!(up.stop().0, Some(0));
}

#[test]
fn two_nodes_say_what_they_cannot_promise_pass_over_ports_and_leave_nothing_behind() {
    let (scratch, block) = (Scratch::new(), PortBlock::take().unwrap());
    let port = block.first();
    // The first node's core, and the second node's manager.
    let taken = [port + 1, port + 4 + 10_000].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
    let temporary = scratch.at("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let up = Up::start_in(&temporary, port, &["--nodes", "2", "--ephemeral", "--lease-ms", LEASE_MS]);
    assert_eq!(up.ports, [port + 3, port + 6], "{}", up.said);
    for taken in [port + 1, port + 4 + 10_000] {
        let by = format!("port {taken} is taken by ");
        assert!(up.said.contains(&by), "{by:?} is not in {}", up.said);
    }
    assert!(up.said.contains("cannot outlive node-1"), "{}", up.said);
    assert_eq!(processes_on(&temporary).len(), 2);
    assert_eq!(up.ask(1, &["set", "key", "value"]), "OK");
    assert_eq!(up.stop().0, Some(0));
    assert_eq!(processes_on(&temporary), [""; 0]);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "an ephemeral store leaves nothing");
    drop(taken);
}

#[test]
fn a_second_ctrl_c_kills_nodes_that_do_not_stop() {
    let (scratch, block) = (Scratch::new(), PortBlock::take().unwrap());
    let data = scratch.at("data");
    let mut up = Up::start(block.first(), &["--nodes", "2", "--dir", &data, "--lease-ms", LEASE_MS]);
    // It does not hear that it is to stop.
    let still = Pid::from_raw(up.process_ids[1]).unwrap();
    kill_process(still, Signal::STOP).unwrap();
    up.signal(Signal::INT);
    while !up.line().starts_with("node-1: stopped") {}
    up.signal(Signal::INT);
    assert_eq!(up.child.wait().unwrap().code(), Some(130));
    let mut errors = String::new();
    up.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    // It was not for want of patience.
    assert!(errors.contains("node-2: was killed by signal 9") && !errors.contains("does not stop"), "{errors}");
    assert_eq!(processes_on(&data), [""; 0]);
}

#[test]
fn what_several_nodes_cannot_be_told_is_refused_with_the_fix() {
    let scratch = Scratch::new();
    let (alone, several) = (scratch.at("alone"), scratch.at("several"));
    std::fs::create_dir(&alone).unwrap();
    std::fs::write(scratch.path().join("alone/MANIFEST"), "").unwrap();
    for (arguments, texts) in [
        (&["--nodes", "0"][..], ["--nodes 0", "from 1 to 5"]),
        (&["--nodes", "6"], ["--nodes 6", "from 1 to 5"]),
        (&["--nodes", "three"], ["--nodes three", "from 1 to 5"]),
        (&["--nodes", "3", "--unixsocket", "s"], ["--unixsocket", "leave it out"]),
        (&["--nodes", "3", "--pin"], ["--pin", "leave it out"]),
        (&["--nodes", "3", "--durability", "memory"], ["`durability`", "interval or commit"]),
        (&["--nodes", "3", "--lease-ms", "1"], ["--lease-ms 1", "milliseconds"]),
        (&["--lease-ms", "300"], ["--lease-ms", "--nodes 3"]),
    ] {
        let refused = run(&[&["up", "--dir", &several], arguments].concat());
        assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.errors);
        for text in texts {
            assert!(refused.errors.contains(text), "{arguments:?}: {text:?} is not in {}", refused.errors);
        }
        assert!(!Path::new(&several).exists(), "{arguments:?}");
    }
    let refused = run(&["up", "--nodes", "3", "--dir", &alone]);
    assert!(refused.code == 2 && refused.errors.contains("has the store of one node"), "{}", refused.errors);

    let block = PortBlock::take().unwrap();
    let up = Up::start(block.first(), &["--nodes", "2", "--dir", &several, "--lease-ms", LEASE_MS]);
    assert_eq!(up.stop().0, Some(0));
    for arguments in [&["--nodes", "1"][..], &[]] {
        let refused = run(&[&["up", "--dir", &several], arguments].concat());
        assert!(refused.code == 2 && refused.errors.contains("start them with --nodes 2"), "{}", refused.errors);
    }
    // Where others know a node is no port for anybody else.
    let taken = TcpListener::bind(("127.0.0.1", block.first() + 2)).unwrap();
    let refused = run(&["up", "--nodes", "2", "--dir", &several]);
    let expected = format!("node-2: port {} is taken by ", block.first() + 2);
    assert!(refused.code == 1 && refused.errors.contains(&expected), "{} {}", refused.code, refused.errors);
    assert_eq!(processes_on(&several), [""; 0]);
    drop(taken);
}
