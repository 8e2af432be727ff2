//! A campaign: rounds on one disk, with what its clients know; the first wrong round ends it.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::guest::Machine;
use super::plan::Subject;
use super::rig::{UNPROVEN, is_of_server};
use super::{cluster, node};

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
    /// So many of it: one on its own, or the nodes of a cluster.
    pub nodes: usize,
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

impl Verdict {
    /// Whether the server has lost what it promised: a machine that is wrong proves nothing.
    pub fn noticed(&self) -> bool {
        self.problems.iter().any(|problem| is_of_server(problem))
    }
}

/// Rounds that stand on each other.
pub(super) trait Rounds {
    /// One round; what it met is printed.
    ///
    /// # Errors
    /// What must not be.
    fn round(&mut self, number: u64) -> Result<(), Vec<String>>;

    /// The start that shows what the last cut left.
    ///
    /// # Errors
    /// What must not be.
    fn last_start(&mut self, number: u64) -> Result<(), Vec<String>>;

    /// What a campaign must meet to prove anything, with how often it did.
    fn met(&self) -> Vec<(&'static str, u64)>;

    /// What it met, for people.
    fn lines(&self, options: &Options, rounds: u64) -> Vec<String>;

    /// Where consoles and the disk lie; with whatever else a wrong round leaves.
    ///
    /// # Errors
    /// Those of writing it.
    fn evidence(&self) -> io::Result<&Path>;

    /// Removes that.
    ///
    /// # Errors
    /// Those of removing.
    fn remove(self) -> io::Result<()>;
}

/// Runs a campaign and prints what it meets.
///
/// # Errors
/// When its folder or its disk cannot be made.
pub fn run(options: &Options) -> io::Result<Verdict> {
    match options.nodes {
        1 => judged(options, node::Campaign::new(options)?),
        _ => judged(options, cluster::Campaign::new(options)?),
    }
}

fn judged(options: &Options, mut campaign: impl Rounds) -> io::Result<Verdict> {
    let (begun, mut rounds, mut problems) = (Instant::now(), 0, Vec::new());
    while problems.is_empty() && rounds < options.rounds_max && begun.elapsed() < options.time_max {
        match campaign.round(rounds + 1) {
            Ok(()) => rounds += 1,
            Err(found) => problems = found,
        }
    }
    if problems.is_empty() {
        problems = campaign.last_start(rounds + 1).err().unwrap_or_default();
    }
    if problems.is_empty() && options.subject == Subject::Zerohop && options.planted.is_none() {
        problems = gaps(&campaign.met(), rounds);
    }
    for line in campaign.lines(options, rounds) {
        println!("{line}");
    }
    if !problems.is_empty() {
        let is_caught = problems.iter().any(|problem| is_of_server(problem));
        let (word, told_max) = match (options.keeps_evidence, is_caught) {
            (true, _) => ("FAILED", TOLD_MAX),
            (false, true) => ("caught", TOLD_OF_LOSER_MAX),
            (false, false) => ("wrong", TOLD_OF_LOSER_MAX),
        };
        println!("{word}  seed {}, round {}: {} problems", options.seed, rounds + 1, problems.len());
        problems.iter().take(told_max).for_each(|problem| println!("{word}  {problem}"));
    }
    match options.keeps_evidence && !problems.is_empty() {
        true => {
            let folder = campaign.evidence()?.display();
            println!("FAILED  the disk as the last cut left it, and what guests printed: {folder}");
        }
        false => campaign.remove()?,
    }
    Ok(Verdict { rounds, problems })
}

fn gaps(met: &[(&str, u64)], rounds: u64) -> Vec<String> {
    let gaps = met.iter().filter(|(_, count)| rounds >= TELLING_ROUNDS && *count == 0);
    gaps.map(|(what, _)| format!("{UNPROVEN}in {rounds} rounds it never met {what}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{TELLING_ROUNDS, gaps};

    #[test]
    fn a_campaign_that_met_nothing_proves_nothing() {
        let met = [("a record", 1), ("a loss", 0)];
        assert_eq!(gaps(&met, TELLING_ROUNDS - 1), Vec::<String>::new());
        assert_eq!(gaps(&met, TELLING_ROUNDS), ["it proves nothing: in 5 rounds it never met a loss"]);
    }
}
