//! The batcher of one destination: what waits for it, and when it goes.
//!
//! For each caller holds: its requests in the relaxed bucket were pushed before those in the urgent one. So a relaxed request of
//! a caller who has urgent ones waiting joins them, and urgent ones of a caller who has relaxed ones waiting go behind these,
//! in one write.

use super::answer::{Batch, BatchAnswer, BatchOutcome, BatchTicket, Cause, Sample};
use super::bucket::{Bucket, Buffers, NEVER_US};
use super::config::{BatchBounds, BatcherConfig};
use super::in_flight::InFlight;
use super::latency_model::LatencyModel;
use super::policy::{Pace, Policy, Waiting};
use super::qos::Qos;
use super::restraint::Restraint;
use super::split::Split;
use super::tuner::Tuner;
use base::limits;

/// A request that was not taken, because too much waits already: hold its caller back, or refuse it.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused<T>(
    /// What was to be pushed; nothing was encoded.
    pub T,
);

/// See the module. `T` is what its owner needs to match a reply; it is handed back and never looked at.
///
/// ```
/// use client::batch::{BatchAnswer, BatchOutcome, Batcher, BatcherConfig, Qos};
///
/// let mut batcher = Batcher::new(BatcherConfig::default(), 0);
/// batcher.push(10, 7, Qos::Batch, "first", |bytes| bytes.extend_from_slice(b"PING\r\n")).unwrap();
/// let batch = batcher.due(10).expect("nothing is out, so nothing is waited for");
///
/// batcher.push(20, 7, Qos::Batch, "second", |bytes| bytes.extend_from_slice(b"PING\r\n")).unwrap();
/// assert!(batcher.due(20).is_none() && batcher.deadline_us().is_none());
/// batcher.answered(300, BatchAnswer { ticket: batch.ticket, outcome: BatchOutcome::Answered });
/// batcher.recycle(batch.bytes, batch.items);
/// assert_eq!(batcher.due(300).expect("the answer was waited for").items, ["second"]);
/// ```
#[derive(Debug)]
pub struct Batcher<T> {
    policy: Policy,
    pub(super) bounds: BatchBounds,
    pub(super) model: LatencyModel,
    pub(super) tuner: Tuner,
    split: Split,
    pub(super) relaxed: Bucket<T>,
    pub(super) urgent: Bucket<T>,
    /// The relaxed bucket has requests whose time was too short: best effort lasts until they are gone.
    has_late: bool,
    /// A caller with urgent requests has relaxed ones waiting: these go in front.
    is_relaxed_first: bool,
    /// Something urgent was pushed: from then on callers are noted.
    has_urgent_callers: bool,
    pub(super) in_flight: InFlight,
    pub(super) restraint: Restraint,
    generation: u64,
    /// The first answer after a change of route is not learned from.
    is_fresh: bool,
    spares: Vec<Buffers<T>>,
}

impl<T> Batcher<T> {
    /// A batcher with nothing waiting. Fixed intervals are counted from `now_us`: batchers made at different times do not
    /// send together.
    pub fn new(config: BatcherConfig, now_us: u64) -> Batcher<T> {
        Batcher {
            policy: Policy::new(config.policy, now_us),
            bounds: config.bounds,
            model: LatencyModel::new(config.prior),
            tuner: Tuner::new(config.tuner),
            split: Split::default(),
            relaxed: Bucket::default(),
            urgent: Bucket::default(),
            has_late: false,
            is_relaxed_first: false,
            has_urgent_callers: false,
            in_flight: InFlight::default(),
            restraint: Restraint::default(),
            generation: 0,
            is_fresh: false,
            spares: Vec::new(),
        }
    }

