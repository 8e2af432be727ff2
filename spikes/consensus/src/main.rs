//! The consensus spike: a Raft library on an executor of ours, in a world whose only chance is a seed.
//!
//! ```text
//! cargo run --release --manifest-path spikes/consensus/Cargo.toml -- --seeds 1000
//!   --seed N             one world; --trace prints everything that happened
//!   --from N             the first seed of many
//!   --plant NAME         a bug on purpose: ack, vote, truncation, hasher; inner and later show the two
//!                        defects of the library that the adapter keeps away (seeds 38 and 229)
//!   --leader-restore     a restarted leader goes on without an election, the library's default
//! ```

mod bytes;
mod coverage;
mod disk;
mod frame;
mod host;
mod judge;
mod links;
mod node;
mod outbox;
mod store;
mod swarm;
mod table;
mod trace;
mod types;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use coverage::Coverage;
use outbox::Plant;
use world::{Verdict, Wishes};

struct Options {
    from: u64,
    seeds: u64,
    wishes: Wishes,
}

#[expect(clippy::disallowed_methods, reason = "a program has arguments")]
fn options() -> Result<Options, String> {
    let wishes = Wishes { seed: 0, plant: Plant::Nothing, leader_restore: false, prints: false };
    let mut options = Options { from: 1, seeds: 1, wishes };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or("a number must follow".to_owned());
        match word.as_str() {
            "--seed" | "--from" => options.from = number()?,
            "--seeds" => options.seeds = number()?,
            "--trace" => options.wishes.prints = true,
            "--leader-restore" => options.wishes.leader_restore = true,
            "--plant" => options.wishes.plant = plant(&words.next().unwrap_or_default())?,
            _ => return Err(format!("`{word}` is no option; the first lines of main.rs list them")),
        }
    }
    Ok(options)
}

fn plant(name: &str) -> Result<Plant, String> {
    match name {
        "ack" => Ok(Plant::AckBeforeStored),
        "vote" => Ok(Plant::VoteNotStored),
        "truncation" => Ok(Plant::TruncationNotStored),
        "inner" => Ok(Plant::InnerSnapshots),
        "later" => Ok(Plant::LaterSnapshots),
        "hasher" => Ok(Plant::HasherOfTheSystem),
        _ => Err(format!("`{name}` is no plant: ack, vote, truncation, inner, later, hasher")),
    }
}

/// Run a seed twice: what was violated, or where the two runs part.
fn judge(wishes: Wishes) -> (Option<String>, Option<Verdict>) {
    let first = match catch_unwind(AssertUnwindSafe(|| world::run(wishes))) {
        Ok(verdict) => verdict,
        Err(_) => return (Some("panic, see above".to_owned()), None),
    };
    if let Some(words) = &first.violation {
        return (Some(words.clone()), Some(first));
    }
    let again = world::run(Wishes { prints: false, ..wishes });
    if again.trace.text() == first.trace.text() {
        return (None, Some(first));
    }
    let lines = first.trace.text().lines().zip(again.trace.text().lines());
    let parting = lines.enumerate().find(|(_, (a, b))| a != b);
    (Some(format!("two runs of one seed part at {parting:?}")), Some(first))
}

#[expect(clippy::disallowed_methods, reason = "how fast it is, is printed and decides nothing")]
fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(words) => {
            eprintln!("{words}");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    let (mut sum, mut met) = (Coverage::default(), std::collections::BTreeMap::<&str, u64>::new());
    let (mut failed, mut virtual_ns, mut bytes, mut hash) = (0, 0, 0, 0);
    for seed in options.from..options.from + options.seeds {
        let (violation, verdict) = judge(Wishes { seed, ..options.wishes });
        if let Some(words) = violation {
            failed += 1;
            println!("seed {seed}: {words}");
        }
        let Some(verdict) = verdict else { continue };
        sum.add(&verdict.coverage);
        verdict
            .coverage
            .lines()
            .into_iter()
            .filter(|line| line.1 > 0)
            .for_each(|line| *met.entry(line.0).or_default() += 1);
        virtual_ns += verdict.virtual_ns;
        bytes += verdict.trace.text().len();
        hash = base::rng::mix(hash ^ verdict.trace.hash());
        if options.seeds == 1 {
            println!("seed {seed}: trace {:016x}, {} bytes", verdict.trace.hash(), verdict.trace.text().len());
        }
    }
    for (name, count) in sum.lines() {
        println!("{name:>20} {count:>12} in {:>5} worlds", met.get(name).copied().unwrap_or(0));
    }
    let (virtual_s, real_s) = (virtual_ns as f64 / 1e9, began.elapsed().as_secs_f64());
    println!(
        "{virtual_s:.0} virtual seconds, each world twice, in {real_s:.1} s: {:.0} per second",
        2.0 * virtual_s / real_s
    );
    println!("{bytes} bytes of trace, hash of all {hash:016x}");
    println!("{} worlds, {failed} failed", options.seeds);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
