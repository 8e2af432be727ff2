//! Room for a group that is longer than what its segment has left: it is reserved first, and the write waits for that.
//!
//! ```text
//!   seal ──► beyond the room? ── no, and nobody waits ──► WriteLog
//!               │ yes, or behind one that does
//!               ▼
//!            waiting ── ExtendSegment ──► on_room_ready ──► WriteLog, in order
//!               ▲                    └──► on_room_failed: changes are refused, and it is tried again
//! ```
//!
//! So a change that was begun is written whole or, on a full disk, waits for room, and the log does not fail of it. Who waits
//! for the change's promise waits as long; a process that ends before took nothing back that anybody was told of.

use std::collections::VecDeque;

use base::{Effect, SegmentNumber};

use super::{LogWriter, PAGE_BYTES};

/// A write that was not asked for yet.
#[derive(Debug)]
struct Write {
    effect: Effect,
    segment: SegmentNumber,
    /// Where it ends in its segment.
    end: u64,
    stride: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    writes: VecDeque<Write>,
    /// The segment that was extended last, and its room.
    extended: Option<(SegmentNumber, u64)>,
    is_asked: bool,
    failed: Option<String>,
}

impl Waiting {
    /// Bytes of the groups.
    pub(super) fn bytes(&self) -> u64 {
        self.writes.iter().map(|write| write.stride).sum()
    }

    /// Whether room is being made.
    #[inline]
    pub(super) fn is_under_way(&self) -> bool {
        !self.writes.is_empty() && self.failed.is_none()
    }

    /// Whether room has to be asked for again: nobody is at it.
    pub(super) fn wants_retry(&self) -> bool {
        self.failed.is_some() && !self.is_asked
    }

    /// Why there is none, if so.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }
}

impl LogWriter {
    pub(super) fn write_or_wait(&mut self, effect: Effect, stride: u64, may_wait: bool, effects: &mut Vec<Effect>) {
        let fits = self.offset <= self.room_of(self.segment);
        if self.waiting.writes.is_empty() && (fits || !may_wait) {
            self.given = self.sealed;
            return effects.push(effect);
        }
        self.waiting.writes.push_back(Write { effect, segment: self.segment, end: self.offset, stride });
        self.ask_for_room(effects);
    }

    /// What is reserved of a segment, header included.
    fn room_of(&self, segment: SegmentNumber) -> u64 {
        let extended = self.waiting.extended.filter(|(extended, _)| *extended == segment).map_or(0, |(_, room)| room);
        self.capacity_of(segment).max(extended)
    }

    fn ask_for_room(&mut self, effects: &mut Vec<Effect>) {
        let Some(first) = self.waiting.writes.front().filter(|_| !self.waiting.is_asked) else { return };
        let segment = first.segment;
        // As much as all of them need that wait for this segment; whole pages, as they may be written.
        let ends = self.waiting.writes.iter().filter(|write| write.segment == segment).map(|write| write.end);
        let bytes = ends.max().unwrap_or_default().next_multiple_of(PAGE_BYTES as u64);
        self.waiting.is_asked = true;
        effects.push(Effect::ExtendSegment { segment, bytes });
    }

    /// A segment has room for so many bytes, header included: what fits is written.
    pub fn on_room_ready(&mut self, segment: SegmentNumber, bytes: u64, effects: &mut Vec<Effect>) {
        (self.waiting.is_asked, self.waiting.failed) = (false, None);
        self.waiting.extended = Some((segment, bytes));
        while self.waiting.writes.front().is_some_and(|write| write.end <= self.room_of(write.segment)) {
            let write = self.waiting.writes.pop_front().expect("just seen");
            self.given.0 += 1;
            effects.push(write.effect);
        }
        self.ask_for_room(effects);
    }

    /// There is no room for now.
    pub fn on_room_failed(&mut self, reason: String) {
        (self.waiting.is_asked, self.waiting.failed) = (false, Some(reason));
    }

    pub(super) fn retry_room(&mut self, effects: &mut Vec<Effect>) {
        if self.waiting.wants_retry() {
            self.ask_for_room(effects);
        }
    }

    /// Whether everything that a stop can make durable is: what waits for room on a full disk it cannot.
    pub fn is_settled(&self) -> bool {
        self.durable == self.sealed || (self.waiting.failure().is_some() && self.durable == self.given)
    }

    /// Whether room for a long group is being made. An event ends it.
    #[inline]
    pub fn awaits_room(&self) -> bool {
        self.waiting.is_under_way()
    }

    /// Whether groups wait for room.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.writes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use base::{Database, LogOrdinal, Now, Slot, Version};
    use types::{Change, Expiry};

