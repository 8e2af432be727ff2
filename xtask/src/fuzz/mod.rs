//! `cargo x fuzz`: coverage-guided fuzzing of every decoder, with libFuzzer and AddressSanitizer.
//!
//! - [`targets`]: what there is to fuzz
//! - [`program`]: the one program that holds all targets, and what building it needs
//! - [`session`]: one run of one target

mod program;
mod session;
mod targets;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

pub use program::{CXX, build};
pub use session::{Bound, Session, Tally};
pub use targets::{TARGETS, Target, named};

use crate::{Outcome, process, workspace};

/// Seconds of a run by hand, unless said otherwise.
const SECONDS: u64 = 60;
/// Bytes of inputs that the repository keeps of one target.
const KEPT_BYTES_MAX: u64 = 20_000;

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    target: Option<String>,
    seconds: Option<u64>,
    jobs: Option<usize>,
    reproduce: Option<PathBuf>,
    planted: Option<String>,
    keep: bool,
}

/// `cargo x fuzz`.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    let options = parse(arguments)?;
    let chosen: Vec<&Target> = match options.target.as_deref() {
        None => {
            list();
            return Ok(ExitCode::SUCCESS);
        }
        Some("all") => TARGETS.iter().collect(),
        Some(name) => vec![targets::named(name)?],
    };
    let program = build(options.planted.is_some())?;
    if let Some(input) = &options.reproduce {
        return session::reproduce(&program, chosen[0], input);
    }
    if options.keep {
        chosen.iter().try_for_each(|target| keep(&program, target))?;
        return Ok(ExitCode::SUCCESS);
    }
    let bound = Bound::Seconds(options.seconds.unwrap_or(SECONDS));
    let jobs = options.jobs.unwrap_or(1);
    // Several jobs share one target's inputs; several targets take turns.
    let session = |target, job| Session::new(target, bound, job as u64).with_planted(options.planted.as_deref());
    let sessions = chosen.iter().flat_map(|target| (0..jobs).map(move |job| session(target, job)));
    let tallies = run_all(&program, &sessions.collect::<Vec<_>>(), jobs)?;
    let is_found = report(&tallies) > 0;
    Ok(if is_found == options.planted.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse(arguments: &[String]) -> Outcome<Options> {
    let mut options = Options::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("`{word}` wants a value after it"));
        match word.as_str() {
            "--seconds" => options.seconds = Some(number(value()?)?),
            "--jobs" => options.jobs = Some(number(value()?)?.clamp(1, 256) as usize),
            "--planted" => options.planted = Some(value()?.clone()),
            "--reproduce" => options.reproduce = Some(PathBuf::from(value()?)),
            "--keep" => options.keep = true,
            name if !name.starts_with('-') && options.target.is_none() => options.target = Some(name.to_owned()),
            other => return Err(format!("`{other}` means nothing here; `cargo x fuzz --help` says what does")),
        }
    }
    Ok(options)
}

fn number(word: &str) -> Outcome<u64> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

fn list() {
    println!("cargo x fuzz TARGET|all [--seconds N] [--jobs N]   fuzz; inputs found stay in target/fuzz/corpus");
    println!("cargo x fuzz TARGET --planted BUG [--seconds N]    whether it finds one of the bugs in base::planted");
    println!("cargo x fuzz TARGET --reproduce FILE               give one input to a target");
    println!("cargo x fuzz TARGET|all --keep                     the smallest of those inputs into fuzz/corpus\n");
    for target in TARGETS {
        println!("{:<10} {}", target.name, target.about);
    }
}

/// Runs the sessions, `at_once` of them at a time; the tally of each, in their order.
pub fn run_all(program: &Path, sessions: &[Session], at_once: usize) -> Outcome<Vec<Tally>> {
    let next = Mutex::new(0..sessions.len());
    let tallies: Mutex<Vec<(usize, Outcome<Tally>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let taken = next.lock().expect("no session panics").next();
            let Some(number) = taken else { return };
            let tally = sessions[number].run(program);
            tallies.lock().expect("no session panics").push((number, tally));
        }
    };
    thread::scope(|scope| (0..at_once.max(1)).for_each(|_| drop(scope.spawn(work))));
    let mut tallies = tallies.into_inner().expect("no session panics");
    tallies.sort_by_key(|(number, _)| *number);
    tallies.into_iter().map(|(_, tally)| tally).collect()
}

/// Prints what came of each session; how many found something.
pub fn report(tallies: &[Tally]) -> usize {
    for tally in tallies {
        println!("{}", tally.line());
        if let Some(finding) = &tally.finding {
            println!("{}", finding.advice(tally.target));
        }
    }
    tallies.iter().filter(|tally| tally.finding.is_some()).count()
}

/// The inputs that come with the repository.
pub fn kept_corpus(target: &Target) -> PathBuf {
    workspace::root().join("fuzz/corpus").join(target.name)
}

/// The inputs found on this machine.
fn found_corpus(target: &Target) -> PathBuf {
    program::folder().join("corpus").join(target.name)
}

/// Replaces the inputs in the repository by the smallest set that reaches what all inputs reach, as far as there is room.
fn keep(program: &Path, target: &Target) -> Outcome<()> {
    let (kept, merged) = (kept_corpus(target), program::folder().join("merged").join(target.name));
    session::make_empty(&merged)?;
    session::make(&found_corpus(target))?;
    session::make(&kept)?;
    let mut merge = session::command(program, target);
    merge.args(["-merge=1", "-set_cover_merge=1"]).args([&merged, &kept, &found_corpus(target)]);
    merge.stderr(std::process::Stdio::null());
    if !process::shown(&mut merge)? {
        return Err(format!("`{}` failed", process::describe(&merge)));
    }
    let mut inputs: Vec<(u64, PathBuf)> = files(&merged)?;
    inputs.sort();
    session::make_empty(&kept)?;
    let (mut bytes, mut count) = (0, 0);
    for (length, input) in inputs {
        bytes += length;
        if bytes > KEPT_BYTES_MAX {
            bytes -= length;
            break;
        }
        let name = input.file_name().expect("a listed file has a name");
        std::fs::copy(&input, kept.join(name)).map_err(|error| format!("{}: {error}", kept.display()))?;
        count += 1;
    }
    println!("{:<10} {count} inputs of {bytes} bytes together kept", target.name);
    Ok(())
}

/// Length and path of every file in `folder`.
fn files(folder: &Path) -> Outcome<Vec<(u64, PathBuf)>> {
    let at = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        files.push((entry.metadata().map_err(at)?.len(), entry.path()));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::{Options, TARGETS, files, kept_corpus, parse};

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let options = parse(&words("machine --seconds 5 --jobs 2")).expect("all are known");
        let expected =
            Options { target: Some("machine".into()), seconds: Some(5), jobs: Some(2), ..Options::default() };
        assert_eq!(options, expected);
        assert!(parse(&words("machine --seconds")).is_err());
        assert!(parse(&words("machine --forever")).is_err());
    }

    #[test]
    fn every_target_has_inputs_in_the_tree_and_a_place_in_the_program() {
        let program = std::fs::read_to_string(crate::workspace::root().join("fuzz/src/main.rs")).expect("the program");
        for target in TARGETS {
            assert!(program.contains(&format!("(\"{}\", ", target.name)), "{} is not in the program", target.name);
            let kept = files(&kept_corpus(target)).expect("a folder of inputs");
            assert!(!kept.is_empty(), "{} has no inputs", target.name);
        }
    }
}
