//! What managers send each other: a question with a number, or the answer to one.
//!
//! ```text
//!  frame      = number:u64  kind:u8  body             an answer has the number of its question and kind 128 + its
//!  append     = 1  ballot  before: option of id  agreed: option of id  count:u64 entry …
//!  vote       = 2  ballot  last: option of id  hand-over:u8
//!  pre-vote   = 3  the same
//!  snapshot   = 4  ballot  last: option of id  since: option of id  voters  length:u64 table
//!  take over  = 5  ballot  to:u64  last: option of id
//!  appended   = 129  0 yes | 1 up to: option of id | 2 other content before | 3 ballot
//!  voted      = 130, 131  ballot  granted:u8  last: option of id
//!  installed  = 132  ballot
//!  taken over = 133  yes:u8
//! ```

use base::limits::{APPEND_ENTRIES_MAX, MANAGER_FRAME_BYTES_MAX, TABLE_BYTES_MAX};

use super::bytes::{Reader, Writer};
use super::entry::{Ballot, Entry, EntryId};
use super::snapshot_file::Snapshot;

/// Entries of a leader, or none as a sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The leader's.
    pub ballot: Ballot,
    /// The entry before the first one.
    pub before: Option<EntryId>,
    /// Agreed up to here.
    pub agreed: Option<EntryId>,
    /// What follows.
    pub entries: Vec<Entry>,
}

/// Would you, or do you, vote for me?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoteWanted {
    /// The candidate's.
    pub ballot: Ballot,
    /// Its last entry.
    pub last: Option<EntryId>,
    /// Whether the leader asked it to stand.
    pub is_hand_over: bool,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Entries.
    Append(Append),
    /// Do you vote for me?
    Vote(VoteWanted),
    /// Would you?
    PreVote(VoteWanted),
    /// A whole table of a leader with this ballot.
    Snapshot(Ballot, Snapshot),
    /// Take over.
    TakeOver {
        /// The leader's that hands over.
        ballot: Ballot,
        /// To whom.
        to: u64,
        /// The leader's last entry: the other one must have it.
        last: Option<EntryId>,
    },
}

/// Whether entries were appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// All.
    Yes,
    /// Up to this one.
    UpTo(Option<EntryId>),
    /// None: before them stands something else.
    Other,
    /// None: there is a later ballot.
    Later(Ballot),
}

