//! Batches between the cores of one node: a bounded queue into each core, and its doorbell.
//!
//! ```text
//!   core 0 ──► unsent (when full) ──► queue of core 1 ──► hops of core 1's next tick
//!                                        + doorbell
//! ```
//!
//! A message is never lost: what does not fit stays with its sender, in order, and is offered again every loop. The
//! sender's rest is bounded by what machines owe each other (`HOPS_PENDING_PER_CONNECTION_MAX`).

use crate::doorbell::Doorbell;
use base::ids::CoreId;
use base::limits::{MACHINES_MAX, MAILBOX_BATCHES_MAX};
use crossbeam_queue::ArrayQueue;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

struct Inbox<M> {
    queue: ArrayQueue<(CoreId, M)>,
    doorbell: Arc<Doorbell>,
}

/// One core's end: what others sent it, and the way to the others.
pub struct Mailbox<M> {
    own: CoreId,
    inboxes: Arc<[Inbox<M>]>,
    /// By target core; messages that found its queue full.
    unsent: Vec<VecDeque<M>>,
    unsent_count: usize,
}

/// Lets any thread ask all cores to finish.
#[derive(Clone)]
pub struct StreetHandle {
    doorbells: Arc<[Arc<Doorbell>]>,
}

/// The mailboxes of a node's machines, the cores first, in order of their ids, and the handle that reaches them all.
///
/// # Errors
/// When no eventfd can be made.
///
/// # Panics
/// When `cores` is 0 or above [`MACHINES_MAX`].
pub fn mesh<M: Send>(cores: usize) -> io::Result<(Vec<Mailbox<M>>, StreetHandle)> {
    assert!((1..=MACHINES_MAX).contains(&cores), "1 to {MACHINES_MAX} machines, not {cores}");
    let mut inboxes = Vec::with_capacity(cores);
    for _ in 0..cores {
        // The queue allocates all its room at once: a node of one core has nobody to write to it.
        let capacity = if cores == 1 { 1 } else { MAILBOX_BATCHES_MAX };
        inboxes.push(Inbox { queue: ArrayQueue::new(capacity), doorbell: Arc::new(Doorbell::new()?) });
    }
    let doorbells = inboxes.iter().map(|inbox| Arc::clone(&inbox.doorbell)).collect();
    let inboxes: Arc<[Inbox<M>]> = inboxes.into();
    let mailboxes = (0..cores)
        .map(|core| Mailbox {
            own: CoreId(core as u16),
            inboxes: Arc::clone(&inboxes),
            unsent: (0..cores).map(|_| VecDeque::new()).collect(),
            unsent_count: 0,
        })
        .collect();
    Ok((mailboxes, StreetHandle { doorbells }))
}

impl StreetHandle {
    /// Wakes a machine.
    pub(crate) fn ring(&self, machine: usize) {
        self.doorbells[machine].ring();
    }

    /// Every core's machine is told `Event::ShutdownRequested`. Safe from any thread.
    pub fn request_shutdown(&self) {
        for doorbell in self.doorbells.iter() {
            doorbell.request_shutdown();
        }
    }
}

impl<M> Mailbox<M> {
    /// Whose it is.
    pub fn core(&self) -> CoreId {
        self.own
    }

    pub(crate) fn doorbell(&self) -> &Arc<Doorbell> {
        &self.inboxes[self.own.0 as usize].doorbell
    }

    /// Takes what arrived, at most one queue's worth, so that a flood cannot hold the tick.
    pub(crate) fn collect(&mut self, hops: &mut Vec<(CoreId, M)>) {
        let inbox = &self.inboxes[self.own.0 as usize];
        for _ in 0..inbox.queue.capacity() {
            match inbox.queue.pop() {
                Some(hop) => hops.push(hop),
                None => return,
            }
        }
    }

    /// Whether messages wait that arrived after the last look.
    pub(crate) fn has_arrivals(&self) -> bool {
        !self.inboxes[self.own.0 as usize].queue.is_empty()
    }

    /// Delivers `hops` and what was left over before, oldest first per target.
    pub(crate) fn deliver(&mut self, hops: &mut Vec<(CoreId, M)>) {
        if self.unsent_count > 0 {
            self.retry();
        }
        for (target, message) in hops.drain(..) {
            let index = target.0 as usize;
            if self.unsent[index].is_empty() {
                match self.inboxes[index].queue.push((self.own, message)) {
                    Ok(()) => self.inboxes[index].doorbell.ring(),
                    Err((_, message)) => self.keep(index, message),
                }
            } else {
                self.keep(index, message);
            }
        }
    }

    /// Sends from a thread that runs no machine. What finds the queue full goes [later](Mailbox::is_behind).
    pub fn post(&mut self, target: CoreId, message: M) {
        self.deliver(&mut vec![(target, message)]);
    }

    /// Whether some of what was [posted](Mailbox::post) still finds no room.
    pub fn is_behind(&mut self) -> bool {
        self.deliver(&mut Vec::new());
        self.has_unsent()
    }

    /// Whether messages wait on this side for room on the other.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent_count > 0
    }

    fn keep(&mut self, index: usize, message: M) {
        self.unsent[index].push_back(message);
        self.unsent_count += 1;
    }

    fn retry(&mut self) {
        for (index, waiting) in self.unsent.iter_mut().enumerate() {
            let inbox = &self.inboxes[index];
            let mut pushed = false;
            while let Some(message) = waiting.pop_front() {
                if let Err((_, message)) = inbox.queue.push((self.own, message)) {
                    waiting.push_front(message);
                    break;
                }
                self.unsent_count -= 1;
                pushed = true;
            }
            if pushed {
                inbox.doorbell.ring();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_full_mailbox_loses_nothing_and_keeps_the_order() {
        let (mut mailboxes, _) = mesh::<usize>(2).unwrap();
        let mut second = mailboxes.pop().unwrap();
        let mut first = mailboxes.pop().unwrap();
        let total = 2 * MAILBOX_BATCHES_MAX + 7;
        for number in 0..total {
            first.deliver(&mut vec![(CoreId(1), number)]);
        }
        assert!(first.has_unsent());
        let mut received = Vec::new();
        for _ in 0..3 {
            second.collect(&mut received);
            first.deliver(&mut Vec::new());
        }
        assert!(!first.has_unsent());
        assert_eq!(received, (0..total).map(|number| (CoreId(0), number)).collect::<Vec<_>>());
    }
}
