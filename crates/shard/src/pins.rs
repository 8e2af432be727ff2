//! Pins: a backup reads the directory's files, so what it named stays as it is until it is done.
//!
//! ```text
//!  BEGIN ─► Pin ─► every core: its runs and segments stay, nobody says "renewed"
//!        ─► Point ─► every core seals; durable ─► names and lengths ─► reply
//!  KEEP  ─► every core: the lease begins anew             END ─► every core: what was withheld goes
//! ```
//!
//! Two rounds, because a run has parts of units that other cores log: all runs of a backup were published before any core's point is
//! taken, so the points are behind all that the runs have (`docs/internals/backup.md`). A pin that the disk has no room for,
//! or that nobody renews, or whose connection is gone, ends by itself; `END` tells whether all of them lasted.

use base::{ConnectionId, CoreId, Effect, LogOrdinal, SegmentNumber};
use storage::log::MANIFEST_FILE_NAME;
use storage::log::format::{parse_segment_file_name, segment_file_name};
use wire::Arguments;
use wire::registry::CommandSpec;

use crate::connection::Stall;
use crate::gather::{Answer, Gather, Purpose, Question};
use crate::node::BackupRequest;
use crate::shard::Shard;
use crate::waiters::Target;

/// A file that a backup copies, and how much of it; `None` is all.
pub type PinnedFile = (String, Option<u64>);

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

/// A core's part of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorePoint {
    incarnation: u64,
    core: u16,
    ordinal: LogOrdinal,
    files: Vec<PinnedFile>,
}

struct Pin {
    id: u64,
    until_us: u64,
    lease_us: u64,
    /// Runs, and files of earlier incarnations.
    files: Vec<PinnedFile>,
    /// The last segment that is pinned; `None` until the point is taken: all.
    last_segment: Option<SegmentNumber>,
    /// Files that nobody else needs any more.
    withheld: Vec<String>,
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
    pub(crate) fn is_pinned(&self) -> bool {
        self.pin.is_some()
    }

    /// When the lease ends.
    pub(crate) fn until_us(&self) -> Option<u64> {
        self.pin.as_ref().map(|pin| pin.until_us)
    }

    pub(crate) fn withheld(&self) -> usize {
        self.pin.as_ref().map_or(0, |pin| pin.withheld.len())
    }

    fn of(&mut self, id: u64) -> Result<&mut Pin, String> {
        match (&mut self.pin, &self.ended) {
            (Some(pin), _) if pin.id == id => Ok(pin),
            (_, Some((ended, why))) if *ended == id => Err(why.clone()),
            _ => Err(String::from("no such backup is under way: it ended, or the node was started anew")),
        }
    }
}

impl Pin {
    fn holds(&self, name: &str) -> bool {
        let is_pinned = |segment| self.last_segment.is_none_or(|last| segment <= last);
        // Earlier incarnations are in the list; what is removed of this one is this core's.
        self.files.iter().any(|(pinned, _)| pinned == name)
            || parse_segment_file_name(name).is_some_and(|(_, _, segment)| is_pinned(segment))
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
        if self.pins.is_pinned() {
            return Err(String::from("a backup is under way: wait until it is done, or until its lease ends"));
        }
        if self.log.is_none() {
            return Err(String::from("there is nothing to back up: this node keeps its data in memory only"));
        }
        let Some(log) = self.log.as_mut().filter(|log| log.failure().is_none()) else {
            return Err(String::from("the log failed: restart the node first"));
        };
        log.pin();
        let files = self.checkpoints.run_files().chain(self.checkpoints.earlier_files()).collect();
        self.pins.pin = Some(Pin { id, until_us, lease_us, files, last_segment: None, withheld: Vec::new() });
        Ok(())
    }

    /// The files up to the last change, which is sealed by that.
    fn point(&mut self, id: u64) -> Result<CorePoint, String> {
        self.seal_group();
        let pin = self.pins.of(id)?;
        let (Some(log), Some(identity)) = (&mut self.log, self.checkpoints.identity()) else {
            return Err(String::from("there is no log"));
        };
        let name = |segment| segment_file_name(identity.incarnation, identity.core, segment);
        let segments = log.pin_point();
        pin.last_segment = segments.last().map(|(segment, _)| *segment);
        let mut files = pin.files.clone();
        files.extend(segments.iter().map(|&(segment, bytes)| (name(segment), Some(bytes))));
        Ok(CorePoint { incarnation: identity.incarnation, core: identity.core, ordinal: log.sealed(), files })
    }

    /// Files go: at once, or, while a backup needs them, behind it.
    pub(crate) fn remove_files(&mut self, mut names: Vec<String>) {
        if let Some(pin) = &mut self.pins.pin {
            let withheld = names.extract_if(.., |name| pin.holds(name)).collect::<Vec<String>>();
            pin.withheld.extend(withheld);
        }
        if !names.is_empty() {
            self.effects.push(Effect::RemoveFiles { names });
        }
    }

    fn unpin(&mut self) {
        let Some(pin) = self.pins.pin.take() else { return };
        if let Some(log) = &mut self.log {
            log.unpin();
        }
        self.remove_files(pin.withheld);
        // It was not said while the pin was there.
        self.tell_renewed();
    }

    fn end_pin(&mut self, why: String) {
        if let Some(pin) = &self.pins.pin {
            self.pins.ended = Some((pin.id, why));
            self.unpin();
        }
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
        if self.pins.withheld() > 0 {
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
