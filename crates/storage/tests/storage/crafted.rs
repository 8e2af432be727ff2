//! Records that no store wrote, inside groups whose checksums hold: refused with file and offset, never believed.

use base::{LogOrdinal, SegmentNumber};
use storage::log::format::{FORMAT_VERSION, GROUP_HEADER_BYTES, GroupHeader, SegmentHeader, tag};
use storage::log::record::RecordForm;
use storage::log::{MANIFEST_FILE_NAME, Manifest};

use types::change::put_varint;

use crate::disk::Disk;
use crate::model::slot_of;
use crate::node::Node;

const KEY: &[u8] = b"key";
const PUT: u8 = 1;
const APPEND: u8 = 3;
const OVERWRITE: u8 = 4;
const EXPIRE: u8 = 5;
const LIST_PUSH: u8 = 7;
const LIST_POP: u8 = 8;
const LIST_SET: u8 = 9;
const LIST_INSERT: u8 = 10;

struct Record {
    tag: u8,
    flags: u8,
    slot: u16,
    version: u64,
    database: u8,
    body: Vec<u8>,
}

impl Record {
    fn new(tag: u8, version: u64, body: &[u8]) -> Record {
        Record { tag, flags: 0, slot: slot_of(KEY).number(), version, database: 0, body: body.to_vec() }
    }

    fn bytes(&self, form: RecordForm) -> Vec<u8> {
        let mut head = vec![self.tag, self.flags];
        head.extend_from_slice(&self.slot.to_le_bytes());
        match form {
            RecordForm::Fixed => {
                let bytes = (18 + KEY.len() + self.body.len()) as u32;
                head.splice(0..0, bytes.to_le_bytes());
                head.extend_from_slice(&(self.version | u64::from(self.database) << 48).to_le_bytes());
                head.extend_from_slice(&(KEY.len() as u16).to_le_bytes());
            }
            RecordForm::Short => {
                put_varint(&mut head, self.version);
                if self.database > 0 {
                    head[1] |= 32;
                    head.push(self.database);
                }
                put_varint(&mut head, KEY.len() as u64);
                let mut bytes = Vec::new();
                put_varint(&mut bytes, (head.len() + KEY.len() + self.body.len()) as u64);
                head.splice(0..0, bytes);
            }
        }
        [&head, KEY, &self.body].concat()
    }
}

/// A directory with one core's log of one group that holds `records`.
fn directory(form: RecordForm, records: &[Vec<u8>]) -> Disk {
    let store_id = [5; 16];
    let segment = SegmentHeader {
        store_id,
        incarnation: 1,
        core: 0,
        cores: 1,
        segment: SegmentNumber(0),
        first_ordinal: LogOrdinal(1),
        room_bytes: 0,
    };
    let body = records.concat();
    let mut group = [vec![0; GROUP_HEADER_BYTES], body.clone()].concat();
    let header = GroupHeader {
        record_bytes: body.len() as u32,
        records: records.len() as u32,
        ordinal: LogOrdinal(1),
        durable: LogOrdinal(0),
        identity: segment.identity(),
        unix_ms: 0,
        form,
    };
    header.seal(&mut group);
    let mut disk = Disk::default();
    let manifest = Manifest { store_id, incarnation: 1, cores: 1, serving: true, closed: Vec::new(), cuts: Vec::new() };
    disk.write(MANIFEST_FILE_NAME, 0, &manifest.encode());
    disk.write(&segment.file_name(), 0, &[segment.encode().to_vec(), group].concat());
    disk
}

/// The last of `records` is refused, at its own offset, for a reason that contains `why`.
fn refused(form: RecordForm, records: &[Vec<u8>], why: &str) {
    let Err(damage) = Node::open(directory(form, records), 2, 4096, false) else { panic!("believed: {why}") };
    let before: usize = records[..records.len() - 1].iter().map(Vec::len).sum();
    assert_eq!(damage.file, "00000001-000-0000000000.log");
    assert_eq!(damage.offset as usize, 64 + GROUP_HEADER_BYTES + before, "{damage}");
    assert!(damage.reason.contains(why), "{damage}, not: {why}");
}

fn put(form: RecordForm, version: u64) -> Vec<u8> {
    Record::new(PUT, version, b"\x01\x01value").bytes(form)
}

