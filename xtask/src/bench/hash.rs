//! `hash`: the table that justifies the choice of hashes. Real keys are the package names this machine's package lists
//! know.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde::Deserialize;

use super::options::Options;
use super::programs::built;
use super::results::{Bar, Results};
use crate::{Outcome, process, workspace};

/// Fewer names than this say nothing about 16384 partitions.
const REAL_KEYS_MIN: usize = 10_000;

#[derive(Deserialize)]
struct Line {
    keys: String,
    count: usize,
    outcome: Measured,
}

#[derive(Deserialize)]
struct Measured {
    hash: String,
    ns_per_key: Vec<f64>,
    fullest_over_mean: f64,
    chi_square_per_degree: f64,
}

/// Runs every candidate on every set of keys.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(built("hash-bench"));
    command.args(["--keys", &options.keys.to_string(), "--passes", &options.pairs.to_string()]);
    let names = package_names();
    if names.len() >= REAL_KEYS_MIN {
        let path = workspace::root().join("target/bench-data/package-names");
        let text = names.into_iter().collect::<Vec<String>>().join("\n");
        fs::create_dir_all(path.parent().expect("the path has a folder"))
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        command.arg("--real-keys").arg(path);
    } else {
        results.note("no real keys: this machine has no Debian package lists (`cargo x peers` fetches them)");
    }
    for line in process::output(&mut command)?.lines() {
        let line: Line = serde_json::from_str(line)
            .map_err(|error| format!("hash-bench printed what is not understood: {error}"))?;
        let cell = format!("{} {}", line.count, line.keys);
        let measured = line.outcome;
        results.value(&cell, &measured.hash, "ns/key", &measured.ns_per_key, Bar::None)?;
        results.value(&cell, &measured.hash, "fullest/mean", &[measured.fullest_over_mean], Bar::None)?;
        results.value(&cell, &measured.hash, "chi2/degree", &[measured.chi_square_per_degree], Bar::None)?;
    }
    results.note("16384 partitions, hash modulo partitions; chi2/degree is 1 for a random function");
    Ok(())
}

/// Names in the package lists of `target/peers`, or of the machine.
fn package_names() -> BTreeSet<String> {
    let mut command = Command::new("apt-cache");
    command.arg("pkgnames");
    let configuration = workspace::root().join("target/peers/apt/apt.conf");
    if configuration.is_file() {
        command.env("APT_CONFIG", configuration);
    }
    process::output(&mut command).unwrap_or_default().lines().map(str::to_owned).collect()
}
