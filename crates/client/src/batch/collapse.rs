//! Write collapsing and serialised updates (Stout, ATC 2010): of the writes that wait for one key only the newest is sent, and its
//! commit answers them all. Off unless a class or a prefix of keys asks for it.
//!
//! ```text
//!   key ─► [ in flight: v1 ] ─► [ pending: v3, for w2 w3 r3 ] ─► [ whole: CAS ] ─► [ pending: v5, for w5 ]
//!            one per key           newest wins; who read it        never             writes behind it start anew
//!                                  waits for its commit            collapsed
//! ```
//!
//! A read that would see a pending value waits until that value is committed: nobody learns of what may still be lost. What is in
//! flight answers no read: it may be committed, and overwritten by another client, before the read was asked. What is
//! no plain write (compare-and-swap, append, a wait for a change) is sent as it is, behind what came before it.

use base::planted::{Bug, is_planted};
use std::collections::{BTreeMap, VecDeque};

/// What is to be sent now; to be ended with its version.
#[derive(Debug, PartialEq, Eq)]
pub enum Send<V, W> {
    /// A write.
    Write {
        /// Of the key, here only.
        version: u64,
        /// The newest value.
        value: V,
    },
    /// Something that is never collapsed. Its owner answers it itself.
    Whole {
        /// Of the key, here only.
        version: u64,
        /// Who asked for it.
        waiter: W,
    },
}

/// What becomes of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadStep<W> {
    /// Nothing is pending: ask the store.
    Upstream(W),
    /// It is answered by the commit of what it saw, or sent when its turn comes.
    Waits,
}

/// How what was sent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The store has it.
    Committed,
    /// The store said no: it does not have it.
    Refused,
    /// Nobody knows (a timeout, a connection that broke).
    Unknown,
}

/// What a waiter is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<V> {
    /// Its write is committed, or one after it that replaced it.
    Written,
    /// The value, which is committed.
    Read(V),
    /// Its write was refused by the store, or what its read saw was: nothing was done.
    Refused,
    /// Its write was sent, and nobody knows more.
    Unknown,
    /// It was never sent: it may be tried again.
    NotSent,
}

/// An answer for a waiter.
pub type Answer<V, W> = (W, Outcome<V>);

#[derive(Debug)]
enum What<V, W> {
    Write {
        value: V,
        /// With whether it reads.
        waiters: Vec<(W, bool)>,
    },
    /// The waiter is with the owner once it was sent.
    Whole(Option<W>),
}

#[derive(Debug)]
struct Entry<V, W> {
    version: u64,
    what: What<V, W>,
}

/// Too many wait: hold the caller back, or refuse it.
#[derive(Debug, PartialEq, Eq)]
pub struct Crowded<W>(
    /// Who was to wait.
    pub W,
);

/// The keys of one destination that have something under way. The first entry of a key is in flight; a key without entries is
/// forgotten, because what the store has is the store's to say.
#[derive(Debug)]
pub struct Collapser<K, V, W> {
    keys: BTreeMap<K, VecDeque<Entry<V, W>>>,
    waiters: usize,
    waiters_max: usize,
    last_version: u64,
}

impl<K: Ord + Clone, V: Clone, W> Collapser<K, V, W> {
    /// Nothing under way; at most so many waiters, which [`base::limits::COLLAPSE_WAITERS_MAX`] bounds.
    pub fn new(waiters_max: usize) -> Collapser<K, V, W> {
        let waiters_max = waiters_max.min(base::limits::COLLAPSE_WAITERS_MAX);
        Collapser { keys: BTreeMap::new(), waiters: 0, waiters_max, last_version: 0 }
    }

    /// A write: to be sent now, or it waits, perhaps for one after it.
    ///
    /// # Errors
    /// [`Crowded`] with the waiter when as many wait as may.
    pub fn write(&mut self, key: K, value: V, waiter: W) -> Result<Option<Send<V, W>>, Crowded<W>> {
        let (version, waiter) = self.admit(waiter)?;
        let entries = self.keys.entry(key).or_default();
        let is_first = entries.is_empty();
        // The first is on its way already.
        if entries.len() > 1
            && let Some(Entry { version: newest, what: What::Write { value: pending, waiters } }) = entries.back_mut()
        {
            *newest = version;
            *pending = value;
            waiters.push((waiter, false));
            return Ok(None);
        }
        let sent = is_first.then(|| Send::Write { version, value: value.clone() });
        entries.push_back(Entry { version, what: What::Write { value, waiters: vec![(waiter, false)] } });
        Ok(sent)
    }