fn put_list(form: RecordForm, version: u64) -> Vec<u8> {
    let kind = types::Kind::List as u8;
    Record::new(PUT, version, &[kind, 1, 1, b'a', 1, b'b']).bytes(form)
}

#[test]
fn the_rig_writes_what_replay_believes() {
    for form in [RecordForm::Short, RecordForm::Fixed] {
        let string_kind = types::Kind::String as u8;
        assert_eq!(string_kind, *put(form, 1).iter().rev().nth(6).unwrap());
        let node = Node::open(directory(form, &[put(form, 1), put_list(form, 2)]), 2, 4096, false).unwrap();
        assert_eq!(node.snapshot().len(), 1);
        assert_eq!(FORMAT_VERSION, 8);
    }
}

/// A record that bears a checksum of its own and has no room for it.
fn sealed_without_room(form: RecordForm) -> Vec<u8> {
    match form {
        RecordForm::Fixed => [&[18, 0, 0, 0, tag::SEAL, 8][..], &[0; 12]].concat(),
        RecordForm::Short => vec![6, tag::SEAL, 8, 0, 0, 0, 0],
    }
}

#[test]
fn changes_that_do_not_fit_are_refused() {
    for form in [RecordForm::Short, RecordForm::Fixed] {
        let change = |tag, body: &[u8]| Record::new(tag, 9, body).bytes(form);
        let huge_offset = [0x80, 0x80, 0x80, 0x80, 0x80, 0x20, b'x']; // 1 << 40
        for (present, change) in [
            (None, change(APPEND, b"x")),
            (None, change(EXPIRE, &[0; 8])),
            (None, change(LIST_PUSH, &[0, 1, b'x'])),
            (Some(put(form, 1)), change(LIST_POP, &[0, 1])),
            (Some(put(form, 1)), change(LIST_PUSH, &[0, 1, b'x'])),
            (Some(put(form, 1)), change(OVERWRITE, &huge_offset)),
            (Some(put(form, 1)), change(OVERWRITE, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1, b'x'])),
            (Some(put_list(form, 1)), change(APPEND, b"x")),
            (Some(put_list(form, 1)), change(OVERWRITE, b"\0x")),
            (Some(put_list(form, 1)), change(LIST_POP, &[0, 3])),
            (Some(put_list(form, 1)), change(LIST_SET, &[2, b'x'])),
            (Some(put_list(form, 1)), change(LIST_INSERT, &[3, b'x'])),
            (None, change(PUT, &[types::Kind::List as u8, 1])),
            (None, change(PUT, &[types::Kind::List as u8, 1, 9, b'x'])),
        ] {
            refused(form, &present.into_iter().chain([change]).collect::<Vec<_>>(), "does not fit");
        }
    }
}

#[test]
fn records_that_make_no_sense_are_refused() {
    for form in [RecordForm::Short, RecordForm::Fixed] {
        refused(form, &[put(form, 5), put(form, 5)], "comes after");
        refused(form, &[put(form, 0)], "no version");
        refused(form, &[Record { slot: 16384, ..Record::new(PUT, 1, b"\x01\x01v") }.bytes(form)], "slot");
        refused(form, &[Record { database: 16, ..Record::new(PUT, 1, b"\x01\x01v") }.bytes(form)], "database 16");
        refused(form, &[Record { flags: 64, ..Record::new(PUT, 1, b"\x01\x01v") }.bytes(form)], "flags");
        refused(form, &[sealed_without_room(form)], "checksum");
        refused(form, &[Record::new(13, 1, b"").bytes(form)], "tag 13");
        refused(form, &[Record::new(PUT, 1, b"").bytes(form)], "malformed");
        refused(form, &[Record::new(tag::CLEAR, 0, b"").bytes(form)], "one byte");
        refused(form, &[Record::new(tag::CLEAR, 0, &[16]).bytes(form)], "database 16");
        refused(form, &[Record::new(tag::UNIT, 0, &[0; 13]).bytes(form)], "mark");
        refused(form, &[Record::new(tag::PIECE, 0, b"part").bytes(form), put(form, 1)], "pieces");
    }
}

