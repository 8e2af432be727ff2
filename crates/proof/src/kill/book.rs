//! What one client has sent and what was acknowledged to it: for every watched key all states it may be in after a restart.
//!
//! ```text
//!   unit        … 17   18 (a, b)   19 (a)   20 (b, c)
//!                 └ acknowledged    └ sent, unknown ┘
//!   key a       states after 18, 19         found: one of them
//!   key b       states after 18, 20         b is at 20  <=>  c is at 20: a unit is seen in all its keys or in none
//! ```

use std::collections::VecDeque;

use super::state::{Kind, State};
use crate::reply::show;

/// Keys of a unit that are named where it is told; FLUSHDB has all of them.
const NAMES_MAX: usize = 8;

/// A watched key and what it may hold.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: Vec<u8>,
    /// What it is used for.
    pub kind: Kind,
    /// After which unit, and what: first the last acknowledged one, then all that were sent since, in order.
    states: VecDeque<(u64, State)>,
}

/// A unit: one request that happens wholly or not at all.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The request's words.
    pub words: Vec<Vec<u8>>,
    /// What its keys hold after it; a key stands here once at most.
    pub changes: Vec<(usize, State)>,
    /// The reply it must get.
    pub reply: Vec<u8>,
}

/// A unit that was sent and not acknowledged.
#[derive(Clone, Debug)]
struct Pending {
    number: u64,
    command: Vec<u8>,
    keys: Vec<usize>,
    reply: Vec<u8>,
}

/// The keys of one client, which nobody else writes.
#[derive(Clone, Debug)]
pub struct Book {
    database: u32,
    keys: Vec<Key>,
    sent: u64,
    /// Sent, and not promised yet; the first ones have their replies.
    pending: VecDeque<Pending>,
    /// How many of these have their replies.
    replied: usize,
    habits: Habits,
}

/// What differs between the campaigns that keep books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    /// A reply promises nothing by itself; [`Book::promise`] says what is promised.
    pub promises_later: bool,
    /// All keys are of one core, so what is found is what some first units left: order without a hole.
    pub has_order: bool,
}

impl Book {
    /// Keys of a database that hold nothing yet.
    pub fn new(database: u32, keys: impl Iterator<Item = (Vec<u8>, Kind)>, habits: Habits) -> Book {
        let key = |(name, kind)| Key { name, kind, states: VecDeque::from([(0, State::Absent)]) };
        Book { database, keys: keys.map(key).collect(), sent: 0, pending: VecDeque::new(), replied: 0, habits }
    }

    /// Their database; the one of the bulk is 0, another one belongs to this client alone.
    pub fn database(&self) -> u32 {
        self.database
    }

    /// Its keys.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// What the key holds if everything sent happened.
    pub fn latest(&self, key: usize) -> &State {
        &self.keys[key].states.back().expect("a key has a state").1
    }

    /// The number of the next unit; it is in the values, so none is ever written twice.
    pub fn next_number(&self) -> u64 {
        self.sent + 1
    }

    /// Notes a unit; it must be noted before any byte of it is sent.
    pub fn send(&mut self, unit: Unit) {
        self.sent += 1;
        let keys = unit.changes.iter().map(|(key, _)| *key).collect();
        for (key, state) in unit.changes {
            self.keys[key].states.push_back((self.sent, state));
        }
        let command = unit.words.into_iter().next().unwrap_or_default();
        self.pending.push_back(Pending { number: self.sent, command, keys, reply: unit.reply });
    }

    /// Notes the next reply; returns the number of its unit.
    ///
    /// # Errors
    /// When it is not the one that the oldest unit without a reply must get.
    pub fn acknowledge(&mut self, reply: &[u8]) -> Result<u64, String> {
        let unit = self.pending.get(self.replied);
        let unit = unit.ok_or_else(|| format!("a reply that nobody waits for: {}", show(reply)))?;
        self.replied += 1;
        if reply != unit.reply {
            let wanted = show(&unit.reply);
            return Err(format!("{} answers {} instead of {wanted}", self.told(unit), show(reply)));
        }
        let number = unit.number;
        if !self.habits.promises_later {
            self.promise(number);
        }
        Ok(number)
    }

