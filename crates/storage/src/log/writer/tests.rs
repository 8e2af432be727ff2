//! The writer alone: where groups go and what is asked for.

use super::*;
use crate::key::Key;
use base::{Database, Slot, Version};
use types::{Change, Expiry};

fn writer() -> LogWriter {
    LogWriter::new(LogIdentity { store_id: [1; 16], incarnation: 1, core: 0, cores: 1 }).with_segment_bytes(1024)
}

fn record(buffer: &mut LogBuffer) {
    let key = Key::new(b"key", Database(0), Slot::wrapping(5), 0);
    buffer.append(&key, Version(1), &Change::put_string(&[7; 200], Expiry::Clear));
}

#[test]
fn moves_on_only_when_the_next_segment_is_ready() {
    let (mut writer, mut buffer, mut effects) = (writer(), LogBuffer::default(), Vec::new());
    for _ in 0..6 {
        record(&mut buffer);
        writer.seal(&mut buffer, Now::default(), &mut effects);
    }
    let creations = effects.iter().filter(|effect| matches!(effect, Effect::CreateSegment { .. })).count();
    assert_eq!(creations, 1, "asked for once");
    assert_eq!(writer.position().0, SegmentNumber(0), "it grows while the next one is not ready");
    assert!(writer.awaits_segment() && writer.room_bytes() == 0);
    writer.on_segment_failed("disk full".into());
    assert!(!writer.awaits_segment() && writer.refusal().is_some(), "nobody waits for what may never come");
    writer.retry_segment(&mut effects);
    assert!(!writer.awaits_segment() && writer.refusal().is_some());
    writer.on_segment_ready(SegmentNumber(1));
    assert!(!writer.awaits_segment() && writer.refusal().is_none());
    assert_eq!(writer.room_bytes(), 1024 - 64, "all of the next one");
    record(&mut buffer);
    writer.seal(&mut buffer, Now::default(), &mut effects);
    let last = effects.iter().rfind(|effect| matches!(effect, Effect::WriteLog { .. }));
    assert!(matches!(last, Some(Effect::WriteLog { segment: SegmentNumber(1), offset: 64, .. })), "{last:?}");
}

#[test]
fn nobody_is_refused_for_a_lack_of_room_that_is_over() {
    let (mut writer, mut buffer, mut effects) = (writer(), LogBuffer::default(), Vec::new());
    let mut fill = |writer: &mut LogWriter, effects: &mut Vec<Effect>| {
        record(&mut buffer);
        writer.seal(&mut buffer, Now::default(), effects);
        let asked = effects.iter().filter(|effect| matches!(effect, Effect::CreateSegment { .. })).count();
        effects.clear();
        asked
    };
    while fill(&mut writer, &mut effects) == 0 {}
    writer.on_segment_failed("disk full".into());
    while !writer.is_nearly_full() {
        assert!(writer.refusal().is_none(), "there is room in this one");
        let asked = fill(&mut writer, &mut effects);
        assert_eq!(asked, usize::from(writer.is_nearly_full()), "once more before anybody is refused");
    }
    assert!(writer.refusal().is_none() && writer.awaits_segment(), "writers wait for the answer");
    writer.on_segment_failed("disk full".into());
    assert!(writer.refusal().is_some() && !writer.awaits_segment());
    assert_eq!(fill(&mut writer, &mut effects), 0, "then every second");
}

#[test]
fn segments_are_given_back_behind_a_durable_group() {
    let (mut writer, mut buffer, mut effects) = (writer(), LogBuffer::default(), Vec::new());
    let mut fill = |writer: &mut LogWriter| {
        let segment = writer.position().0;
        while writer.position().0 == segment {
            record(&mut buffer);
            writer.seal(&mut buffer, Now::default(), &mut effects);
            let next = SegmentNumber(writer.position().0.0 + 1);
            if !writer.next_ready {
                writer.on_segment_ready(next);
            }
        }
        writer.sealed()
    };
    let first_of_1 = fill(&mut writer);
    let first_of_2 = fill(&mut writer);
    let all = LogOrdinal(u64::MAX - 1);
    assert_eq!(writer.give_back(all), None, "nothing is durable");
    writer.durable = first_of_1;
    assert_eq!(writer.give_back(LogOrdinal(first_of_1.0 - 2)), None, "its last group is needed");
    assert_eq!(writer.give_back(LogOrdinal(first_of_1.0 - 1)), Some(SegmentNumber(0)));
    assert_eq!(writer.give_back(all), None, "the next one's first group is not durable");
    let first_of_3 = fill(&mut writer);
    writer.durable = first_of_3;
    assert_eq!(writer.give_back(LogOrdinal(first_of_2.0 - 1)), None, "1 is kept for the next one");
    assert_eq!(writer.give_back(all), Some(SegmentNumber(1)), "one is enough, the newest");
    assert_eq!(writer.give_back(all), None, "the present one stays");
    assert_eq!(writer.segment_count(), 2);
}

