//! Pins: the questions by which a backup makes every core keep its files ([`Checkpoints::pin`]) and name them.
//!
//! ```text
//!  BEGIN ─► Pin ─► every core: its runs and segments stay, nobody says "renewed"
//!        ─► Point ─► every core seals; durable ─► names and lengths ─► reply
//!  KEEP  ─► every core: the lease begins anew             END ─► every core: what was withheld goes
//! ```
//!
//! A pin that the disk has no room for, or that nobody renews, or whose connection is gone, ends by itself; `END` tells
//! whether all of them lasted (`docs/internals/backup.md`).

use base::{ConnectionId, CoreId};
use storage::checkpoint::{Asked, Checkpoints, CorePoint};
use storage::log::MANIFEST_FILE_NAME;
use wire::Arguments;
use wire::registry::CommandSpec;

use crate::connection::Stall;
use crate::gather::{Answer, Gather, Purpose, Question};
use crate::node::BackupRequest;
use crate::shard::Shard;
use crate::waiters::Target;

/// What a core is asked to do for a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinQuestion {
    /// Keep the files.
    Pin {
        /// The backup's number.
        id: u64,
        /// Until then, monotonic microseconds.
        until_us: u64,
        /// As told to the client.
        lease_ms: u64,
    },
    /// Say which, up to the last change, once that is durable.
    Point {
        /// The backup's number.
        id: u64,
    },
    /// Keep them longer.
    Keep {
        /// The backup's number.
        id: u64,
    },
    /// Keep them no longer.
    End {
        /// The backup's number.
        id: u64,
    },
}

struct Pin {
    id: u64,
    until_us: u64,
    lease_us: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Pins {
    pin: Option<Pin>,
    /// The connection, of this core, that began it: it ends with that.
    owner: Option<(ConnectionId, u64)>,
    /// The last one that ended by itself, and why.
    ended: Option<(u64, String)>,
}

impl Pins {
    /// When the lease ends.
    pub(crate) fn until_us(&self) -> Option<u64> {
        self.pin.as_ref().map(|pin| pin.until_us)
    }

    fn of(&mut self, id: u64) -> Result<&mut Pin, String> {
        match (&mut self.pin, &self.ended) {
            (Some(pin), _) if pin.id == id => Ok(pin),
            (_, Some((ended, why))) if *ended == id => Err(why.clone()),
            _ => Err(String::from("no such backup is under way: it ended, or the node was started anew")),
        }
    }
}

impl Shard {
    /// ZH.BACKUP: asks all cores; the connection waits.
    pub(crate) fn start_backup(
        &mut self,
        index: u32,
        (spec, arguments): (&'static CommandSpec, Arguments<'_>),
        request: BackupRequest,
    ) {
        let Some(connection) = self.connections.at(index) else { return };
        if connection.output.gaps() > 0 {
            return self.stall_and_repeat(index, spec, arguments, Stall::Gaps);
        }
        let question = match request {
            BackupRequest::Begin { lease_ms } => PinQuestion::Pin {
                // Positive, as a client reads it.
                id: self.rng.next_u64() >> 1,
                until_us: self.now.monotonic_us.saturating_add(lease_ms * 1000),
                lease_ms,
            },
            BackupRequest::Keep { id } => PinQuestion::Keep { id },
            BackupRequest::End { id } => PinQuestion::End { id },
        };
        self.ask_for_pins(index, question);
    }

    fn ask_for_pins(&mut self, index: u32, question: PinQuestion) {
        let deadline_us = match question {
            PinQuestion::Pin { until_us, .. } => Some(until_us),
            PinQuestion::Point { .. } => self.pins.until_us(),
            PinQuestion::Keep { .. } | PinQuestion::End { .. } => None,
        };
        self.start_gather_until(index, &Question::Pins(question), Purpose::Pins(question), deadline_us);
    }

    /// Another core, or this one, asks.
    pub(crate) fn on_pin_question(&mut self, from: Option<CoreId>, gather: u64, question: PinQuestion) {
        let answer = match question {
            PinQuestion::Pin { id, until_us, lease_ms } => self.pin(id, until_us, lease_ms * 1000),
            PinQuestion::Point { id } => match self.point(id) {
                Ok(point) => return self.answer_when_durable(from, gather, Answer::Pinned(Ok(Box::new(point)))),
                Err(why) => Err(why),
            },
            PinQuestion::Keep { id } => {
                let now_us = self.now.monotonic_us;
                self.pins.of(id).map(|pin| pin.until_us = now_us.saturating_add(pin.lease_us))
            }
            PinQuestion::End { id } => self.pins.of(id).map(drop).map(|()| self.unpin()),
        };
        self.give_answer(from, gather, Answer::Pinned(answer.map(|()| Box::default())));
    }

