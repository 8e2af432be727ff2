//! Blocks of an own room: nobody gets what another one has, and what goes has no pages.
#![allow(clippy::unwrap_used)]
use super::slots::WARM_MAX;
use super::*;
use slots::Slots;
use std::collections::BTreeMap;

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 1).unwrap()
}

/// Blocks of the least size that were ever used, and those of them that are free with and without memory.
fn blocks(memory: &BlockMemory) -> (usize, usize, usize) {
    memory.0.lock().slots[0].counts()
}

/// Memory that was given, with what was written to it.
#[derive(Default)]
struct Given(BTreeMap<usize, (usize, u8)>);

impl Given {
    fn take(&mut self, memory: &BlockMemory, bytes: usize, mark: u8) {
        // SAFETY: the size is not zero.
        let block = unsafe { memory.alloc(layout(bytes)) };
        // SAFETY: it has that many bytes.
        unsafe { block.write_bytes(mark, bytes) };
        let at = block.expose_provenance();
        let before = self.0.range(..at).next_back().map_or(0, |(at, (bytes, _))| at + bytes);
        let behind = self.0.range(at..).next().map_or(usize::MAX, |(at, _)| *at);
        assert!(before <= at && at + bytes <= behind, "it is somebody else's");
        self.0.insert(at, (bytes, mark));
    }

    fn check(&self, at: usize) -> *mut u8 {
        let (bytes, mark) = self.0[&at];
        let block: *mut u8 = ptr::with_exposed_provenance_mut(at);
        // SAFETY: it was given and not taken back.
        let content = unsafe { std::slice::from_raw_parts(block, bytes) };
        assert!(content.iter().all(|byte| *byte == mark), "somebody wrote to it");
        block
    }

    fn put(&mut self, memory: &BlockMemory, at: usize) {
        let block = self.check(at);
        // SAFETY: as it was given.
        unsafe { memory.dealloc(block, layout(self.0.remove(&at).unwrap().0)) };
    }

    fn resize(&mut self, memory: &BlockMemory, at: usize, bytes: usize) {
        let block = self.check(at);
        let (before, mark) = self.0.remove(&at).unwrap();
        // SAFETY: as it was given; the size is not zero.
        let moved = unsafe { memory.realloc(block, layout(before), bytes) };
        let kept = before.min(bytes);
        self.0.insert(moved.expose_provenance(), (kept, mark));
        self.check(moved.addr());
        // SAFETY: it has that many bytes.
        unsafe { moved.write_bytes(mark, bytes) };
        self.0.insert(moved.addr(), (bytes, mark));
    }
}

#[test]
fn nobody_gets_what_another_one_has() {
    let memory = BlockMemory(Box::leak(Box::new(Room::new())));
    let mut given = Given::default();
    let mut random = base::rng::Rng::new(7);
    let pages = [3_584, 3_585, 4_000, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1];
    let blocks = [61_440, 61_441, BLOCK_BYTES - 8, BLOCK_BYTES, BLOCK_BYTES + 1];
    let runs = [6_144, 6_145, 9_217, 20_000, 33_000, 61_439];
    let larger = [100_000, 2 * BLOCK_BYTES, 2 * BLOCK_BYTES + 1, 300_000, 1 << 20, (8 << 20) + 1];
    let sizes = [&[1, 100][..], &pages, &runs, &blocks, &larger].concat();
    for step in 0..20_000u32 {
        let bytes = sizes[random.below(sizes.len() as u64) as usize];
        // Grows to some hundred, and shrinks again.
        let takes = random.below(1000) < if step / 5_000 % 2 == 0 { 550 } else { 450 };
        let some = given.0.keys().nth(random.below(given.0.len().max(1) as u64) as usize).copied();
        match some {
            Some(at) if random.below(5) == 0 => given.resize(&memory, at, bytes),
            Some(at) if !takes => given.put(&memory, at),
            _ => given.take(&memory, bytes, step as u8),
        }
        if step % 5_000 == 4_999 {
            memory.0.release();
        }
    }
    let mine = given.0.iter().filter(|(at, _)| memory.0.is_mine(**at));
    assert!(mine.clone().count() > 20 && mine.count() < given.0.len());
    while let Some(at) = given.0.keys().next().copied() {
        given.put(&memory, at);
    }
    let slab = memory.0.lock();
    assert_eq!(slab.cut.count(), 0, "all are back");
    for (used, warm, cold) in slab.slots.iter().map(Slots::counts) {
        assert_eq!(warm + cold, used, "all are back");
    }
}

