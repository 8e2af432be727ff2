//! The heap against what was put in; pages that come and go.

use super::*;

#[test]
fn classes_ascend_and_fit() {
    for bytes in 1..=CLASS_BYTES_MAX {
        let class_index = class_of(bytes);
        assert!(class_bytes(class_index) >= bytes);
        assert!(class_index == 0 || class_bytes(class_index - 1) < bytes, "{bytes}");
        assert!(class_bytes(class_index).is_multiple_of(UNIT));
    }
    assert!(class_of(CLASS_BYTES_MAX) < CLASS_SINGLE as usize);
}

#[test]
fn slots_do_not_overlap_and_come_back() {
    let mut heap = Heap::default();
    let mut live = Vec::new();
    for round in 0..2000usize {
        let bytes = 1 + (round * 7919) % 20_000;
        let location = heap.allocate(bytes).expect("far below the limit");
        heap.bytes_mut(location)[..bytes].fill(round as u8);
        live.push((location, bytes, round as u8));
        if round % 3 == 0 {
            let (location, ..) = live.swap_remove(round % live.len());
            heap.free(location);
        }
    }
    for &(location, bytes, fill) in &live {
        assert!(heap.bytes(location)[..bytes].iter().all(|byte| *byte == fill));
    }
    for (location, ..) in live {
        heap.free(location);
    }
    assert_eq!(heap.used_bytes(), 0);
}

#[test]
fn pages_without_records_are_given_back_and_used_for_another_size() {
    let mut heap = Heap::default();
    let small: Vec<Location> = (0..10_000).map(|_| heap.allocate(100).expect("there is room")).collect();
    let reserved = heap.reserved_bytes();
    small.into_iter().for_each(|location| heap.free(location));
    assert!(heap.reserved_bytes() <= PAGE_BYTES_MAX, "{} of {reserved} left", heap.reserved_bytes());
    let free = heap.pages_free.len();
    (0..5_000).for_each(|_| assert!(heap.allocate(200).is_ok()));
    assert!(heap.pages_free.len() < free / 2, "numbers of pages are used again");
}

#[test]
fn compaction_empties_sparse_pages_and_moves_what_they_hold() {
    let (mut heap, mut live) = (Heap::default(), Vec::new());
    for number in 0..20_000u32 {
        let location = heap.allocate(104).expect("there is room");
        heap.bytes_mut(location)[..4].copy_from_slice(&number.to_le_bytes());
        live.push((location, number));
    }
    // Three of four go, wherever they lie.
    let mut kept = Vec::new();
    for (index, (location, number)) in live.into_iter().enumerate() {
        if index % 4 == 0 { kept.push((location, number)) } else { heap.free(location) }
    }
    let before = heap.reserved_bytes();
    let condemned = heap.condemn();
    assert!(!condemned.is_empty());
    for (location, _) in &mut kept {
        if heap.is_condemned(*location) {
            *location = heap.rescue(*location).expect("the others have room");
        }
    }
    heap.pardon(condemned);
    assert!(heap.reserved_bytes() * 3 < before, "{} of {before}", heap.reserved_bytes());
    assert!(heap.used_bytes() * 16 > heap.reserved_bytes() * 14);
    for (location, number) in &kept {
        assert_eq!(heap.bytes(*location)[..4], number.to_le_bytes());
    }
    kept.into_iter().for_each(|(location, _)| heap.free(location));
    assert_eq!(heap.used_bytes(), 0);
}

