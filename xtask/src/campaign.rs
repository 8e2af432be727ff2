//! `cargo x campaign`: what a commit's run has no time for. The last result of each campaign stays in `campaigns/`.

use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::fuzz::{self, Bound, Session, TARGETS};
use crate::{Outcome, process, workspace};

/// Where the last results lie.
const FOLDER: &str = "campaigns";
/// Seconds of a campaign, unless said otherwise (AT-10: two hours).
const SECONDS: u64 = 2 * 60 * 60;
/// Seeds that the simulator is given at a time.
const SEEDS_AT_ONCE: u64 = 2000;
/// Fuzzing targets that run at a time, one per core of the reference machine.
const AT_ONCE: usize = 2;

/// One campaign.
struct Campaign {
    name: &'static str,
    about: &'static str,
    run: fn(u64) -> Outcome<Verdict>,
}

/// What came of a campaign.
struct Verdict {
    passed: bool,
    /// Counts, one line each.
    lines: Vec<String>,
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign { name: "fuzz", about: "every fuzzing target, an equal share of the time each", run: run_fuzz },
    Campaign { name: "sim", about: "seeds of the simulator that no other campaign has seen", run: run_sim },
];

/// `cargo x campaign`.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, seconds) = match words[..] {
        [] => {
            list();
            return Ok(ExitCode::SUCCESS);
        }
        [name] => (name, SECONDS),
        [name, "--seconds", seconds] => (name, seconds.parse().map_err(|_| format!("`{seconds}` is no number"))?),
        _ => return Err("campaign takes a name and `--seconds N`".to_owned()),
    };
    let campaign = CAMPAIGNS.iter().find(|campaign| campaign.name == name);
    let campaign = campaign.ok_or_else(|| format!("no campaign is called `{name}`; `cargo x campaign` lists them"))?;
    let (date, commit) = (date()?, workspace::commit());
    let begun = Instant::now();
    let verdict = (campaign.run)(seconds)?;
    let heading = format!(
        "date     {date}\ncommit   {commit}{}\ncommand  cargo x campaign {name} --seconds {seconds}\ntook     {} s\nverdict  {}\n",
        if is_changed()? { " and changes" } else { "" },
        begun.elapsed().as_secs(),
        if verdict.passed { "passed" } else { "FAILED" }
    );
    let text = format!("{heading}\n{}\n", verdict.lines.join("\n"));
    let folder = workspace::root().join(FOLDER);
    let path = folder.join(format!("{name}.txt"));
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, &text))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!("\n{text}\nkept in {FOLDER}/{name}.txt");
    Ok(if verdict.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list() {
    println!("cargo x campaign NAME [--seconds N]     two hours unless said otherwise\n");
    for campaign in CAMPAIGNS {
        println!("{:<10} {}", campaign.name, campaign.about);
    }
}

fn date() -> Outcome<String> {
    Ok(process::output(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned())
}

/// Whether tracked files differ from the commit.
fn is_changed() -> Outcome<bool> {
    let mut status = Command::new("git");
    status.current_dir(workspace::root()).args(["status", "--porcelain", "--untracked-files=no"]);
    Ok(!process::output(&mut status)?.trim().is_empty())
}

fn run_fuzz(seconds: u64) -> Outcome<Verdict> {
    let program = fuzz::build()?;
    let share = (seconds * AT_ONCE as u64 / TARGETS.len() as u64).max(1);
    let sessions: Vec<Session> = TARGETS.iter().map(|target| Session::new(target, Bound::Seconds(share), 0)).collect();
    let tallies = fuzz::run_all(&program, &sessions, AT_ONCE)?;
    let failed = fuzz::report(&tallies);
    Ok(Verdict { passed: failed == 0, lines: tallies.iter().map(|tally| tally.line()).collect() })
}

fn run_sim(seconds: u64) -> Outcome<Verdict> {
    let begun = Instant::now();
    // A campaign goes on where none was: seeds from the second it began in, 10,000 apart.
    let since_epoch = std::time::SystemTime::UNIX_EPOCH.elapsed().map_err(|error| error.to_string())?;
    let first = since_epoch.as_secs() * 10_000;
    let (mut seeds, mut failed) = (0, Vec::new());
    while begun.elapsed().as_secs() < seconds {
        let mut sim = workspace::cargo();
        sim.args(["run", "--quiet", "--profile", "checked", "--package", "sim", "--"]);
        sim.args(["--from", &(first + seeds).to_string(), "--seeds", &SEEDS_AT_ONCE.to_string()]);
        let mut judged = 0;
        process::lines(&mut sim, |line| {
            let is_verdict = line.starts_with("seed ");
            judged += u64::from(is_verdict);
            let is_bad = is_verdict && !line.ends_with("] ok");
            if is_bad {
                failed.push(line.to_owned());
            }
            is_bad
        })?;
        if judged != SEEDS_AT_ONCE {
            failed.push(format!("the simulator judged {judged} of {SEEDS_AT_ONCE} seeds from {}", first + seeds));
            break;
        }
        seeds += judged;
        println!("{seeds} seeds, {} failed, {} s", failed.len(), begun.elapsed().as_secs());
    }
    let mut lines = vec![format!("seeds {first} to {}: {seeds}, {} failed", first + seeds, failed.len())];
    let passed = failed.is_empty();
    lines.extend(failed);
    Ok(Verdict { passed, lines })
}