#[test]
fn zeros_are_zeros_whoever_had_the_block() {
    let memory = BlockMemory(Box::leak(Box::new(Room::new())));
    for _ in 0..3 {
        // SAFETY: the size is not zero; it is freed as it was given.
        unsafe {
            let block = memory.alloc_zeroed(layout(BLOCK_BYTES));
            assert!(std::slice::from_raw_parts(block, BLOCK_BYTES).iter().all(|byte| *byte == 0));
            block.write_bytes(1, BLOCK_BYTES);
            memory.dealloc(block, layout(BLOCK_BYTES));
        }
    }
    assert_eq!(blocks(&memory).0, 1, "it is the same each time");
}

#[test]
fn a_block_that_went_has_no_pages_whatever_lies_beside_it() {
    let memory = BlockMemory(Box::leak(Box::new(Room::new())));
    let mut given = Given::default();
    (0..1024).for_each(|_| given.take(&memory, BLOCK_BYTES, 1));
    let every_other: Vec<usize> = given.0.keys().step_by(2).copied().collect();
    every_other.iter().for_each(|at| given.put(&memory, *at));
    // Pages that went are zeros when they are looked at again.
    let keeps_page = |at: &&usize| {
        let byte: *const u8 = ptr::with_exposed_provenance(**at + BLOCK_BYTES / 2);
        // SAFETY: the room stays mapped, and no other thread has the block.
        unsafe { byte.read_volatile() == 1 }
    };
    assert_eq!(every_other.iter().filter(keeps_page).count(), WARM_MAX);
    memory.0.release();
    assert_eq!(every_other.iter().filter(keeps_page).count(), 0);
    // What was free is used before what is new.
    (0..512).for_each(|number| given.take(&memory, BLOCK_BYTES, number as u8));
    assert_eq!(blocks(&memory).0, 1024);
    given.0.keys().for_each(|at| assert!(!given.check(*at).is_null()));
}

#[test]
fn a_block_is_cut_into_pages_and_goes_with_the_last_of_them() {
    let memory = BlockMemory(Box::leak(Box::new(Room::new())));
    let mut given = Given::default();
    (0..64).for_each(|number| given.take(&memory, PAGE_BYTES, number));
    let of_slab = || {
        let (used, warm, _) = blocks(&memory);
        (used, warm, memory.0.lock().cut.count())
    };
    assert_eq!(of_slab(), (4, 0, 0));
    // The least free page is the next one, wherever it is.
    let pages: Vec<usize> = given.0.keys().copied().collect();
    [40, 3, 50].iter().for_each(|number| given.put(&memory, pages[*number]));
    (0..3).for_each(|_| given.take(&memory, PAGE_BYTES - 100, 1));
    assert_eq!(given.0.keys().copied().collect::<Vec<_>>(), pages);
    // All but one page of each block: none of them is free.
    let is_last = |at: &&usize| (**at / PAGE_BYTES).is_multiple_of(16);
    pages.iter().filter(|at| !is_last(at)).for_each(|at| given.put(&memory, *at));
    assert_eq!(of_slab(), (4, 0, 4));
    pages.iter().filter(is_last).for_each(|at| given.put(&memory, *at));
    assert_eq!(of_slab(), (4, 4, 0));
    given.take(&memory, BLOCK_BYTES, 1);
    assert_eq!(of_slab(), (4, 3, 0), "it is one of theirs");
}

