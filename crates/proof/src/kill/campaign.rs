//! A campaign: rounds on one data directory, with what its clients know; the first wrong round ends it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use super::book::Habits;
use super::plan::{Ending, Plan};
use super::round::Tally;
use super::told::{self, Check, Recovery};
use super::verdict::{Books, Size};
use crate::process::{Server, new_directory};

/// Watched keys of each client, and keys of each of the bulk: about 15 MB.
const SIZE: Size =
    Size { watched_keys: 400, bulk_keys: 15_000, habits: Habits { promises_later: false, has_order: false } };
/// What went wrong is told so often.
const TOLD_MAX: usize = 20;
/// From so many rounds on a campaign must have met runs and replays.
const TELLING_ROUNDS: u64 = 5;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The binary zerohop.
    pub zerohop: String,
    /// Seed of the campaign.
    pub seed: u64,
    /// It ends after so many rounds,
    pub rounds_max: u64,
    /// or with the first round that ends after this time.
    pub time_max: Duration,
    /// Largest load of a round, bytes.
    pub load_bytes_max: u64,
    /// Keeps what a wrong round left.
    pub keeps_evidence: bool,
}

/// What came of a campaign.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Rounds that were right.
    pub rounds: u64,
    /// What was wrong in the last one.
    pub problems: Vec<String>,
}

/// What a process has left.
pub(super) struct Left {
    /// It stopped cleanly: the next start replays nothing.
    pub(super) is_clean: bool,
    /// What `zerohop check` says.
    pub(super) check: Option<Check>,
    /// The round.
    pub(super) by: String,
}

/// A campaign under way.
pub struct Campaign {
    pub(super) zerohop: String,
    pub(super) data: PathBuf,
    pub(super) books: Books,
    pub(super) left: Left,
    folder: PathBuf,
    totals: Totals,
}

/// What a campaign has met.
#[derive(Debug, Default)]
struct Totals {
    tally: Tally,
    recovery: Recovery,
    kills: u64,
    stops: u64,
    killed_stops: u64,
    broken_starts: u64,
}

/// Runs a campaign and prints what it meets.
///
/// # Errors
/// When its folder cannot be made or removed.
pub fn run(options: &Options) -> io::Result<Verdict> {
    let mut campaign = Campaign::new(&options.zerohop)?;
    let (begun, mut rounds, mut problems) = (Instant::now(), 0, Vec::new());
    while problems.is_empty() && rounds < options.rounds_max && begun.elapsed() < options.time_max {
        let plan = Plan::draw(options.seed, rounds + 1, options.load_bytes_max);
        match campaign.round(&plan) {
            Ok(()) => rounds += 1,
            Err(found) => problems = found,
        }
    }
    if problems.is_empty() {
        let plan = Plan { broken_starts: Vec::new(), ..Plan::draw(options.seed, rounds + 1, options.load_bytes_max) };
        problems = campaign.start_and_judge(&plan).map(drop).err().unwrap_or_default();
    }
    if problems.is_empty() {
        problems = campaign.totals.gaps(rounds);
    }
    for line in campaign.totals.lines(options.seed, rounds) {
        println!("{line}");
    }
    if !problems.is_empty() {
        campaign.tell(options.seed, rounds + 1, &problems);
    }
    match options.keeps_evidence && !problems.is_empty() {
        true => println!("FAILED  what it left, and what servers printed: {}", campaign.folder.display()),
        false => fs::remove_dir_all(&campaign.folder)?,
    }
    Ok(Verdict { rounds, problems })
}

impl Campaign {
    fn new(zerohop: &str) -> io::Result<Campaign> {
        let folder = new_directory()?;
        let data = folder.join("data");
        fs::create_dir(&data)?;
        fs::create_dir(folder.join("output"))?;
        let left = Left { is_clean: true, check: None, by: "nobody".to_owned() };
        let books = Books::new(SIZE);
        Ok(Campaign { zerohop: zerohop.to_owned(), data, books, left, folder, totals: Totals::default() })
    }

