//! Long values on their way to a follower: in blocks, while slots are filled and values are written to.

use std::collections::VecDeque;

use base::rng::Rng;
use base::{BLOCK_BYTES, Blocks, Database, Slot};
use storage::{Known, Pass, SlotCopy, Store};
use types::{Change, End, Expiry, Kind, List};

use crate::follow::{Link, recovered, seal, store};
use crate::model::snapshot;

/// All keys of these tests are of one slot.
fn slot() -> Slot {
    Slot::wrapping(7)
}

fn apply(leader: &mut Store, name: &[u8], change: &Change<'_>) {
    let key = leader.key(name, Database(0), slot());
    leader.apply(&key, change).unwrap();
}

/// A value that comes in blocks, a log group each.
struct Upload {
    name: Vec<u8>,
    blocks: Blocks,
    stage: Option<u64>,
    sent: usize,
}

impl Upload {
    fn new(rng: &mut Rng) -> Upload {
        let bytes = BLOCK_BYTES + rng.below(4 * BLOCK_BYTES as u64) as usize;
        let blocks = Blocks::of(&vec![rng.below(256) as u8; bytes]);
        Upload { name: name(rng), blocks, stage: None, sent: 0 }
    }

    /// The next block; true: the change came, or the request was refused.
    fn go_on(&mut self, rng: &mut Rng, leader: &mut Store) -> bool {
        let stage = *self.stage.get_or_insert_with(|| leader.begin_stage());
        if self.sent < self.blocks.len() {
            let end = self.blocks.len().min(self.sent + BLOCK_BYTES);
            let bytes: Vec<u8> = self.blocks.pieces(self.sent..end).flatten().copied().collect();
            leader.log_mut().unwrap().append_block(slot(), (stage, self.sent as u64), &bytes);
            self.sent = end;
            return false;
        }
        if rng.chance(3, 4) {
            let change = Change::PutBlocks { blocks: &self.blocks, staged: Some(stage), expiry: Expiry::Clear };
            apply(leader, &self.name, &change);
        }
        leader.end_stage(slot(), stage);
        true
    }
}

fn name(rng: &mut Rng) -> Vec<u8> {
    format!("name {}", rng.below(6)).into_bytes()
}

fn change(rng: &mut Rng, leader: &mut Store) {
    let (name, bytes) = (name(rng), vec![rng.below(256) as u8; 1 + rng.below(200) as usize]);
    let len = leader.value_bytes(&leader.key(&name, Database(0), slot()));
    match rng.below(8) {
        0 => apply(leader, &name, &Change::put_string(&bytes, Expiry::Clear)),
        1 if len > 0 => apply(leader, &name, &Change::Remove),
        2 if len > 0 => apply(leader, &name, &Change::Append { bytes: &bytes }),
        3..6 if len > 0 => {
            let offset = rng.below(len as u64);
            apply(leader, &name, &Change::Overwrite { offset, bytes: &bytes });
        }
        6 | 7 => {
            // A change above 64 KiB would come in pieces, and go as a copy.
            let elements: Vec<&[u8]> = vec![&bytes; 300];
            if leader.value_bytes(&leader.key(b"list", Database(0), slot())) == 0 {
                let mut list = List::new();
                elements.iter().for_each(|element| list.push(End::Tail, element));
                let mut value = Vec::new();
                list.encode(&mut value);
                return apply(leader, b"list", &Change::Put { kind: Kind::List, value: &value, expiry: Expiry::Clear });
            }
            apply(leader, b"list", &Change::ListPush { end: End::Head, elements: &elements });
        }
        _ => {}
    }
}

/// Short keys, so many that they are in many buckets of the index, though all are of one slot.
const SHORT_KEYS: u64 = 20_000;

fn change_short(rng: &mut Rng, leader: &mut Store) {
    let name = format!("short {}", rng.below(SHORT_KEYS)).into_bytes();
    let is_there = leader.value_bytes(&leader.key(&name, Database(0), slot())) > 0;
    match rng.below(4) {
        0 if is_there => apply(leader, &name, &Change::Remove),
        1 | 2 if is_there => apply(leader, &name, &Change::Append { bytes: b"more" }),
        _ => apply(leader, &name, &Change::put_string(b"short", Expiry::Clear)),
    }
}

/// A first and a follower of one slot, and what is on its way.
struct Pair {
    leader: Store,
    follower: Store,
    link: Link,
    uploads: Vec<Upload>,
    /// Log groups that wait for the disk, and how many there were.
    waiting: VecDeque<Vec<u8>>,
    sealed: u64,
    /// The last one that may have something of what went as copies.
    newest: u64,
    /// The fill under way.
    copy: Option<SlotCopy>,
    is_whole: bool,
}

impl Pair {
    fn new() -> Pair {
        let (leader, follower, link) = (store(1), store(2), Link::default());
        let waiting = VecDeque::new();
        Pair { leader, follower, link, uploads: Vec::new(), waiting, sealed: 0, newest: 0, copy: None, is_whole: false }
    }

