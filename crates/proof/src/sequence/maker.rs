//! The kinds of sequences, and how their steps are collected.

use base::rng::Rng;

use super::mutation::mutate;
use super::{Generator, Step};
use crate::catalogue::{Entry, Family};
use crate::template::{Filler, Part};
use crate::values::{Pool, pick};

/// Collects the steps of one sequence.
pub(super) struct Maker<'a> {
    pub(super) generator: &'a Generator,
    pub(super) rng: &'a mut Rng,
    pub(super) pool: &'a Pool,
    pub(super) steps: Vec<Step>,
}

impl Maker<'_> {
    pub(super) fn plain(&mut self) {
        self.setup();
        let main = *pick(self.rng, &[Family::String, Family::Bit, Family::Keyspace, Family::List]);
        let length = 8 + self.rng.below(13);
        for _ in 0..length {
            let family = if self.rng.chance(1, 100) { Family::Clients } else { self.family_near(main) };
            self.command(0, family);
        }
        self.epilogue();
    }

    pub(super) fn transaction(&mut self) {
        let main = *pick(self.rng, &[Family::String, Family::Bit, Family::Keyspace, Family::List]);
        self.setup();
        if self.rng.chance(7, 10) {
            self.named(0, "WATCH");
        }
        self.some_commands(1, main, 2);
        self.some_commands(0, main, 2);
        self.words(0, "MULTI");
        let length = 1 + self.rng.below(6);
        for _ in 0..length {
            match self.rng.below(30) {
                0 => self.command(0, Family::Transaction),
                1 => self.command(0, Family::Connection),
                _ => {
                    let family = self.family_near(main);
                    self.command(0, family);
                }
            }
        }
        self.rival(main);
        match self.rng.below(20) {
            0..=15 => self.words(0, "EXEC"),
            16..=18 => self.words(0, "DISCARD"),
            _ => {}
        }
        self.some_commands(0, main, 3);
        self.some_commands(1, main, 1);
        if self.rng.chance(1, 10) {
            self.command(0, Family::Transaction);
        }
        self.epilogue();
    }

    /// What the other connection does before EXEC; sometimes a transaction of its own.
    fn rival(&mut self, main: Family) {
        let in_transaction = self.rng.chance(1, 6);
        if in_transaction {
            self.words(1, "MULTI");
        }
        self.some_commands(1, main, 1 + 2 * u64::from(in_transaction));
        if in_transaction {
            self.words(1, "EXEC");
        }
    }

    pub(super) fn conditional(&mut self) {
        let length = 8 + self.rng.below(10);
        for _ in 0..length {
            self.command(0, Family::Conditional);
        }
        self.sentinels();
    }

    pub(super) fn valkey(&mut self) {
        self.setup();
        for _ in 0..10 {
            let family = *pick(self.rng, &[Family::Newer, Family::Newer, Family::String]);
            self.command(0, family);
        }
        self.epilogue();
    }

    pub(super) fn global(&mut self) {
        self.words(0, "FLUSHALL");
        self.setup();
        let watches = self.rng.chance(1, 4);
        if watches {
            self.named(0, "WATCH");
            self.global_commands(1, 3);
            self.words(0, "MULTI");
        }
        if self.rng.chance(1, 2) {
            self.setting();
        }
        let length = 8 + self.rng.below(13);
        self.global_commands(0, length);
        if watches {
            self.global_commands(1, 2);
            self.words(0, "EXEC");
            self.global_commands(0, 4);
        }
        self.epilogue();
    }

    /// A setting of which nothing follows, and what it is then: whoever set it before did so at another node, or not at all.
    fn setting(&mut self) {
        let length = self.rng.below(1000);
        self.words(0, &format!("CONFIG SET slowlog-max-len {length}"));
        self.words(0, "CONFIG GET slowlog-max-len");
        if self.rng.chance(1, 4) {
            self.words(0, "CONFIG RESETSTAT");
        }
    }

    fn global_commands(&mut self, connection: usize, count: u64) {
        for _ in 0..count {
            let family = *pick(
                self.rng,
                &[Family::Global, Family::Global, Family::Keyspace, Family::String, Family::List, Family::Connection],
            );
            self.command(connection, family);
        }
    }

    fn family_near(&mut self, main: Family) -> Family {
        match self.rng.below(20) {
            0..=12 => main,
            13 if self.pool.is_of_cluster() && self.rng.chance(1, 4) => Family::Cluster,
            13 => Family::Connection,
            _ => *pick(self.rng, &[Family::String, Family::Bit, Family::Keyspace, Family::List]),
        }
    }

    /// Something to work on: without it most commands would only meet missing keys.
    pub(super) fn setup(&mut self) {
        for name in ["SET", "RPUSH", "MSET"] {
            if self.rng.chance(2, 3) {
                self.named(0, name);
            }
        }
    }

    /// Brings both connections back to where the next sequence expects them.
    pub(super) fn epilogue(&mut self) {
        for connection in [0, 1] {
            let used = self.steps.iter().filter(|step| step.connection == connection);
            let changed =
                used.into_iter().any(|step| matches!(step.name().as_str(), "MULTI" | "WATCH" | "SELECT" | "EXEC"));
            if changed {
                self.words(connection, "DISCARD");
                self.words(connection, "UNWATCH");
                self.words(connection, "SELECT 0");
            }
        }
        self.sentinels();
    }

    /// A last command on each connection whose reply nothing else gives: a reply too many or too few shows here.
    fn sentinels(&mut self) {
        for connection in [0, 1] {
            if self.steps.iter().any(|step| step.connection == connection) {
                let text = format!("sentinel-{}-{}", self.steps.len(), self.pool.unique());
                self.push(connection, vec![b"ECHO".to_vec(), text.into_bytes()]);
            }
        }
    }

    fn some_commands(&mut self, connection: usize, main: Family, most: u64) {
        for _ in 0..self.rng.below(most + 1) {
            let family = self.family_near(main);
            self.command(connection, family);
        }
    }

    pub(super) fn words(&mut self, connection: usize, line: &str) {
        let arguments = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        self.steps.push(Step { connection, arguments });
    }

    fn named(&mut self, connection: usize, name: &str) {
        let generator = self.generator;
        let candidates: Vec<&(Entry, Vec<Part>)> = generator
            .entries
            .iter()
            .filter(|(entry, _)| entry.name() == name && entry.family != Family::Conditional)
            .collect();
        let (_, parts) = candidates[self.rng.below(candidates.len() as u64) as usize];
        self.template(connection, parts, Family::String);
    }

    fn command(&mut self, connection: usize, family: Family) {
        let generator = self.generator;
        let of_family = || generator.entries.iter().filter(move |(entry, _)| entry.family == family);
        let total: u64 = of_family().map(|(entry, _)| entry.weight).sum();
        let mut left = self.rng.below(total);
        for (entry, parts) in of_family() {
            if left < entry.weight {
                self.template(connection, parts, family);
                return;
            }
            left -= entry.weight;
        }
    }

    fn template(&mut self, connection: usize, parts: &[Part], family: Family) {
        let mut arguments = Vec::new();
        Filler { rng: self.rng, pool: self.pool, forced: None, numeric_seen: 0 }.fill(parts, &mut arguments);
        if family != Family::Conditional || self.rng.chance(1, 3) {
            mutate(&mut arguments, family, self.pool, self.rng);
        }
        self.push(connection, arguments);
    }

    pub(super) fn push(&mut self, connection: usize, arguments: Vec<Vec<u8>>) {
        self.steps.push(Step { connection, arguments });
    }
}