#[test]
fn a_pardoned_page_is_used_again() {
    let mut heap = Heap::default();
    let all: Vec<Location> = (0..5_000).map(|_| heap.allocate(64).expect("there is room")).collect();
    let (mut live, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(|location| location.0 % 3 == 0);
    gone.into_iter().for_each(|location| heap.free(location));
    let condemned = heap.condemn();
    assert!(!condemned.is_empty());
    // The class fills up before the walk comes.
    while heap.classes.iter().any(|class| class.free_slots > 0) {
        live.push(heap.allocate(64).expect("there is room"));
    }
    let stuck: Vec<Location> = live.iter().copied().filter(|location| heap.is_condemned(*location)).collect();
    assert!(stuck.iter().all(|location| heap.rescue(*location).is_none()));
    let reserved = heap.reserved_bytes();
    heap.pardon(condemned);
    assert!(heap.allocate(64).is_ok() && heap.reserved_bytes() == reserved, "there was room in the pardoned page");
    assert!(!stuck.iter().any(|location| heap.is_condemned(*location)));
}

#[test]
fn a_young_page_grows_and_its_records_stay_where_they_are() {
    for bytes in [24, 200, YOUNG_SLOT_BYTES_MAX] {
        let mut heap = Heap::default();
        let (slot_bytes, grown) = (class_bytes(class_of(bytes)), grown_bytes(class_bytes(class_of(bytes))));
        let lengths =
            |heap: &Heap| heap.pages.iter().map(|page| page.len()).filter(|bytes| *bytes > 0).collect::<Vec<_>>();
        let mut live: Vec<Location> = Vec::new();
        for number in 0..3 * (grown / slot_bytes) {
            let location = heap.allocate(bytes).expect("far below the limit");
            heap.bytes_mut(location)[..bytes].fill(number as u8);
            live.push(location);
            let lengths = lengths(&heap);
            let whole = lengths.iter().filter(|length| **length + slot_bytes > grown).count();
            assert!(lengths.len() - whole <= 1, "{bytes}: {lengths:?}, of which one is young");
            assert_eq!(lengths.iter().sum::<usize>(), heap.reserved_bytes());
        }
        for (number, location) in live.iter().enumerate() {
            assert!(heap.bytes(*location)[..bytes].iter().all(|byte| *byte == number as u8), "{bytes}: {number}");
        }
        assert!(lengths(&heap).iter().all(|length| grown - length <= grown / 8), "{bytes}: an eighth unused at most");
    }
}

#[test]
fn a_page_that_went_while_it_was_young_is_not_grown_for_another() {
    let mut heap = Heap::default();
    let first = heap.allocate(200).expect("far below the limit");
    heap.free(first);
    let other = heap.allocate(300).expect("far below the limit");
    assert_eq!(other.page(), first.page(), "its number is used again");
    let again = heap.allocate(200).expect("far below the limit");
    assert_ne!(again.page(), other.page());
}

#[test]
fn a_page_that_is_being_emptied_does_not_grow() {
    let mut heap = Heap::default();
    let mut live: Vec<Location> = (0..24).map(|_| heap.allocate(200).expect("far below the limit")).collect();
    let young = heap.classes[class_of(200)].young;
    assert_eq!(live[23].page(), young as usize);
    // Ten of the twenty in the whole page go, and three of the four in the young one.
    live.drain(10..23).for_each(|location| heap.free(location));
    let condemned = heap.condemn();
    assert!(heap.is_condemned(live[10]) && !heap.is_condemned(live[0]));
    let more: Vec<Location> = (0..11).map(|_| heap.allocate(200).expect("far below the limit")).collect();
    assert!(more.iter().all(|location| !heap.is_condemned(*location)), "one would be moved again, or lost");
    drop(condemned);
}

#[test]
fn pages_of_more_than_one_of_the_systems_are_full_of_slots() {
    let mut heap = Heap::default();
    for bytes in [24, 200, 1000, 1700] {
        let slot_bytes = class_bytes(class_of(bytes));
        (0..600).for_each(|_| assert!(heap.allocate(bytes).is_ok()));
        let pages =
            heap.of_pages.iter().zip(&heap.pages).filter(|(page, _)| usize::from(page.class) == class_of(bytes));
        let lengths: Vec<usize> =
            pages.map(|(_, page)| page.len()).filter(|length| *length > SYSTEM_PAGE_BYTES).collect();
        assert_eq!(lengths.is_empty(), bytes == 24, "{bytes}: there is something to see");
        for length in lengths {
            assert!(
                length.next_multiple_of(SYSTEM_PAGE_BYTES) - length < slot_bytes,
                "{length} of slots of {slot_bytes}"
            );
        }
    }
}
