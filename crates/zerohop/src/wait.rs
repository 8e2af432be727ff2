//! Waiting for a key: the write that meets the condition fires, and nobody looks again and again.
//!
//! ```text
//!   write ─► changed keys ─► waiters of that key ─► condition met? ─► its own place and signal ─► the waiting thread
//! ```
//!
//! The writer looks at every waiter of the keys that it changed, and at no other; each waiter has a place of its own, so
//! none waits for another.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use base::limits::WAITERS_MAX;
use base::{LogOrdinal, Now, Version};

use crate::checks::{Present, check_key, key_of, read};
use crate::engine::Engine;
use crate::store::POISONED;
use crate::value::is_equal;
use crate::{Error, Store, Value};

/// What a key is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition<'a> {
    /// It exists.
    Exists,
    /// It does not exist.
    Absent,
    /// It exists and holds this.
    Equals(&'a [u8]),
    /// It does not hold this; a key that does not exist holds nothing.
    Differs(&'a [u8]),
    /// It has another version than this one ([`Version::ABSENT`] where it did not exist).
    NotVersion(Version),
}

impl Condition<'_> {
    fn is_met(&self, present: Option<&Present<'_>>) -> bool {
        match self {
            Condition::Exists => present.is_some(),
            Condition::Absent => present.is_none(),
            Condition::Equals(bytes) => present.is_some_and(|present| is_equal(present.text, bytes)),
            Condition::Differs(bytes) => !present.is_some_and(|present| is_equal(present.text, bytes)),
            Condition::NotVersion(version) => present.map_or(Version::ABSENT, |present| present.version) != *version,
        }
    }
}

/// How a wait ended.
#[derive(Clone, Debug)]
pub enum Waited {
    /// The condition was met, by this value (`None`: by the key's absence).
    Met(Option<Value>),
    /// It was not, in all that time.
    TimedOut,
}

/// [`Condition`] with bytes of its own.
enum OwnedCondition {
    Exists,
    Absent,
    Equals(Vec<u8>),
    Differs(Vec<u8>),
    NotVersion(Version),
}

impl OwnedCondition {
    fn of(condition: Condition<'_>) -> OwnedCondition {
        match condition {
            Condition::Exists => OwnedCondition::Exists,
            Condition::Absent => OwnedCondition::Absent,
            Condition::Equals(bytes) => OwnedCondition::Equals(bytes.to_vec()),
            Condition::Differs(bytes) => OwnedCondition::Differs(bytes.to_vec()),
            Condition::NotVersion(version) => OwnedCondition::NotVersion(version),
        }
    }

    fn borrow(&self) -> Condition<'_> {
        match self {
            OwnedCondition::Exists => Condition::Exists,
            OwnedCondition::Absent => Condition::Absent,
            OwnedCondition::Equals(bytes) => Condition::Equals(bytes),
            OwnedCondition::Differs(bytes) => Condition::Differs(bytes),
            OwnedCondition::NotVersion(version) => Condition::NotVersion(*version),
        }
    }
}

/// One thread that waits.
struct Waiter {
    name: Vec<u8>,
    condition: OwnedCondition,
    end: Mutex<Option<End>>,
    ended: Condvar,
}

enum End {
    /// What met the condition, and the log group that has to be as durable as promised before anybody hears of it.
    Met(Option<Value>, LogOrdinal),
    Closed,
}

impl Waiter {
    fn end(&self, end: End) {
        *self.end.lock().expect(POISONED) = Some(end);
        self.ended.notify_one();
    }
}

/// All who wait, by the hash of their keys.
#[derive(Default)]
pub(crate) struct Waiters {
    by_hash: BTreeMap<u64, Vec<Arc<Waiter>>>,
    count: usize,
}

impl Waiters {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Nobody writes any more.
    pub fn end(&mut self) {
        let waiters = std::mem::take(self);
        waiters.by_hash.into_values().flatten().for_each(|waiter| waiter.end(End::Closed));
    }

    fn add(&mut self, hash: u64, waiter: &Arc<Waiter>) {
        self.by_hash.entry(hash).or_default().push(Arc::clone(waiter));
        self.count += 1;
    }

    /// Takes out those of a key that `is_over` names.
    fn remove(&mut self, hash: u64, mut is_over: impl FnMut(&Waiter) -> bool) {
        let Some(waiters) = self.by_hash.get_mut(&hash) else { return };
        let before = waiters.len();
        waiters.retain(|waiter| !is_over(waiter));
        self.count -= before - waiters.len();
        if waiters.is_empty() {
            self.by_hash.remove(&hash);
        }
    }
}

impl Engine {
    /// Tells those who wait for the keys that were changed.
    #[cold]
    pub(crate) fn fire_waiters(&mut self, now: Now) {
        let mut touched = Vec::new();
        self.data.take_touched(&mut touched);
        let ordinal = self.journal.as_ref().map_or(LogOrdinal(0), |journal| journal.last_change(&self.data));
        let Engine { data, waiters, .. } = self;
        for (_, hash) in touched {
            waiters.remove(hash, |waiter| {
                let key = key_of(data, &waiter.name);
                let present = read(data, &key, now.unix_ms).unwrap_or(None);
                let is_met = waiter.condition.borrow().is_met(present.as_ref());
                if is_met {
                    waiter.end(End::Met(present.map(|present| present.to_value()), ordinal));
                }
                is_met
            });
        }
        data.track_touched(!waiters.is_empty());
    }
}

