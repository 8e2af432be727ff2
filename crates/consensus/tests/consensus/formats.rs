//! Files and frames: what is written is read, what is not whole is refused or cut, and nothing panics.

use base::limits::MANAGER_FRAME_BYTES_MAX;
use base::rng::Rng;
use consensus::format::bytes::Writer;
use consensus::format::entry::{Ballot, Content, Entry, EntryId};
use consensus::format::frame::{self, Append, Body, Question};
use consensus::format::log_file::{Group, LogFile, LogWriter, Record, read};
use consensus::format::snapshot_file::Snapshot;
use consensus::format::{log_file, snapshot_file};
use consensus::{Damage, Stored};

use crate::harm::find_misread;
use crate::sample::{self, OWNER};

#[test]
fn frames_are_read_as_they_were_written() {
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let (number, question, answer) = (rng.next_u64(), sample::question(&mut rng), sample::answer(&mut rng));
        let asked = frame::encode_question(number, &question);
        let answered = frame::encode_answer(number, &answer);
        assert_eq!(frame::decode(&asked), Some((number, Body::Question(question))), "seed {seed}");
        assert_eq!(frame::decode(&answered), Some((number, Body::Answer(answer))), "seed {seed}");
        for frame in [asked, answered] {
            assert!((0..frame.len()).all(|at| frame::decode(&frame[..at]).is_none()), "a part of a frame is none");
            let mut longer = frame.clone();
            longer.push(0);
            assert_eq!(frame::decode(&longer), None);
        }
    }
}

/// Whatever is read is written again as it was: there is one way to say a thing.
#[test]
fn changed_frames_are_refused_or_mean_what_they_say() {
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let frame = frame::encode_question(rng.next_u64(), &sample::question(&mut rng));
        for at in 0..frame.len() {
            let mut changed = frame.clone();
            changed[at] ^= 1 << rng.below(8);
            let again = match frame::decode(&changed) {
                None => continue,
                Some((number, Body::Question(question))) => frame::encode_question(number, &question),
                Some((number, Body::Answer(answer))) => frame::encode_answer(number, &answer),
            };
            assert_eq!(again, changed, "seed {seed}, byte {at}");
        }
    }
}

#[test]
fn frames_that_no_leader_sends_are_refused() {
    let id = |term, index| EntryId { term, index };
    let entry = |term, index| Entry { id: id(term, index), content: Content::Blank };
    let append = |before, term, won, entries| {
        let ballot = Ballot { term, candidate: 1, won };
        let question = Question::Append(Append { ballot, before, agreed: None, entries });
        frame::decode(&frame::encode_question(1, &question)).is_some()
    };
    assert!(append(Some(id(1, 4)), 2, true, vec![entry(1, 5), entry(2, 6)]));
    assert!(append(None, 2, true, vec![entry(0, 0)]));
    assert!(!append(Some(id(1, 4)), 2, false, vec![entry(2, 5)]), "it does not lead");
    assert!(!append(Some(id(1, 4)), 2, true, vec![entry(2, 6)]), "a gap");
    assert!(!append(None, 2, true, vec![entry(2, 1)]), "a gap at the begin");
    assert!(!append(Some(id(1, 4)), 2, true, vec![entry(2, 5), entry(1, 6)]), "an earlier term behind a later one");
    assert!(!append(Some(id(1, 4)), 2, true, vec![entry(3, 5)]), "a term that has not begun");
    assert!(!append(Some(id(1, 1 << 62)), 2, true, Vec::new()), "an index from which one cannot count");
}

/// A count or a length that promises more than there is takes no memory.
#[test]
fn announced_lengths_are_not_believed() {
    let mut to = Writer::default();
    to.number(1);
    to.byte(1);
    to.ballot(Ballot { term: 1, candidate: 1, won: true });
    to.truth(false);
    to.truth(false);
    to.number(u64::MAX);
    assert_eq!(frame::decode(&to.0), None);
    assert_eq!(frame::decode(&vec![0; MANAGER_FRAME_BYTES_MAX + 1]), None);
}

#[test]
fn harm_to_what_was_synced_is_refused_and_a_torn_tail_is_cut() {
    find_misread(30).unwrap_or_else(|words| panic!("{words}"));
}

#[test]
fn heads_of_others_are_refused_by_place() {
    let sample = sample::log(&mut Rng::new(1), 2);
    let offset = |bytes: &[u8], owner| read(bytes, owner).map_err(|damage| damage.offset);
    let other = log_file::Owner { cluster: [0; 16], ..OWNER };
    assert_eq!(offset(&sample.bytes, &other).err(), Some(16));
    let other = log_file::Owner { manager: 8, ..OWNER };
    assert_eq!(offset(&sample.bytes, &other).err(), Some(32));
    let mut newer = sample.bytes.clone();
    newer[8] = 2;
    assert_eq!(offset(&newer, &OWNER).err(), Some(8));
    assert_eq!(offset(b"ZHLOGSEG", &OWNER).err(), Some(0));
}