/// Whether there is a vote for the asker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voted {
    /// Whom the answering manager supports now.
    pub ballot: Ballot,
    /// Whether that, or what would be that, is the asker.
    pub is_granted: bool,
    /// Its last entry.
    pub last: Option<EntryId>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Question::Append`].
    Appended(Appended),
    /// To [`Question::Vote`].
    Voted(Voted),
    /// To [`Question::PreVote`].
    PreVoted(Voted),
    /// To [`Question::Snapshot`]: whom the answering manager supports.
    Installed(Ballot),
    /// To [`Question::TakeOver`].
    TakenOver(bool),
}

/// A question, or the answer to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Asked.
    Question(Question),
    /// Answered.
    Answer(Answer),
}

const ANSWER: u8 = 128;

/// The frame of a question.
pub fn encode_question(number: u64, question: &Question) -> Vec<u8> {
    let mut to = Writer::default();
    to.number(number);
    match question {
        Question::Append(append) => {
            to.byte(1);
            to.ballot(append.ballot);
            to.option(append.before, Writer::entry_id);
            to.option(append.agreed, Writer::entry_id);
            to.list(append.entries.iter(), Writer::entry);
        }
        Question::Vote(wanted) => write_vote_wanted(&mut to, 2, wanted),
        Question::PreVote(wanted) => write_vote_wanted(&mut to, 3, wanted),
        Question::Snapshot(ballot, snapshot) => {
            to.byte(4);
            to.ballot(*ballot);
            to.option(snapshot.last, Writer::entry_id);
            to.voters_since(&snapshot.voters);
            to.bytes(&snapshot.table);
        }
        Question::TakeOver { ballot, to: successor, last } => {
            to.byte(5);
            to.ballot(*ballot);
            to.number(*successor);
            to.option(*last, Writer::entry_id);
        }
    }
    to.0
}

fn write_vote_wanted(to: &mut Writer, kind: u8, wanted: &VoteWanted) {
    to.byte(kind);
    to.ballot(wanted.ballot);
    to.option(wanted.last, Writer::entry_id);
    to.truth(wanted.is_hand_over);
}

/// The frame of an answer.
pub fn encode_answer(number: u64, answer: &Answer) -> Vec<u8> {
    let mut to = Writer::default();
    to.number(number);
    match answer {
        Answer::Appended(appended) => {
            to.byte(ANSWER + 1);
            write_appended(&mut to, *appended);
        }
        Answer::Voted(voted) => write_voted(&mut to, ANSWER + 2, voted),
        Answer::PreVoted(voted) => write_voted(&mut to, ANSWER + 3, voted),
        Answer::Installed(ballot) => {
            to.byte(ANSWER + 4);
            to.ballot(*ballot);
        }
        Answer::TakenOver(yes) => {
            to.byte(ANSWER + 5);
            to.truth(*yes);
        }
    }
    to.0
}

fn write_appended(to: &mut Writer, appended: Appended) {
    match appended {
        Appended::Yes => to.byte(0),
        Appended::UpTo(last) => {
            to.byte(1);
            to.option(last, Writer::entry_id);
        }
        Appended::Other => to.byte(2),
        Appended::Later(ballot) => {
            to.byte(3);
            to.ballot(ballot);
        }
    }
}

fn write_voted(to: &mut Writer, kind: u8, voted: &Voted) {
    to.byte(kind);
    to.ballot(voted.ballot);
    to.truth(voted.is_granted);
    to.option(voted.last, Writer::entry_id);
}

/// Number and content of a frame; `None` when it is none, or says what no manager says.
pub fn decode(frame: &[u8]) -> Option<(u64, Body)> {
    if frame.len() > MANAGER_FRAME_BYTES_MAX {
        return None;
    }
    let mut from = Reader(frame);
    let number = from.number()?;
    let kind = from.byte()?;
    let body = match kind.checked_sub(ANSWER) {
        None => Body::Question(read_question(kind, &mut from)?),
        Some(kind) => Body::Answer(read_answer(kind, &mut from)?),
    };
    from.end((number, body))
}

fn read_question(kind: u8, from: &mut Reader) -> Option<Question> {
    Some(match kind {
        1 => Question::Append(read_append(from)?),
        2 => Question::Vote(read_vote_wanted(from)?),
        3 => Question::PreVote(read_vote_wanted(from)?),
        4 => {
            let ballot = from.ballot().filter(|ballot| ballot.won)?;
            let (last, voters) = (from.option(Reader::entry_id)?, from.voters_since()?);
            Question::Snapshot(ballot, Snapshot { last, voters, table: from.bytes(TABLE_BYTES_MAX)?.to_vec() })
        }
        5 => {
            let (ballot, to) = (from.ballot()?, from.number()?);
            Question::TakeOver { ballot, to, last: from.option(Reader::entry_id)? }
        }
        _ => return None,
    })
}

/// A leader's entries follow each other and are of its term or earlier ones.
fn read_append(from: &mut Reader) -> Option<Append> {
    let ballot = from.ballot().filter(|ballot| ballot.won)?;
    let (before, agreed) = (from.option(Reader::entry_id)?, from.option(Reader::entry_id)?);
    let entries = from.list(APPEND_ENTRIES_MAX, Reader::entry)?;
    let mut previous = before;
    for entry in &entries {
        let follows = previous.is_none_or(|id| id.term <= entry.id.term && id.index + 1 == entry.id.index);
        if !follows || entry.id.term > ballot.term || (previous.is_none() && entry.id.index != 0) {
            return None;
        }
        previous = Some(entry.id);
    }
    Some(Append { ballot, before, agreed, entries })
}

fn read_vote_wanted(from: &mut Reader) -> Option<VoteWanted> {
    Some(VoteWanted { ballot: from.ballot()?, last: from.option(Reader::entry_id)?, is_hand_over: from.truth()? })
}

fn read_answer(kind: u8, from: &mut Reader) -> Option<Answer> {
    Some(match kind {
        1 => Answer::Appended(match from.byte()? {
            0 => Appended::Yes,
            1 => Appended::UpTo(from.option(Reader::entry_id)?),
            2 => Appended::Other,
            3 => Appended::Later(from.ballot()?),
            _ => return None,
        }),
        2 => Answer::Voted(read_voted(from)?),
        3 => Answer::PreVoted(read_voted(from)?),
        4 => Answer::Installed(from.ballot()?),
        5 => Answer::TakenOver(from.truth()?),
        _ => return None,
    })
}

fn read_voted(from: &mut Reader) -> Option<Voted> {
    Some(Voted { ballot: from.ballot()?, is_granted: from.truth()?, last: from.option(Reader::entry_id)? })
}
