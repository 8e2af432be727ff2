//! The run itself: batches of sequences through the lanes, differences gathered by kind, coverage counted.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use base::rng::mix;

use super::coverage::Coverage;
use super::exceptions::Exception;
use super::lanes::{Lane, Replies, Servers, run};
use super::scan::compare_scans;
use super::shrink::{Difference, Finding, compare, describe, flush, is_out_of_step, shrink};
use crate::connection::Connection;
use crate::reply::{Reply, decode, outcome, show};
use crate::sequence::{Generator, Sequence, Tags};

/// Lanes that run in step.
const LANES: usize = 12;
/// Sequences of one lane in one batch: some 100 KiB of requests, which the sockets hold without anybody reading.
const SEQUENCES_PER_LANE: usize = 16;
/// Batches between two FLUSHALLs, so that memory stays bounded.
const BATCHES_PER_FLUSH: usize = 40;
/// Kinds of difference that are shrunk and printed.
const KINDS_PRINTED: usize = 30;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The servers.
    pub servers: Servers,
    /// Whether the target is a cluster.
    pub is_cluster: bool,
    /// Whether one address answers for all of it.
    pub is_gathered: bool,
    /// Sequences to run.
    pub sequences: u64,
    /// The seed of the whole run.
    pub seed: u64,
    /// Run only the sequence of this seed.
    pub only: Option<u64>,
    /// Also run the table of numeric boundaries.
    pub boundaries: bool,
    /// Allowed differences.
    pub exceptions: Vec<Exception>,
}

/// What came out.
#[derive(Default)]
pub struct Outcome {
    /// Sequences whose replies were all as expected.
    pub passed: u64,
    /// Sequences that differed.
    pub failed: u64,
    /// Commands answered.
    pub commands: u64,
    /// Commands that never succeeded or never failed.
    pub gaps: Vec<String>,
}

/// Differences of one kind, with the first sequence that showed it.
struct Kind {
    count: u64,
    sequence: Sequence,
    difference: Difference,
    speaks_resp3: bool,
}

/// One run in progress.
struct Run<'a> {
    options: &'a Options,
    outcome: Outcome,
    coverage: Coverage,
    kinds: BTreeMap<String, Kind>,
}

/// Runs everything, prints differences and coverage.
///
/// # Errors
/// When a server cannot be reached (again).
pub fn differential(options: &Options) -> io::Result<Outcome> {
    let started = Instant::now();
    let now_s = unix_time_s(&options.servers)?;
    let generator = Generator::new(now_s, options.servers.valkey.is_some());
    let tags = match (options.is_cluster, options.is_gathered) {
        (false, _) => Vec::new(),
        (true, false) => cluster_tags(&options.servers)?,
        // Each lane has a slot of its own; the nodes that hold them are the target's affair.
        (true, true) => (0..LANES).map(|lane| Tags { node: 0, same_node: vec![format!("t{lane}")] }).collect(),
    };
    let mut state = Run { options, outcome: Outcome::default(), coverage: Coverage::default(), kinds: BTreeMap::new() };
    let of_lane = |lane: usize| tags.get(lane % tags.len().max(1));
    let mut exclusive = Vec::new();
    let mut lanes = open_lanes(options)?;
    let mut next = 0;
    let mut batch_count = 0;
    flush(&options.servers)?;
    if let Some(seed) = options.only {
        return state.run_one(&mut lanes, |lane| generator.sequence(seed, of_lane(lane)));
    }
    while next < options.sequences {
        let mut batches = Vec::new();
        for lane in 0..LANES {
            let mut batch = Vec::new();
            while batch.len() < SEQUENCES_PER_LANE && next < options.sequences {
                let seed = mix(options.seed ^ mix(next));
                let sequence = generator.sequence(seed, of_lane(lane));
                next += 1;
                if sequence.exclusive { exclusive.push(sequence) } else { batch.push(sequence) }
            }
            batches.push(batch);
        }
        state.run_batches(&mut lanes, &batches)?;
        batch_count += 1;
        if batch_count % BATCHES_PER_FLUSH == 0 {
            flush(&options.servers)?;
        }
    }
    if options.boundaries {
        let table = generator.boundary_table(of_lane(0));
        let (alone, together): (Vec<Sequence>, Vec<Sequence>) = table.into_iter().partition(|one| one.exclusive);
        exclusive.extend(alone);
        for chunk in together.chunks(SEQUENCES_PER_LANE) {
            state.run_batches(&mut lanes[..1], &[chunk.to_vec()])?;
        }
    }
    state.run_exclusive(&exclusive)?;
    state.report(started)
}

