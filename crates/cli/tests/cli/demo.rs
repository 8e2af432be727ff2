//! `demo failover`: our side of it with a real kill, what it leaves behind, what it refuses; the peer's side is the suite `demo`
//! of `cargo x test`. How long anything takes decides nothing.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ports::PortBlock;
use rustix::process::{Pid, Signal, kill_process};

use crate::process::{PATIENCE, Run, Scratch, processes_on, run, zerohop};

/// Of a machine that does much else: a node that is not heard of for so long is one that was killed.
const LEASE_MS: &str = "2000";

/// The demo, with a directory of its own for what is temporary.
fn demo(temporary: &Scratch, block: &PortBlock, arguments: &[&str]) -> Command {
    let port = block.first().to_string();
    let mut command = zerohop(&[&["demo", "failover", "--port", &port, "--lease-ms", LEASE_MS], arguments].concat());
    command.env("TMPDIR", temporary.path());
    command
}

fn assert_nothing_is_left(temporary: &Scratch) {
    assert_eq!(processes_on(temporary.path().to_str().unwrap()), [""; 0]);
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

/// The value of a row of the table.
fn value<'a>(output: &'a str, label: &str) -> &'a str {
    let row = output.lines().find_map(|line| line.trim_start().strip_prefix(label));
    row.unwrap_or_else(|| panic!("{label:?} is not in {output}")).trim()
}

/// What the README shows of it.
fn readme() -> &'static str {
    let readme = include_str!("../../../../README.md");
    let block = readme.split("```text\n").skip(1).find(|block| block.contains("longest gap in writes"));
    block.and_then(|block| block.split("```").next()).expect("the README shows the demo")
}

#[test]
fn a_kill_loses_nothing_and_its_gap_is_shown_as_the_readme_has_it() {
    let (temporary, block) = (Scratch::new(), PortBlock::take().unwrap());
    let Run { code, output, errors } = demo(&temporary, &block, &[]).output().unwrap().into();
    assert_eq!(code, 0, "{output}{errors}");
    assert_eq!((value(&output, "lost of those"), value(&output, "counters that can be read")), ("0", "24 of 24"));
    let gap: f64 = value(&output, "longest gap in writes").strip_suffix(" s").unwrap().parse().unwrap();
    assert!(gap > 0.0, "{output}");
    // Each counter came through the kill, so each was incremented before and behind it.
    assert!(value(&output, "acknowledged writes").parse::<u64>().unwrap() >= 48, "{output}");
    assert!(output.contains("apt-get install valkey-server") && output.contains("--peer PATH"), "{output}");
    assert!(errors.contains(&format!("the node on port {} was killed", block.first() + 1)), "{errors}");
    assert_nothing_is_left(&temporary);
    // Rows and sentences are the README's; its numbers, and its marks, are those of another run.
    let is_label = |line: &&str| line.starts_with("  ") && !line.contains("zerohop") && !line.contains("valkey");
    let labels = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(is_label);
        rows.map(|row| row.trim_start().split("  ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(labels(&output), labels(readme()));
    for line in readme().lines().filter(|line| !line.starts_with("  ") && !line.is_empty()) {
        assert!(output.lines().any(|shown| shown == line), "the README says {line:?}, and it does not: {output}");
    }
}

#[test]
fn a_peer_that_does_not_run_is_told_and_ours_is_shown() {
    let (temporary, block) = (Scratch::new(), PortBlock::take().unwrap());
    let arguments = ["--json", "--peer", "/bin/false"];
    let Run { code, output, errors } = demo(&temporary, &block, &arguments).output().unwrap().into();
    assert_eq!(code, 1, "{output}{errors}");
    for text in ["\"ok\":true", "\"peer\":null", "/bin/false ended (exit status: 1)", "\"lost\":0", "\"readable\":24"] {
        assert!(output.contains(text), "{text:?} is not in {output}");
    }
    assert_nothing_is_left(&temporary);
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
    let (temporary, block) = (Scratch::new(), PortBlock::take().unwrap());
    let start = || demo(&temporary, &block, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut child = start();
    let errors = await_stage(&mut child, "was killed");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), output.as_str()),
        (Some(0), "stopped before its end; nothing is left behind\n")
    );
    drop(errors);
    assert_nothing_is_left(&temporary);

    let mut child = start();
    let errors = await_stage(&mut child, "counters are written");
    child.kill().unwrap();
    child.wait().unwrap();
    // The nodes are asked to stop by who started them, which is asked by the kernel.
    let begun = Instant::now();
    while !processes_on(temporary.path().to_str().unwrap()).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", processes_on(temporary.path().to_str().unwrap()));
        std::thread::yield_now();
    }
    drop(errors);
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let block = PortBlock::take().unwrap();
    let port = block.first().to_string();
    // The peer's last port for other nodes.
    let taken = TcpListener::bind(("127.0.0.1", block.first() + 11 + 10_000)).unwrap();
    for (arguments, text) in [
        (&["--peer", "/no/such/program"][..], "--peer /no/such/program: there is no such program"),
        (&["--port", &port], "and 10000 further up, are free"),
        (&["--port", "65530"], "are free"),
        (&["--port", "0"], "are free"),
    ] {
        let refused = run(&[&["demo", "failover"], arguments].concat());
        assert!(
            refused.code == 2 && refused.errors.contains(text),
            "{arguments:?}: {} {}",
            refused.code,
            refused.errors
        );
    }
    drop(taken);
}
