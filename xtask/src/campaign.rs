//! `cargo x campaign`: what a commit's run has no time for. The last result of each campaign stays in `campaigns/`.

use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::fuzz::{self, Bound, Session, TARGETS};
use crate::power::{self, Subject};
use crate::{Outcome, kill, nemesis, process, workspace};

/// Where the last results lie.
const FOLDER: &str = "campaigns";
/// Seconds of a campaign, unless said otherwise (AT-10: two hours).
const SECONDS: u64 = 2 * 60 * 60;
/// The same of a soak (AT-26).
const SOAK_SECONDS: u64 = 30 * 60;
/// Seeds that the simulator is given at a time.
const SEEDS_AT_ONCE: u64 = 2000;
/// Seconds of faults of one seed.
const NEMESIS_SECONDS: u64 = 40;
/// Seeds by their remainder of five that are something else than faults while slots move.
const NEMESIS_SCENES: [(u64, nemesis::Scene); 3] = [
    (1, nemesis::Scene::ProxiesAndLibrary { seconds: NEMESIS_SECONDS }),
    (2, nemesis::WHOLE_FIRE),
    (4, nemesis::Scene::Strangers),
];
/// Fuzzing targets that run at a time, one per core of the reference machine.
const AT_ONCE: usize = 2;

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    seconds: Option<u64>,
    rounds: Option<u64>,
    seed: Option<u64>,
    nodes: Option<u64>,
    target: Option<String>,
    planted: Option<String>,
}

/// One campaign.
struct Campaign {
    name: &'static str,
    about: &'static str,
    /// What it takes besides a time.
    takes: &'static [&'static str],
    run: fn(&Options) -> Outcome<Verdict>,
}

/// What came of a campaign.
struct Verdict {
    passed: bool,
    /// Counts, one line each.
    lines: Vec<String>,
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign {
        name: "fuzz",
        about: "every fuzzing target, an equal share of the time each; --target NAME: this one alone, for its share",
        takes: &["--target"],
        run: run_fuzz,
    },
    Campaign {
        name: "sim",
        about: "seeds of the simulator that no other campaign has seen",
        takes: &[],
        run: |options| run_sim(options.time_s()),
    },
    Campaign {
        name: "kill",
        about: "the release binary killed under load, on one directory; --planted BUG: one that has to be caught",
        takes: &["--rounds", "--seed", "--planted"],
        run: run_kill,
    },
    Campaign {
        name: "power",
        about: "a machine that loses its power under load, on one disk; Redis beside it; --nodes 3: a cluster in it; --planted BUG: one that has to be caught",
        takes: &["--rounds", "--seed", "--nodes", "--planted"],
        run: run_power,
    },
    Campaign {
        name: "crash-points",
        about: "the process and the power end before every call of a life on its directory, in turn; takes the time that it takes; --planted BUG: one that has to be caught",
        takes: &["--seed", "--planted"],
        run: run_crash_points,
    },
    Campaign {
        name: "nemesis",
        about: "three nodes, of every fifth seed five, killed, stopped, cut off and slowed under clients while slots move; of every fifth seed slots to and fro under load, of another fifth strangers, of a third one with proxies and the library before them; --planted BUG: one that has to be caught",
        takes: &["--rounds", "--seed", "--planted"],
        run: run_nemesis,
    },
    Campaign {
        name: "soak",
        about: "mixed load and 500 connections a second that come and go, half an hour (AT-26); --planted M30: a leak that has to be caught",
        takes: &["--seed", "--planted"],
        run: run_soak,
    },
];

