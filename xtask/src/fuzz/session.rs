//! One run of one target: its bound, what is shown of it, and what came of it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use super::{Target, found_corpus, kept_corpus, program};
use crate::{Outcome, process, workspace};

/// Where inputs that broke something are kept until they are mended.
const CRASHES: &str = "fuzz/crashes";
/// Seconds after which an input counts as a hang.
const HANG_SECONDS: u64 = 25;
/// Resident memory, MiB, beyond which an input counts as a leak or a bomb.
const RESIDENT_MIB_MAX: u64 = 2048;
/// Options of the sanitizer: little freed memory is held back, or every input would touch new pages.
const SANITIZER_OPTIONS: &str = "quarantine_size_mb=16";

/// When a session ends.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// After this time.
    Seconds(u64),
    /// After this many inputs beyond the repository's, mutated by `seed`, with nothing but the repository's to start from.
    Runs {
        /// How many.
        runs: u64,
        /// Which.
        seed: u32,
    },
}

/// One run to be.
pub struct Session {
    target: &'static Target,
    bound: Bound,
    job: u64,
    planted: Option<String>,
}

/// What broke a promise.
#[derive(Debug)]
pub struct Finding {
    /// The input.
    input: Option<PathBuf>,
    /// The line that says what happened.
    reason: String,
}

/// What came of a session.
#[derive(Debug)]
pub struct Tally {
    /// Whose.
    pub target: &'static Target,
    /// Inputs that were run.
    pub runs: u64,
    /// Inputs that reached something new.
    pub new_inputs: u64,
    /// Edges of the program that were reached.
    pub edges: u64,
    /// What broke.
    pub finding: Option<Finding>,
}

impl Session {
    /// The `job`th session of a target.
    pub fn new(target: &'static Target, bound: Bound, job: u64) -> Session {
        Session { target, bound, job, planted: None }
    }

    /// The same with a planted bug: it begins with the repository's inputs, and nothing that it finds is kept.
    pub fn with_planted(mut self, bug: Option<&str>) -> Session {
        self.planted = bug.map(str::to_owned);
        self
    }

    /// Runs to the bound or to the first finding.
    pub fn run(&self, program: &Path) -> Outcome<Tally> {
        let target = self.target;
        let mut command = command(program, target);
        let kept = kept_corpus(target);
        match self.bound {
            Bound::Seconds(seconds) => {
                let found = match &self.planted {
                    None => found_corpus(target),
                    Some(bug) => {
                        command.env("PLANTED_BUG", bug);
                        let scratch = program::folder().join("planted").join(format!("{}-{}", target.name, self.job));
                        make_empty(&scratch)?;
                        command.arg(format!("-artifact_prefix={}/found-", scratch.display()));
                        scratch
                    }
                };
                make(&found)?;
                make(&kept)?;
                command.args([format!("-max_total_time={seconds}"), "-reload=1".to_owned()]);
                command.args([&found, &kept]);
            }
            Bound::Runs { runs, seed } => {
                let inputs = super::files(&kept)?.len() as u64;
                let scratch = program::folder().join("gate").join(target.name);
                make_empty(&scratch)?;
                command.args([format!("-runs={}", runs + inputs), format!("-seed={}", seed.max(1))]);
                command.args([&scratch, &kept]);
            }
        }
        command.arg("-print_final_stats=1");
        let log = program::folder().join("logs").join(format!("{}-{}.txt", target.name, self.job));
        watch(&mut command, target, &log)
    }
}

/// The program on a target, without inputs.
pub fn command(program: &Path, target: &Target) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace::root()).env("ASAN_OPTIONS", SANITIZER_OPTIONS);
    command.arg(format!("--target={}", target.name));
    command.args([format!("-max_len={}", target.length_max), format!("-timeout={HANG_SECONDS}")]);
    // Inputs are long from the start: a short one is hardly a conversation.
    command.arg("-len_control=0");
    command.args([format!("-rss_limit_mb={RESIDENT_MIB_MAX}"), format!("-artifact_prefix={CRASHES}/{}-", target.name)]);
    command
}

