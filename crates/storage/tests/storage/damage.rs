//! Every truncation, every flipped bit, lost sectors, misplaced, old and missing files: the state that was promised, or
//! a refusal that names the file.

use base::rng::Rng;
use storage::log::MANIFEST_FILE_NAME;
use storage::log::format::{FORMAT_VERSION, SegmentHeader, segment_file_name};

use crate::disk::Disk;
use crate::model::Model;
use crate::node::{Node, apply_to_model};

const SEGMENT_BYTES: u64 = 512;

/// A small directory of two incarnations over two cores, with several segments, a unit, and tails that nobody was
/// promised.
pub fn small_node() -> Node {
    let (mut rng, mut model) = (Rng::new(21), Model::default());
    let mut disk = Disk::default();
    for incarnation in 0..2 {
        let mut node = Node::open(disk, 2, SEGMENT_BYTES, true).unwrap();
        for round in 0..7 {
            for _ in 0..2 {
                let core = node.random_change(&mut rng, &mut model, 12, 60);
                node.seal(core);
            }
            if round == 3 {
                node.unit(&mut rng, &mut model, &[0, 1]);
            }
            if round < 5 {
                (0..2).for_each(|core| node.sync(core));
            }
        }
        if incarnation == 1 {
            let promised = node.promised(&node.disk);
            assert!(promised.iter().all(|promised| *promised >= 4), "{promised:?}");
            return node;
        }
        disk = node.disk;
    }
    unreachable!("the second incarnation returns")
}

/// Whether recovery of `damaged` is right, when only `files` may be blamed; what is wrong with it.
pub fn judge(node: &Node, damaged: &Disk, files: &[&str]) -> Result<bool, String> {
    let mut model = Model::default();
    match damaged.recover(&mut |replayed| apply_to_model(&mut model, replayed)) {
        Ok(recovery) => {
            let (kept, promised) = (node.kept(&recovery), node.promised(damaged));
            if kept.iter().zip(&promised).any(|(kept, promised)| kept < promised) {
                return Err(format!("kept {kept:?} of the promised {promised:?}"));
            }
            let expected = node.state_after(&kept);
            if model.keys != expected {
                return Err(format!("not the state after {kept:?} groups"));
            }
            Ok(true)
        }
        Err(damage) if !files.contains(&damage.file.as_str()) => Err(format!("{files:?} was harmed: {damage}")),
        Err(damage) if damage.offset > damaged.files.get(&damage.file).map_or(0, Vec::len) as u64 => {
            Err(format!("no such place: {damage}"))
        }
        Err(_) => Ok(false),
    }
}

/// Flip every bit, one at a time, and judge; how many were refused.
pub fn flip_every_bit(node: &Node, disk: &Disk) -> Result<usize, String> {
    let mut refused = 0;
    let mut damaged = disk.clone();
    for (name, file) in &disk.files {
        for bit in 0..file.len() * 8 {
            damaged.files.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            let is_open = judge(node, &damaged, &[name]).map_err(|wrong| format!("{name}, bit {bit}: {wrong}"))?;
            if is_open && name == MANIFEST_FILE_NAME {
                return Err(format!("the manifest's bit {bit} went unnoticed"));
            }
            refused += usize::from(!is_open);
            damaged.files.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
        }
    }
    Ok(refused)
}

/// Whether a segment was made ahead and never written to.
fn is_empty(node: &Node, name: &str) -> bool {
    node.disk.files[name][64..].iter().all(|byte| *byte == 0)
}

#[test]
fn every_flipped_bit_is_harmless_or_refused() {
    let node = small_node();
    let refused = flip_every_bit(&node, &node.disk).unwrap();
    assert!(refused > 8 * 600, "{refused} flips were refused");
}

#[test]
fn every_truncation_keeps_what_was_promised() {
    let node = small_node();
    let names: Vec<&String> = node.disk.files.keys().filter(|name| *name != MANIFEST_FILE_NAME).collect();
    for (number, name) in names.iter().enumerate() {
        for len in 0..node.disk.files[*name].len() {
            let mut damaged = node.disk.clone();
            damaged.files.get_mut(*name).unwrap().truncate(len);
            // Without any group, the next one may as well have been at the end of the segment before.
            let before = names[number.saturating_sub(usize::from(len <= 64))];
            judge(&node, &damaged, &[name, before]).unwrap_or_else(|wrong| panic!("{name} of {len} bytes: {wrong}"));
        }
    }
}

/// Zero every sector of every log, one at a time, and judge; how many were refused.
pub fn lose_every_sector(node: &Node, disk: &Disk) -> Result<usize, String> {
    let mut refused = 0;
    for (name, file) in disk.files.iter().filter(|(name, _)| *name != MANIFEST_FILE_NAME) {
        for size in [512, 64, 8] {
            for start in (0..file.len()).step_by(size) {
                let mut damaged = disk.clone();
                let end = (start + size).min(file.len());
                damaged.files.get_mut(name).unwrap()[start..end].fill(0);
                let is_open =
                    judge(node, &damaged, &[name]).map_err(|wrong| format!("{name} at {start}+{size}: {wrong}"))?;
                refused += usize::from(!is_open);
            }
        }
    }
    Ok(refused)
}

#[test]
fn lost_sectors_lose_nothing_promised() {
    let node = small_node();
    let refused = lose_every_sector(&node, &node.disk).unwrap();
    assert!(refused > 50, "{refused}");
}

