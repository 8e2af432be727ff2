//! When each chosen suite runs: those that fill every processor alone and in order, the others side by side, the longest first.
//!
//! ```text
//!  alone         format │ tidy │ … │ build │
//!  side by side                            │ simulator ───────│ proxy ────│ acl │ …
//!                                          │ differential ─│ nemesis ─────────│ …
//! ```
//!
//! Each suite is a process of its own: it can be given up, its processors' time is its own, and what it prints stays together.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::suites::{Company, Context, Counts, SUITES, Suite};
use crate::watchdog::{Watchdog, patience};
use crate::{Outcome, test, workspace};

/// This program, even if it was built anew meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// What `/proc/self/stat` counts in, per second: the same on every architecture Linux runs on today.
const TICKS_PER_SECOND: u64 = 100;

/// What became of one suite.
pub struct Ended {
    pub suite: &'static Suite,
    pub counts: Counts,
    pub seconds: u64,
    /// What it took of all processors together, its programs included.
    pub cpu_seconds: u64,
}

/// What has become of the chosen suites that ended.
pub struct Schedule {
    no_install: bool,
    ended: Mutex<Vec<Ended>>,
}

impl Schedule {
    /// Nothing has run. Suites install what they need unless they may not.
    pub fn new(no_install: bool) -> Schedule {
        Schedule { no_install, ended: Mutex::default() }
    }

    /// Runs them all; what became of each, in the order in which they ended.
    pub fn run(self, chosen: &[&'static Suite]) -> Vec<Ended> {
        let is_alone = |suite: &&Suite| suite.company == Company::Alone || chosen.len() == 1;
        let (alone, mut side_by_side): (Vec<&'static Suite>, Vec<_>) = chosen.iter().copied().partition(is_alone);
        for suite in alone {
            println!("\n== {}: {}", suite.name, suite.about);
            self.watch(suite, None);
        }
        side_by_side.sort_by_key(|suite| suite.budget_seconds);
        let waiting = Mutex::new(side_by_side);
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..at_a_time {
                scope.spawn(|| {
                    while let Some(suite) = next() {
                        self.run_beside_others(suite);
                    }
                });
            }
        });
        self.ended.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one, and shows what it printed when it has ended.
    fn run_beside_others(&self, suite: &'static Suite) {
        println!("-- {} begins", suite.name);
        let output = folder().join(format!("{}.log", suite.name));
        self.watch(suite, Some(output.clone()));
        let text = fs::read(&output).unwrap_or_default();
        // One call, so that nobody prints in between.
        println!("\n== {}: {}\n{}", suite.name, suite.about, String::from_utf8_lossy(&text));
    }

    /// Runs one, its output in a file if one is named, and notes what becomes of it. One that hangs closes the whole run.
    fn watch(&self, suite: &'static Suite, output: Option<PathBuf>) {
        let started = Instant::now();
        let mut so_far = Counts::one(false);
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|ended| so_far.add(ended.counts));
        let text = output.clone();
        let patience = patience(Duration::from_secs(suite.budget_seconds));
        let watchdog = Watchdog::new(patience, move || {
            let text = text.and_then(|path| fs::read(path).ok()).unwrap_or_default();
            println!("{}", String::from_utf8_lossy(&text));
            println!("{} hangs: it took {} s, its budget is {}", suite.name, patience.as_secs(), suite.budget_seconds);
            println!("{}", test::summary(so_far));
            std::process::exit(1);
        });
        let (counts, cpu_seconds) = self.run_one(suite, output).unwrap_or_else(|error| {
            println!("{}: {error}", suite.name);
            (Counts::one(false), 0)
        });
        drop(watchdog);
        let ended = Ended { suite, counts, seconds: started.elapsed().as_secs(), cpu_seconds };
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
    }

    fn run_one(&self, suite: &Suite, output: Option<PathBuf>) -> io::Result<(Counts, u64)> {
        fs::create_dir_all(folder())?;
        let result = result_file(suite);
        let _of_an_earlier_run = fs::remove_file(&result);
        let mut command = Command::new(THIS_PROGRAM);
        command.args(["suite", suite.name]).args(self.no_install.then_some("--no-install")).stdin(Stdio::null());
        if let Some(path) = output {
            let file = File::create(path)?;
            command.stdout(file.try_clone()?).stderr(file);
        }
        let status = command.status()?;
        let told = parse_result(&fs::read_to_string(&result).unwrap_or_default());
        told.ok_or_else(|| io::Error::other(format!("it ended without a result ({status})")))
    }
}

/// `cargo x suite`: one suite in this process. Its result is in a file, because what it prints is its own.
pub fn run_suite(arguments: &[String]) -> Outcome<ExitCode> {
    let (name, no_install) = match arguments {
        [name] => (name, false),
        [name, word] if word == "--no-install" => (name, true),
        _ => return Err("suite wants the name of one; `cargo x test --list` has them".to_owned()),
    };
    let suite = SUITES.iter().find(|suite| suite.name == *name);
    let suite = suite.ok_or_else(|| format!("no suite is called `{name}`; `cargo x test --list` names them"))?;
    let context = Context { root: workspace::root(), commit: workspace::commit(), may_install: !no_install };
    let counts = (suite.run)(&context).unwrap_or_else(|message| {
        println!("{}: {message}", suite.name);
        Counts::one(false)
    });
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let result = format!("{}\n{}\n", test::summary(counts), cpu_seconds(&stat));
    let wrote = fs::create_dir_all(folder()).and_then(|()| fs::write(result_file(suite), result));
    wrote.map_err(|error| format!("{}: {error}", result_file(suite).display()))?;
    Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Counts and CPU seconds, as `run_suite` writes them.
fn parse_result(text: &str) -> Option<(Counts, u64)> {
    let (counts, cpu) = text.split_once('\n')?;
    Some((Counts::parse(counts)?, cpu.trim().parse().ok()?))
}

/// What a process and those that it waited for took of the processors, by its `/proc/PID/stat`.
fn cpu_seconds(stat: &str) -> u64 {
    // Behind the name in parentheses: user and kernel time, its own and its children's, from the twelfth word on.
    let words = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    words.skip(11).take(4).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() / TICKS_PER_SECOND
}

fn folder() -> PathBuf {
    workspace::target_folder().join("suites")
}

fn result_file(suite: &Suite) -> PathBuf {
    folder().join(format!("{}.result", suite.name))
}

#[cfg(test)]
mod tests {
    use super::{Counts, cpu_seconds, parse_result};

    #[test]
    fn a_result_is_counts_and_seconds() {
        let counts = Counts { passed: 3, failed: 1, skipped: 2 };
        assert_eq!(parse_result("3 passed, 1 failed, 2 skipped\n41\n"), Some((counts, 41)));
        assert_eq!(parse_result("3 passed, 1 failed\n"), None, "a process that died while it wrote has no result");
        assert_eq!(parse_result(""), None);
    }

    #[test]
    fn children_count_and_names_may_hold_anything() {
        let stat = "7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 100 200 300 450 20 0 1 0 5 0 0";
        assert_eq!(cpu_seconds(stat), 10);
        assert_eq!(cpu_seconds(""), 0);
    }
}
