//! The campaign of one node, or of Redis: with the books and clients of the kill campaign.

use std::path::Path;
use std::time::Instant;
use std::{fs, io};

use ports::PortBlock;

use super::campaign::{Options, Rounds};
use super::guest::Forward;
use super::plan::{PORT, Plan, Subject};
use super::rig::Rig;
use super::round::Tally;
use crate::kill::book::Habits;
use crate::kill::told::Recovery;
use crate::kill::verdict::{Books, Size};

/// A machine that is emulated reads fewer keys back than the kill campaign has.
const SIZE: Size =
    Size { watched_keys: 200, bulk_keys: 2000, habits: Habits { promises_later: true, has_order: true } };

/// A campaign under way.
pub struct Campaign {
    subject: Subject,
    seed: u64,
    pub(super) rig: Rig,
    block: PortBlock,
    pub(super) books: Books,
    /// The last cut came behind a clean stop: the next start replays nothing.
    pub(super) is_left_clean: bool,
    totals: Totals,
}

/// What a campaign has met.
#[derive(Debug, Default)]
struct Totals {
    tally: Tally,
    recovery: Recovery,
}

impl Campaign {
    /// None of its rounds has been.
    ///
    /// # Errors
    /// When its folder or its disk cannot be made, or no port is free.
    pub fn new(options: &Options) -> io::Result<Campaign> {
        let Options { machine, subject, planted, seed, .. } = options;
        let (rig, block) = (Rig::new(machine, planted.as_deref(), 1)?, PortBlock::take()?);
        let (books, totals) = (Books::new(SIZE), Totals::default());
        Ok(Campaign { subject: *subject, seed: *seed, rig, block, books, is_left_clean: true, totals })
    }

    fn plan(&self, number: u64) -> Plan {
        Plan::draw(self.subject, self.seed, number)
    }

    /// The way to the server.
    pub(super) fn forward(&self) -> Forward {
        Forward { outside: self.block.first(), inside: PORT }
    }
}

impl Rounds for Campaign {
    fn round(&mut self, number: u64) -> Result<(), Vec<String>> {
        let (begun, plan) = (Instant::now(), self.plan(number));
        let (recovery, tally) = self.planned_round(&plan)?;
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

    fn last_start(&mut self, number: u64) -> Result<(), Vec<String>> {
        self.start_and_judge(&self.plan(number)).map(drop)
    }

    fn met(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("a written block that a cut took", self.totals.tally.lost.lost),
            ("a record that was replayed", self.totals.recovery.records),
            ("a unit of watched keys", self.totals.tally.units),
        ]
    }

    fn lines(&self, options: &Options, rounds: u64) -> Vec<String> {
        self.totals.lines(options, rounds)
    }

    fn evidence(&self) -> io::Result<&Path> {
        Ok(&self.rig.folder)
    }

    fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(&self.rig.folder)
    }
}

impl Totals {
    fn add(&mut self, recovery: &Recovery, tally: &Tally) {
        self.tally.units += tally.units;
        self.tally.bulk_requests += tally.bulk_requests;
        self.tally.broken_starts += tally.broken_starts;
        self.tally.stops += tally.stops;
        self.tally.lost.unflushed += tally.lost.unflushed;
        self.tally.lost.lost += tally.lost.lost;
        self.recovery.add(recovery);
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
