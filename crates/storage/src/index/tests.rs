//! The index against maps: growth, removal, walks, the hand.

use super::*;
use std::collections::BTreeMap;

use base::rng::Rng;

use crate::recency::Worth;

const NEW: Worth = Worth(0);

fn check_against(model: &BTreeMap<u32, u32>, index: &Index) {
    assert_eq!(index.len(), model.len());
    for (&position, &location) in model {
        let found = index.find(position, |candidate| candidate == Location(location));
        assert!(found.is_some(), "{position:#x} is missing");
    }
}

#[test]
fn agrees_with_a_map_through_growth_and_removal() {
    let mut rng = Rng::new(3);
    let (mut index, mut model) = (Index::default(), BTreeMap::new());
    for number in 0..40_000u32 {
        // A third of the entries fall into one slot, as hash tags make them.
        let position = if rng.chance(1, 3) { rng.next_u64() as u32 >> 8 } else { rng.next_u64() as u32 };
        if model.insert(position, number).is_none() {
            index.insert(position, Location(number), NEW);
        } else {
            let (place, _) = index.find(position, |_| true).expect("the model has it");
            index.relocate(place, Location(number));
        }
        if rng.chance(1, 4) {
            let position = *model.range(rng.next_u64() as u32..).next().map_or(&position, |(p, _)| p);
            if model.remove(&position).is_some() {
                let (place, _) = index.find(position, |_| true).expect("the model has it");
                index.remove(place);
            }
        }
    }
    check_against(&model, &index);
    assert!(index.find(0xDEAD_BEEF, |_| false).is_none());
}

#[test]
fn an_index_made_for_a_number_of_keys_holds_them_without_growing_and_others_too() {
    for count in [0, 1, 300, 5_000, 40_000] {
        let (mut rng, mut index, mut model) = (Rng::new(count), Index::default(), BTreeMap::new());
        index.expect(count as usize);
        let made_for = index.heap_bytes();
        for number in 0..count as u32 {
            let position = rng.next_u64() as u32;
            if model.insert(position, number).is_none() {
                index.insert(position, Location(number), NEW);
            } else {
                model.insert(position, index.find(position, |_| true).expect("the model has it").1.0);
            }
        }
        check_against(&model, &index);
        let bytes = index.heap_bytes();
        assert!(bytes < made_for + made_for / 8, "{count} keys: made for {made_for} bytes, has {bytes}");
        assert!(bytes < 1_000 + count as usize * 16, "{count} keys: {bytes} bytes");
        for number in 0..10_000 {
            // What nobody expected falls into one slot.
            let position = rng.next_u64() as u32 >> 8;
            if model.insert(position, number).is_none() {
                index.insert(position, Location(number), NEW);
            } else {
                model.insert(position, index.find(position, |_| true).expect("the model has it").1.0);
            }
        }
        check_against(&model, &index);
        let mut cursor = Some(0);
        let mut seen = 0;
        while let Some(from) = cursor {
            cursor = index.walk(from, |_, _| seen += 1);
        }
        assert_eq!(seen, model.len(), "{count}");
    }
}

#[test]
fn equal_positions_stay_apart() {
    let mut index = Index::default();
    (0..200).for_each(|number| index.insert(77, Location(number), NEW));
    for number in 0..200 {
        let (place, _) = index.find(77, |location| location == Location(number)).expect("inserted");
        index.remove(place);
    }
    assert!(index.is_empty());
}

#[test]
fn entries_that_share_many_leading_bits_have_room_after_every_split() {
    for slot in [0, 9, 127, 128, 255] {
        let (mut rng, mut index) = (Rng::new(slot), Index::default());
        for count in 0..600 {
            index.insert((slot as u32) << 24 | rng.next_u64() as u32 >> 8, Location(count), NEW);
        }
        (0..1000).for_each(|_| index.insert(rng.next_u64() as u32, Location(0), NEW));
        (0..5000).for_each(|_| index.insert((slot as u32) << 24 | rng.next_u64() as u32 >> 12, Location(0), NEW));
        assert_eq!(index.len(), 600 + 1000 + 5000);
    }
}

#[test]
fn a_walk_sees_everything_that_stays_while_segments_split() {
    let mut rng = Rng::new(9);
    let mut index = Index::default();
    let staying: Vec<u32> = (0..3000).map(|_| rng.next_u64() as u32).collect();
    staying.iter().for_each(|position| index.insert(*position, Location(*position), NEW));
    let (mut seen, mut cursor) = (std::collections::BTreeSet::new(), Some(0));
    while let Some(from) = cursor {
        cursor = index.walk(from, |position, _| {
            seen.insert(position);
        });
        assert!(cursor.is_none_or(|next| next > from), "a walk moves on");
        (0..20).for_each(|_| index.insert(rng.next_u64() as u32, Location(0), NEW));
    }
    assert!(staying.iter().all(|position| seen.contains(position)));
}
