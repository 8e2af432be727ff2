//! The simulator as a program: seeds in, verdicts out.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use sim::coverage::Coverage;
use sim::disk::CrashKind;
use sim::history::{Operation, write_edn};
use sim::node::Durability;
use sim::run::run;
use sim::shard_node::ShardNode;
use sim::street::CrashPoint;
use sim::swarm::Wish;
use sim::town;
use sim::verdict::{Seen, Verdict};

/// Run the node on a virtual clock, network and disk, with faults, and judge what its clients saw.
#[derive(Parser)]
struct Options {
    /// One seed.
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds, from --from on.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Operations of each run.
    #[arg(long, default_value_t = 600)]
    steps: u64,
    /// Print everything that happens.
    #[arg(long)]
    trace: bool,
    /// Nothing goes wrong.
    #[arg(long)]
    no_faults: bool,
    /// Harm the disk at the end: the node must refuse it, or serve what it served before.
    #[arg(long)]
    damage: bool,
    /// Only this promise: memory, interval or commit.
    #[arg(long)]
    durability: Option<String>,
    /// Only this number of cores.
    #[arg(long)]
    cores: Option<u16>,
    /// One more crash, at this durable step.
    #[arg(long)]
    crash_at_step: Option<u64>,
    /// That crash is a power cut instead of a kill.
    #[arg(long)]
    power_cut: bool,
    /// Worlds of so many nodes, or of `any` number, with a network between them.
    #[arg(long)]
    nodes: Option<String>,
    /// In such worlds: slots stay where they are, but for what failovers move.
    #[arg(long)]
    no_moves: bool,
    /// In such worlds: nobody reads copies.
    #[arg(long)]
    no_readers: bool,
    /// Write the last run's history, in the shape that Elle reads.
    #[arg(long)]
    history: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let durability = match options.durability.as_deref() {
        None => None,
        Some("memory") => Some(Durability::Memory),
        Some("interval") => Some(Durability::Interval),
        Some("commit") => Some(Durability::Commit),
        Some(other) => {
            eprintln!("--durability {other}: say memory, interval or commit");
            return ExitCode::FAILURE;
        }
    };
    let seeds = options.seed.map_or(options.from..options.from + options.seeds, |seed| seed..seed + 1);
    if let Some(nodes) = &options.nodes {
        return towns(&options, nodes, durability, seeds);
    }
    let kind = if options.power_cut { CrashKind::PowerCut } else { CrashKind::Kill };
    let crash = options.crash_at_step.map(|step| CrashPoint { step, kind });
    judge_all(seeds, options.history.as_deref(), |seed| {
        let wish = Wish {
            seed,
            steps: options.steps,
            durability,
            cores: options.cores,
            faults: !options.no_faults,
            damage: options.damage,
        };
        run(ShardNode::default(), &wish, crash, options.trace)
    })
}

fn towns(options: &Options, nodes: &str, durability: Option<Durability>, seeds: Range<u64>) -> ExitCode {
    let nodes = match nodes {
        "any" => None,
        number => match number.parse() {
            Ok(count @ 2..=9) => Some(count),
            _ => {
                eprintln!("--nodes {number}: say 2 to 9, or any");
                return ExitCode::FAILURE;
            }
        },
    };
    judge_all(seeds, options.history.as_deref(), |seed| {
        let drawn = town::Wish::of(seed);
        let (moves, readers) = (drawn.moves && !options.no_moves, drawn.readers && !options.no_readers);
        let wish = town::Wish { nodes, durability, faults: !options.no_faults, moves, readers, ..drawn };
        town::run(&wish, options.trace)
    })
}

fn judge_all<S: Seen>(seeds: Range<u64>, history: Option<&Path>, run: impl Fn(u64) -> Verdict<S>) -> ExitCode {
    let (mut coverage, mut failed) = (Coverage::default(), Vec::new());
    for seed in seeds {
        let verdict = run(seed);
        println!("{verdict}");
        coverage.add(&verdict);
        if !verdict.is_good() {
            failed.push(seed);
        }
        if let Some(Err(error)) = history.map(|path| write_history(path, &verdict.operations)) {
            eprintln!("--history: {error}");
            return ExitCode::FAILURE;
        }
    }
    print!("{coverage}");
    println!("{} failed {failed:?}", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write_history(path: &Path, operations: &[Operation]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    write_edn(operations, &mut file)?;
    std::io::Write::flush(&mut file)
}
