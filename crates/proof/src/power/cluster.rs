//! The campaign of a cluster: all of its nodes in one machine lose their power at once, with the clients, the judge and the
//! comparison of copies that the nemesis campaign has (AT-03, AT-27).
//!
//! ```text
//!   nemesis::client ──TCP──► 127.0.0.1:P, P', P'' ── forwarded ──► the same ports inside, where nodes know each other by them
//!   plan  what a seed draws      round  start, whole, read, judged, compared, load, cut      past  what a cut makes of what was told
//! ```

mod past;
mod plan;
mod round;

use std::path::Path;
use std::time::Instant;
use std::{fs, io};

use past::Past;
use plan::Plan;
use round::Tally;

use super::campaign::{Options, Rounds};
use super::guest::Forward;
use super::plan::Subject;
use super::rig::Rig;
use crate::kill::told::Recovery;
use crate::nemesis::client::Course;
use crate::nemesis::doors::{Door, Doors};
use crate::nemesis::ground::Ground;

/// How much slower than processes nodes are that are emulated, and share two processors of a machine that is busy.
const SLOWNESS: u32 = 10;
/// Fewer promise less when one of them is lost.
const NODES_MIN: usize = 3;
/// The most cores that a node has.
const CORES_MAX: u16 = 2;

/// A campaign under way.
pub struct Campaign {
    subject: Subject,
    seed: u64,
    rig: Rig,
    doors: Doors,
    course: Course,
    past: Past,
    /// It was whole once: every node has a directory.
    is_founded: bool,
    /// The last cut came behind a clean stop of all nodes: the next start replays nothing.
    is_left_clean: bool,
    totals: Totals,
}

/// What a campaign has met.
#[derive(Debug, Default)]
struct Totals {
    tally: Tally,
    recovery: Recovery,
    /// Slots were on their way when the power failed.
    cut_moves: u64,
    keys_compared: usize,
}

impl Campaign {
    /// None of its rounds has been.
    ///
    /// # Errors
    /// When its folder or its disk cannot be made, or no ports are free.
    pub fn new(options: &Options) -> io::Result<Campaign> {
        let Options { machine, subject, planted, seed, nodes, .. } = options;
        if !matches!(subject, Subject::Zerohop | Subject::ZerohopUnflushed) {
            return Err(io::Error::other("only Zerohop has a cluster here"));
        }
        if *nodes < NODES_MIN {
            return Err(io::Error::other(format!("a cluster has {NODES_MIN} nodes here, or more")));
        }
        let ground = Ground::shared(*nodes, 0, "they are in one machine".to_owned())?;
        Ok(Campaign {
            subject: *subject,
            seed: *seed,
            rig: Rig::new(machine, planted.as_deref(), *nodes as u64)?,
            doors: Doors { ground, cores: 1, slowness: SLOWNESS },
            course: Course::new(),
            past: Past::default(),
            is_founded: false,
            is_left_clean: true,
            totals: Totals::default(),
        })
    }

    fn plan(&self, number: u64) -> Plan {
        Plan::draw(self.subject, self.seed, number)
    }

    /// The first port of each node.
    fn ports(&self) -> Vec<u16> {
        (0..self.doors.len()).map(|node| self.doors.ground.host_and_port(node).1).collect()
    }

    /// The ways to all doors that a node can have; outside and inside they are the same, so that redirects hold for both.
    fn forwards(&self) -> Vec<Forward> {
        let doors = |port: u16| (0..=Door::of_core(0, CORES_MAX - 1).offset).map(move |offset| port + offset);
        self.ports().into_iter().flat_map(doors).map(|port| Forward { outside: port, inside: port }).collect()
    }
}

impl Rounds for Campaign {
    fn round(&mut self, number: u64) -> Result<(), Vec<String>> {
        let (begun, plan) = (Instant::now(), self.plan(number));
        let (shown, tally) = self.planned_round(&plan)?;
        println!(
            "{plan}: {} keys compared, {} records replayed, whole in {:.1} s; {} answers, {} moves ordered, {} arrived; {} of {} \
             unflushed blocks lost; {:.1} s",
            shown.compared,
            shown.recovery.records,
            shown.whole_in.as_secs_f64(),
            tally.answered,
            tally.moves.ordered,
            tally.moves.arrived,
            tally.lost.lost,
            tally.lost.unflushed,
            begun.elapsed().as_secs_f64()
        );
        self.totals.add(&shown.recovery, &tally);
        self.totals.keys_compared = shown.compared;
        Ok(())
    }

    fn last_start(&mut self, number: u64) -> Result<(), Vec<String>> {
        let shown = self.start_and_judge(&self.plan(number))?.1;
        self.totals.keys_compared = shown.compared;
        Ok(())
    }

    fn met(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("a written block that a cut took", self.totals.tally.lost.lost),
            ("a record that was replayed", self.totals.recovery.records),
            ("an answer to a client", self.totals.tally.answered),
            ("slots that were on their way", self.totals.cut_moves),
            ("slots that had arrived", self.totals.tally.moves.arrived),
        ]
    }

    fn lines(&self, options: &Options, rounds: u64) -> Vec<String> {
        let (Totals { tally, recovery, .. }, Options { subject, seed, nodes, .. }) = (&self.totals, options);
        vec![
            format!(
                "{subject:?}, {nodes} nodes, seed {seed}: {} power cuts, {} of them before it was whole, {} behind a clean stop, {} while \
                 slots were on their way; {} of {} unflushed blocks lost; {} requests answered, {} not",
                rounds + tally.broken_starts,
                tally.broken_starts,
                tally.stops,
                self.totals.cut_moves,
                tally.lost.lost,
                tally.lost.unflushed,
                tally.answered,
                tally.unanswered
            ),
            format!(
                "moves: {} ordered, {} arrived; recovered: {} keys from runs, {} records; cut: {} torn tails, {} incomplete units; {} keys \
                 compared in the end",
                tally.moves.ordered,
                tally.moves.arrived,
                recovery.run_keys,
                recovery.records,
                recovery.torn_tails,
                recovery.incomplete_units,
                self.totals.keys_compared
            ),
        ]
    }

    fn evidence(&self) -> io::Result<&Path> {
        self.past.write(&self.rig.folder.join("history.jsonl"))?;
        Ok(&self.rig.folder)
    }

    fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(&self.rig.folder)
    }
}

impl Totals {
    fn add(&mut self, recovery: &Recovery, tally: &Tally) {
        self.tally.answered += tally.answered;
        self.tally.unanswered += tally.unanswered;
        self.tally.broken_starts += tally.broken_starts;
        self.tally.stops += tally.stops;
        self.tally.moves.ordered += tally.moves.ordered;
        self.tally.moves.arrived += tally.moves.arrived;
        self.tally.lost.unflushed += tally.lost.unflushed;
        self.tally.lost.lost += tally.lost.lost;
        self.recovery.add(recovery);
        self.cut_moves += u64::from(tally.is_move_cut);
    }
}
