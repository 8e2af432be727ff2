//! The fuzzing targets: what each is given, and what it proves.

use crate::Outcome;

/// One target of the program in `fuzz/`.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name, in the program and of its folder of inputs.
    pub name: &'static str,
    /// What it proves, in one line.
    pub about: &'static str,
    /// Runs in the gate: a few seconds of one core.
    pub gate_runs: u64,
    /// Longest input, bytes.
    pub length_max: usize,
}

/// All targets, those of bytes in flight first.
pub const TARGETS: &[Target] = &[
    Target {
        name: "requests",
        about: "a stream of requests cut anywhere gives the same requests; what is needed is never overstated",
        gate_runs: 6000,
        length_max: 1024,
    },
    Target {
        name: "inline",
        about: "a line's words are the same in place and unquoted, and quoting gives them back",
        gate_runs: 15_000,
        length_max: 1024,
    },
    Target {
        name: "replies",
        about: "the reply decoder never changes its mind, and reads what the encoder wrote in RESP2 and RESP3",
        gate_runs: 10_000,
        length_max: 1024,
    },
    Target {
        name: "texts",
        about: "patterns, integers and 80-bit floats: round trips, and Rust's own parsers as judges",
        gate_runs: 15_000,
        length_max: 512,
    },
    Target {
        name: "commands",
        about: "commands on a small store: one whole reply each, errors change nothing, the log replays to the same",
        gate_runs: 2000,
        length_max: 2048,
    },
    Target {
        name: "machine",
        about: "one or two cores under three clients: cuts change no reply, all come to rest, a restart finds all",
        gate_runs: 400,
        length_max: 2048,
    },
    Target {
        name: "changes",
        about: "logged changes: round trips; performed as a naive model performs them, or refused",
        gate_runs: 5000,
        length_max: 2048,
    },
    Target {
        name: "recovery",
        about: "any segments and runs are recovered or refused, twice the same; of a known life, exactly what is left of it",
        gate_runs: 3000,
        length_max: 2048,
    },
    Target {
        name: "manifest",
        about: "manifest, segment headers, unit marks and file names: refused, or read and written as they were",
        gate_runs: 20_000,
        length_max: 512,
    },
    Target {
        name: "managers",
        about: "managers' log, snapshot, frames and messages, the file `cluster`: refused, or read and written as they were; a log that is believed is condensed to the same",
        gate_runs: 10_000,
        length_max: 512,
    },
    Target {
        name: "copies",
        about: "the file BACKUP, a save's file SAVE and its parts, dumped values: refused, or read and written so that they mean the same",
        gate_runs: 2000,
        length_max: 2048,
    },
    Target {
        name: "lines",
        about: "two nodes and somebody between them without the key: an end hears what the other said, in order, or nothing; bodies of frames",
        gate_runs: 10_000,
        length_max: 1024,
    },
    Target {
        name: "settings",
        about: "configuration files: refused with a reason, or printed so that they mean the same again",
        gate_runs: 1500,
        length_max: 1024,
    },
    Target {
        name: "table",
        about: "tables and commands: read and written as they were, or refused; commands keep all invariants, plans are granted",
        gate_runs: 150,
        length_max: 1024,
    },
];

/// The target called `name`.
pub fn named(name: &str) -> Outcome<&'static Target> {
    let found = TARGETS.iter().find(|target| target.name == name);
    found.ok_or_else(|| format!("no target is called `{name}`; `cargo x fuzz` lists them"))
}