    /// What was written goes on, once the next parts of all uploads are among it, and all but so many groups have.
    fn tick(&mut self, rng: &mut Rng, waiting: usize) {
        let leader = &mut self.leader;
        self.uploads.retain_mut(|upload| !upload.go_on(rng, leader));
        self.seal();
        while self.waiting.len() > waiting {
            self.pass();
        }
    }

    fn seal(&mut self) {
        self.waiting.push_back(seal(&mut self.leader));
        self.sealed += 1;
    }

    fn pass(&mut self) {
        let ordinal = self.sealed - self.waiting.len() as u64 + 1;
        let Some(group) = self.waiting.pop_front() else { return };
        let perhaps = ordinal <= self.newest;
        let pass = |_| match &self.copy {
            _ if self.is_whole && !perhaps => Pass::Records,
            _ if self.is_whole => Pass::Perhaps,
            Some(copy) => Pass::Part { cursor: copy.cursor(), known: copy.known(), perhaps },
            None => Pass::No,
        };
        if self.link.pass(&self.leader, &group, &pass, &mut self.follower) {
            // A copy is of what the leader has now.
            self.newest = self.sealed + 1;
        }
    }

    fn fill(&mut self) {
        let Some(copy) = &mut self.copy else { return };
        // What is not sealed yet is in it, too.
        self.newest = self.sealed + 1;
        if self.link.fill(&self.leader, copy, &mut self.follower) {
            let (last, removed) = self.leader.sequence(slot());
            self.follower.end_copy(slot(), last, removed);
            (self.copy, self.is_whole) = (None, true);
        }
    }

    fn compare(&mut self, why: &str) {
        assert_eq!(snapshot(&self.follower), snapshot(&self.leader), "{why}");
        assert_eq!(recovered(&mut self.follower), snapshot(&self.leader), "{why}, recovered");
        assert_eq!(self.link.arriving_bytes(), 0, "{why}: nothing is on its way any more");
    }
}

/// A tick that gave back all of a value of 256 MiB took 60 ms.
#[test]
fn what_a_follower_s_value_takes_the_place_of_is_given_back_a_step_at_a_time() {
    let mut pair = Pair::new();
    pair.is_whole = true;
    for byte in 0..2 {
        assert!(!pair.follower.has_garbage());
        apply(&mut pair.leader, b"long", &Change::put_string(&vec![byte; 3 * BLOCK_BYTES], Expiry::Clear));
        pair.seal();
        pair.pass();
    }
    assert!(pair.follower.has_garbage());
}

#[test]
fn long_values_go_in_blocks_while_a_slot_is_filled_and_behind_it() {
    let (mut in_blocks, seeds) = (0, 100);
    for seed in 0..seeds {
        let (mut rng, mut pair) = (Rng::new(seed), Pair::new());
        let begins = rng.below(60);
        for tick in 0..120 {
            // A value that is written to between any two of its blocks goes in one piece in the end.
            let writes = if seed % 2 == 0 { u64::from(rng.chance(1, 12)) } else { rng.below(3) };
            (0..writes).for_each(|_| change(&mut rng, &mut pair.leader));
            if pair.uploads.len() < 2 && rng.chance(1, 4) {
                pair.uploads.push(Upload::new(&mut rng));
            }
            let waiting = if seed % 4 < 2 { rng.below(4) as usize } else { 0 };
            pair.tick(&mut rng, waiting);
            if tick == begins {
                pair.copy = Some(SlotCopy::new(slot(), Known::default()));
            }
            // Between two ticks, or in the middle of one.
            (0..writes.min(1)).for_each(|_| change(&mut rng, &mut pair.leader));
            pair.fill();
        }
        while !(pair.uploads.is_empty() && pair.is_whole) {
            pair.tick(&mut rng, 0);
            pair.fill();
        }
        pair.tick(&mut rng, 0);
        pair.compare(&format!("seed {seed}"));
        // Blocks of both uploads, at most.
        in_blocks += u64::from(seed % 2 == 0 && pair.link.longest_bytes < 3 * BLOCK_BYTES);
    }
    assert!(in_blocks > seeds * 3 / 8, "{in_blocks} of {seeds}: of some only is what came before the fill");
}

/// Keys in front of the cursor have what groups say that waited for the disk when they went.
#[test]
fn what_a_slice_may_have_already_is_done_once() {
    for seed in 0..3 {
        let (mut rng, mut pair) = (Rng::new(seed), Pair::new());
        (0..2 * SHORT_KEYS).for_each(|_| change_short(&mut rng, &mut pair.leader));
        pair.tick(&mut rng, 0);
        pair.copy = Some(SlotCopy::new(slot(), Known::default()));
        let mut in_front = 0;
        while !pair.is_whole {
            (0..rng.below(12)).for_each(|_| change_short(&mut rng, &mut pair.leader));
            let waiting = rng.below(4) as usize;
            pair.tick(&mut rng, waiting);
            in_front +=
                u64::from(pair.copy.as_ref().is_some_and(|copy| copy.cursor() != Store::slot_range(slot()).start));
            pair.fill();
        }
        pair.tick(&mut rng, 0);
        pair.compare(&format!("seed {seed}"));
        assert!(in_front > 100, "{in_front} slices have keys in front of them");
    }
}
