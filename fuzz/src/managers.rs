//! Target `managers`: any bytes are refused or read, and what is read is written again as it was.

use base::checksum::crc32c;
use consensus::Stored;
use consensus::format::entry::EntryId;
use consensus::format::frame::{self, Body};
use consensus::format::log_file::{Group, LogFile, LogWriter, Owner, Record, read};
use consensus::format::snapshot_file::Snapshot;
use manager::identity::Identity;
use manager::message::Message;
use wire::frame::{FRAME_HEAD_BYTES, Opened, open};

const OWNER: Owner = Owner { cluster: [7; 16], manager: 1 };
const ROOM: u64 = 4096;
/// Behind everything: whatever is purged is in the snapshot.
const LAST: EntryId = EntryId { term: u64::MAX, index: u64::MAX };

/// Begins the file `cluster`: its magic and its format.
const IDENTITY_HEAD: &[u8; 12] = b"zerohopC\x01\0\0\0";

/// Input: a frame; a message; a file; what stands behind a right head, as the records of a group, as a snapshot and as the file
/// `cluster`.
pub fn run(data: &[u8]) {
    frames(data);
    message(data);
    std::hint::black_box(Identity::decode(data)).ok();
    std::hint::black_box(read(data, &OWNER)).ok();
    std::hint::black_box(Snapshot::decode(data, &OWNER.cluster)).ok();
    records(data);
    snapshot(data);
    identity(data);
}

fn frames(data: &[u8]) {
    let again = match frame::decode(data) {
        None => return,
        Some((number, Body::Question(question))) => frame::encode_question(number, &question),
        Some((number, Body::Answer(answer))) => frame::encode_answer(number, &answer),
    };
    assert_eq!(again, data);
}

/// `data`: a kind of message, and its body.
fn message(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else { return };
    let Ok(message) = Message::decode(*kind, body) else { return };
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    let Opened::Whole { kind, body, bytes: length } = open(&bytes, bytes.len()) else {
        panic!("{message:?} is no frame")
    };
    assert_eq!((Message::decode(kind, body), length), (Ok(message), FRAME_HEAD_BYTES + body.len()));
}

/// `data`: how many records, and their bytes.
fn records(data: &[u8]) {
    let Some((count, body)) = data.split_first() else { return };
    let (mut writer, mut file) = LogWriter::begin(&OWNER, 1, Group::default(), ROOM);
    let (begin, sealed) = (writer.end(), harmed(&mut writer.clone(), *count, body));
    file[begin as usize..][..sealed.len()].copy_from_slice(&sealed);
    let Ok(found) = read(&file, &OWNER) else { return };
    let mut group = Group::default();
    found.records.iter().for_each(|(_, record)| group.add(record));
    if !group.is_empty() {
        assert_eq!(writer.seal(group, begin).1, sealed, "there is one way to say a thing");
    }
    condensed(found);
}

/// A group whose checksum is right.
fn harmed(writer: &mut LogWriter, count: u8, body: &[u8]) -> Vec<u8> {
    let mut template = Group::default();
    template.add(&Record::Agreed(None));
    let synced = writer.end();
    let mut bytes = writer.seal(template, synced).1;
    bytes.truncate(40);
    bytes[8..12].copy_from_slice(&(body.len() as u32).to_le_bytes());
    bytes[12..16].copy_from_slice(&u32::from(count).to_le_bytes());
    bytes.extend_from_slice(body);
    let crc = crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// A log that is believed says the same when it is written anew.
fn condensed(found: LogFile) {
    let snapshot = Snapshot { last: Some(LAST), voters: Default::default(), table: Vec::new() };
    let Ok(stored) = Stored::read(found, Some(&snapshot)) else { return };
    let (_, bytes) = LogWriter::begin(&OWNER, 2, stored.condensed(), ROOM);
    let again = read(&bytes, &OWNER).expect("what was just written is whole");
    assert_eq!(Stored::read(again, Some(&snapshot)), Ok(stored));
}

fn snapshot(data: &[u8]) {
    let mut file = Snapshot { last: None, voters: Default::default(), table: Vec::new() }.encode(&OWNER.cluster);
    file.truncate(32);
    file.extend_from_slice(data);
    let crc = crc32c(&file[16..]);
    file[12..16].copy_from_slice(&crc.to_le_bytes());
    if let Ok(snapshot) = Snapshot::decode(&file, &OWNER.cluster) {
        assert_eq!(snapshot.encode(&OWNER.cluster), file);
    }
}

fn identity(data: &[u8]) {
    let file = [&IDENTITY_HEAD[..], &crc32c(data).to_le_bytes()[..], data].concat();
    if let Ok(identity) = Identity::decode(&file) {
        assert_eq!(identity.encode(), file, "there is one way to say a thing");
    }
}