    /// A read of the key's value as a whole.
    ///
    /// # Errors
    /// [`Crowded`] with the waiter when as many wait as may.
    pub fn read(&mut self, key: &K, waiter: W) -> Result<ReadStep<W>, Crowded<W>> {
        if !self.keys.contains_key(key) {
            return Ok(ReadStep::Upstream(waiter));
        }
        let (version, waiter) = self.admit(waiter)?;
        let entries = self.keys.get_mut(key).expect("seen above");
        let is_last_unsent = entries.len() > 1;
        match entries.back_mut() {
            Some(Entry { what: What::Write { waiters, .. }, .. }) if is_last_unsent => waiters.push((waiter, true)),
            _ => entries.push_back(Entry { version, what: What::Whole(Some(waiter)) }),
        }
        Ok(ReadStep::Waits)
    }

    /// Anything else on the key: never collapsed, and in its place.
    ///
    /// # Errors
    /// [`Crowded`] with the waiter when as many wait as may.
    pub fn whole(&mut self, key: K, waiter: W) -> Result<Option<Send<V, W>>, Crowded<W>> {
        let (version, waiter) = self.admit(waiter)?;
        let entries = self.keys.entry(key).or_default();
        if entries.is_empty() {
            entries.push_back(Entry { version, what: What::Whole(None) });
            return Ok(Some(Send::Whole { version, waiter }));
        }
        entries.push_back(Entry { version, what: What::Whole(Some(waiter)) });
        Ok(None)
    }

    /// What was sent of the key ended. Whom that answers is appended to `answers`; what is to be sent next is returned. An ending
    /// that is not of what is in flight (an answer behind a timeout) changes nothing.
    pub fn ended(
        &mut self,
        key: &K,
        version: u64,
        ending: Ending,
        answers: &mut Vec<Answer<V, W>>,
    ) -> Option<Send<V, W>> {
        let entries = self.keys.get_mut(key)?;
        entries.front().filter(|entry| entry.version == version)?;
        let ended = entries.pop_front().expect("it has the version");
        let from = answers.len();
        let was_whole = matches!(ended.what, What::Whole(_));
        answer(ended, ending, answers);
        if ending == Ending::Unknown {
            // What was sent may still arrive: a later write on another connection could be overtaken by it.
            entries.drain(..).for_each(|entry| answer_unsent(entry, answers));
        }
        if is_planted(Bug::M60CommitAnswersLaterWrites)
            && let Some(Entry { what: What::Write { value, waiters }, .. }) = entries.front_mut()
        {
            answers.extend(waiters.drain(..).map(|(waiter, reads)| (waiter, written(value, reads))));
        }
        let next = entries.front_mut().map(send);
        if next.is_none() {
            self.keys.remove(key);
        }
        self.waiters -= answers.len() - from + usize::from(was_whole);
        next
    }

    /// Who waits, and for whom something is in flight.
    pub fn waiters(&self) -> usize {
        self.waiters
    }

    fn admit(&mut self, waiter: W) -> Result<(u64, W), Crowded<W>> {
        if self.waiters >= self.waiters_max {
            return Err(Crowded(waiter));
        }
        self.waiters += 1;
        self.last_version += 1;
        Ok((self.last_version, waiter))
    }
}

fn send<V: Clone, W>(entry: &mut Entry<V, W>) -> Send<V, W> {
    let version = entry.version;
    match &mut entry.what {
        What::Write { value, .. } => Send::Write { version, value: value.clone() },
        What::Whole(waiter) => Send::Whole { version, waiter: waiter.take().expect("it was not sent before") },
    }
}

fn written<V: Clone>(value: &V, reads: bool) -> Outcome<V> {
    if reads { Outcome::Read(value.clone()) } else { Outcome::Written }
}

