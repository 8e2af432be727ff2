//! The suite `differential`: generated command sequences against Redis, Valkey and a model.
//!
//! Part of the sequences are the same for every commit, so that a difference once found stays found; the others are drawn
//! from the commit, so that every commit is asked something new. Each run prints the command that repeats exactly it.

use std::process::Command;

use super::outside::{BACKENDS, on_every_backend, program, with_server};
use super::{Company, Context, Counts, Suite, Turn, commit_number};
use crate::{Outcome, needs, process};

/// Personalities of the server under test.
const SHAPES: [&str; 2] = ["standalone", "cluster"];
/// The seed that every commit is asked.
const FIXED_SEED: u64 = 12;
/// Sequences of one run from the fixed seed, after which the table of boundaries follows.
const FIXED_SEQUENCES: u64 = 10_000;
/// Sequences of one run from the commit's seed. Two backends, two personalities: 200,000 sequences with the fixed ones.
const COMMIT_SEQUENCES: u64 = 40_000;

/// Generated command sequences against Redis, Valkey and a model.
pub const DIFFERENTIAL: Suite = Suite {
    name: "differential",
    about: "200,000 generated command sequences answered as Redis, Valkey and a model do; both backends and personalities",
    needs: &[&needs::REDIS, &needs::VALKEY],
    budget_seconds: 240,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| {
        on_every_backend(context, |backend, proof| {
            let mut counts = Counts::default();
            for shape in SHAPES {
                let of_commit = seed_of(&context.commit, backend, shape);
                println!("{shape}: fixed seed {FIXED_SEED:#x}, and {of_commit:#x} from commit {}", context.commit);
                for (seed, sequences) in [(FIXED_SEED, FIXED_SEQUENCES), (of_commit, COMMIT_SEQUENCES)] {
                    let mut command = run_command(context, (backend, proof), shape, seed, sequences)?;
                    println!("  again: {}", process::describe(&command));
                    counts.add(context.counted(&mut command)?);
                }
            }
            Ok(counts)
        })
    },
};

fn run_command(
    context: &Context,
    (backend, proof): (&str, &String),
    shape: &str,
    seed: u64,
    sequences: u64,
) -> Outcome<Command> {
    let mut command = with_server(context, (backend, "2"), proof)?;
    command.args([proof.as_str(), "differential", "--shape", shape]);
    command.args(["--sequences", &sequences.to_string(), "--seed", &format!("{seed:#x}")]);
    command.args(["--redis-server", &program("redis-server")?, "--valkey-server", &program("valkey-server")?]);
    if seed != FIXED_SEED {
        command.arg("--no-boundaries");
    }
    let ports: &[&str] = if shape == "cluster" { &["{cluster}", "{cluster1}"] } else { &["{port}"] };
    for port in ports {
        command.args(["--target", &format!("127.0.0.1:{port}")]);
    }
    Ok(command)
}

/// The commit's first twelve digits, and a last one for which of the four runs it is.
fn seed_of(commit: &str, backend: &str, shape: &str) -> u64 {
    let index_in = |names: &[&str], name: &str| names.iter().position(|known| *known == name).unwrap_or(0);
    let run = SHAPES.len() * index_in(&BACKENDS, backend) + index_in(&SHAPES, shape);
    commit_number(commit) << 4 | run as u64
}

#[cfg(test)]
mod tests {
    use super::seed_of;

    #[test]
    fn a_commit_has_four_seeds_of_its_own() {
        let commit = "c835ea7f00d1".repeat(4);
        let seeds = ["epoll", "uring"]
            .map(|backend| ["standalone", "cluster"].map(|shape| seed_of(&commit, backend, shape)))
            .concat();
        assert_eq!(seeds, [0, 1, 2, 3].map(|run| 0xc835_ea7f_00d1 << 4 | run));
        assert_ne!(seed_of(&"1".repeat(40), "epoll", "cluster"), seeds[1]);
        assert_eq!(seed_of("not a commit", "epoll", "standalone"), 0);
    }
}