    use super::super::super::buffer::LogBuffer;
    use super::super::LogIdentity;
    use super::*;
    use crate::key::Key;

    fn seal(writer: &mut LogWriter, bytes: usize, effects: &mut Vec<Effect>) {
        let mut buffer = LogBuffer::default();
        let key = Key::new(b"key", Database(0), Slot::wrapping(5), 0);
        buffer.append(&key, Version(1), &Change::put_string(&vec![7; bytes], Expiry::Clear));
        writer.seal_or_wait(&mut buffer, Now::default(), true, effects);
    }

    fn writes(effects: &[Effect]) -> Vec<u64> {
        let ordinal = |effect: &Effect| match effect {
            Effect::WriteLog { ordinal, .. } => Some(ordinal.0),
            _ => None,
        };
        effects.iter().filter_map(ordinal).collect()
    }

    fn asked(effects: &mut Vec<Effect>) -> Vec<(u64, u64)> {
        let room = |effect: &Effect| match effect {
            Effect::ExtendSegment { segment, bytes } => Some((segment.0, *bytes)),
            _ => None,
        };
        let asked = effects.iter().filter_map(room).collect();
        effects.retain(|effect| !matches!(effect, Effect::ExtendSegment { .. }));
        asked
    }

    #[test]
    fn a_group_beyond_the_room_waits_for_it_and_those_behind_wait_for_their_turn() {
        let identity = LogIdentity { store_id: [1; 16], incarnation: 1, core: 0, cores: 1 };
        let (mut writer, mut effects) = (LogWriter::new(identity).with_segment_bytes(1024), Vec::new());
        seal(&mut writer, 100, &mut effects);
        seal(&mut writer, 5000, &mut effects);
        let end = writer.position().1.next_multiple_of(PAGE_BYTES as u64);
        assert_eq!(asked(&mut effects), [(0, end)]);
        writer.on_segment_ready(SegmentNumber(1));
        // This one fits the next segment, and may not come first.
        seal(&mut writer, 100, &mut effects);
        assert_eq!((writes(&effects), asked(&mut effects)), (vec![1], vec![]));
        assert!(writer.awaits_segment() && writer.has_waiting() && writer.given() == LogOrdinal(1));
        writer.sync(&mut effects);
        assert!(matches!(effects.last(), Some(Effect::SyncLog { ordinal: LogOrdinal(1), .. })), "no more was given");
        writer.on_log_synced(LogOrdinal(1));

        writer.on_room_failed("disk full".into());
        assert!(!writer.awaits_segment() && writer.refusal() == Some("disk full") && writer.wants_retry());
        assert!(writer.is_settled(), "a stop does not wait for room");
        writer.retry_segment(&mut effects);
        assert!(!writer.wants_retry(), "the disk is at it: who looks again at once never sleeps");
        writer.retry_segment(&mut effects);
        assert_eq!(asked(&mut effects), [(0, end)], "once at a time");
        writer.on_room_ready(SegmentNumber(0), end, &mut effects);
        assert_eq!(writes(&effects), [1, 2, 3]);
        assert!(writer.refusal().is_none() && !writer.has_waiting() && !writer.is_settled());
        assert_eq!((writer.given(), writer.sealed()), (LogOrdinal(3), LogOrdinal(3)));
    }

    #[test]
    fn long_groups_of_several_segments_get_their_room_one_after_the_other() {
        let identity = LogIdentity { store_id: [1; 16], incarnation: 1, core: 0, cores: 1 };
        let (mut writer, mut effects) = (LogWriter::new(identity).with_segment_bytes(1024), Vec::new());
        seal(&mut writer, 2000, &mut effects);
        let first = writer.position().1.next_multiple_of(PAGE_BYTES as u64);
        writer.on_segment_ready(SegmentNumber(1));
        seal(&mut writer, 3000, &mut effects);
        let (_, second) = writer.position();
        seal(&mut writer, 200, &mut effects);
        let (segment, third) = writer.position();
        let third = third.next_multiple_of(PAGE_BYTES as u64);
        assert_eq!((segment, asked(&mut effects)), (SegmentNumber(1), vec![(0, first)]));
        writer.on_room_ready(SegmentNumber(0), first, &mut effects);
        assert_eq!((writes(&effects), asked(&mut effects)), (vec![1], vec![(1, third)]));
        assert!(third > second);
        writer.on_room_ready(SegmentNumber(1), third, &mut effects);
        assert_eq!(writes(&effects), [1, 2, 3]);
        // What is reserved is room as any other.
        assert!(writer.waiting.extended == Some((SegmentNumber(1), third)) && writer.room_bytes() == 0);
    }
}