impl Store {
    /// Waits until a key meets a condition, at most for `timeout`. The write that brings it about fires at once, and what it
    /// wrote is what is returned, even if others have written since. A key's expiry is noticed within a tenth of a second or so.
    ///
    /// ```
    /// # fn main() -> Result<(), zerohop::Error> {
    /// use std::time::Duration;
    /// use zerohop::{Condition, Store, Waited};
    ///
    /// let store = Store::in_memory()?;
    /// let writer = store.clone();
    /// let thread = std::thread::spawn(move || writer.put(b"job", b"done"));
    /// let waited = store.wait(b"job", Condition::Equals(b"done"), Duration::from_secs(60))?;
    /// assert!(matches!(waited, Waited::Met(Some(value)) if value == b"done"));
    /// # thread.join().expect("it does not panic")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::TooManyWaiters`], [`Error::KeyTooLong`], [`Error::WrongType`] when the key holds a list at first (one that
    /// becomes a list counts as absent), [`Error::Closed`] when the store is closed meanwhile; in durability `Commit`,
    /// [`Error::LogFailed`] if it would show what may not survive.
    pub fn wait(&self, key: &[u8], condition: Condition<'_>, timeout: Duration) -> Result<Waited, Error> {
        self.wait_unless(key, condition, timeout, None)
    }

    /// As [`Store::wait`], and gives up as if the time were over once `is_interrupted` says so, which is asked every tenth of a second
    /// and without a lock: for hosts whose handlers of signals run on the thread that waits.
    ///
    /// # Errors
    /// Those of [`Store::wait`].
    pub fn wait_unless(
        &self,
        key: &[u8],
        condition: Condition<'_>,
        timeout: Duration,
        is_interrupted: Option<&dyn Fn() -> bool>,
    ) -> Result<Waited, Error> {
        check_key(key)?;
        // A timeout beyond what the clock can count is none.
        let deadline = Instant::now().checked_add(timeout);
        let guard = self.shared().lock();
        guard.check_open()?;
        let mut guard = self.shared().with_value(guard, key)?;
        let engine = &mut *guard;
        let now_ms = engine.read_ms();
        let hashed = key_of(&engine.data, key);
        let present = read(&mut engine.data, &hashed, now_ms)?;
        if condition.is_met(present.as_ref()) {
            let value = present.map(|present| present.to_value());
            if engine.has_to_end_read() {
                let now = engine.now();
                engine.end_change(now);
                self.shared().promise(guard)?;
            }
            return Ok(Waited::Met(value));
        }
        if engine.waiters.count >= WAITERS_MAX {
            return Err(Error::TooManyWaiters);
        }
        let waiter = Arc::new(Waiter {
            name: key.to_vec(),
            condition: OwnedCondition::of(condition),
            end: Mutex::new(None),
            ended: Condvar::new(),
        });
        if engine.waiters.is_empty() {
            engine.data.track_touched(true);
        }
        engine.waiters.add(hashed.hash, &waiter);
        drop(guard);
        let end = await_end(&waiter, deadline, is_interrupted);
        let mut engine = self.shared().lock();
        // It may have been fired between the end of its time and now.
        match end.or_else(|| waiter.end.lock().expect(POISONED).take()) {
            Some(End::Met(value, ordinal)) => {
                self.shared().promise_up_to(engine, ordinal)?;
                Ok(Waited::Met(value))
            }
            Some(End::Closed) => Err(Error::Closed),
            None => {
                engine.waiters.remove(hashed.hash, |other| std::ptr::eq(other, &*waiter));
                Ok(Waited::TimedOut)
            }
        }
    }
}

/// Between two questions whether a wait is to go on.
const LOOK: Duration = Duration::from_millis(100);

fn await_end(waiter: &Waiter, deadline: Option<Instant>, is_interrupted: Option<&dyn Fn() -> bool>) -> Option<End> {
    let mut look = Instant::now() + LOOK;
    let mut end = waiter.end.lock().expect(POISONED);
    while end.is_none() {
        let now = Instant::now();
        if deadline.is_some_and(|deadline| deadline <= now) {
            return None;
        }
        if let Some(is_interrupted) = is_interrupted.filter(|_| look <= now) {
            drop(end);
            if is_interrupted() {
                return None;
            }
            look = Instant::now() + LOOK;
            end = waiter.end.lock().expect(POISONED);
            continue;
        }
        let until = [deadline, is_interrupted.map(|_| look)].into_iter().flatten().min();
        end = match until {
            Some(until) => waiter.ended.wait_timeout(end, until - now).expect(POISONED).0,
            None => waiter.ended.wait(end).expect(POISONED),
        };
    }
    end.take()
}
