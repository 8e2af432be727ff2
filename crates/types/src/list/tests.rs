//! Lists against their model, a double-ended queue of byte strings.

use proptest::prelude::*;
use std::collections::VecDeque;

use super::*;
use crate::change::put_varint;

fn list_of(elements: &[&str]) -> List {
    let mut list = List::new();
    for element in elements {
        list.push(End::Tail, element.as_bytes());
    }
    list
}

#[test]
fn canonical_encoding_round_trips() {
    let list = list_of(&["a", "", "long element with spaces"]);
    let mut bytes = Vec::new();
    list.encode(&mut bytes);
    assert_eq!(&bytes[..3], b"\x01a\x00");
    assert_eq!(List::decode(&bytes), Ok(list));
    assert_eq!(List::decode(&[5, b'x']), Err(ChangeError::Truncated));
}

#[test]
fn removal_counts_from_either_end() {
    let mut list = list_of(&["x", "a", "x", "b", "x"]);
    assert_eq!(list.remove_equal(-2, b"x", &mut List::new()), 2);
    assert_eq!(list, list_of(&["x", "a", "b"]));
    assert_eq!(list.remove_equal(0, b"x", &mut List::new()), 1);
    assert_eq!(list, list_of(&["a", "b"]));
}

#[test]
fn trim_keeps_a_window() {
    let mut list = list_of(&["a", "b", "c", "d"]);
    list.trim(1, 2, &mut List::new());
    assert_eq!(list, list_of(&["b", "c"]));
    list.trim(5, 2, &mut List::new());
    assert!(list.is_empty());
    assert_eq!(list.heap_bytes(), 0);
}

#[test]
fn what_goes_in_whole_chunks_is_handed_over_and_is_nearly_all_of_it() {
    let build = || {
        let mut list = List::new();
        (0..100_000u32).for_each(|number| list.push(End::Tail, if number % 1000 < 990 { b"gone" } else { b"stays" }));
        list
    };
    let (mut list, mut cut) = (build(), List::new());
    let before = list.heap_bytes();
    list.trim(40_000, 100, &mut cut);
    assert_consistent(&list);
    assert_consistent(&cut);
    assert!(before - cut.heap_bytes() < 20_000 && list.len() == 100, "{before} bytes, of which {}", cut.heap_bytes());

    let (mut list, mut cut) = (build(), List::new());
    assert_eq!(list.remove_equal(0, b"gone", &mut cut), 99_000);
    assert_consistent(&list);
    assert_consistent(&cut);
    // Most chunks have some that stay.
    assert!(
        cut.heap_bytes() > before / 8 && list.heap_bytes() < 40_000,
        "{} and {}",
        cut.heap_bytes(),
        list.heap_bytes()
    );
}

#[test]
fn a_queue_stays_as_small_as_its_content() {
    for (to, from) in [(End::Tail, End::Head), (End::Head, End::Tail)] {
        let mut list = list_of(&["first", "second"]);
        for number in 0..100_000u32 {
            list.push(to, &number.to_le_bytes());
            assert!(list.pop(from).is_some());
        }
        assert_eq!(list.len(), 2);
        assert!(list.heap_bytes() < 16 << 10, "{}", list.heap_bytes());
    }
}

#[test]
fn insertions_in_one_place_do_not_shred_the_list() {
    let mut list = list_of(&["head", "tail"]);
    for _ in 0..10_000 {
        list.insert(1, b"0123456789");
    }
    assert_eq!(list.len(), 10_002);
    assert!(list.heap_bytes() < 600_000, "{}", list.heap_bytes());
}

/// What can be done to a list; indexes are taken modulo the length.
#[derive(Clone, Debug)]
enum Step {
    Push(bool, Vec<u8>),
    Pop(bool),
    Cut(bool, usize),
    Set(usize, Vec<u8>),
    Insert(usize, Vec<u8>),
    RemoveEqual(i64, Vec<u8>),
    Trim(usize, usize),
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(0u8..3, 0..3),
        2 => (0u8..3, 0usize..200).prop_map(|(byte, len)| vec![byte; len]),
        1 => (0u8..3, 1000usize..6000).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<bool>(), element()).prop_map(|(head, element)| Step::Push(head, element)),
        3 => any::<bool>().prop_map(Step::Pop),
        1 => (any::<bool>(), 0usize..20).prop_map(|(head, count)| Step::Cut(head, count)),
        3 => (any::<usize>(), element()).prop_map(|(index, element)| Step::Set(index, element)),
        4 => (any::<usize>(), element()).prop_map(|(index, element)| Step::Insert(index, element)),
        1 => (-3i64..4, element()).prop_map(|(count, element)| Step::RemoveEqual(count, element)),
        1 => (0usize..10, 0usize..200).prop_map(|(start, length)| Step::Trim(start, length)),
    ]
}

/// What it says of itself is what its chunks say, none of which is empty.
fn assert_consistent(list: &List) {
    match &list.form {
        Form::Short(span) => span.assert_consistent(),
        Form::Long(rope) => rope.assert_consistent(),
    }
}

fn end_of(head: bool) -> End {
    if head { End::Head } else { End::Tail }
}