/// Answers who waits for what was in flight.
fn answer<V: Clone, W>(entry: Entry<V, W>, ending: Ending, answers: &mut Vec<Answer<V, W>>) {
    let What::Write { value, waiters } = entry.what else { return };
    answers.extend(waiters.into_iter().map(|(waiter, reads)| {
        let outcome = match ending {
            Ending::Committed => written(&value, reads),
            Ending::Refused => Outcome::Refused,
            // Reading may be tried again.
            Ending::Unknown if reads => Outcome::NotSent,
            Ending::Unknown => Outcome::Unknown,
        };
        (waiter, outcome)
    }));
}

fn answer_unsent<V, W>(entry: Entry<V, W>, answers: &mut Vec<Answer<V, W>>) {
    match entry.what {
        What::Write { waiters, .. } => {
            answers.extend(waiters.into_iter().map(|(waiter, _)| (waiter, Outcome::NotSent)));
        }
        What::Whole(waiter) => answers.extend(waiter.map(|waiter| (waiter, Outcome::NotSent))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Keys = Collapser<u8, u32, char>;

    #[test]
    fn the_newest_wins_and_its_commit_answers_all() {
        let mut keys = Keys::new(100);
        let Ok(Some(Send::Write { version, value: 1 })) = keys.write(0, 1, 'a') else { panic!("nothing was out") };
        assert_eq!(keys.write(0, 2, 'b'), Ok(None));
        assert_eq!(keys.write(0, 3, 'c'), Ok(None));
        assert_eq!(keys.read(&0, 'r'), Ok(ReadStep::Waits));
        assert_eq!(keys.read(&1, 's'), Ok(ReadStep::Upstream('s')));
        let mut answers = Vec::new();
        let Some(Send::Write { version: next, value: 3 }) = keys.ended(&0, version, Ending::Committed, &mut answers)
        else {
            panic!("one write is pending, the newest")
        };
        assert_eq!(answers, [('a', Outcome::Written)]);
        assert_eq!(keys.ended(&0, version, Ending::Committed, &mut answers), None, "it ended before");
        assert_eq!(keys.ended(&0, next, Ending::Committed, &mut answers), None);
        assert_eq!(answers[1..], [('b', Outcome::Written), ('c', Outcome::Written), ('r', Outcome::Read(3))]);
        assert_eq!((keys.waiters(), keys.keys.len()), (0, 0));
    }

    #[test]
    fn what_is_whole_is_neither_collapsed_nor_overtaken() {
        let mut keys = Keys::new(100);
        let Ok(Some(Send::Write { version, .. })) = keys.write(0, 1, 'a') else { panic!("nothing was out") };
        assert_eq!(keys.write(0, 2, 'b'), Ok(None));
        assert_eq!(keys.whole(0, 'x'), Ok(None));
        assert_eq!(keys.read(&0, 'r'), Ok(ReadStep::Waits));
        assert_eq!(keys.write(0, 3, 'c'), Ok(None));
        let mut answers = Vec::new();
        let mut next: Option<Send<u32, char>> = Some(Send::Write { version, value: 1 });
        let mut sent = Vec::new();
        while let Some(send) = next {
            let version = match send {
                Send::Write { version, value } => {
                    sent.push(value.to_string());
                    version
                }
                Send::Whole { version, waiter } => {
                    sent.push(waiter.to_string());
                    version
                }
            };
            next = keys.ended(&0, version, Ending::Committed, &mut answers);
        }
        assert_eq!(sent, ["1", "2", "x", "r", "3"]);
        assert_eq!(keys.waiters(), 0);
    }

    #[test]
    fn the_unknown_and_the_unsent_are_told_apart() {
        let mut keys = Keys::new(3);
        let Ok(Some(Send::Write { version, .. })) = keys.write(0, 1, 'a') else { panic!("nothing was out") };
        assert_eq!(keys.write(0, 2, 'b'), Ok(None));
        assert_eq!(keys.read(&0, 'r'), Ok(ReadStep::Waits));
        assert_eq!(keys.write(0, 3, 'c'), Err(Crowded('c')));
        let mut answers = Vec::new();
        assert_eq!(keys.ended(&0, version, Ending::Unknown, &mut answers), None);
        assert_eq!(answers, [('a', Outcome::Unknown), ('b', Outcome::NotSent), ('r', Outcome::NotSent)]);
        assert_eq!(keys.waiters(), 0);
    }
}