    fn round(&mut self, plan: &Plan) -> Result<(), Vec<String>> {
        let begun = Instant::now();
        let (server, recovery) = self.start_and_judge(plan)?;
        let tally = self.load_and_end(plan, server)?;
        println!(
            "{plan}: {} keys from runs, {} records; {} units, {} MiB, {} runs, {} segments given back; {:.1} s",
            recovery.run_keys,
            recovery.records,
            tally.units,
            tally.bulk_bytes >> 20,
            tally.runs,
            tally.segments,
            begun.elapsed().as_secs_f64()
        );
        self.totals.add(plan, &recovery, &tally);
        Ok(())
    }

    /// Keeps what a process printed; the next one overwrites it. A panic is wrong at any time.
    pub(super) fn keep_output(&self, plan: &Plan, what: &str, server: &Server) -> Result<(), Vec<String>> {
        let path = self.folder.join("output").join(format!("round {} {what}.txt", plan.round));
        let output = server.output();
        fs::write(path, &output).map_err(|error| vec![error.to_string()])?;
        told::panic(&output).map_or(Ok(()), |panic| Err(vec![panic]))
    }

    /// Keeps the directory as the process left it: a start changes it.
    pub(super) fn keep_copy(&self) -> io::Result<()> {
        let copy = self.folder.join("before the last start");
        if copy.exists() {
            fs::remove_dir_all(&copy)?;
        }
        copy_files(&self.data, &copy)
    }

    fn tell(&self, seed: u64, round: u64, problems: &[String]) {
        println!("FAILED  seed {seed}, round {round}; what it found was left by {}", self.left.by);
        for problem in problems.iter().take(TOLD_MAX) {
            println!("FAILED  {problem}");
        }
        if problems.len() > TOLD_MAX {
            println!("FAILED  and {} others", problems.len() - TOLD_MAX);
        }
    }
}

impl Totals {
    fn add(&mut self, plan: &Plan, recovery: &Recovery, tally: &Tally) {
        match plan.ending {
            Ending::Kill => self.kills += 1,
            Ending::Terminate => self.stops += 1,
            Ending::KillWhileStopping(_) => self.killed_stops += 1,
        }
        self.broken_starts += plan.broken_starts.len() as u64;
        self.tally.units += tally.units;
        self.tally.bulk_requests += tally.bulk_requests;
        self.tally.bulk_bytes += tally.bulk_bytes;
        self.tally.runs += tally.runs;
        self.tally.segments += tally.segments;
        self.recovery.run_keys += recovery.run_keys;
        self.recovery.records += recovery.records;
        self.recovery.torn_tails += recovery.torn_tails;
        self.recovery.incomplete_units += recovery.incomplete_units;
    }

    /// What a campaign must meet to prove anything, and did not.
    fn gaps(&self, rounds: u64) -> Vec<String> {
        let met = [
            ("a published run", self.tally.runs),
            ("a key that came from a run", self.recovery.run_keys),
            ("a record that was replayed", self.recovery.records),
            ("a unit of watched keys", self.tally.units),
        ];
        let gaps = met.iter().filter(|(_, count)| rounds >= TELLING_ROUNDS && *count == 0);
        gaps.map(|(what, _)| format!("it proves nothing: in {rounds} rounds it never met {what}")).collect()
    }

    fn lines(&self, seed: u64, rounds: u64) -> Vec<String> {
        let Totals { tally, recovery, kills, stops, killed_stops, broken_starts } = self;
        vec![
            format!(
                "seed {seed}: {rounds} rounds: {kills} kill -9, {stops} SIGTERM, {killed_stops} kill -9 while stopping; \
                 {broken_starts} starts broken off"
            ),
            format!(
                "acknowledged: {} units of watched keys, {} overwrites of the bulk ({} MiB)",
                tally.units,
                tally.bulk_requests,
                tally.bulk_bytes >> 20
            ),
            format!("under load: {} runs published, {} segments given back", tally.runs, tally.segments),
            format!(
                "recovered: {} keys from runs, {} records; cut: {} torn tails, {} incomplete units",
                recovery.run_keys, recovery.records, recovery.torn_tails, recovery.incomplete_units
            ),
        ]
    }
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