/// Gives one input to a target, with everything shown.
pub fn reproduce(program: &Path, target: &Target, input: &Path) -> Outcome<ExitCode> {
    let input = std::path::absolute(input).map_err(|error| format!("{}: {error}", input.display()))?;
    if !input.is_file() {
        return Err(format!("{} is no file", input.display()));
    }
    let passed = process::shown(command(program, target).env("RUST_BACKTRACE", "1").arg(input))?;
    println!("{}", if passed { "nothing broke" } else { "broken; see above" });
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a session: progress is shown, everything is kept in `log`.
fn watch(command: &mut Command, target: &'static Target, log: &Path) -> Outcome<Tally> {
    let shown = process::describe(command);
    make(log.parent().expect("a log lies in a folder"))?;
    make(&workspace::root().join(CRASHES))?;
    let mut file = std::fs::File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let spawned = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| format!("`{shown}` did not start: {error}"))?;
    let stderr = child.stderr.take().expect("standard error was piped above");
    let mut tally = Tally { target, runs: 0, new_inputs: 0, edges: 0, finding: None };
    for line in BufReader::new(stderr).split(b'\n') {
        let line = line.map_err(|error| format!("`{shown}`: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        writeln!(file, "{line}").map_err(|error| format!("{}: {error}", log.display()))?;
        tally.note(&line);
    }
    let status = child.wait().map_err(|error| format!("`{shown}` was lost: {error}"))?;
    if !status.success() && tally.finding.is_none() {
        return Err(format!("`{shown}` ended with {status}; what it said is in {}", log.display()));
    }
    Ok(tally)
}

impl Tally {
    /// Takes from a line of libFuzzer what it tells.
    fn note(&mut self, line: &str) {
        if let Some(progress) = line.strip_prefix('#') {
            let mut words = progress.split_whitespace();
            let (runs, what) = (words.next().and_then(|runs| runs.parse().ok()), words.next().unwrap_or_default());
            self.runs = runs.unwrap_or(self.runs);
            let edges = words.skip_while(|word| *word != "cov:").nth(1).and_then(|edges| edges.parse().ok());
            self.edges = edges.unwrap_or(self.edges);
            if matches!(what, "pulse" | "DONE") {
                println!("{:<10} {}", self.target.name, progress.trim());
            }
        } else if let Some(count) = line.strip_prefix("stat::new_units_added:") {
            self.new_inputs = count.trim().parse().unwrap_or(0);
        } else if let Some((_, input)) = line.split_once("Test unit written to ") {
            let input = PathBuf::from(input.trim());
            self.finding.get_or_insert_with(|| Finding { input: None, reason: String::new() }).input = Some(input);
        } else if line.contains("panicked at") || line.contains("ERROR: ") {
            let begun = self.finding.get_or_insert_with(|| Finding { input: None, reason: String::new() });
            if begun.reason.is_empty() {
                begun.reason = line.trim().to_owned();
            }
        }
    }

    /// Everything in one line.
    pub fn line(&self) -> String {
        let verdict = if self.finding.is_some() { "FAILED" } else { "ok" };
        let (name, runs, new, edges) = (self.target.name, self.runs, self.new_inputs, self.edges);
        format!("{name:<10} {runs:>10} runs {new:>6} new inputs {edges:>6} edges  {verdict}")
    }
}

impl Finding {
    /// What happened, and how to see it again.
    pub fn advice(&self, target: &Target) -> String {
        let reason = &self.reason;
        match &self.input {
            None => format!("  {reason}\n  what was printed is in {}", program::folder().join("logs").display()),
            Some(input) => format!(
                "  {reason}\n  again:  cargo x fuzz {0} --reproduce {1}\n  mended: git mv {1} fuzz/corpus/{0}/",
                target.name,
                input.display()
            ),
        }
    }
}

/// Makes a folder that is there afterwards.
pub fn make(folder: &Path) -> Outcome<()> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Makes a folder that is there and empty afterwards.
pub fn make_empty(folder: &Path) -> Outcome<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    make(folder)
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use crate::fuzz::TARGETS;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally { target: &TARGETS[0], runs: 0, new_inputs: 0, edges: 0, finding: None };
        lines.iter().for_each(|line| tally.note(line));
        tally
    }

    #[test]
    fn progress_and_results_are_read() {
        let done = "#1234\tDONE   cov: 567 ft: 890 corp: 12/3Kb lim: 512 exec/s: 1 rss: 60Mb";
        let tally = tally(&["INFO: seed", done, "stat::new_units_added:          41"]);
        assert_eq!((tally.runs, tally.edges, tally.new_inputs), (1234, 567, 41));
        assert!(tally.finding.is_none() && tally.line().ends_with("ok"));
    }

    #[test]
    fn a_finding_names_its_input_and_how_to_see_it_again() {
        let lines = [
            "thread '<unnamed>' panicked at crates/wire/src/x.rs:1:2:",
            "==9== ERROR: libFuzzer: deadly signal",
            "artifact_prefix='fuzz/crashes/requests-'; Test unit written to fuzz/crashes/requests-crash-0a1b",
        ];
        let tally = tally(&lines);
        let advice = tally.finding.as_ref().expect("something was found").advice(tally.target);
        assert!(advice.contains("cargo x fuzz requests --reproduce fuzz/crashes/requests-crash-0a1b"), "{advice}");
        assert!(advice.contains("panicked at crates/wire/src/x.rs"), "{advice}");
        assert!(tally.line().ends_with("FAILED"));
    }
}