impl Options {
    fn parse(words: &[String], campaign: &Campaign) -> Outcome<Options> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{word}` wants a value after it"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("`{word} {value}`: `{value}` is no number"));
            match word.as_str() {
                "--seconds" => options.seconds = Some(number()?),
                "--minutes" => options.seconds = Some(60 * number()?),
                known if !campaign.takes.contains(&known) => {
                    return Err(format!("the campaign `{}` does not know `{word}`", campaign.name));
                }
                "--rounds" => options.rounds = Some(number()?),
                "--seed" => options.seed = Some(number()?),
                "--nodes" => options.nodes = Some(number()?),
                "--target" => options.target = Some(value.clone()),
                _ => options.planted = Some(value.clone()),
            }
        }
        Ok(options)
    }

    /// A part of a campaign has a result of its own.
    fn kept_as(&self, name: &str) -> String {
        let part = self.nodes.map(|nodes| nodes.to_string()).or_else(|| self.target.clone());
        part.map_or_else(|| name.to_owned(), |part| format!("{name}-{part}"))
    }

    fn time_s(&self) -> u64 {
        self.seconds.unwrap_or(SECONDS)
    }

    /// Where a campaign in rounds ends.
    fn bound(&self, command: &mut Command) {
        if let Some(rounds) = self.rounds {
            command.args(["--rounds", &rounds.to_string()]);
        }
        if self.rounds.is_none() || self.seconds.is_some() {
            command.args(["--seconds", &self.time_s().to_string()]);
        }
    }
}

/// `cargo x campaign`.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    let Some((name, rest)) = arguments.split_first() else {
        list();
        return Ok(ExitCode::SUCCESS);
    };
    let campaign = CAMPAIGNS.iter().find(|campaign| campaign.name == name);
    let campaign = campaign.ok_or_else(|| format!("no campaign is called `{name}`; `cargo x campaign` lists them"))?;
    let options = Options::parse(rest, campaign)?;
    let (date, commit) = (date()?, workspace::commit());
    let begun = Instant::now();
    let verdict = (campaign.run)(&options)?;
    let heading = format!(
        "date     {date}\ncommit   {commit}{}\ncommand  cargo x campaign {}\ntook     {} s\nverdict  {}\n",
        if is_changed()? { " and changes" } else { "" },
        arguments.join(" "),
        begun.elapsed().as_secs(),
        if verdict.passed { "passed" } else { "FAILED" }
    );
    let text = format!("{heading}\n{}\n", verdict.lines.join("\n"));
    println!("\n{text}");
    // What a planted bug did says nothing about the commit.
    if options.planted.is_none() {
        keep(&options.kept_as(name), &text)?;
    }
    Ok(if verdict.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn keep(name: &str, text: &str) -> Outcome<()> {
    let folder = workspace::root().join(FOLDER);
    let path = folder.join(format!("{name}.txt"));
    // What is kept names no machine.
    let text = text.replace(&format!("{}/", workspace::root().display()), "");
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!("kept in {FOLDER}/{name}.txt");
    Ok(())
}

fn list() {
    println!(
        "cargo x campaign NAME [--seconds N | --minutes N]     two hours unless said otherwise, soak half an hour\n"
    );
    for campaign in CAMPAIGNS {
        let takes: String = campaign.takes.iter().map(|option| format!(" [{option} …]")).collect();
        println!("{:<10} {}{takes}", campaign.name, campaign.about);
    }
}

fn date() -> Outcome<String> {
    Ok(process::output(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned())
}

fn unix_s() -> Outcome<u64> {
    std::time::SystemTime::UNIX_EPOCH.elapsed().map(|since| since.as_secs()).map_err(|error| error.to_string())
}

/// Whether tracked files differ from the commit.
fn is_changed() -> Outcome<bool> {
    let mut status = Command::new("git");
    status.current_dir(workspace::root()).args(["status", "--porcelain", "--untracked-files=no"]);
    Ok(!process::output(&mut status)?.trim().is_empty())
}

fn run_fuzz(options: &Options) -> Outcome<Verdict> {
    let targets = match &options.target {
        Some(name) => std::slice::from_ref(fuzz::named(name)?),
        None => TARGETS,
    };
    let program = fuzz::build(false)?;
    let share = (options.time_s() * AT_ONCE as u64 / TARGETS.len() as u64).max(1);
    let sessions: Vec<Session> = targets.iter().map(|target| Session::new(target, Bound::Seconds(share), 0)).collect();
    let tallies = fuzz::run_all(&program, &sessions, AT_ONCE)?;
    let failed = fuzz::report(&tallies);
    Ok(Verdict { passed: failed == 0, lines: tallies.iter().map(|tally| tally.line()).collect() })
}

fn run_sim(seconds: u64) -> Outcome<Verdict> {
    let begun = Instant::now();
    // A campaign goes on where none was: seeds from the second it began in, 10,000 apart.
    let first = unix_s()? * 10_000;
    let (mut seeds, mut failed) = (0, Vec::new());
    while begun.elapsed().as_secs() < seconds {
        let mut sim = Command::new(workspace::checked_program("sim")?);
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

fn run_kill(options: &Options) -> Outcome<Verdict> {
    let planted = options.planted.as_deref();
    let zerohop = if planted.is_some() { kill::planted_binary()? } else { kill::release_binary()? };
    let seed = options.seed.map_or_else(unix_s, Ok)?;
    let mut command = kill::command(&workspace::checked_program("proof")?, &zerohop, seed, planted);
    options.bound(&mut command);
    told(&mut command)
}

/// Zerohop, then losers that have to be caught, then a peer that keeps its promise; of clusters Zerohop, and one on a disk that
/// nobody flushes.
fn run_power(options: &Options) -> Outcome<Verdict> {
    power::meet_needs()?;
    let planted = options.planted.as_deref();
    let zerohop = if planted.is_some() { kill::planted_binary()? } else { kill::release_binary()? };
    let seed = options.seed.map_or_else(unix_s, Ok)?;
    let of = |subject: &Subject<'_>, planted| match options.nodes {
        Some(nodes) => power::cluster_command(subject, nodes, seed, planted),
        None => power::command(subject, seed, planted),
    };
    let mut command = of(&Subject::Zerohop(&zerohop), planted)?;
    options.bound(&mut command);
    let mut verdict = told(&mut command)?;
    if planted.is_none() {
        let unflushed = Subject::ZerohopUnflushed(&zerohop);
        let of_one = [Subject::Redis("everysec"), Subject::Redis("no"), unflushed, Subject::Redis("always")];
        let others = if options.nodes.is_some() { &[unflushed][..] } else { &of_one };
        for subject in others {
            let mut command = of(subject, None)?;
            let of_peer = told(command.args(["--rounds", &power::LOSER_ROUNDS.to_string()]))?;
            verdict.passed &= of_peer.passed;
            verdict.lines.extend(of_peer.lines);
        }
    }
    Ok(verdict)
}

/// With the assertions of the profile `checked`: an end before each call is no measurement.
fn run_crash_points(options: &Options) -> Outcome<Verdict> {
    let planted = options.planted.as_deref();
    let zerohop = if planted.is_some() { kill::planted_binary()? } else { workspace::checked_program("zerohop")? };
    let mut command = Command::new(workspace::checked_program("proof")?);
    command.args(["faults", "crashes", "--every", "--zerohop"]).arg(zerohop);
    command.args(["--seed", &options.seed.unwrap_or(1).to_string()]);
    kill::plant(&mut command, planted);
    let mut verdict = told(&mut command)?;
    verdict.lines.retain(|line| !line.starts_with("dies "));
    Ok(verdict)
}

/// Seeds one after the other, each a cluster of its own; the first wrong one ends it, and its folder is kept.
fn run_nemesis(options: &Options) -> Outcome<Verdict> {
    nemesis::install_needs()?;
    let planted = options.planted.as_deref();
    let zerohop = if planted.is_some() { kill::planted_binary()? } else { kill::release_binary()? };
    let proof = workspace::checked_program("proof")?;
    let (begun, first) = (Instant::now(), options.seed.map_or_else(unix_s, Ok)?);
    let mut verdict = Verdict { passed: true, lines: Vec::new() };
    let is_over = |rounds: u64| {
        let is_late = options.rounds.is_none() || options.seconds.is_some();
        options.rounds.is_some_and(|most| rounds >= most) || (is_late && begun.elapsed().as_secs() >= options.time_s())
    };
    let mut rounds = 0;
    while verdict.passed && !is_over(rounds) {
        let seed = first + rounds;
        // A planted bug is looked for where it is known to show.
        let scene = match planted {
            None => NEMESIS_SCENES.into_iter().find(|(turn, _)| seed % 5 == *turn).map(|(_, scene)| scene),
            Some(bug) => nemesis::BUGS_OF_PROXIES
                .iter()
                .any(|(name, _)| *name == bug)
                .then_some(nemesis::Scene::Proxies { seconds: NEMESIS_SECONDS }),
        };
        let (mut command, folder) = match scene {
            None => (nemesis::command((&proof, &zerohop), seed, NEMESIS_SECONDS, planted), nemesis::folder(seed)),
            Some(scene) => (scene.command((&proof, &zerohop), seed, planted)?, scene.folder(seed)),
        };
        if seed.is_multiple_of(5) {
            command.args(["--nodes", "5"]);
        }
        let of_seed = told(&mut command)?;
        (verdict.passed, rounds) = (of_seed.passed, rounds + 1);
        verdict.lines.extend(of_seed.lines);
        if verdict.passed {
            // Histories of hours are many; the numbers of each seed are in its lines.
            std::fs::remove_dir_all(folder).map_err(|error| error.to_string())?;
        }
    }
    verdict.lines.push(format!("seeds {first} to {}: {rounds}, {} s", first + rounds, begun.elapsed().as_secs()));
    Ok(verdict)
}

/// The release binary on two cores with its default durability.
fn run_soak(options: &Options) -> Outcome<Verdict> {
    let planted = options.planted.as_deref();
    let zerohop = if planted.is_some() { kill::planted_binary()? } else { kill::release_binary()? };
    let seed = options.seed.map_or_else(unix_s, Ok)?;
    let seconds = options.seconds.unwrap_or(SOAK_SECONDS);
    told(&mut kill::soak_command(&workspace::checked_program("proof")?, &zerohop, (seed, seconds), planted))
}

/// Runs a tool of `proof` that judges rounds; keeps what it says besides each round.
fn told(command: &mut Command) -> Outcome<Verdict> {
    let mut lines = Vec::new();
    let passed = process::lines(command, |line| {
        if !line.starts_with("round ") {
            lines.push(line.to_owned());
        }
        true
    })?;
    Ok(Verdict { passed, lines })
}

#[cfg(test)]
mod tests {
    use super::{CAMPAIGNS, Options};

    fn parse(name: &str, line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let campaign = CAMPAIGNS.iter().find(|campaign| campaign.name == name).expect("it is listed");
        Options::parse(&words, campaign)
    }

    #[test]
    fn options_are_read_and_those_of_other_campaigns_refused() {
        let options = parse("kill", "--rounds 3 --minutes 2 --seed 9 --planted M7").expect("all are known");
        let planted = Some("M7".to_owned());
        assert_eq!(
            options,
            Options { seconds: Some(120), rounds: Some(3), seed: Some(9), planted, ..Options::default() }
        );
        assert_eq!(parse("sim", "--seconds 5").map(|options| options.time_s()), Ok(5));
        assert_eq!(parse("power", "--nodes 3").map(|options| options.nodes), Ok(Some(3)));
        assert_eq!(parse("power", "--nodes 3").map(|options| options.kept_as("power")), Ok("power-3".to_owned()));
        assert_eq!(parse("fuzz", "--target lines").map(|options| options.kept_as("fuzz")), Ok("fuzz-lines".to_owned()));
        assert_eq!(parse("fuzz", "--seconds 9").map(|options| options.kept_as("fuzz")), Ok("fuzz".to_owned()));
        assert!(parse("kill", "--nodes 3").is_err() && parse("kill", "--target lines").is_err());
        assert!(parse("sim", "--rounds 3").is_err() && parse("kill", "--quick 1").is_err());
        assert!(parse("kill", "--rounds").is_err() && parse("kill", "--rounds many").is_err());
    }
}