    /// What was acknowledged up to the unit `number` must be found from now on.
    pub fn promise(&mut self, number: u64) {
        while self.replied > 0 && self.pending.front().is_some_and(|unit| unit.number <= number) {
            let unit = self.pending.pop_front().expect("it was looked at");
            self.replied -= 1;
            for key in unit.keys {
                let states = &mut self.keys[key].states;
                while states.front().is_some_and(|(number, _)| *number < unit.number) {
                    states.pop_front();
                }
            }
        }
    }

    /// Holds what was found after a restart, one state per key, against what may be; returns what must not be.
    pub fn judge(&self, found: &[State]) -> Vec<String> {
        assert_eq!(found.len(), self.keys.len(), "every key is read");
        let mut problems = Vec::new();
        let mut candidates: Vec<Vec<u64>> = Vec::new();
        for (key, found) in self.keys.iter().zip(found) {
            let fits = key.states.iter().filter(|(_, state)| state == found).map(|(number, _)| *number);
            candidates.push(fits.collect());
            if candidates.last().is_some_and(Vec::is_empty) {
                problems.push(key.told(found));
            }
        }
        if problems.is_empty() {
            problems.extend(self.torn_unit(&candidates));
        }
        if problems.is_empty() && self.habits.has_order {
            problems.extend(order::hole(&self.keys, found, self.sent));
        }
        problems
    }

    /// The first unit that no choice among the candidates shows in all its keys or in none.
    ///
    /// Starts with the earliest candidates and goes up only where a unit forces it: what a key is forced to here, it is
    /// forced to in every choice.
    fn torn_unit(&self, candidates: &[Vec<u64>]) -> Option<String> {
        let mut chosen: Vec<usize> = vec![0; candidates.len()];
        loop {
            let mut is_stable = true;
            for unit in self.pending.iter().filter(|unit| unit.keys.len() > 1) {
                let at = |chosen: &[usize], key: usize| candidates[key][chosen[key]];
                let Some(seen) = unit.keys.iter().find(|key| at(&chosen, **key) >= unit.number) else { continue };
                for key in &unit.keys {
                    while at(&chosen, *key) < unit.number {
                        is_stable = false;
                        chosen[*key] += 1;
                        if chosen[*key] == candidates[*key].len() {
                            return Some(self.told_torn(unit, *seen, *key));
                        }
                    }
                }
            }
            if is_stable {
                return None;
            }
        }
    }

    /// From here on the keys hold what was found, for good: what was not found must not come back later.
    pub fn settle(&mut self, found: Vec<State>) {
        self.pending.clear();
        self.replied = 0;
        for (key, state) in self.keys.iter_mut().zip(found) {
            key.states = VecDeque::from([(self.sent, state)]);
        }
    }

    /// How many of its keys hold something, once it is settled.
    pub fn present(&self) -> u64 {
        self.keys.iter().filter(|key| key.states.iter().any(|(_, state)| *state != State::Absent)).count() as u64
    }

    fn told(&self, unit: &Pending) -> String {
        let names: Vec<String> = unit.keys.iter().take(NAMES_MAX).map(|key| show(&self.keys[*key].name)).collect();
        format!("unit {}, {} of {},", unit.number, show(&unit.command), names.join(" "))
    }

    fn told_torn(&self, unit: &Pending, seen: usize, unseen: usize) -> String {
        let name = |key: usize| show(&self.keys[key].name);
        format!("{} is seen in {} and not in {}", self.told(unit), name(seen), name(unseen))
    }
}

impl Key {
    /// What may be, and that it is not.
    fn told(&self, found: &State) -> String {
        let (acknowledged, base) = self.states.front().expect("a key has a state");
        let (sent, last) = self.states.back().expect("a key has a state");
        let name = show(&self.name);
        format!(
            "{name} holds {found}; last acknowledged was unit {acknowledged}: {base}; last sent was unit {sent}: {last}"
        )
    }
}

mod order;
#[cfg(test)]
mod tests;