impl Run<'_> {
    /// One sequence alone, on each node in both protocols.
    fn run_one(mut self, lanes: &mut [Lane], sequence: impl Fn(usize) -> Sequence) -> io::Result<Outcome> {
        let started = Instant::now();
        for (index, lane) in lanes.iter_mut().enumerate().take(2 * self.options.servers.targets.len()) {
            let sequence = sequence(index);
            println!("sequence {:#x}, judge {:?}:\n{}", sequence.seed, sequence.judge, describe(&sequence.steps));
            if sequence.exclusive {
                // Twice: once in each protocol.
                self.run_exclusive(&[sequence.clone(), sequence])?;
            } else {
                self.run_batches(std::slice::from_mut(lane), &[vec![sequence]])?;
            }
            flush(&self.options.servers)?;
        }
        self.report(started)
    }

    fn run_batches(&mut self, lanes: &mut [Lane], batches: &[Vec<Sequence>]) -> io::Result<()> {
        let all_replies = run(lanes, batches, &self.options.servers)?;
        for (index, (batch, replies)) in batches.iter().zip(&all_replies).enumerate() {
            for (sequence, replies) in batch.iter().zip(replies) {
                self.note(sequence, replies, lanes[index].speaks_resp3());
                if is_out_of_step(sequence, replies) {
                    lanes[index].reopen(&self.options.servers)?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Sequences about whole databases: one at a time, each on emptied servers, and at the end whole scans.
    fn run_exclusive(&mut self, sequences: &[Sequence]) -> io::Result<()> {
        let servers = &self.options.servers;
        let mut lanes = Vec::new();
        for node in 0..servers.targets.len() {
            lanes.push([Lane::open(servers, node, false)?, Lane::open(servers, node, true)?]);
        }
        let mut scanners = (Connection::open(&servers.redis)?, Vec::new());
        for target in &servers.targets {
            scanners.1.push(Connection::open(target)?);
        }
        for (index, sequence) in sequences.iter().enumerate() {
            let lane = &mut lanes[sequence.node][index % 2];
            let replies = run(std::slice::from_mut(lane), &[vec![sequence.clone()]], servers)?.remove(0).remove(0);
            let is_excepted = self.note(sequence, &replies, lane.speaks_resp3());
            if !is_excepted
                && (index % 8 == 0 || self.options.only.is_some())
                && let Some(difference) = compare_scans(&mut scanners.0, &mut scanners.1[sequence.node])?
            {
                println!("DIFFERENCE in a whole scan after sequence {:#x}: {difference}", sequence.seed);
                println!("{}", describe(&sequence.steps));
                self.outcome.failed += 1;
                flush(servers)?;
            }
        }
        Ok(())
    }

    /// Counts a sequence, and says whether an excepted difference ended what it shows: its keys are no evidence either.
    fn note(&mut self, sequence: &Sequence, replies: &Replies, speaks_resp3: bool) -> bool {
        for (step, actual) in sequence.steps.iter().zip(&replies.actual) {
            self.coverage.note(&step.arguments, actual);
        }
        self.outcome.commands += replies.actual.len() as u64;
        let finding = compare(sequence, replies, &self.options.exceptions);
        let is_excepted = matches!(finding, Finding::Excepted);
        let Finding::Different(difference) = finding else {
            self.outcome.passed += u64::from(replies.actual.len() == sequence.steps.len());
            return is_excepted;
        };
        self.outcome.failed += 1;
        let mut kind = kind_of(sequence, &difference);
        if is_out_of_step(sequence, replies) {
            kind = format!(
                "OUT OF STEP after {}",
                sequence.steps[difference.step.saturating_sub(1)].name().escape_debug()
            );
        }
        let kind = self.kinds.entry(kind).or_insert_with(|| Kind {
            count: 0,
            sequence: sequence.clone(),
            difference,
            speaks_resp3,
        });
        kind.count += 1;
        false
    }

    fn report(mut self, started: Instant) -> io::Result<Outcome> {
        let servers = &self.options.servers;
        let mut kinds: Vec<(&String, &Kind)> = self.kinds.iter().collect();
        kinds.sort_by_key(|(name, kind)| (std::cmp::Reverse(kind.count), *name));
        for (name, kind) in kinds.into_iter().take(KINDS_PRINTED) {
            println!("DIFFERENCE {name}: {} sequences", kind.count);
            let shrunk = shrink(&kind.sequence, servers, kind.speaks_resp3, &self.options.exceptions)?;
            let alone = shrunk.is_some();
            let (sequence, difference) = shrunk.unwrap_or_else(|| (kind.sequence.clone(), kind.difference.clone()));
            println!(
                "  seed {:#x}, judge {:?}, RESP{}",
                sequence.seed,
                sequence.judge,
                if kind.speaks_resp3 { 3 } else { 2 }
            );
            if !alone {
                println!("  (not alone on emptied servers; the whole sequence:)");
            }
            println!("{}", describe(&sequence.steps));
            println!("  expected {}", show(&difference.expected));
            println!("  actual   {}", show(&difference.actual));
        }
        if self.kinds.len() > KINDS_PRINTED {
            println!("… and {} kinds of difference more", self.kinds.len() - KINDS_PRINTED);
        }
        println!("coverage (command: outcomes of the server under test)");
        self.coverage.print();
        self.outcome.gaps = if self.options.only.is_some() { Vec::new() } else { self.coverage.gaps() };
        for gap in &self.outcome.gaps {
            println!("GAP: {gap}");
        }
        println!(
            "differential: seed {:#x}, {} commands in {} sequences, {:.1} s",
            self.options.seed,
            self.outcome.commands,
            self.outcome.passed + self.outcome.failed,
            started.elapsed().as_secs_f64()
        );
        Ok(self.outcome)
    }
}

/// Differences with the same name are taken for the same fault.
fn kind_of(sequence: &Sequence, difference: &Difference) -> String {
    let step = &sequence.steps[difference.step];
    // Up to the first quotation mark: what follows are the sequence's own words.
    let brief = |raw: &[u8]| match raw.first() {
        Some(b'-') => show(raw).to_ascii_lowercase().split(['\'', '\\']).next().unwrap_or_default().to_string(),
        _ => outcome(raw),
    };
    format!(
        "{}: expected {}, actual {}",
        step.name().escape_debug(),
        brief(&difference.expected),
        brief(&difference.actual)
    )
}

fn is_resp3_lane(lane: usize) -> bool {
    lane % 2 == 1
}

/// Odd lanes speak RESP3; in a cluster lanes take turns among the nodes, in steps of two so that each meets both.
fn open_lanes(options: &Options) -> io::Result<Vec<Lane>> {
    let nodes = options.servers.targets.len();
    (0..LANES).map(|lane| Lane::open(&options.servers, lane % nodes, is_resp3_lane(lane))).collect()
}

fn unix_time_s(servers: &Servers) -> io::Result<i64> {
    let raw = Connection::open(&servers.redis)?.call_line("TIME")?;
    match decode(&raw) {
        Ok(Some((Reply::Array(parts), _))) => match &parts[..] {
            [Reply::Bulk(seconds), _] => String::from_utf8_lossy(seconds).parse().map_err(io::Error::other),
            _ => Err(io::Error::other("TIME has two parts")),
        },
        _ => Err(io::Error::other(format!("TIME answers {}", show(&raw)))),
    }
}

/// Asks the judge for the slots of some tags and the target for who owns them.
fn cluster_tags(servers: &Servers) -> io::Result<Vec<Tags>> {
    let mut judge = Connection::open(&servers.redis)?;
    let raw = Connection::open(&servers.targets[0])?.call_line("CLUSTER SLOTS")?;
    let Ok(Some((Reply::Array(ranges), _))) = decode(&raw) else {
        return Err(io::Error::other(format!("CLUSTER SLOTS answers {}", show(&raw))));
    };
    let mut tags: Vec<Tags> = (0..servers.targets.len()).map(|node| Tags { node, same_node: Vec::new() }).collect();
    for number in 0..400 {
        let tag = format!("t{number}");
        let raw = judge.call_line(&format!("CLUSTER KEYSLOT {tag}"))?;
        let Ok(Some((Reply::Integer(slot), _))) = decode(&raw) else { continue };
        if let Some(node) = owner(&ranges, slot, &servers.targets) {
            tags[node].same_node.push(tag);
        }
    }
    match tags.iter().find(|tags| tags.same_node.len() < 2) {
        Some(poor) => Err(io::Error::other(format!("node {} owns no slots", servers.targets[poor.node]))),
        None => Ok(tags),
    }
}

/// Which target owns `slot`, told by the port.
fn owner(ranges: &[Reply], slot: i64, targets: &[String]) -> Option<usize> {
    ranges.iter().find_map(|range| {
        let Reply::Array(range) = range else { return None };
        let (Reply::Integer(first), Reply::Integer(last), Reply::Array(node)) =
            (range.first()?, range.get(1)?, range.get(2)?)
        else {
            return None;
        };
        let Reply::Integer(port) = node.get(1)? else { return None };
        let is_here = (*first..=*last).contains(&slot);
        targets.iter().position(|target| is_here && target.ends_with(&format!(":{port}")))
    })
}