#[test]
fn pages_side_by_side_come_out_of_the_shortest_run_that_has_them() {
    let memory = BlockMemory(Box::leak(Box::new(Room::new())));
    let mut given = Given::default();
    (0..32).for_each(|number| given.take(&memory, PAGE_BYTES, number));
    let pages: Vec<usize> = given.0.keys().copied().collect();
    // Five in a row in the first block, three and two in the second.
    let free = [2, 3, 4, 5, 6, 17, 18, 19, 24, 25];
    free.iter().for_each(|number| given.put(&memory, pages[*number]));
    let mut take = |count: usize| {
        let before: Vec<usize> = given.0.keys().copied().collect();
        given.take(&memory, count * PAGE_BYTES, 9);
        let new = given.0.keys().copied().find(|at| !before.contains(at)).unwrap();
        pages.iter().position(|at| *at == new)
    };
    // The block with the longest run of three, and its first one that is long enough.
    assert_eq!([take(3), take(2), take(4), take(1)], [Some(17), Some(24), Some(2), Some(6)]);
    assert_eq!(blocks(&memory).0, 2);
    assert_eq!(take(2), None, "there is none any more: a third block is cut");
    assert_eq!(blocks(&memory).0, 3);
}

#[test]
fn of_larger_ones_a_few_keep_their_memory_and_none_of_the_largest() {
    let memory = BlockMemory(Box::leak(Box::new(Room::new())));
    for (order, kept) in [(1, 8), (2, 4), (3, 2), (4, 1), (5, 1), (6, 1), (7, 0)] {
        let mut given = Given::default();
        (0..10).for_each(|number| given.take(&memory, (BLOCK_BYTES << order) - 5, number));
        while let Some(at) = given.0.keys().next().copied() {
            given.put(&memory, at);
        }
        assert_eq!(memory.0.lock().slots[order].counts(), (10, kept, 10 - kept), "order {order}");
    }
    memory.0.release();
    assert!(memory.0.lock().slots.iter().all(|slots| slots.counts().1 == 0));
}

#[test]
fn what_nobody_needed_for_a_second_goes_one_of_each_size_at_a_time() {
    const SECOND: u64 = SPARE_AFTER_US;
    let memory = BlockMemory(Box::leak(Box::new(Room::new())));
    let mut given = Given::default();
    let warm = || memory.0.lock().slots.iter().map(|slots| slots.counts().1).collect::<Vec<_>>();
    let sizes = [BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES, 4 << 20];
    sizes.iter().for_each(|bytes| given.take(&memory, *bytes, 1));
    given.0.keys().copied().collect::<Vec<_>>().iter().for_each(|at| given.put(&memory, *at));
    assert_eq!(warm(), [3, 0, 0, 0, 0, 0, 1, 0]);
    // They came in this second.
    memory.0.release_spare(SECOND);
    assert_eq!(warm(), [3, 0, 0, 0, 0, 0, 1, 0]);
    // Two of the three are needed in the next one, and come back.
    (0..2).for_each(|mark| given.take(&memory, BLOCK_BYTES, mark));
    given.0.keys().copied().collect::<Vec<_>>().iter().for_each(|at| given.put(&memory, *at));
    memory.0.release_spare(2 * SECOND - 1);
    assert_eq!(warm(), [3, 0, 0, 0, 0, 0, 1, 0], "it is not over");
    memory.0.release_spare(2 * SECOND);
    assert_eq!(warm(), [2, 0, 0, 0, 0, 0, 0, 0]);
    memory.0.release_spare(3 * SECOND);
    memory.0.release_spare(4 * SECOND);
    memory.0.release_spare(5 * SECOND);
    assert_eq!(warm(), [0; ORDERS]);
}

/// A room that keeps 300 blocks beside the few, and 500 that came and went.
fn with_500_freed() -> (BlockMemory, Given) {
    let (memory, mut given) = (BlockMemory(Box::leak(Box::new(Room::new()))), Given::default());
    memory.0.keep(true);
    given.take(&memory, BLOCK_BYTES, 1);
    memory.0.lock().keeping.note_machine(16 * 300 * BLOCK_BYTES);
    come_and_go(&memory, &mut given, 500);
    (memory, given)
}

fn come_and_go(memory: &BlockMemory, given: &mut Given, count: usize) {
    (given.0.len()..count).for_each(|number| given.take(memory, BLOCK_BYTES, number as u8));
    given.0.keys().copied().collect::<Vec<_>>().iter().for_each(|at| given.put(memory, *at));
}