#[test]
fn long_values_without_their_bytes_are_refused() {
    for form in [RecordForm::Short, RecordForm::Fixed] {
        let block = |offset: u64, bytes: &[u8]| {
            Record::new(tag::BLOCK, 0, &[&7u64.to_le_bytes()[..], &offset.to_le_bytes(), bytes].concat()).bytes(form)
        };
        let staged = |tag: u8, head: &[u8], len: u64| {
            let body = [head, &7u64.to_le_bytes(), &len.to_le_bytes()].concat();
            Record { flags: 4, ..Record::new(tag, 1, &body) }.bytes(form)
        };
        let put = |len: u64| staged(PUT, b"\x01\x01", len);
        let whole = Node::open(directory(form, &[block(0, b"abc"), block(3, b"de"), put(5)]), 2, 4096, false).unwrap();
        assert_eq!(whole.snapshot().len(), 1);
        refused(form, &[put(5)], "0 bytes in the log");
        refused(form, &[block(0, b"abc"), put(5)], "3 bytes in the log");
        refused(form, &[block(0, b"abc"), block(4, b"e"), put(5)], "0 bytes in the log");
        refused(form, &[block(3, b"de"), put(5)], "0 bytes in the log");
        let again = |offset: u64, bytes: &[u8]| block(1 << 63 | offset, bytes);
        let value = |records: &[Vec<u8>]| {
            let whole = Node::open(directory(form, records), 2, 4096, false).unwrap();
            let value = whole.snapshot().into_values().next().unwrap();
            format!("{value:?}")
        };
        let plain = value(&[block(0, b"abxyz"), put(5)]);
        assert_eq!(value(&[block(0, b"abc"), again(2, b"xyz"), put(5)]), plain);
        assert_eq!(value(&[block(0, b"abz"), again(2, b"xy"), block(4, b"z"), put(5)]), plain);
        refused(form, &[block(0, b"abc"), again(4, b"xyz"), put(7)], "0 bytes in the log");
        refused(form, &[again(0, b"abc"), put(3)], "0 bytes in the log");
        refused(form, &[again(0, b"abc"), block(3, b"xyz"), put(3)], "0 bytes in the log");
        let list = |len| staged(PUT, b"\x02\x01", len);
        let whole =
            Node::open(directory(form, &[block(0, b"\x01a\x02b"), block(4, b"c\x00"), list(6)]), 2, 4096, false)
                .unwrap();
        assert_eq!(whole.snapshot().len(), 1);
        refused(form, &[block(0, b"\x01a\x02b"), list(6)], "4 bytes in the log");
        refused(form, &[block(0, b"\x01a\x02b"), list(4)], "does not fit");
        refused(form, &[block(0, b"abc"), staged(PUT, b"\x01\x01x", 3)], "only a whole value");
        refused(form, &[block(0, b"abc"), staged(APPEND, b"", 3)], "only a whole value");
        refused(form, &[block(0, b"abc"), staged(OVERWRITE, b"\x00", 3)], "does not fit");
        refused(form, &[block(0, b"abc"), staged(OVERWRITE, b"\x00x", 3)], "only a whole value");
        refused(
            form,
            &[Record { flags: 4, ..Record::new(PUT, 1, b"\x01\x01") }.bytes(form)],
            "shorter than its reference",
        );
        refused(form, &[Record::new(tag::BLOCK, 0, &[0; 15]).bytes(form)], "shorter than its head");
    }
}

#[test]
fn impossible_lengths_are_refused() {
    for bytes in [0u32, 17, 400, u32::MAX] {
        let mut record = put(RecordForm::Fixed, 1);
        record[..4].copy_from_slice(&bytes.to_le_bytes());
        refused(RecordForm::Fixed, &[put(RecordForm::Fixed, 1), record], "length");
    }
    let above_all = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    for length in [&[0][..], &[5], &[100], &[0xff, 0xff, 0xff, 0xff, 0x0f], &above_all, &[0xff; 12]] {
        let record = [length, &put(RecordForm::Short, 1)[1..]].concat();
        refused(RecordForm::Short, &[put(RecordForm::Short, 1), record], "length");
    }
    for (form, key_bytes_at, end) in [(RecordForm::Fixed, 16, [1, 2, 3]), (RecordForm::Short, 6, [9, 2, 3])] {
        let mut record = put(form, 2);
        record[key_bytes_at] = 99;
        refused(form, &[put(form, 1), record], "longer than the record");
        refused(form, &[put(form, 1), end.to_vec()], "length");
    }
    let above = Record::new(PUT, 1 << 48, b"\x01\x01value").bytes(RecordForm::Short);
    refused(RecordForm::Short, &[above], "above all");
}