    /// Takes a request of `caller`: `encode` appends it to what waits. Requests of one caller are sent in the order in which they
    /// are pushed.
    ///
    /// # Errors
    /// [`Refused`] with the item when as much waits as may.
    #[inline]
    pub fn push(
        &mut self,
        now_us: u64,
        caller: u64,
        qos: Qos,
        item: T,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Refused<T>> {
        if !self.has_room(qos) {
            return Err(Refused(item));
        }
        self.push_again(now_us, caller, qos, item, encode);
        Ok(())
    }

    /// The same for a request that was taken once already and has to be sent anew: it finds room in any case.
    #[inline]
    pub fn push_again(&mut self, now_us: u64, caller: u64, qos: Qos, item: T, encode: impl FnOnce(&mut Vec<u8>)) {
        let (is_urgent, deadline_us) = match qos {
            Qos::Batch => {
                self.split.note_unhurried();
                (false, NEVER_US)
            }
            Qos::Single => (true, now_us),
            Qos::Within { us } => self.judge(now_us, us),
        };
        if is_urgent || !self.urgent.is_empty() {
            return self.push_split(now_us, caller, is_urgent, deadline_us, item, encode);
        }
        if self.has_urgent_callers {
            self.relaxed.callers.note(caller);
        } else {
            self.relaxed.callers.note_unnamed();
        }
        self.relaxed.push(now_us, deadline_us, item, encode);
    }

    /// Whether a request with so long to its reply is urgent, and by when it is to be answered.
    fn judge(&mut self, now_us: u64, us: u64) -> (bool, u64) {
        let is_urgent = self.split.is_urgent(us);
        let deadline_us = now_us.saturating_add(us);
        if self.tuner.is_best_effort() && us < self.estimate_us(1, 0) {
            // It will be late whatever is done, and sending it alone makes the others late: it goes with the next batch.
            self.has_late = true;
            return (false, NEVER_US);
        }
        (is_urgent, deadline_us)
    }

    /// The way of a request that is urgent, or comes while urgent ones wait.
    fn push_split(
        &mut self,
        now_us: u64,
        caller: u64,
        is_urgent: bool,
        deadline_us: u64,
        item: T,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        self.has_urgent_callers = true;
        let joins = is_urgent || self.urgent.callers.may_have(caller);
        if joins && !self.is_relaxed_first {
            self.is_relaxed_first = self.relaxed.callers.may_have(caller);
        }
        let bucket = if joins { &mut self.urgent } else { &mut self.relaxed };
        bucket.callers.note(caller);
        bucket.push(now_us, deadline_us, item, encode);
    }

    /// A batch to be sent now. To be called until there is none, after pushes, after answers and at
    /// [`deadline_us`](Batcher::deadline_us).
    #[inline]
    pub fn due(&mut self, now_us: u64) -> Option<Batch<T>> {
        if !self.has_room_in_flight() {
            return None;
        }
        if !self.urgent.is_empty() && self.urgent_due_us() <= now_us {
            return Some(self.take_urgent(now_us));
        }
        if self.relaxed.is_empty() || self.relaxed_due_us() > now_us {
            return None;
        }
        if !self.urgent.is_empty() && !self.is_relaxed_first {
            // What is urgent would have to wait for what goes now.
            return Some(self.take_urgent(now_us));
        }
        let (buffers, deadline_us) = self.take_relaxed();
        Some(self.sent(now_us, Cause::Pace, deadline_us, buffers))
    }

    /// When to ask [`due`](Batcher::due) again if nothing is pushed or answered before, microseconds; `None` if only that
    /// changes something. A time that has passed means now.
    #[inline]
    pub fn deadline_us(&self) -> Option<u64> {
        if !self.has_room_in_flight() {
            return None;
        }
        let urgent_us = if self.urgent.is_empty() { NEVER_US } else { self.urgent_due_us() };
        let relaxed_us = if self.relaxed.is_empty() { NEVER_US } else { self.relaxed_due_us() };
        Some(urgent_us.min(relaxed_us)).filter(|&us| us != NEVER_US)
    }

    /// A batch ended. Batches of before a [`reset`](Batcher::reset) are forgotten already.
    pub fn answered(&mut self, now_us: u64, answer: BatchAnswer) {
        let BatchAnswer { ticket, outcome } = answer;
        if ticket.generation != self.generation {
            return;
        }
        self.in_flight.remove(&ticket);
        let is_paced = ticket.cause == Cause::Pace;
        let latency_us = now_us.saturating_sub(ticket.sent_us);
        let sample = Sample { latency_us, count: ticket.count, bytes: ticket.bytes };
        let is_telling = outcome == BatchOutcome::Answered && !std::mem::take(&mut self.is_fresh);
        if is_telling && ticket.was_alone {
            self.model.learn(sample.count, sample.bytes, latency_us);
        }
        if is_paced {
            self.policy.answered(now_us, is_telling.then_some(&sample));
        }
        if ticket.has_deadline {
            match outcome {
                BatchOutcome::Answered if latency_us <= ticket.expected_us => self.tuner.note_good(),
                BatchOutcome::Answered | BatchOutcome::TimedOut => self.tuner.note_late(now_us, ticket.sent_us),
                BatchOutcome::Failed | BatchOutcome::Rerouted => {}
            }
        }
    }

    /// Gives a batch's vectors back for reuse; what is in them is dropped.
    pub fn recycle(&mut self, mut bytes: Vec<u8>, mut items: Vec<T>) {
        if self.spares.len() < limits::BATCH_SPARES_MAX && bytes.capacity() <= 2 * limits::BATCH_BYTES_MAX {
            bytes.clear();
            items.clear();
            self.spares.push((bytes, items));
        }
    }

    /// The destination changed (another connection, a migration, a failover): what is out is forgotten, and so is what was
    /// learned, and a restraint. What waits goes on waiting; [`drain`](Batcher::drain) takes it.
    pub fn reset(&mut self, now_us: u64) {
        self.generation += 1;
        self.in_flight = InFlight::default();
        self.restraint = Restraint::default();
        self.is_fresh = true;
        self.model.reset();
        self.policy.reset(now_us);
    }

    /// Everything that waits, due or not, in an order that keeps each caller's: before a destination is given up.
    pub fn drain(&mut self, now_us: u64) -> Option<Batch<T>> {
        if self.urgent.is_empty() && self.relaxed.is_empty() {
            return None;
        }
        let (mut buffers, deadline_us) = self.take_relaxed();
        let deadline_us = deadline_us.min(self.urgent.deadline_us);
        self.urgent.append_to(&mut buffers);
        Some(self.sent(now_us, Cause::Urgent, deadline_us, buffers))
    }

    /// A latency that was measured at the start, by batches that nobody waited for.
    pub fn learn(&mut self, count: usize, bytes: usize, latency_us: u64) {
        self.model.learn(count, bytes, latency_us);
    }

    /// Latency that hardly any batch of such a size exceeds, the reserve included, microseconds.
    #[inline]
    pub fn estimate_us(&self, count: usize, bytes: usize) -> u64 {
        let estimate_us = self.model.estimate_us(count, bytes);
        estimate_us + self.model.margin_us(estimate_us) + self.tuner.reserve_us()
    }

    /// The interval between batches, where the policy has one, microseconds.
    pub fn interval_us(&self) -> Option<u64> {
        self.policy.interval_us()
    }

    #[inline]
    fn has_room_in_flight(&self) -> bool {
        self.in_flight.batches < self.bounds.in_flight_batches_max
            && self.in_flight.bytes < self.bounds.in_flight_bytes_max
    }

    /// Whether another request of that class would be taken.
    #[inline]
    pub fn has_room(&self, qos: Qos) -> bool {
        let is_held_back = qos == Qos::Batch && self.is_held_back();
        self.waiting_bytes() < self.bounds.waiting_bytes_max && !self.is_overloaded() && !is_held_back
    }

    #[inline]
    fn is_full(&self, bucket: &Bucket<T>) -> bool {
        bucket.items.len() >= self.bounds.items_max || bucket.bytes.len() >= self.bounds.bytes_max
    }

    /// By when a batch of so much has to go to keep `deadline_us`.
    #[inline]
    fn send_by_us(&self, deadline_us: u64, count: usize, bytes: usize) -> u64 {
        if deadline_us == NEVER_US {
            return NEVER_US;
        }
        deadline_us.saturating_sub(self.estimate_us(count, bytes))
    }

    /// When the urgent bucket goes, which is not empty, with what has to go before it.
    fn urgent_due_us(&self) -> u64 {
        if self.is_full(&self.urgent) {
            return 0;
        }
        if !self.is_relaxed_first {
            return self.send_by_us(self.urgent.deadline_us, self.urgent.items.len(), self.urgent.bytes.len());
        }
        let deadline_us = self.urgent.deadline_us.min(self.relaxed.deadline_us);
        self.send_by_us(deadline_us, self.waiting_items(), self.waiting_bytes())
    }

    /// When the relaxed bucket goes, which is not empty.
    #[inline]
    fn relaxed_due_us(&self) -> u64 {
        let (count, bytes) = (self.relaxed.items.len(), self.relaxed.bytes.len());
        if self.is_full(&self.relaxed) || self.restraint.is_half(count, || self.model.work_us(count, bytes)) {
            return 0;
        }
        let policy_us = self.policy.due_us(&Waiting {
            first_us: self.relaxed.first_us,
            count,
            bytes,
            in_flight: self.in_flight.paced,
            count_tuned: self.tuner.count(),
            bytes_tuned: self.tuner.bytes(),
            is_heavy: self.split.urgent_us().is_some_and(|urgent_us| self.is_heavy(urgent_us)),
            is_best_effort: self.has_late || self.tuner.is_best_effort(),
        });
        policy_us.min(self.send_by_us(self.relaxed.deadline_us, count, bytes))
    }

    /// Whether the relaxed bucket would keep the destination from an urgent request for more than half of the time that this can
    /// wait; but never so small a one that the server has more to do for the batch than for what is in it.
    fn is_heavy(&self, urgent_us: u64) -> bool {
        let half_us = urgent_us.saturating_sub(self.estimate_us(1, 0)) / 2;
        let work_us = self.model.work_us(self.relaxed.items.len(), self.relaxed.bytes.len());
        work_us >= half_us.max(self.model.per_batch_us())
    }

    /// Whether everything that waits, sent now, is answered by the urgent deadline with half of the reserve.
    fn fits_together(&self, now_us: u64) -> bool {
        let latency_us = self.estimate_us(self.waiting_items(), self.waiting_bytes());
        now_us.saturating_add(latency_us) <= self.urgent.deadline_us.saturating_add(self.tuner.reserve_us() / 2)
    }

    /// The urgent bucket, behind the relaxed one where order asks for it, and before it where nobody is late for that.
    fn take_urgent(&mut self, now_us: u64) -> Batch<T> {
        if self.is_relaxed_first {
            return self.drain(now_us).expect("the urgent bucket is not empty");
        }
        let mut deadline_us = self.urgent.deadline_us;
        let rides = !self.relaxed.is_empty() && self.fits_together(now_us);
        let spare = self.spare();
        let mut buffers = self.urgent.take(spare);
        if rides {
            self.has_late = false;
            deadline_us = deadline_us.min(self.relaxed.deadline_us);
            self.relaxed.append_to(&mut buffers);
        }
        self.sent(now_us, Cause::Urgent, deadline_us, buffers)
    }

    /// What is relaxed, and its deadline.
    fn take_relaxed(&mut self) -> (Buffers<T>, u64) {
        self.is_relaxed_first = false;
        self.has_late = false;
        let deadline_us = self.relaxed.deadline_us;
        let spare = self.spare();
        (self.relaxed.take(spare), deadline_us)
    }

    fn spare(&mut self) -> Buffers<T> {
        self.spares.pop().unwrap_or_default()
    }

    /// Makes a batch of what was taken, which is out from now on.
    fn sent(&mut self, now_us: u64, cause: Cause, deadline_us: u64, buffers: Buffers<T>) -> Batch<T> {
        let (bytes, items) = buffers;
        let ticket = BatchTicket {
            generation: self.generation,
            cause,
            was_alone: self.in_flight.batches == 0,
            has_deadline: deadline_us != NEVER_US && deadline_us > now_us,
            expected_us: self.estimate_us(items.len(), bytes.len()),
            sent_us: now_us,
            count: items.len(),
            bytes: bytes.len(),
        };
        self.in_flight.add(&ticket);
        Batch { bytes, items, ticket }
    }
}