/// Calls as a core does, at each moment when something is due; how many were needed until nothing more went, and when that was.
fn release_until_idle(memory: &BlockMemory) -> (u64, u64) {
    let (mut calls, mut now_us) = (0, memory.0.kept_due_us().unwrap());
    loop {
        memory.0.release_spare(now_us);
        calls += 1;
        if !memory.0.lock().keeping.has_idle() {
            return (calls, now_us);
        }
        now_us = memory.0.kept_due_us().unwrap();
    }
}

#[test]
fn what_long_values_leave_is_there_for_the_next_ones() {
    let (memory, mut given) = with_500_freed();
    assert_eq!(blocks(&memory), (500, 128 + 300, 72), "no more than there is room for");
    come_and_go(&memory, &mut given, 400);
    assert_eq!(blocks(&memory), (500, 128 + 300, 72), "those that have memory are used first");
    memory.0.release();
    assert_eq!(blocks(&memory), (500, 0, 500));
    assert_eq!(memory.0.kept_due_us(), None);
}

#[test]
fn blocks_that_nobody_needed_all_through_a_window_go_a_slice_at_a_time() {
    let (memory, mut given) = with_500_freed();
    // The first window begins now. In each of the next ten seconds one of the few goes; in them all but 50 of the many are needed.
    memory.0.release_spare(1);
    let few = |seconds: usize| 128 - seconds;
    come_and_go(&memory, &mut given, 128 + 250);
    (1..10).for_each(|second| memory.0.release_spare(1 + second * SPARE_AFTER_US));
    assert_eq!(blocks(&memory).1, few(8) + 300, "the window is not over");
    let slices = 50_u64.div_ceil(SLICE_BLOCKS as u64);
    let over_us = 1 + 10 * SPARE_AFTER_US;
    assert_eq!(release_until_idle(&memory), (slices, over_us + (slices - 1) * keeping::SLICE_EVERY_US));
    assert_eq!(blocks(&memory).1, few(9) + 250);
    // Nobody needs any in the next window, but while they go somebody does.
    (1..=10).for_each(|second| memory.0.release_spare(over_us + second * SPARE_AFTER_US));
    assert_eq!(blocks(&memory).1, few(19) + 250 - SLICE_BLOCKS);
    (0..few(19) + 200).for_each(|number| given.take(&memory, BLOCK_BYTES, number as u8));
    release_until_idle(&memory);
    assert_eq!(blocks(&memory).1, 0);
}

#[test]
fn what_is_kept_goes_when_nothing_is_to_be_kept_any_more() {
    let (memory, mut given) = with_500_freed();
    memory.0.keep(false);
    assert_eq!(release_until_idle(&memory).0, 300_u64.div_ceil(SLICE_BLOCKS as u64));
    assert_eq!((blocks(&memory).1, memory.0.kept_due_us()), (128, None));
    come_and_go(&memory, &mut given, 500);
    assert_eq!(blocks(&memory).1, 128);
}

#[test]
fn segments_of_an_index_are_no_pages() {
    let segment = Layout::from_size_align(PAGE_BYTES, 64).unwrap();
    assert_eq!(Class::of(&segment), Class::Other);
    assert_eq!(Class::of(&layout(PAGE_BYTES)), Class::Pages { count: 1 });
}

#[test]
fn without_room_the_system_gives() {
    let memory = BlockMemory(Box::leak(Box::new(Room::new())));
    memory.0.lock().is_reserved = true;
    let mut given = Given::default();
    (0..10).for_each(|number| given.take(&memory, BLOCK_BYTES, number));
    (0..10).for_each(|number| given.take(&memory, PAGE_BYTES, number));
    assert!(given.0.keys().all(|at| !memory.0.is_mine(*at)));
    while let Some(at) = given.0.keys().next().copied() {
        given.put(&memory, at);
    }
}

#[test]
fn nothing_is_its_own_while_the_room_is_made() {
    let room = Room::new();
    assert!(!room.is_mine(1) && !room.is_mine(usize::MAX));
    // Another thread frees while the one that reserves has told half of it.
    room.end.store(1 << 40, Ordering::Release);
    assert!(!room.is_mine(1) && !room.is_mine((1 << 40) - 1), "memory of the system's would be taken for a block");
}
