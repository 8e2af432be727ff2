//! Measures candidate hashes on random, sequential and real keys; one JSON object per line.

use std::path::PathBuf;
use std::process::ExitCode;

use base::rng::Rng;
use clap::Parser;

#[derive(Parser)]
#[command(name = "hash-bench", about = "Nanoseconds per key and evenness per partition of candidate hashes")]
struct Arguments {
    /// File of real keys, one per line
    #[arg(long)]
    real_keys: Option<PathBuf>,
    /// Random and sequential keys
    #[arg(long, default_value_t = 1_000_000)]
    keys: usize,
    /// Passes over each set
    #[arg(long, default_value_t = 5)]
    passes: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut rng = Rng::new(1);
    let random = |rng: &mut Rng| (0..15).map(|_| rng.below(256) as u8).collect::<Vec<u8>>();
    let sequential = |number: usize| format!("key:{number:011}").into_bytes();
    let mut sets = vec![
        ("random", (0..arguments.keys).map(|_| random(&mut rng)).collect::<Vec<_>>()),
        ("sequential", (0..arguments.keys).map(sequential).collect()),
    ];
    if let Some(path) = &arguments.real_keys {
        match std::fs::read_to_string(path) {
            Ok(text) => sets.push(("real", text.lines().map(|line| line.as_bytes().to_vec()).collect())),
            Err(error) => {
                eprintln!("hash-bench: cannot read {}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    for (name, keys) in sets.iter().filter(|(_, keys)| !keys.is_empty()) {
        for candidate in bench::hash::CANDIDATES {
            let outcome = bench::hash::measure(candidate, keys, arguments.passes);
            println!("{}", serde_json::json!({ "keys": name, "count": keys.len(), "outcome": outcome }));
        }
    }
    ExitCode::SUCCESS
}
