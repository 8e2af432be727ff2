//! The book is held against histories that were tampered with.

#![allow(clippy::unwrap_used)]
use super::{Book, Habits, Kind, State, Unit};

fn text(value: &str) -> State {
    State::Text(value.as_bytes().to_vec())
}

fn book() -> Book {
    book_with(Habits::default())
}

fn book_with(habits: Habits) -> Book {
    Book::new(0, ["a", "b", "c"].into_iter().map(|name| (name.as_bytes().to_vec(), Kind::Text)), habits)
}

/// Sends one unit that gives the keys these values; an empty one removes.
fn send(book: &mut Book, values: &[(usize, &str)]) {
    let state = |value: &str| if value.is_empty() { State::Absent } else { text(value) };
    let changes = values.iter().map(|(key, value)| (*key, state(value))).collect();
    book.send(Unit { words: vec![b"MSET".to_vec()], changes, reply: b"+OK\r\n".to_vec() });
}

fn acknowledge(book: &mut Book, units: usize) {
    for _ in 0..units {
        book.acknowledge(b"+OK\r\n").unwrap();
    }
}

#[test]
fn what_was_sent_may_be_there_and_what_was_acknowledged_must() {
    let mut book = book();
    send(&mut book, &[(0, "1")]);
    send(&mut book, &[(0, "2")]);
    send(&mut book, &[(0, "3")]);
    acknowledge(&mut book, 2);
    let judge = |value: State| book.judge(&[value, State::Absent, State::Absent]);
    assert!(judge(text("2")).is_empty() && judge(text("3")).is_empty());
    let lost = judge(text("1"));
    assert!(lost[0].contains("a holds 1; last acknowledged was unit 2: 2; last sent was unit 3: 3"), "{lost:?}");
    assert_eq!(judge(State::Absent).len(), 1, "everything is lost");
    assert_eq!(judge(text("4")).len(), 1, "nobody sent it");
    assert_eq!(book.judge(&[text("2"), text("2"), State::Absent]).len(), 1, "in a key of which nobody knows it");
}

#[test]
fn a_unit_is_seen_in_all_its_keys_or_in_none() {
    let mut book = book();
    send(&mut book, &[(0, "a1"), (1, "b1"), (2, "c1")]);
    acknowledge(&mut book, 1);
    send(&mut book, &[(0, "a2"), (1, "b2")]);
    send(&mut book, &[(1, "b3"), (2, "c3")]);
    let judge = |a: &str, b: &str, c: &str| book.judge(&[text(a), text(b), text(c)]);
    assert!(judge("a1", "b1", "c1").is_empty());
    assert!(judge("a2", "b2", "c1").is_empty());
    assert!(judge("a2", "b3", "c3").is_empty());
    let torn = judge("a2", "b1", "c1");
    assert!(torn[0].contains("unit 2, MSET of a b, is seen in a and not in b"), "{torn:?}");
    assert_eq!(judge("a1", "b3", "c3").len(), 1, "a later unit of b hides the missing half of unit 2 from b alone");
    assert_eq!(judge("a2", "b3", "c1").len(), 1);
}

#[test]
fn a_state_that_came_twice_is_taken_for_the_one_that_fits() {
    let mut book = book();
    send(&mut book, &[(0, "1")]);
    send(&mut book, &[(0, ""), (1, "x")]);
    // Key a held nothing at first and holds nothing after unit 2: key b tells which it is.
    assert!(book.judge(&[State::Absent, text("x"), State::Absent]).is_empty());
    assert!(book.judge(&[State::Absent, State::Absent, State::Absent]).is_empty());
    assert_eq!(book.judge(&[text("1"), text("x"), State::Absent]).len(), 1);
}

#[test]
fn what_a_restart_did_not_show_must_not_come_back() {
    let mut book = book();
    send(&mut book, &[(0, "1")]);
    send(&mut book, &[(0, "2")]);
    book.settle(vec![text("1"), State::Absent, State::Absent]);
    assert_eq!(book.present(), 1);
    assert_eq!(book.judge(&[text("2"), State::Absent, State::Absent]).len(), 1);
    assert_eq!(book.next_number(), 3, "no number is given twice");
}

#[test]
fn a_wrong_reply_is_told_with_its_unit() {
    let mut book = book();
    send(&mut book, &[(0, "1")]);
    let told = book.acknowledge(b":1\r\n").unwrap_err();
    assert!(told.contains("unit 1, MSET of a, answers :1"), "{told}");
    assert!(book.acknowledge(b"+OK\r\n").is_err(), "nobody waits for it");
}

#[test]
fn what_is_promised_later_may_be_gone_until_then_and_is_still_whole() {
    let mut book = book_with(Habits { promises_later: true, has_order: false });
    send(&mut book, &[(0, "1")]);
    send(&mut book, &[(0, "2"), (1, "2")]);
    send(&mut book, &[(0, "3")]);
    acknowledge(&mut book, 3);
    book.promise(1);
    assert!(!book.judge(&[text(""), State::Absent, State::Absent]).is_empty(), "unit 1 is promised");
    assert!(book.judge(&[text("1"), State::Absent, State::Absent]).is_empty(), "the others are not");
    assert!(!book.judge(&[text("2"), State::Absent, State::Absent]).is_empty(), "half a unit");
    book.promise(u64::MAX);
    assert!(!book.judge(&[text("2"), text("2"), State::Absent]).is_empty(), "now they are");
    assert!(book.judge(&[text("3"), text("2"), State::Absent]).is_empty());
}

#[test]
fn keys_of_one_core_show_no_hole() {
    let mut book = book_with(Habits { promises_later: true, has_order: true });
    for (key, value) in [(0, "1"), (1, "2"), (0, "3"), (2, "4")] {
        send(&mut book, &[(key, value)]);
    }
    acknowledge(&mut book, 4);
    for found in [["", "", ""], ["1", "", ""], ["1", "2", ""], ["3", "2", ""], ["3", "2", "4"]] {
        let found = found.map(|value| if value.is_empty() { State::Absent } else { text(value) });
        assert!(book.judge(&found).is_empty(), "{found:?}");
    }
    for found in [["", "2", ""], ["3", "", ""], ["1", "2", "4"], ["", "", "4"]] {
        let found = found.map(|value| if value.is_empty() { State::Absent } else { text(value) });
        assert!(book.judge(&found)[0].starts_with("order: "), "{found:?}");
    }
}