fn perform(list: &mut List, model: &mut VecDeque<Vec<u8>>, step: &Step) {
    match step {
        Step::Push(head, element) => {
            list.push(end_of(*head), element);
            if *head { model.push_front(element.clone()) } else { model.push_back(element.clone()) }
        }
        Step::Pop(head) => {
            let expected = if *head { model.pop_front() } else { model.pop_back() };
            assert_eq!(list.pop(end_of(*head)).map(Vec::from), expected);
        }
        Step::Cut(head, count) => {
            let cut = list.cut_end(end_of(*head), *count);
            let kept = model.len().saturating_sub(*count);
            let gone = if *head { model.drain(..model.len() - kept) } else { model.drain(kept..) };
            let gone: Vec<Vec<u8>> = gone.collect();
            let from = if *head { 0 } else { gone.len() - cut.len() };
            assert!(cut.iter_from(0).eq(gone[from..][..cut.len()].iter().map(Vec::as_slice)));
            assert_consistent(&cut);
        }
        Step::Set(index, element) if !model.is_empty() => {
            list.set(index % model.len(), element);
            let index = index % model.len();
            model[index] = element.clone();
        }
        Step::Set(..) => {}
        Step::Insert(index, element) => {
            let index = index % (model.len() + 1);
            list.insert(index, element);
            model.insert(index, element.clone());
        }
        Step::RemoveEqual(count, element) => {
            let (mut cut, len) = (List::new(), list.len());
            assert_eq!(list.remove_equal(*count, element, &mut cut), remove_equal(model, *count, element));
            assert!(cut.len() <= len - list.len() && cut.iter_from(0).all(|gone| gone == element));
            assert_consistent(&cut);
        }
        Step::Trim(start, length) => {
            let (mut cut, len) = (List::new(), list.len());
            list.trim(*start, *length, &mut cut);
            assert!(cut.len() <= len - list.len());
            assert_consistent(&cut);
            model.truncate(start + length);
            model.drain(..(*start).min(model.len()));
        }
    }
}

fn remove_equal(model: &mut VecDeque<Vec<u8>>, count: i64, element: &[u8]) -> usize {
    let most = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
    let mut indexes: Vec<usize> = (0..model.len()).filter(|index| model[*index] == element).collect();
    if count < 0 {
        indexes.reverse();
    }
    indexes.truncate(most);
    indexes.sort_unstable();
    for index in indexes.iter().rev() {
        model.remove(*index);
    }
    indexes.len()
}

#[test]
fn a_snapshot_of_a_long_list_is_taken_in_pieces_of_any_length() {
    let mut list = List::new();
    (0..4u8).for_each(|number| list.push(End::Tail, &vec![number; 300_000]));
    (0..100_000u32).for_each(|number| list.push(End::Tail, &number.to_le_bytes()));
    assert_consistent(&list);
    let mut expected = Vec::new();
    list.encode(&mut expected);
    let mut snapshot = ListSnapshot::of(&list);
    let last = list.get(100_003).unwrap().as_ptr();
    list.pop(End::Head).unwrap();
    list.push(End::Tail, b"behind");
    list.set(50_000, b"another");
    assert_ne!(list.get(100_002).unwrap().as_ptr(), last, "the last span is a copy");
    let mut piece = Vec::new();
    snapshot.take(300_000, &mut piece);
    assert_eq!(piece.len(), 300_000);
    while !snapshot.is_empty() {
        let before = piece.len();
        snapshot.take(100_000, &mut piece);
        assert!(piece.len() > before && piece.len() <= before + 100_000, "{before} bytes, then {}", piece.len());
    }
    assert!(piece == expected, "it is not what the list was");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_snapshot_stays_what_the_list_was(
        before in prop::collection::vec(step(), 1..100),
        after in prop::collection::vec(step(), 1..100),
        bytes in 1usize..6000,
        taken in 0usize..6,
    ) {
        let (mut list, mut model) = (List::new(), VecDeque::new());
        before.iter().for_each(|step| perform(&mut list, &mut model, step));
        let (mut expected, mut encoded) = (Vec::new(), Vec::new());
        list.encode(&mut expected);
        let mut snapshot = ListSnapshot::of(&list);
        for (number, step) in after.iter().enumerate() {
            perform(&mut list, &mut model, step);
            assert_consistent(&list);
            if number < taken {
                snapshot.take(bytes, &mut encoded);
            }
        }
        prop_assert!(list.iter_from(0).eq(model.iter().map(Vec::as_slice)));
        prop_assert_eq!(&expected[..encoded.len()], &encoded[..]);
        while !snapshot.is_empty() {
            snapshot.take(bytes, &mut encoded);
        }
        prop_assert_eq!(encoded, expected);
    }

    #[test]
    fn behaves_like_a_queue_of_strings(steps in prop::collection::vec(step(), 1..200), start in any::<usize>()) {
        let (mut list, mut model) = (List::new(), VecDeque::new());
        for step in &steps {
            perform(&mut list, &mut model, step);
            prop_assert_eq!(list.len(), model.len());
        }
        let start = start % (model.len() + 1);
        prop_assert!(list.iter_from(start).eq(model.range(start..).map(Vec::as_slice)));
        prop_assert!(list.iter_backward().eq(model.iter().rev().map(Vec::as_slice)));
        for index in 0..=model.len() {
            prop_assert_eq!(list.get(index), model.get(index).map(Vec::as_slice));
        }
        let mut expected = Vec::new();
        for element in &model {
            put_varint(&mut expected, element.len() as u64);
            expected.extend_from_slice(element);
        }
        let mut encoded = Vec::new();
        list.encode(&mut encoded);
        prop_assert_eq!(&encoded, &expected);
        prop_assert_eq!(List::decode(&encoded), Ok(list.clone()));
        assert_consistent(&list);
    }
}
