//! `demo deadlines` before a server that stands for a stock one (the suite `demo` of `cargo x test` has Valkey): what it shows, what it
//! leaves behind, what it refuses. How long anything takes decides nothing.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ports::PortBlock;
use rustix::process::{Pid, Signal, kill_process};

use crate::process::{PATIENCE, Run, Scratch, processes_on, run, zerohop};

/// What the demo needs: a directory for what is temporary, ports, and a program that is called as `valkey-server` is.
struct Ground {
    temporary: Scratch,
    programs: Scratch,
    block: PortBlock,
}

impl Ground {
    fn new() -> Ground {
        let (temporary, programs, block) = (Scratch::new(), Scratch::new(), PortBlock::take().unwrap());
        let ground = Ground { temporary, programs, block };
        let store = env!("CARGO_BIN_EXE_zerohop");
        // --port PORT --bind ADDRESS --dir DIRECTORY and more.
        std::fs::write(ground.server(), format!("#!/bin/sh\nexec {store} serve --port $2 --dir $6/data\n")).unwrap();
        std::fs::set_permissions(ground.server(), std::fs::Permissions::from_mode(0o755)).unwrap();
        ground
    }

    fn server(&self) -> PathBuf {
        self.programs.path().join("server")
    }

    fn demo(&self, arguments: &[&str]) -> Command {
        self.demo_of(1, arguments)
    }

    fn demo_of(&self, seconds: u64, arguments: &[&str]) -> Command {
        let (port, server) = (self.block.first().to_string(), self.server());
        let mut command =
            zerohop(&["demo", "deadlines", "--seconds", &seconds.to_string(), "--port", &port, "--server"]);
        command.arg(server).args(arguments).env("TMPDIR", self.temporary.path());
        command
    }

    fn processes(&self) -> Vec<String> {
        processes_on(self.temporary.path().to_str().unwrap())
    }

    fn assert_nothing_is_left(&self) {
        assert_eq!(self.processes(), [""; 0]);
        assert_eq!(std::fs::read_dir(self.temporary.path()).unwrap().count(), 0);
    }
}

/// Names of columns and rows, and sentences; not the numbers, nor the server's name.
fn frame(shown: &str) -> Vec<String> {
    let rest = |line: &str| line.split_once("; ").map_or(line.to_owned(), |(_, rest)| rest.to_owned());
    let label = |line: &str| line.trim_start().split("  ").next().unwrap().to_owned();
    let is_row =
        |line: &str| line.trim_start().chars().next().is_some_and(char::is_alphabetic) && line.contains(" ms  ");
    shown.lines().map(|line| if is_row(line) { label(line) } else { rest(line) }).collect()
}

fn readme() -> &'static str {
    let readme = include_str!("../../../../README.md");
    let block = readme.split("```text\n").skip(1).find(|block| block.contains("bulk requests/s"));
    block.and_then(|block| block.split("```").next()).expect("the README shows the demo")
}

#[test]
fn both_ways_are_shown_as_the_readme_has_them() {
    let ground = Ground::new();
    let Run { code, output, errors } = ground.demo(&[]).output().unwrap().into();
    assert_eq!(code, 0, "{output}{errors}");
    assert_eq!(frame(&output), frame(readme()));
    for stage in ["directly: measuring", "through the proxy: measuring"] {
        assert!(errors.lines().any(|line| line == stage), "{errors}");
    }
    ground.assert_nothing_is_left();
}

#[test]
fn both_ways_are_counted_and_told_to_machines() {
    let ground = Ground::new();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let ways_within = |seconds| {
        let Run { code, output, errors } = ground.demo_of(seconds, &["--json"]).output().unwrap().into();
        assert_eq!(code, 0, "{output}{errors}");
        let shown: serde_json::Value = serde_json::from_str(&output).unwrap();
        assert!(shown["ok"] == true && shown["within_us"] == 1000, "{shown}");
        let ways = shown["ways"].as_array().unwrap().clone();
        // So busy may a machine be that nobody was answered in that time.
        let is_counted =
            |way: &serde_json::Value| number(&way["tenant"]["requests"]) > 0.0 && number(&way["bulk_requests"]) > 0.0;
        ways.iter().all(is_counted).then_some(ways)
    };
    let ways = [1, 4, 16, 64].into_iter().find_map(ways_within).unwrap();
    assert_eq!(
        ways.iter().map(|way| way["way"].as_str().unwrap()).collect::<Vec<_>>(),
        ["directly", "through zerohop proxy"]
    );
    for way in &ways {
        let tenant = &way["tenant"];
        let (p50, p99, p999) = (number(&tenant["p50_us"]), number(&tenant["p99_us"]), number(&tenant["p999_us"]));
        assert!(0.0 < p50 && p50 <= p99 && p99 <= p999, "{way}");
        assert!((0.0..=1.0).contains(&number(&way["tenant_share_within"])), "{way}");
    }
    ground.assert_nothing_is_left();
}

/// Reads what it says of its stages until one of them.
fn await_stage(child: &mut Child, stage: &str) -> BufReader<std::process::ChildStderr> {
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before {stage:?}");
        if line.contains(stage) {
            return lines;
        }
    }
}

#[test]
fn ctrl_c_leaves_nothing_behind_and_a_kill_no_process() {
    let ground = Ground::new();
    let start = || ground.demo(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for stage in ["directly: keys", "directly: measuring", "through the proxy: measuring"] {
        let mut child = start();
        let errors = await_stage(&mut child, stage);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        assert_eq!(
            (child.wait().unwrap().code(), output.as_str()),
            (Some(0), "stopped before its end; nothing is left behind\n")
        );
        drop(errors);
        ground.assert_nothing_is_left();
    }
    let mut child = start();
    let errors = await_stage(&mut child, "directly: measuring");
    child.kill().unwrap();
    child.wait().unwrap();
    // Who started the server has asked the kernel to end it.
    let begun = Instant::now();
    while !ground.processes().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", ground.processes());
        std::thread::yield_now();
    }
    drop(errors);
}

#[test]
fn what_cannot_be_done_is_refused_with_the_fix() {
    let (block, temporary) = (PortBlock::take().unwrap(), Scratch::new());
    let taken = TcpListener::bind(("127.0.0.1", block.first())).unwrap();
    let (port, other) = (block.first().to_string(), (block.first() + 1).to_string());
    for (arguments, code, text) in [
        (&["--server", "/no/such/program"][..], 2, "--server /no/such/program: there is no such program"),
        // Tests run without PATH.
        (&[], 1, "--server PATH names one"),
        (&["--server", "/bin/false", "--port", &port], 2, "is not free"),
        (&["--server", "/bin/false", "--seconds", "60"], 2, "--seconds"),
    ] {
        let refused = run(&[&["demo", "deadlines"], arguments].concat());
        assert!(refused.code == code && refused.errors.contains(text), "{arguments:?}: {}", refused.errors);
    }
    let mut command = zerohop(&["demo", "deadlines", "--server", "/bin/false", "--port", &other]);
    let ended: Run = command.env("TMPDIR", temporary.path()).output().unwrap().into();
    assert!(ended.code == 1 && ended.errors.contains("/bin/false ended (exit status: 1)"), "{}", ended.errors);
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    drop(taken);
}
