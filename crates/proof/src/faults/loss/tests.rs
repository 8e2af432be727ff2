//! Of files that are written, cut and synced by chance each block is as it was at some moment since the last sync; names come back in order.
#![allow(clippy::unwrap_used)]

use std::fs;

use base::rng::Rng;

use super::super::journal::{Journal, Record, What};
use super::{BLOCK_BYTES, Content, Undone, cut, undo};

const INODE: u64 = 7;

fn record(what: What) -> Record {
    Record { what, inode: INODE, offset: 0, count: 0, size: 0, stash: 0, names: String::new(), old: Vec::new() }
}

/// A file, and the journal of what is done to it.
#[derive(Default)]
struct Model {
    content: Vec<u8>,
    records: Vec<Record>,
    /// Since the last sync, its own included.
    states: Vec<Vec<u8>>,
}

impl Model {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let (size, end) = (self.content.len(), offset + bytes.len());
        let old = self.content.get(offset..size.min(end)).unwrap_or_default().to_vec();
        let (offset_told, count) = (offset as u64, bytes.len() as u64);
        self.records.push(Record { offset: offset_told, count, size: size as u64, old, ..record(What::Wrote) });
        self.content.resize(size.max(end), 0);
        self.content[offset..end].copy_from_slice(bytes);
        self.states.push(self.content.clone());
    }

    fn truncate(&mut self, bytes: usize) {
        let size = self.content.len() as u64;
        let old = self.content.get(bytes..).unwrap_or_default().to_vec();
        self.records.push(Record { offset: bytes as u64, size, old, ..record(What::Truncated) });
        self.content.resize(bytes, 0);
        self.states.push(self.content.clone());
    }

    fn sync(&mut self) {
        let began = self.records.len() as u64;
        self.records.push(Record { size: self.content.len() as u64, ..record(What::SyncBegan) });
        self.records.push(Record { offset: began, ..record(What::SyncEnded) });
        self.states = vec![self.content.clone()];
    }

    fn undone(&self, content: Content, rng: &mut Rng) -> Vec<u8> {
        let journal = Journal::of(self.records.clone());
        let size = self.content.len() as u64;
        let Undone { places, size } = undo(&journal, (INODE, size), &journal.unsynced(), content, rng);
        let mut file = self.content.clone();
        for (offset, bytes) in places {
            let (from, to) = (offset as usize, offset as usize + bytes.len());
            file.resize(file.len().max(to), 0);
            file[from..to].copy_from_slice(&bytes);
        }
        file.resize(size as usize, 0);
        file
    }
}

/// A file by chance, synced now and then.
fn drawn(rng: &mut Rng, truncates: bool) -> Model {
    let mut model = Model::default();
    model.sync();
    for step in 0..rng.below(40) {
        match rng.below(8) {
            0 => model.sync(),
            1 if truncates => model.truncate(rng.below(20_000) as usize),
            _ => {
                let bytes = vec![step as u8 + 1; 1 + rng.below(6000) as usize];
                model.write(rng.below(20_000) as usize, &bytes);
            }
        }
    }
    model
}

/// A block of a file, filled up with zeros: what was never written, or cut off.
fn block(file: &[u8], number: usize) -> Vec<u8> {
    let (from, bytes) = (number * BLOCK_BYTES as usize, BLOCK_BYTES as usize);
    let mut block: Vec<u8> = file.iter().skip(from).take(bytes).copied().collect();
    block.resize(bytes, 0);
    block
}

#[test]
fn what_is_lost_as_a_whole_leaves_a_state_that_there_was() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let model = drawn(&mut rng, true);
        assert_eq!(model.undone(Content::From(usize::MAX), &mut rng), model.content, "seed {seed}: nothing");
        assert_eq!(model.undone(Content::From(0), &mut rng), model.states[0], "seed {seed}: all");
        let unsynced = Journal::of(model.records.clone()).unsynced();
        for (place, number) in unsynced.iter().enumerate() {
            let found = model.undone(Content::From(*number), &mut rng);
            assert_eq!(found, model.states[place], "seed {seed}: from record {number}");
        }
    }
}

