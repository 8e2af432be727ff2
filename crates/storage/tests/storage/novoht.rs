//! Defects that NoVoHT had and that other tests meet by the way at most (`docs/internals/novoht-defects.md`): bytes that its text
//! format gave a meaning, an old record spoilt before the new one was there, and another key's record marked as removed.

use std::collections::BTreeSet;

use base::SlotGroupId;
use storage::run::{Cut, RunHeader, RunWriter};

use crate::changes::OwnedChange;
use crate::disk::Disk;
use crate::model::{Model, ModelValue};
use crate::node::{Node, apply_to_model};

/// What NoVoHT's records were made of, the end of a C string, the ends of lines, and what is no text at all.
const BYTES: [u8; 6] = [b'\t', b'~', b'\0', b'\r', b'\n', 0xFF];
/// What NoVoHT read a field into, and what no field of its could have.
const LENGTHS: [usize; 5] = [299, 300, 301, 4096, base::limits::KEY_BYTES_MAX];

/// Each byte alone, in front, behind, in the middle and as a pair, all of them together, and names of every length.
fn names() -> Vec<Vec<u8>> {
    let around = |byte: u8| -> Vec<Vec<u8>> {
        [&[byte][..], &[byte, b'k'], &[b'k', byte], &[b'k', byte, b'k'], &[byte, byte]].map(<[u8]>::to_vec).to_vec()
    };
    let mut names: Vec<Vec<u8>> = BYTES.into_iter().flat_map(around).collect();
    names.extend([b"k".to_vec(), b"kk".to_vec(), BYTES.to_vec(), b"key\tvalue\t".to_vec(), b"~ey\tvalue\t".to_vec()]);
    names.extend(LENGTHS.map(|length| vec![b'n'; length]));
    names
}

/// Strings and lists of the same bytes, each told apart by its number.
fn fill(node: &mut Node, model: &mut Model) {
    for (number, name) in names().iter().enumerate() {
        let value = [name.as_slice(), &BYTES, number.to_string().as_bytes(), &BYTES].concat();
        let text = OwnedChange::put_string(&value);
        let list = OwnedChange::put_list([value, Vec::new(), name.clone()].into_iter());
        for (database, put) in [(0, text), (1, list)] {
            let core = node.change(model, database, name, &put);
            node.seal(core);
        }
    }
    (0..node.stores.len()).for_each(|core| node.sync(core));
}

#[test]
fn every_byte_is_just_a_byte_in_names_and_values_of_the_log() {
    let (mut model, mut disk) = (Model::default(), Disk::default());
    for cores in [1, 4, 2] {
        let mut node = Node::open(disk, cores, 8 << 10, false).unwrap();
        assert!(node.snapshot() == model.keys, "another opening has something else on {cores} cores");
        fill(&mut node, &mut model);
        // One key in three goes: what looks like another's record has to stay.
        for name in names().iter().skip(usize::from(cores)).step_by(3) {
            let core = node.change(&mut model, 0, name, &OwnedChange::remove());
            node.seal(core);
        }
        disk = node.disk;
    }
    assert!(Node::open(disk, 3, 8 << 10, false).unwrap().snapshot() == model.keys);
    assert!(model.keys.len() > names().len());
}

#[test]
fn every_byte_is_just_a_byte_in_names_and_values_of_runs() {
    let mut model = Model::default();
    let mut node = Node::open(Disk::default(), 1, 8 << 10, false).unwrap();
    fill(&mut node, &mut model);
    let store_id = node.disk.manifest().unwrap().unwrap().store_id;
    let begin = node.logs[0].sealed();
    for group in SlotGroupId::all() {
        let header = RunHeader { store_id, group, core: 0, cut: Cut { incarnation: node.incarnation, begin } };
        let (mut writer, mut bytes) = RunWriter::begin(header, false);
        while !writer.has_walked() {
            let slice = writer.slice(node.stores[0].group(group).unwrap(), 500, Vec::new());
            bytes.extend(slice.into_bytes().unwrap());
        }
        bytes.extend(writer.finish(node.stores[0].group(group).unwrap(), begin));
        node.disk.write(&header.file_name(), 0, &bytes);
    }
    let mut from_runs = 0;
    let mut found = Model::default();
    let found_all = node.disk.recover(&mut |replayed| {
        from_runs += usize::from(matches!(replayed, storage::log::Replayed::Loaded { .. }));
        apply_to_model(&mut found, replayed)
    });
    found_all.unwrap();
    assert_eq!(from_runs, model.keys.len(), "all of it is in runs");
    assert!(found.keys == model.keys);
    assert!(Node::open(node.disk, 2, 8 << 10, false).unwrap().snapshot() == model.keys);
}

/// The old record stays what it was until the new one is there whole: whichever bytes of the new one are on the disk, the key has
/// one of both values.
#[test]
fn a_key_that_is_overwritten_is_there_wherever_the_write_breaks_off() {
    for bytes in [1, 300, 5000] {
        let mut model = Model::default();
        let mut node = Node::open(Disk::default(), 1, 32 << 10, false).unwrap();
        let old = OwnedChange::put_string(&vec![b'o'; bytes]);
        node.change(&mut model, 0, b"key", &old);
        node.seal(0);
        node.sync(0);
        let before = node.disk.clone();
        let new = OwnedChange::put_string(&vec![b'n'; bytes]);
        node.change(&mut model, 0, b"key", &new);
        node.seal(0);
        let (name, start) = node.groups[0].last().unwrap().clone();
        let (old_file, new_file) = (&before.files[&name], &node.disk.files[&name]);
        assert!(old_file[..start] == new_file[..start], "what was there is written to");
        let step = 1 + bytes / 100;
        let mut seen = BTreeSet::new();
        for end in (start..new_file.len()).step_by(step).chain([new_file.len()]) {
            let mut disk = before.clone();
            disk.write(&name, start, &new_file[start..end]);
            let mut found = Model::default();
            disk.recover(&mut |replayed| apply_to_model(&mut found, replayed)).unwrap();
            let value = found.keys.get(&(0, b"key".to_vec())).map(|entry| entry.value.clone());
            let Some(ModelValue::String(value)) = value else { panic!("no key with {} bytes written", end - start) };
            assert_eq!((value.len(), value.iter().all(|byte| *byte == value[0])), (bytes, true));
            seen.insert(value[0]);
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [b'n', b'o']);
    }
}

/// Of 60,000 names a third share a slot, where the index looks at 24 bits of their hashes before it compares names: about a
/// dozen pairs have the same. Who took the first of such a chain for the one that was named would lose another key.
#[test]
fn of_keys_that_the_index_takes_for_one_only_the_named_one_goes() {
    let mut model = Model::default();
    let mut node = Node::open(Disk::default(), 1, 1 << 20, false).unwrap();
    let name = |number: u32| format!("key:{number}").into_bytes();
    for number in 0..60_000 {
        node.change(&mut model, 0, &name(number), &OwnedChange::put_string(&name(number)));
        if number % 1000 == 999 {
            node.seal(0);
        }
    }
    for number in (0..60_000).step_by(2) {
        node.change(&mut model, 0, &name(number), &OwnedChange::remove());
    }
    node.seal(0);
    assert_eq!(model.keys.len(), 30_000);
    assert!(node.snapshot() == model.keys, "another key went");
    assert!(
        Node::open(node.disk, 2, 1 << 20, false).unwrap().snapshot() == model.keys,
        "another key went at a restart"
    );
}
