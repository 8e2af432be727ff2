//! Target `changes`: what a change's bytes decode to is performed as a naive model performs it, or refused.

use std::collections::VecDeque;

use base::{CoreId, Database, Slot, SlotGroupId, Version};
use storage::{SlotGroup, Store, Value};
use types::{Change, End, Expiry, Kind, List};

use crate::source::Source;

/// Most changes of one input.
const CHANGES_MAX: usize = 200;
/// Longest string that is grown by an offset.
const OFFSET_MAX: u64 = 1 << 16;

/// What the key should hold.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    Text(Vec<u8>),
    Elements(VecDeque<Vec<u8>>),
}

/// A key of the naive model.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    held: Option<Held>,
    expire_at_ms: Option<u64>,
}

/// Input: changes, each a tag and a body, or its fields.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let slot = Slot::wrapping(0);
    let mut store = Store::new(CoreId(0), 1, false);
    let group = SlotGroupId::new(0).expect("the first group exists");
    store.insert_group(Box::new(SlotGroup::new(group, CoreId(0))));
    let mut model = Model::default();
    for number in 1..=CHANGES_MAX as u64 {
        if source.is_empty() {
            break;
        }
        let (tag, body) = encoded_change(&mut source);
        let mut elements = Vec::new();
        let Ok(change) = Change::decode(tag, &body, &mut elements) else { continue };
        check_round_trip(&change);
        if matches!(change, Change::Overwrite { offset, .. } if offset > OFFSET_MAX) {
            continue;
        }
        let key = store.key(b"key", Database(0), slot);
        if store.replay(&key, &change, Version(number), false).is_ok() {
            model.perform(&change);
        }
        model.compare(&mut store, slot);
    }
}

/// A change as it lies on disk: any bytes, or fields that fit each other.
fn encoded_change(source: &mut Source<'_>) -> (u8, Vec<u8>) {
    let choice = source.byte();
    if choice >= 64 {
        return (choice % 16, source.string().to_vec());
    }
    let end = source.pick(&[End::Head, End::Tail]);
    let elements: Vec<Vec<u8>> = (0..source.below(4)).map(|_| element(source)).collect();
    let elements: Vec<&[u8]> = elements.iter().map(Vec::as_slice).collect();
    let first = elements.first().copied().unwrap_or_default();
    let index = u64::from(source.byte());
    let expiry = [Expiry::Keep, Expiry::Clear, Expiry::At(index + 1)][source.below(3)];
    let list: Vec<u8> = encode_list(&elements);
    let change = match choice % 16 {
        1 => Change::Put { kind: Kind::String, value: first, expiry },
        2 => Change::Put { kind: Kind::List, value: &list, expiry },
        3 => Change::Remove,
        4 => Change::Append { bytes: first },
        5 => Change::Overwrite { offset: index * 16, bytes: first },
        6 => Change::Expire { at_ms: index },
        7 => Change::Persist,
        8 => Change::ListPop { end, count: index % 8 },
        9 => Change::ListSet { index, element: first },
        10 => Change::ListInsert { index, element: first },
        11 => Change::ListRemove { count: index as i64 - 128, element: first },
        12 => Change::ListTrim { start: index % 16, length: index / 4 },
        _ => Change::ListPush { end, elements: &elements },
    };
    (change.tag(), encode(&change))
}

/// Short ones that are often equal, and long ones around the bounds of a list's chunks.
fn element(source: &mut Source<'_>) -> Vec<u8> {
    match source.byte() {
        choice @ 0..128 => vec![b'a' + choice % 3; usize::from(choice) % 5],
        choice @ 128..200 => vec![choice; usize::from(source.short()) % 5000],
        _ => source.string().to_vec(),
    }
}

fn encode_list(elements: &[&[u8]]) -> Vec<u8> {
    let mut list = List::new();
    elements.iter().for_each(|element| list.push(End::Tail, element));
    let mut bytes = Vec::new();
    list.encode(&mut bytes);
    bytes
}

fn encode(change: &Change<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    let tail = change.encode_head(&mut body);
    body.extend_from_slice(tail);
    body
}

fn check_round_trip(change: &Change<'_>) {
    let body = encode(change);
    let mut elements = Vec::new();
    assert_eq!(Change::decode(change.tag(), &body, &mut elements).as_ref(), Ok(change));
}