/// What the store cannot know, and where that ends: sixteen groups, each promised by the next.
#[test]
fn a_lost_end_that_alone_told_of_itself_is_cut_and_not_one_group_earlier() {
    let mut node = Node::open(Disk::default(), 1, 1 << 16, true).unwrap();
    let (mut rng, mut model) = (Rng::new(5), Model::default());
    for _ in 0..16 {
        node.random_change(&mut rng, &mut model, 12, 60);
        node.seal(0);
        node.sync(0);
    }
    let name = segment_file_name(1, 0, base::SegmentNumber(0));
    let starts: Vec<usize> = node.groups[0].iter().map(|(_, offset)| *offset).collect();
    assert_eq!(starts.len(), 16);
    let lose = |from: usize, to: usize| {
        let mut damaged = node.disk.clone();
        damaged.files.get_mut(&name).unwrap()[from..to].fill(0);
        let mut model = Model::default();
        let recovery = damaged.recover(&mut |replayed| apply_to_model(&mut model, replayed));
        recovery.map(|recovery| {
            let kept = node.kept(&recovery);
            assert_eq!(model.keys, node.state_after(&kept), "{from}..{to}");
            kept[0]
        })
    };
    let end = node.disk.files[&name].len();
    for first in 1..16 {
        // All from this group on, its header or only its last bytes included: everything before it is there.
        assert_eq!(lose(starts[first], end).unwrap(), first as u64);
        assert_eq!(lose(starts[first] + 48, end).unwrap(), first as u64);
        // The same, but the last group is whole: it was sealed when all before it were synced.
        if first < 15 {
            let damage = lose(starts[first], starts[15]).unwrap_err();
            assert_eq!((damage.file.as_str(), damage.offset), (name.as_str(), starts[first] as u64));
            assert!(damage.reason.contains("groups up to 15 were synced"), "{damage}");
        }
    }
}

#[test]
fn swapped_and_missing_files_are_refused_by_name() {
    let node = small_node();
    let names: Vec<&String> = node.disk.files.keys().filter(|name| *name != MANIFEST_FILE_NAME).collect();
    for (number, first) in names.iter().enumerate() {
        let mut damaged = node.disk.clone();
        damaged.files.remove(*first);
        // Without the last one, the next group may as well have been at the end of the one before.
        let before = names[number.saturating_sub(1)];
        judge(&node, &damaged, &[first, before]).unwrap_or_else(|wrong| panic!("without {first}: {wrong}"));
        for second in names.iter().filter(|second| *second != first) {
            let mut damaged = node.disk.clone();
            damaged.files.insert((*first).clone(), node.disk.files[*second].clone());
            damaged.files.insert((*second).clone(), node.disk.files[*first].clone());
            let is_open = judge(&node, &damaged, &[first, second]);
            let are_empty = is_empty(&node, first) && is_empty(&node, second);
            assert!(is_open == Ok(false) || (are_empty && is_open == Ok(true)), "{first} for {second}: {is_open:?}");
        }
    }
    let mut damaged = node.disk.clone();
    damaged.files.remove(MANIFEST_FILE_NAME);
    assert_eq!(judge(&node, &damaged, &[MANIFEST_FILE_NAME]), Ok(false));
}

#[test]
fn an_old_copy_of_a_file_is_harmless_or_refused() {
    let mut node = small_node();
    let old = node.disk.clone();
    let (mut rng, mut model) = (Rng::new(3), Model { keys: node.snapshot() });
    for _ in 0..12 {
        let core = node.random_change(&mut rng, &mut model, 12, 60);
        node.seal(core);
        (0..2).for_each(|core| node.sync(core));
    }
    for (name, file) in &old.files {
        let mut damaged = node.disk.clone();
        damaged.files.insert(name.clone(), file.clone());
        judge(&node, &damaged, &[name]).unwrap_or_else(|wrong| panic!("old {name}: {wrong}"));
    }
    // The manifest of the incarnation before: it does not know the newer logs.
    let reopened = Node::open(node.disk.clone(), 1, SEGMENT_BYTES, false).unwrap();
    let mut damaged = reopened.disk.clone();
    damaged.files.insert(MANIFEST_FILE_NAME.into(), node.disk.files[MANIFEST_FILE_NAME].clone());
    let newest = segment_file_name(3, 0, base::SegmentNumber(0));
    assert_eq!(judge(&node, &damaged, &[&newest]), Ok(false));
}

#[test]
fn segments_of_other_stores_and_newer_formats_are_refused_by_name() {
    let node = small_node();
    let names = node.disk.files.iter().filter(|(name, _)| *name != MANIFEST_FILE_NAME);
    for (name, file) in names.filter(|(name, _)| !is_empty(&node, name)) {
        let mut header = SegmentHeader::decode(file).unwrap();
        header.store_id[0] ^= 1;
        let mut damaged = node.disk.clone();
        damaged.write(name, 0, &header.encode());
        assert_eq!(judge(&node, &damaged, &[name]), Ok(false), "{name} of another store");
        let mut newer = file[..64].to_vec();
        newer[8] = FORMAT_VERSION as u8 + 1;
        let crc = base::checksum::crc32c(&newer[..60]);
        newer[60..].copy_from_slice(&crc.to_le_bytes());
        damaged.write(name, 0, &newer);
        let damage = damaged.recover(&mut |_| Ok(())).unwrap_err();
        let told = format!("format {}, ", FORMAT_VERSION + 1);
        assert!(damage.file == *name && damage.reason.contains(&told), "{damage}");
    }
}
