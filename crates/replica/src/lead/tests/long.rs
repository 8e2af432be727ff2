//! Long values over a link: in blocks, and given up when they are not to arrive.

use base::{BLOCK_BYTES, Blocks};

use super::*;

/// A value of three blocks and a bit.
fn blocks() -> Blocks {
    Blocks::of(&vec![7; 3 * BLOCK_BYTES + 9])
}

impl Rig {
    /// Block `number` of a value goes to the log, and on.
    fn log_block(&mut self, stage: u64, number: usize) {
        let (blocks, start) = (blocks(), number * BLOCK_BYTES);
        let range = start..blocks.len().min(start + BLOCK_BYTES);
        let bytes: Vec<u8> = blocks.pieces(range).flatten().copied().collect();
        self.store.log_mut().expect("it has a log").append_block(slot(), (stage, start as u64), &bytes);
        self.seal();
        self.pass();
    }

    fn put_staged(&mut self, stage: u64) {
        let key = self.store.key(b"long", Database(0), slot());
        let change = Change::PutBlocks { blocks: &blocks(), staged: Some(stage), expiry: Expiry::Clear };
        self.store.apply(&key, &change).expect("there is room");
        self.seal();
        self.pass();
    }

    fn longest_frame_bytes(&self) -> usize {
        self.lead.backlog.iter().map(|entry| entry.bytes.len()).max().unwrap_or(0)
    }
}

#[test]
fn its_blocks_go_as_they_come_and_its_change_names_them() {
    let mut rig = Rig::whole();
    let stage = rig.store.begin_stage();
    (0..4).for_each(|number| rig.log_block(stage, number));
    assert!(!rig.lead.holds_long(slot(), true), "there is room for more");
    assert!(rig.longest_frame_bytes() < BLOCK_BYTES + 200);
    while rig.take_frame() {}
    assert_eq!(rig.follow.arriving.bytes(), blocks().len());
    rig.put_staged(stage);
    assert!(rig.longest_frame_bytes() < 200, "it is a name");
    rig.compare(&[b"one", b"long"]);
    assert_eq!((rig.follow.arriving.bytes(), rig.follow.arriving.begins().count()), (0, 0));
}

#[test]
fn what_no_change_names_is_let_go_of_at_both_ends() {
    let mut rig = Rig::whole();
    let stage = rig.store.begin_stage();
    (0..2).for_each(|number| rig.log_block(stage, number));
    while rig.take_frame() {}
    assert_eq!(rig.follow.arriving.bytes(), 2 * BLOCK_BYTES);
    // Its request was refused.
    rig.store.end_stage(slot(), stage);
    rig.seal();
    rig.pass();
    while rig.take_frame() {}
    assert_eq!((rig.follow.arriving.bytes(), rig.follow.arriving.begins().count()), (0, 0));
}

/// Of a slot that goes elsewhere no more comes: the follower is told, though it does not hold the slot any more.
#[test]
fn a_slot_that_goes_takes_along_what_was_on_its_way() {
    let mut rig = Rig::whole();
    let stage = rig.store.begin_stage();
    (0..2).for_each(|number| rig.log_block(stage, number));
    while rig.take_frame() {}
    assert_eq!(rig.follow.arriving.bytes(), 2 * BLOCK_BYTES);
    let other: SlotSet = [Slot::wrapping(6)].into_iter().collect();
    rig.lead.set_slots(Wanted { awaited: other.clone(), slots: other, ..Wanted::default() }, 2, |_| 2);
    let chain = |first, second| Chain { epoch: 2, members: vec![name(first), name(second)], whole: 2 };
    let chains =
        vec![(Slot::wrapping(0), chain(2, 1)), (Slot::wrapping(6), chain(1, 2)), (Slot::wrapping(7), chain(2, 1))];
    rig.view = ClusterView::new([0; 16], 10, vec![place(1), place(2)], chains);
    while rig.take_frame() {}
    assert_eq!((rig.follow.arriving.bytes(), rig.follow.arriving.begins().count()), (0, 0));
    // What comes of it still, nobody gets.
    rig.log_block(stage, 2);
    rig.put_staged(stage);
    assert!(rig.lead.backlog.is_empty());
}

/// A new life knows nothing of what came in the one before, and the value goes with the fill.
#[test]
fn a_new_life_begins_without_blocks() {
    let mut rig = Rig::whole();
    let stage = rig.store.begin_stage();
    (0..2).for_each(|number| rig.log_block(stage, number));
    while rig.take_frame() {}
    rig.lead.begin_life(8);
    rig.follow.greet(8);
    assert_eq!(rig.follow.arriving.bytes(), 0);
    (2..4).for_each(|number| rig.log_block(stage, number));
    rig.fill();
    rig.put_staged(stage);
    rig.compare(&[b"one", b"long"]);
}

/// A fill sends a long value in frames of a block, and again what was written to meanwhile.
#[test]
fn a_fill_sends_blocks_and_those_that_were_written_to_again() {
    let mut rig = Rig::new();
    let stage = rig.store.begin_stage();
    (0..4).for_each(|number| rig.log_block(stage, number));
    rig.put_staged(stage);
    rig.lead.on_kept(SlotSet::default());
    let (mut frames, mut is_written) = (0, false);
    while rig.lead.may_fill() {
        let newest = rig.newest();
        rig.lead.fill((&rig.store, newest), &mut rig.fills);
        while rig.take_frame() {}
        frames += 1;
        if frames == 2 {
            let key = rig.store.key(b"long", Database(0), slot());
            rig.store.apply(&key, &Change::Overwrite { offset: 5, bytes: b"new" }).expect("there is room");
            rig.seal();
            rig.pass();
            is_written = true;
        }
        assert!(rig.longest_frame_bytes() < BLOCK_BYTES + 200);
    }
    assert!(is_written && frames >= 5, "{frames} frames: four blocks, the first one again, and the change");
    rig.compare(&[b"long"]);
    let place = rig.copy.key(b"long", Database(0), slot());
    let group = rig.copy.group(place.group()).expect("it has all");
    let record = group.record(group.find(&place).expect("it is there"));
    let storage::Value::String { text: base::Text::Long(copied), .. } = record.value else { panic!("a long string") };
    let head: Vec<u8> = copied.pieces(0..10).flatten().copied().collect();
    assert_eq!(head, [7, 7, 7, 7, 7, b'n', b'e', b'w', 7, 7]);
}

/// More on its way than is of use holds up long values, as long as replies wait for the follower or it takes what goes.
#[test]
fn long_values_wait_for_a_follower_that_is_behind() {
    let mut rig = Rig::whole();
    let stage = rig.store.begin_stage();
    let mut number = 0;
    while !rig.lead.holds_long(slot(), false) {
        let bytes = vec![1; BLOCK_BYTES];
        let offset = (number * BLOCK_BYTES) as u64;
        rig.store.log_mut().expect("it has a log").append_block(slot(), (stage, offset), &bytes);
        rig.seal();
        rig.pass();
        number += 1;
    }
    assert_eq!(number, LONG_BACKLOG_BYTES_MAX / BLOCK_BYTES);
    assert!(!rig.lead.holds_long(Slot::wrapping(6), true), "it is not of this link");
    rig.take_frame();
    assert!(!rig.lead.holds_long(slot(), true));
}