#[test]
fn a_block_is_as_it_was_at_some_moment_since_the_last_sync() {
    let (mut different, mut same) = (0, 0);
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let model = drawn(&mut rng, false);
        let found = model.undone(Content::Blocks(1 + seed % 7), &mut rng);
        let sizes: Vec<usize> = model.states.iter().map(Vec::len).collect();
        assert!(sizes.contains(&found.len()), "seed {seed}: {} of {sizes:?}", found.len());
        for number in 0..found.len() / BLOCK_BYTES as usize {
            let block_found = block(&found, number);
            let is_known = model.states.iter().any(|state| block(state, number) == block_found);
            assert!(is_known, "seed {seed}, block {number}");
        }
        *if found == model.content { &mut same } else { &mut different } += 1;
    }
    assert!(different > 300 && same > 10, "{different} lost something, {same} nothing");
}

#[test]
fn a_file_that_was_emptied_and_written_again_is_never_a_mixture() {
    let (old, new) = (vec![1; 9000], vec![2; 5000]);
    let (mut olds, mut mixtures) = (0, 0);
    for seed in 0..200 {
        let mut model = Model::default();
        model.write(0, &old);
        model.sync();
        model.truncate(0);
        model.write(0, &new);
        let found = model.undone(Content::Blocks(4), &mut Rng::new(seed));
        olds += u32::from(found == old);
        mixtures += u32::from(found.contains(&1) && found != old);
    }
    assert!(olds > 0 && mixtures == 0, "{olds} whole old ones, {mixtures} mixtures");
}

#[test]
fn a_sync_covers_what_came_before_it_began() {
    let mut model = Model::default();
    model.write(0, b"before");
    let began = model.records.len() as u64;
    model.records.push(Record { size: 6, ..record(What::SyncBegan) });
    model.write(6, b"meanwhile");
    model.records.push(Record { offset: began, ..record(What::SyncEnded) });
    assert_eq!(model.undone(Content::From(0), &mut Rng::new(1)), b"before");
    // One that did not end covers nothing.
    model.records.pop();
    assert_eq!(model.undone(Content::From(0), &mut Rng::new(1)), b"");
}

/// As the shim tells it, byte for byte.
fn told(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        let Record { what, inode, offset, count, size, stash, names, old } = record;
        let (text, old_bytes) = (names.len() as u64, old.len() as u64);
        for number in [*what as u64 + 1, *inode, *offset, *count, *size, *stash, text, old_bytes] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(names.as_bytes());
        bytes.extend(old);
    }
    bytes
}

#[test]
fn names_come_back_in_order_up_to_a_sync_of_the_directory() {
    let root = std::env::temp_dir().join(format!("zerohop-loss-{}", std::process::id()));
    let (data, stash, journal) = (root.join("data"), root.join("stash"), root.join("journal"));
    let named = |what, names: &str, stash| Record { names: names.to_owned(), stash, inode: 0, ..record(what) };
    let mut seen = Vec::new();
    for seed in 0..60 {
        fs::create_dir_all(&data).unwrap();
        fs::create_dir_all(&stash).unwrap();
        // Durable: `kept` took the place of another one. Then `old` went, and `new` was made and took the place of `kept`.
        fs::write(data.join("kept"), "new").unwrap();
        fs::write(stash.join("1"), "another").unwrap();
        fs::write(stash.join("2"), "old").unwrap();
        fs::write(stash.join("3"), "kept").unwrap();
        let records = [
            named(What::Renamed, "first/kept", 1),
            record_of_directory(What::SyncBegan, 0),
            record_of_directory(What::SyncEnded, 1),
            named(What::Removed, "old", 2),
            named(What::Created, "new", 0),
            named(What::Renamed, "new/kept", 3),
        ];
        fs::write(&journal, told(&records)).unwrap();
        let lost = cut(&data, (&journal, &stash), &mut Rng::new(seed)).unwrap();
        let content = |name: &str| fs::read_to_string(data.join(name)).unwrap_or_default();
        let found = ["old", "new", "kept"].map(content);
        let expected = match lost.names {
            0 => ["", "", "new"],
            1 => ["", "new", "kept"],
            2 => ["", "", "kept"],
            _ => ["old", "", "kept"],
        };
        assert_eq!(found, expected, "seed {seed}, {lost}");
        seen.push(lost.names);
        fs::remove_dir_all(&root).unwrap();
    }
    assert!((0..4).all(|names| seen.contains(&names)), "{seen:?}");
}

fn record_of_directory(what: What, offset: u64) -> Record {
    Record { inode: 0, offset, ..record(what) }
}
