//! Crashes while a directory is opened, and tails that were cut before.

use base::rng::Rng;

use crate::changes::random_change;
use crate::damage::{judge, small_node};
use crate::disk::Disk;
use crate::model::Model;
use crate::node::{Node, apply_to_model, beginning};

#[test]
fn a_cut_is_the_same_every_time() {
    let node = small_node();
    let mut disk = node.disk.clone();
    let (name, offset) = node.groups[0].last().unwrap();
    disk.files.get_mut(name).unwrap()[offset + 50] ^= 1;
    let recover = || {
        let mut model = Model::default();
        let recovery = disk.recover(&mut |replayed| apply_to_model(&mut model, replayed)).unwrap();
        (recovery.torn, recovery.chains, model.keys)
    };
    let first = recover();
    assert_eq!(first.0.len(), 1);
    assert_eq!((&first.0[0].file, first.0[0].offset as usize), (name, *offset));
    assert_eq!(recover(), first);
}

#[test]
fn what_nobody_knows_to_be_durable_is_named_and_so_is_where_logs_end() {
    let node = small_node();
    let recovery = node.disk.recover(&mut |_| Ok(())).unwrap();
    let kept = node.kept(&recovery);
    for (core, groups) in node.groups.iter().enumerate() {
        let prefix = format!("{:08}-{core:03}-", 2);
        let end_of = |number: usize| -> (String, u64) {
            let (name, offset) = &groups[number];
            let length = u32::from_le_bytes(node.disk.files[name][offset + 8..offset + 12].try_into().unwrap());
            (name.clone(), (offset + (48 + length as usize).next_multiple_of(8)) as u64)
        };
        assert_eq!(kept[core], groups.len() as u64, "nothing is torn here");
        let stated = node.stated(core) as usize;
        assert!(stated < groups.len(), "the last group is never stated to be durable");
        let unsure: Vec<_> = recovery.unsure.iter().filter(|unsure| unsure.file.starts_with(&prefix)).collect();
        let (first, last) = (unsure.first().unwrap(), unsure.last().unwrap());
        assert_eq!((&first.file, first.from as usize), (&groups[stated].0, groups[stated].1));
        assert_eq!((last.file.clone(), last.to), end_of(groups.len() - 1));
        let ends: Vec<_> = recovery.ends.iter().filter(|end| end.file.starts_with(&prefix)).collect();
        assert_eq!((ends[0].file.clone(), ends[0].bytes), end_of(groups.len() - 1));
        assert!(ends[1..].iter().all(|end| end.bytes == 64 && end.file > ends[0].file), "{ends:?}");
    }
    // What was given back is missed by nobody, once the manifest says where the logs end.
    let mut reopened = Node::open(node.disk.clone(), 2, 512, false).unwrap();
    for end in &recovery.ends {
        reopened.disk.files.get_mut(&end.file).unwrap().truncate(end.bytes as usize);
    }
    assert_eq!(Node::open(reopened.disk, 1, 512, false).unwrap().snapshot(), node.snapshot());
}

#[test]
fn a_log_is_read_once_unless_another_core_or_the_disk_has_a_say() {
    let mut node = Node::open(Disk::default(), 2, 512, false).unwrap();
    let (mut rng, mut model) = (Rng::new(5), Model::default());
    for _ in 0..60 {
        let core = node.random_change(&mut rng, &mut model, 30, 20);
        node.seal(core);
        node.sync(core);
    }
    let names = |disk: &Disk| {
        let mut read_names = Vec::new();
        let mut found = Model::default();
        disk.recover_noting(&mut read_names, &mut |replayed| apply_to_model(&mut found, replayed)).unwrap();
        assert_eq!(found.keys, model.keys);
        let mut different = read_names.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 4, "a log of many segments: {different:?}");
        (read_names.len(), different.len())
    };
    // The first start after a crash also looks for what it has to write again: at the ends, which nobody states durable.
    let (read, files) = names(&node.disk);
    assert!(read < 2 * files, "{read} reads of {files} files");
    let reopened = Node::open(node.disk.clone(), 2, 512, false).unwrap();
    let (read, files) = names(&reopened.disk);
    assert_eq!(read, files);
}

#[test]
fn what_lies_behind_a_cut_is_never_looked_at_again() {
    let node = small_node();
    let mut disk = node.disk.clone();
    // Torn before the last group of core 0, whose last group stays whole behind the gap.
    let torn = node.groups[0][node.groups[0].len() - 2].clone();
    let stale = node.groups[0].last().unwrap().clone();
    assert!(node.promised(&node.disk)[0] < node.groups[0].len() as u64 - 1);
    disk.files.get_mut(&torn.0).unwrap()[torn.1 + 50] ^= 1;
    let reopened = Node::open(disk, 2, 512, true).unwrap();
    let state = reopened.snapshot();
    let mut disk = reopened.disk.clone();
    // The torn group heals, the stale one rots: neither counts any more.
    disk.files.get_mut(&torn.0).unwrap()[torn.1 + 50] ^= 1;
    assert_eq!(Node::open(disk.clone(), 4, 512, false).unwrap().snapshot(), state);
    disk.files.get_mut(&stale.0).unwrap()[stale.1 + 9] ^= 0xFF;
    assert_eq!(Node::open(disk, 4, 512, false).unwrap().snapshot(), state);
}

#[test]
fn a_crash_at_every_step_of_an_opening_changes_nothing() {
    let node = small_node();
    let state = node.snapshot();
    let recovery = node.disk.recover(&mut |_| Ok(())).unwrap();
    for cores in [1, 2, 4] {
        let (_, writes) = beginning(&node.disk, cores, &recovery);
        for done in 0..=writes.len() {
            let mut disk = node.disk.clone();
            disk.files.extend(writes[..done].iter().cloned());
            assert_eq!(Node::open(disk.clone(), 2, 512, false).unwrap().snapshot(), state, "{done} steps done");
            // The next file was begun: it is empty, or half of its header is there.
            let Some((name, bytes)) = writes.get(done).filter(|(name, _)| name.ends_with(".log")) else { continue };
            for len in [0, bytes.len() / 2] {
                disk.files.insert(name.clone(), bytes[..len].to_vec());
                let reopened = Node::open(disk.clone(), 2, 512, false).unwrap();
                assert_eq!(reopened.snapshot(), state, "{done} steps and {len} bytes done");
                assert_eq!(Node::open(reopened.disk, 1, 512, false).unwrap().snapshot(), state);
            }
        }
    }
}

#[test]
fn once_a_node_serves_a_missing_first_segment_is_damage() {
    let node = Node::open(Disk::default(), 2, 512, true).unwrap();
    let mut disk = node.disk.clone();
    disk.files.remove("00000001-001-0000000000.log");
    assert_eq!(judge(&node, &disk, &["00000001-001-0000000000.log"]), Ok(false));
}

#[test]
fn versions_go_on_ascending_after_an_opening() {
    let (mut rng, mut model) = (Rng::new(8), Model::default());
    let mut disk = Disk::default();
    for cores in [1, 3, 2] {
        let mut node = Node::open(disk, cores, 512, false).unwrap();
        for _ in 0..5 {
            let change = random_change(&mut rng, None, 10);
            let before = model.keys.get(&(0, b"key".to_vec())).map_or(0, |entry| entry.version);
            let core = node.change(&mut model, 0, b"key", &change);
            assert!(model.keys[&(0, b"key".to_vec())].version > before);
            node.seal(core);
        }
        disk = node.disk;
    }
}