    fn pin(&mut self, id: u64, until_us: u64, lease_us: u64) -> Result<(), String> {
        if self.stopping {
            return Err(String::from("the node is stopping"));
        }
        if self.pins.pin.is_some() {
            return Err(String::from("a backup is under way: wait until it is done, or until its lease ends"));
        }
        match &self.log {
            None => return Err(String::from("there is nothing to back up: this node keeps its data in memory only")),
            Some(log) if log.failure().is_some() => return Err(String::from("the log failed: restart the node first")),
            Some(_) => {}
        }
        self.with_checkpoints(|runs, view| {
            runs.pin(view);
            Asked::Nothing
        });
        self.pins.pin = Some(Pin { id, until_us, lease_us });
        Ok(())
    }

    /// The files up to the last change, which is sealed by that.
    fn point(&mut self, id: u64) -> Result<CorePoint, String> {
        self.pins.of(id)?;
        self.seal_group();
        let mut point = CorePoint::default();
        self.with_checkpoints(|runs, view| {
            point = runs.point(view);
            Asked::Nothing
        });
        Ok(point)
    }

    fn unpin(&mut self) {
        if self.pins.pin.take().is_some() {
            self.with_checkpoints(Checkpoints::unpin);
        }
    }

    fn end_pin(&mut self, why: String) {
        if let Some(pin) = &self.pins.pin {
            self.pins.ended = Some((pin.id, why));
            self.unpin();
        }
    }

    /// Files that only a backup keeps.
    pub(crate) fn withheld(&self) -> usize {
        self.checkpoints.as_ref().map_or(0, Checkpoints::withheld)
    }

    /// A connection is gone, and a backup with it if that began one: nobody copies any more.
    pub(crate) fn end_backup_of(&mut self, connection: ConnectionId) {
        if let Some((_, id)) = self.pins.owner.take_if(|(owner, _)| *owner == connection) {
            self.tell_all(&Question::Pins(PinQuestion::End { id }));
        }
    }

    /// The lease may be over.
    pub(crate) fn end_overdue_pin(&mut self) {
        if self.pins.until_us().is_some_and(|until_us| until_us <= self.now.monotonic_us) {
            self.end_pin(String::from(
                "the backup's lease ended: ask for a longer one, or renew it with ZH.BACKUP KEEP",
            ));
        }
    }

    /// The disk refused a segment or a run: what is withheld goes, the store comes first.
    pub(crate) fn end_pin_for_room(&mut self, reason: &str) {
        if self.withheld() > 0 {
            self.end_pin(format!("the files that it kept had to go, the disk refused others: {reason}"));
        }
    }

    /// All cores answered, or the deadline has passed.
    pub(crate) fn finish_pins(&mut self, gather: Gather, question: PinQuestion) {
        let is_complete = gather.missing == 0;
        let refusal =
            gather.refusal.or_else(|| (!is_complete).then(|| String::from("the disk was too slow for the lease")));
        let (PinQuestion::Pin { id, .. }
        | PinQuestion::Point { id }
        | PinQuestion::Keep { id }
        | PinQuestion::End { id }) = question;
        let asker = gather.connection.filter(|asker| self.connections.get_mut(*asker).is_some());
        let Some(asker) = asker.filter(|_| refusal.is_none()) else {
            if matches!(question, PinQuestion::Pin { .. } | PinQuestion::Point { .. }) {
                self.tell_all(&Question::Pins(PinQuestion::End { id }));
            }
            if let (Some(asker), Some(why)) = (gather.connection, refusal) {
                self.answer(Target::Local(asker), |reply| reply.error("ERR", &why));
            }
            return;
        };
        match question {
            PinQuestion::Pin { .. } => self.ask_for_pins(asker.index, PinQuestion::Point { id }),
            PinQuestion::Point { .. } => self.answer_begin(asker, id, gather.points),
            PinQuestion::Keep { .. } | PinQuestion::End { .. } => self.answer(Target::Local(asker), |reply| reply.ok()),
        }
    }

    fn answer_begin(&mut self, asker: ConnectionId, id: u64, mut points: Vec<CorePoint>) {
        self.pins.owner = Some((asker, id));
        points.sort_unstable_by_key(|point| point.core);
        let directory = self.node.identity.directory.clone();
        self.answer(Target::Local(asker), |reply| {
            reply.map(4);
            reply.bulk(b"id");
            reply.integer(id as i64);
            reply.bulk(b"directory");
            reply.bulk(directory.as_bytes());
            reply.bulk(b"point");
            reply.array(points.len());
            for point in &points {
                reply.array(3);
                reply.integer(point.incarnation as i64);
                reply.integer(i64::from(point.core));
                reply.integer(point.ordinal.0 as i64);
            }
            reply.bulk(b"files");
            reply.array(1 + points.iter().map(|point| point.files.len()).sum::<usize>());
            let manifest = (String::from(MANIFEST_FILE_NAME), None);
            for (name, bytes) in std::iter::once(&manifest).chain(points.iter().flat_map(|point| &point.files)) {
                reply.array(2);
                reply.bulk(name.as_bytes());
                match bytes {
                    Some(bytes) => reply.integer(*bytes as i64),
                    None => reply.null(),
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