impl Model {
    fn perform(&mut self, change: &Change<'_>) {
        match *change {
            Change::Put { kind, value, expiry } => {
                self.held = Some(match kind {
                    Kind::String => Held::Text(value.to_vec()),
                    Kind::List => {
                        let list = List::decode(value).expect("replay looked at it");
                        Held::Elements(list.iter_from(0).map(<[u8]>::to_vec).collect())
                    }
                });
                match expiry {
                    Expiry::Keep => {}
                    Expiry::Clear => self.expire_at_ms = None,
                    Expiry::At(at_ms) => self.expire_at_ms = Some(at_ms),
                }
            }
            Change::Remove => *self = Model::default(),
            Change::Expire { at_ms } => self.expire_at_ms = Some(at_ms),
            Change::Persist => self.expire_at_ms = None,
            _ => self.perform_in_place(change),
        }
        if matches!(&self.held, Some(Held::Elements(elements)) if elements.is_empty()) {
            *self = Model::default();
        }
    }

    fn perform_in_place(&mut self, change: &Change<'_>) {
        match self.held.as_mut().expect("replay refuses to change what is not there") {
            Held::Text(text) => match *change {
                Change::Append { bytes } => text.extend_from_slice(bytes),
                Change::Overwrite { offset, bytes } => {
                    let (start, end) = (offset as usize, offset as usize + bytes.len());
                    text.resize(text.len().max(end), 0);
                    text[start..end].copy_from_slice(bytes);
                }
                _ => panic!("replay performed {change:?} on a string"),
            },
            Held::Elements(elements) => change_elements(elements, change),
        }
    }

    fn compare(&self, store: &mut Store, slot: Slot) {
        let key = store.key(b"key", Database(0), slot);
        let group = store.group(slot.group()).expect("the group is here");
        let record = group.find(&key).map(|found| group.record(found));
        let held = record.map(|record| match record.value {
            Value::String { text, .. } => Held::Text(text.whole().into_owned()),
            Value::Cold => unreachable!("nothing leaves memory here"),
            Value::List(list) => {
                check_list(list);
                Held::Elements(list.iter_from(0).map(<[u8]>::to_vec).collect())
            }
        });
        assert_eq!(held, self.held);
        assert_eq!(record.and_then(|record| record.expire_at_ms), self.expire_at_ms);
    }
}

fn change_elements(elements: &mut VecDeque<Vec<u8>>, change: &Change<'_>) {
    match *change {
        Change::ListPush { end: End::Head, elements: new } => new.iter().for_each(|e| elements.push_front(e.to_vec())),
        Change::ListPush { end: End::Tail, elements: new } => new.iter().for_each(|e| elements.push_back(e.to_vec())),
        Change::ListPop { end: End::Head, count } => drop(elements.drain(..count as usize)),
        Change::ListPop { end: End::Tail, count } => elements.truncate(elements.len() - count as usize),
        Change::ListSet { index, element } => elements[index as usize] = element.to_vec(),
        Change::ListInsert { index, element } => elements.insert(index as usize, element.to_vec()),
        Change::ListRemove { count, element } => {
            let mut left = if count == 0 { u64::MAX } else { count.unsigned_abs() };
            let mut order: Vec<usize> = (0..elements.len()).collect();
            if count < 0 {
                order.reverse();
            }
            let mut goes = vec![false; elements.len()];
            for place in order {
                goes[place] = left > 0 && elements[place] == element;
                left -= u64::from(goes[place]);
            }
            let mut goes = goes.into_iter();
            elements.retain(|_| !goes.next().expect("one verdict per element"));
        }
        Change::ListTrim { start, length } => {
            let start = usize::try_from(start).unwrap_or(usize::MAX).min(elements.len());
            elements.drain(..start);
            elements.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        }
        _ => panic!("replay performed {change:?} on a list"),
    }
}

/// What holds for every list, whatever happened to it.
fn check_list(list: &List) {
    let mut encoded = Vec::new();
    list.encode(&mut encoded);
    assert_eq!(List::decode(&encoded).as_ref(), Ok(list));
    let forward: Vec<&[u8]> = list.iter_from(0).collect();
    let mut backward: Vec<&[u8]> = list.iter_backward().collect();
    backward.reverse();
    assert_eq!(forward, backward);
    assert_eq!(forward.len(), list.len());
    assert!((0..list.len()).all(|index| list.get(index) == Some(forward[index])));
}