#[test]
fn what_is_pinned_is_given_back_but_not_recycled() {
    let (mut writer, mut buffer, mut effects) = (writer(), LogBuffer::default(), Vec::new());
    let mut fill = |writer: &mut LogWriter| {
        let segment = writer.position().0;
        while writer.position().0 == segment {
            record(&mut buffer);
            writer.seal(&mut buffer, Now::default(), &mut effects);
            if !writer.next_ready {
                writer.on_segment_ready(SegmentNumber(writer.position().0.0 + 1));
            }
        }
        writer.durable = writer.sealed();
    };
    let all = LogOrdinal(u64::MAX - 1);
    fill(&mut writer);
    fill(&mut writer);
    writer.pin();
    assert_eq!(writer.give_back(all), None, "until the point is known nothing goes");
    let point = writer.pin_point();
    let numbers: Vec<u64> = point.iter().map(|(segment, _)| segment.0).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert_eq!(point[2].1, writer.position().1, "up to the last group");
    let groups_bytes: u64 = point.iter().map(|(_, bytes)| bytes - SEGMENT_HEADER_BYTES as u64).sum();
    assert_eq!(groups_bytes, writer.bytes_total());
    fill(&mut writer);
    fill(&mut writer);
    let given_back: Vec<u64> = std::iter::from_fn(|| writer.give_back(all)).map(|segment| segment.0).collect();
    assert_eq!(given_back, [0, 1, 2], "3 is kept for the next one");
    assert_eq!(writer.spare_segments.take(), Some(SegmentNumber(3)));
    writer.unpin();
    fill(&mut writer);
    fill(&mut writer);
    assert!(std::iter::from_fn(|| writer.give_back(all)).count() > 0);
}

#[test]
fn a_recycled_segment_is_written_in_whole_pages() {
    let (mut writer, mut buffer, mut effects) = (writer(), LogBuffer::default(), Vec::new());
    let mut fill = |writer: &mut LogWriter| {
        let segment = writer.position().0;
        effects.clear();
        while writer.position().0 == segment {
            record(&mut buffer);
            let sealed = writer.seal(&mut buffer, Now::default(), &mut effects);
            writer.durable = sealed;
            if writer.next_requested && !writer.next_ready {
                writer.on_segment_ready(SegmentNumber(segment.0 + 1));
            }
        }
        writer.give_back(LogOrdinal(writer.sealed.0 - 1));
        std::mem::take(&mut effects)
    };
    let ends = |effects: &[Effect]| -> Vec<u64> {
        let end = |effect: &Effect| match effect {
            Effect::WriteLog { offset, bytes, .. } => Some(offset + bytes.len() as u64),
            _ => None,
        };
        effects.iter().filter_map(end).collect()
    };
    let recycled = |effects: &[Effect]| {
        let of = |effect: &Effect| match effect {
            Effect::CreateSegment { segment, recycle, .. } => Some((segment.0, recycle.map(|old| old.0))),
            _ => None,
        };
        effects.iter().find_map(of)
    };
    let new: Vec<Vec<Effect>> = (0..3).map(|_| fill(&mut writer)).collect();
    let made: Vec<_> = new.iter().map(|effects| recycled(effects)).collect();
    assert_eq!(made, [Some((1, None)), Some((2, None)), Some((3, Some(1)))]);
    assert!(ends(&new[1]).iter().all(|end| end % 4096 != 0), "what is new had nothing there");
    let third = fill(&mut writer);
    assert!(ends(&third).iter().rev().skip(1).all(|end| end % 4096 == 0), "{:?}", ends(&third));
    assert_eq!(recycled(&third), Some((4, Some(2))));
}

#[test]
fn the_first_segment_is_small() {
    let identity = LogIdentity { store_id: [1; 16], incarnation: 1, core: 0, cores: 1 };
    let (mut writer, mut effects) = (LogWriter::new(identity), Vec::new());
    let mut buffer = LogBuffer::default();
    while effects.iter().all(|effect| matches!(effect, Effect::WriteLog { .. })) {
        record(&mut buffer);
        writer.seal(&mut buffer, Now::default(), &mut effects);
    }
    let asked = (FIRST_SEGMENT_BYTES / 2).next_multiple_of(512);
    assert!(writer.position().1.abs_diff(asked) < 512, "{:?}", writer.position());
    let creation = effects.iter().find(|effect| matches!(effect, Effect::CreateSegment { .. }));
    assert!(matches!(creation, Some(Effect::CreateSegment { bytes: SEGMENT_BYTES, .. })), "{creation:?}");
}

#[test]
fn one_sync_at_a_time_and_none_after_a_failure() {
    let (mut writer, mut buffer, mut effects) = (writer(), LogBuffer::default(), Vec::new());
    record(&mut buffer);
    let first = writer.seal(&mut buffer, Now::default(), &mut effects);
    effects.clear();
    writer.sync(&mut effects);
    writer.sync(&mut effects);
    assert_eq!(effects.len(), 1);
    writer.on_log_synced(first);
    assert_eq!(writer.durable(), first);
    record(&mut buffer);
    writer.seal(&mut buffer, Now::default(), &mut effects);
    writer.on_log_failed("disk on fire".into());
    effects.clear();
    writer.sync(&mut effects);
    assert!(effects.is_empty());
}

#[test]
fn memory_comes_back_unless_there_are_records_or_it_is_much() {
    let mut buffer = LogBuffer::default();
    let capacity = |buffer: &mut LogBuffer| std::mem::take(buffer).into_bytes().capacity();
    buffer.reuse(Vec::with_capacity(1000));
    assert_eq!(capacity(&mut buffer), 1000);
    buffer.reuse(Vec::with_capacity(4 << 20));
    assert!(capacity(&mut buffer) < 1000);
    record(&mut buffer);
    buffer.reuse(Vec::with_capacity(1000));
    assert_eq!(buffer.records(), 1);
}
