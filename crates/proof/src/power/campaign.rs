//! A campaign: rounds on one disk, with what its clients know; the first wrong round ends it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, io};

use super::disk::Disk;
use super::guest::Machine;
use super::plan::{Plan, Subject};
use super::round::Tally;
use crate::kill::book::Habits;
use crate::kill::told::Recovery;
use crate::kill::verdict::{Books, Size};
use crate::process::new_directory;

/// The disk. Only what was written takes room.
const DISK_BYTES: u64 = 2 << 30;
/// A machine that is emulated reads fewer keys back than the kill campaign has.
const SIZE: Size =
    Size { watched_keys: 200, bulk_keys: 2000, habits: Habits { promises_later: true, has_order: true } };
/// What went wrong is told so often,
const TOLD_MAX: usize = 20;
/// and so often where something has to.
const TOLD_OF_LOSER_MAX: usize = 3;
/// From so many rounds on a campaign must have met losses and replays.
const TELLING_ROUNDS: u64 = 5;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine.
    pub machine: Machine,
    /// The server in it.
    pub subject: Subject,
    /// The bug that the server is to carry.
    pub planted: Option<String>,
    /// Seed of the campaign.
    pub seed: u64,
    /// It ends after so many rounds,
    pub rounds_max: u64,
    /// or with the first round that ends after this time.
    pub time_max: Duration,
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

/// A campaign under way.
pub struct Campaign {
    pub(super) machine: Machine,
    pub(super) planted: Option<String>,
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) books: Books,
    /// The last cut came behind a clean stop: the next start replays nothing.
    pub(super) is_left_clean: bool,
    folder: PathBuf,
    totals: Totals,
}

/// What a campaign has met.
#[derive(Debug, Default)]
struct Totals {
    tally: Tally,
    recovery: Recovery,
}

/// Runs a campaign and prints what it meets.
///
/// # Errors
/// When its folder or its disk cannot be made.
pub fn run(options: &Options) -> io::Result<Verdict> {
    let mut campaign = Campaign::new(options)?;
    let draw = |round| Plan::draw(options.subject, options.seed, round);
    let (begun, mut rounds, mut problems) = (Instant::now(), 0, Vec::new());
    while problems.is_empty() && rounds < options.rounds_max && begun.elapsed() < options.time_max {
        match campaign.told_round(&draw(rounds + 1)) {
            Ok(()) => rounds += 1,
            Err(found) => problems = found,
        }
    }
    if problems.is_empty() {
        problems = campaign.start_and_judge(&draw(rounds + 1)).map(drop).err().unwrap_or_default();
    }
    if problems.is_empty() && options.subject == Subject::Zerohop && options.planted.is_none() {
        problems = campaign.totals.gaps(rounds);
    }
    for line in campaign.totals.lines(options, rounds) {
        println!("{line}");
    }
    if !problems.is_empty() {
        let (word, told_max) =
            if options.keeps_evidence { ("FAILED", TOLD_MAX) } else { ("caught", TOLD_OF_LOSER_MAX) };
        println!("{word}  seed {}, round {}: {} problems", options.seed, rounds + 1, problems.len());
        problems.iter().take(told_max).for_each(|problem| println!("{word}  {problem}"));
    }
    match options.keeps_evidence && !problems.is_empty() {
        true => {
            println!("FAILED  the disk as the last cut left it, and what guests printed: {}", campaign.folder.display())
        }
        false => fs::remove_dir_all(&campaign.folder)?,
    }
    Ok(Verdict { rounds, problems })
}

impl Campaign {
    fn new(options: &Options) -> io::Result<Campaign> {
        let folder = new_directory()?;
        let disk = Arc::new(Mutex::new(Disk::new(formatted(&folder.join("disk.img"))?)?));
        let (machine, planted) = (options.machine.clone(), options.planted.clone());
        let (books, totals) = (Books::new(SIZE), Totals::default());
        Ok(Campaign { machine, planted, disk, books, is_left_clean: true, folder, totals })
    }

    fn told_round(&mut self, plan: &Plan) -> Result<(), Vec<String>> {
        let begun = Instant::now();
        let (recovery, tally) = self.round(plan)?;
        println!(
            "{plan}: {} keys from runs, {} records, {} torn tails, {} incomplete units; {} units, {} overwrites; {} of {} \
             unflushed blocks lost; {:.1} s",
            recovery.run_keys,
            recovery.records,
            recovery.torn_tails,
            recovery.incomplete_units,
            tally.units,
            tally.bulk_requests,
            tally.lost.lost,
            tally.lost.unflushed,
            begun.elapsed().as_secs_f64()
        );
        self.totals.add(&recovery, &tally);
        Ok(())
    }

    /// Where a machine's console goes.
    pub(super) fn console(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// A new disk with an ext4 file system on it.
fn formatted(path: &Path) -> io::Result<fs::File> {
    let file = fs::File::options().read(true).write(true).create_new(true).open(path)?;
    file.set_len(DISK_BYTES)?;
    let mut tools = std::env::var_os("PATH").unwrap_or_default();
    // Where Debian has tools of file systems, which the path of a user may lack.
    tools.push(OsString::from(":/usr/sbin:/sbin"));
    let made = Command::new("mke2fs")
        .env("PATH", tools)
        .args(["-q", "-F", "-t", "ext4", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"])
        .arg(path)
        .status()
        .map_err(|error| io::Error::other(format!("mke2fs, of the Debian package e2fsprogs: {error}")))?;
    if made.success() { Ok(file) } else { Err(io::Error::other(format!("mke2fs: {made}"))) }
}

impl Totals {
    fn add(&mut self, recovery: &Recovery, tally: &Tally) {
        self.tally.units += tally.units;
        self.tally.bulk_requests += tally.bulk_requests;
        self.tally.broken_starts += tally.broken_starts;
        self.tally.stops += tally.stops;
        self.tally.lost.unflushed += tally.lost.unflushed;
        self.tally.lost.lost += tally.lost.lost;
        self.recovery.run_keys += recovery.run_keys;
        self.recovery.records += recovery.records;
        self.recovery.torn_tails += recovery.torn_tails;
        self.recovery.incomplete_units += recovery.incomplete_units;
    }

    /// What a campaign must meet to prove anything, and did not.
    fn gaps(&self, rounds: u64) -> Vec<String> {
        let met = [
            ("a written block that a cut took", self.tally.lost.lost),
            ("a record that was replayed", self.recovery.records),
            ("a unit of watched keys", self.tally.units),
        ];
        let gaps = met.iter().filter(|(_, count)| rounds >= TELLING_ROUNDS && *count == 0);
        gaps.map(|(what, _)| format!("it proves nothing: in {rounds} rounds it never met {what}")).collect()
    }

    fn lines(&self, options: &Options, rounds: u64) -> Vec<String> {
        let (Totals { tally, recovery }, Options { subject, seed, .. }) = (self, options);
        let cuts = rounds + tally.broken_starts;
        let mut lines = vec![format!(
            "{subject:?}, seed {seed}: {cuts} power cuts, {} of them before it served, {} behind a clean stop; {} of {} unflushed blocks lost; \
             acknowledged: {} units of watched keys, {} overwrites of the bulk",
            tally.broken_starts, tally.stops, tally.lost.lost, tally.lost.unflushed, tally.units, tally.bulk_requests
        )];
        if *subject == Subject::Zerohop {
            lines.push(format!(
                "recovered: {} keys from runs, {} records; cut: {} torn tails, {} incomplete units",
                recovery.run_keys, recovery.records, recovery.torn_tails, recovery.incomplete_units
            ));
        }
        lines
    }
}