/// A group of another generation of the same log is none of this one.
#[test]
fn groups_of_another_file_are_not_read() {
    let mut group = Group::default();
    group.add(&Record::Agreed(None));
    let (mut older, _) = LogWriter::begin(&OWNER, 1, Group::default(), 1000);
    let (newer, mut bytes) = LogWriter::begin(&OWNER, 2, Group::default(), 1000);
    let (offset, sealed) = older.seal(group, newer.end());
    bytes[offset as usize..][..sealed.len()].copy_from_slice(&sealed);
    let read = read(&bytes, &OWNER).expect("a torn tail");
    assert_eq!(read.records, []);
    assert!(read.torn_bytes > 40, "{} bytes", read.torn_bytes);
}

#[test]
fn snapshots_are_read_as_they_were_written_and_harm_is_refused() {
    for seed in 0..200 {
        let snapshot = sample::snapshot(&mut Rng::new(seed));
        let bytes = snapshot.encode(&OWNER.cluster);
        assert_eq!(Snapshot::decode(&bytes, &OWNER.cluster), Ok(snapshot));
        assert!((0..bytes.len()).all(|at| Snapshot::decode(&bytes[..at], &OWNER.cluster).is_err()));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(Snapshot::decode(&changed, &OWNER.cluster).is_err(), "seed {seed}, byte {at}");
        }
        let other = Snapshot::decode(&bytes, &[0; 16]).expect_err("of another cluster");
        assert_eq!((other.file, other.offset), (snapshot_file::NAME, 16));
    }
}

fn vote(term: u64, candidate: u64, won: bool) -> Record {
    Record::Vote(Ballot { term, candidate, won })
}

fn entry(term: u64, index: u64) -> Record {
    Record::Entry(Entry { id: EntryId { term, index }, content: Content::Blank })
}

fn judged(records: &[Record]) -> Result<Stored, Damage> {
    let records = records.iter().cloned().enumerate().map(|(at, record)| (at as u64, record)).collect();
    Stored::read(LogFile { generation: 1, records, torn_bytes: 0 }, None)
}

/// The offset says which record is the first that cannot be.
#[test]
fn logs_that_no_member_writes_are_refused() {
    let id = |term, index| EntryId { term, index };
    let refused_at = |records: &[Record]| judged(records).err().map(|damage| damage.offset);
    let sound = [vote(1, 1, false), vote(1, 1, true), entry(1, 0), entry(1, 1), vote(2, 3, false), entry(2, 2)];
    assert_eq!(refused_at(&sound), None);
    assert_eq!(refused_at(&[vote(2, 1, false), vote(1, 1, false)]), Some(1), "a vote of an earlier term");
    assert_eq!(refused_at(&[vote(2, 1, false), vote(2, 3, false)]), Some(1), "two candidates in one term");
    assert_eq!(refused_at(&[vote(2, 1, false), vote(2, 3, true)]), None, "who lost follows who won");
    assert_eq!(refused_at(&[vote(2, 1, true), vote(2, 3, true)]), Some(1), "two leaders in one term");
    assert_eq!(refused_at(&[vote(2, 1, true), vote(2, 1, false)]), Some(1), "a leader that is none any more");
    assert_eq!(refused_at(&[entry(1, 0)]), Some(0), "a term that it never voted in");
    assert_eq!(refused_at(&[vote(1, 1, true), entry(1, 0), entry(1, 2)]), Some(2), "a gap");
    assert_eq!(refused_at(&[vote(1, 1, true), entry(1, 0), entry(1, 0)]), Some(2), "a cut that was forgotten");
    assert_eq!(refused_at(&[vote(2, 1, true), entry(2, 0), entry(1, 1)]), Some(2), "an earlier term");
    let cut = Record::Cut(Some(id(1, 0)));
    assert_eq!(refused_at(&[vote(1, 1, true), entry(1, 0), entry(1, 1), cut.clone(), entry(1, 1)]), None);
    let agreed = Record::Agreed(Some(id(1, 1)));
    assert_eq!(refused_at(&[vote(1, 1, true), entry(1, 0), entry(1, 1), agreed, cut]), Some(4), "agreed, and cut off");
    let unknown = Record::Cut(Some(id(3, 0)));
    assert_eq!(refused_at(&[vote(3, 1, true), entry(1, 0), unknown]), Some(2), "behind what is not there");
    let other = Record::Purged(id(3, 0));
    assert_eq!(refused_at(&[vote(3, 1, true), entry(1, 0), other]), Some(2), "another entry than is there");
    let lost = judged(&[vote(1, 1, true), entry(1, 0), Record::Purged(id(1, 0))]).expect_err("no snapshot has it");
    assert_eq!(lost.file, snapshot_file::NAME);
}
