//! Edges of one member: its start, its files, its end.

use std::collections::BTreeSet;

use base::limits::{MANAGERS_MAX, PROPOSALS_MAX};
use base::rng::Rng;
use consensus::format::{log_file, snapshot_file};
use consensus::{Answer, Effect, Event, Image, Member, Options, Proposal, Refusal, Role, Start, View};

use crate::commands;

/// A member that is its whole group, and its files.
struct Alone {
    member: Member,
    log: Option<Vec<u8>>,
    snapshot: Option<Vec<u8>>,
    /// What was asked for and not performed: nothing is durable until [`Alone::settle`].
    asked: Vec<Effect>,
    answers: Vec<(u64, Result<Answer, Refusal>)>,
    views: Vec<View>,
    now_ns: u64,
    deadline_ns: Option<u64>,
    log_bytes_most: usize,
}

fn start(options: &Options) -> Start {
    Start { id: 1, cluster: [9; 16], options: options.clone(), seed: 5, is_witnessed: false }
}

fn small() -> Options {
    Options { snapshot_entries: 50, log_bytes_min: 1000, ..Options::default() }
}

impl Alone {
    fn started(log: Option<Vec<u8>>, snapshot: Option<Vec<u8>>) -> Alone {
        let image = Image { log: log.as_deref(), snapshot: snapshot.as_deref() };
        let member = Member::start(start(&small()), image).expect("files of a member");
        let mut alone = Alone {
            member,
            log,
            snapshot,
            asked: Vec::new(),
            answers: Vec::new(),
            views: Vec::new(),
            now_ns: 0,
            deadline_ns: None,
            log_bytes_most: 0,
        };
        alone.tick(Vec::new());
        alone.settle();
        alone
    }

    /// A group of one that leads itself.
    fn leading() -> Alone {
        let mut alone = Alone::started(None, None);
        alone.propose(0, Proposal::Begin(BTreeSet::from([1])));
        alone.settle();
        assert_eq!(alone.answers.pop(), Some((0, Ok(Answer::Done))));
        alone.until_readable();
        alone
    }

    fn tick(&mut self, events: Vec<Event>) {
        let asked = self.member.tick(self.now_ns, events);
        self.deadline_ns = asked.deadline_ns;
        for effect in asked.effects {
            match effect {
                Effect::Answered { token, result } => self.answers.push((token, result)),
                Effect::Changed(view) => self.views.push(view),
                effect => self.asked.push(effect),
            }
        }
    }

    /// Perform what is asked for until nothing is.
    fn settle(&mut self) {
        while !self.asked.is_empty() {
            let mut last = None;
            for effect in std::mem::take(&mut self.asked) {
                match effect {
                    Effect::Write { ordinal, offset, bytes } => {
                        let log = self.log.as_mut().expect("there is a log");
                        log[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
                        last = Some(ordinal);
                    }
                    Effect::ReplaceLog { ordinal, bytes } => {
                        self.log = Some(bytes);
                        last = Some(ordinal);
                    }
                    Effect::ReplaceSnapshot { ordinal, bytes } => {
                        self.snapshot = Some(bytes);
                        last = Some(ordinal);
                    }
                    _ => {}
                }
            }
            self.log_bytes_most = self.log_bytes_most.max(self.log.as_ref().map_or(0, Vec::len));
            self.now_ns += 1_000_000;
            self.tick(last.into_iter().map(|ordinal| Event::Durable { ordinal }).collect());
        }
    }

    fn propose(&mut self, token: u64, proposal: Proposal) {
        self.tick(vec![Event::Proposed { token, proposal }]);
    }

    /// Let time pass, by its own deadlines, until a read is answered.
    fn until_readable(&mut self) -> u64 {
        for token in 1_000_000..1_000_100 {
            self.propose(token, Proposal::Read);
            self.settle();
            // Reads that were asked before may be answered by now, too.
            match self.answers.drain(..).next_back() {
                Some((_, Ok(Answer::Readable { index }))) => return index,
                _ => self.now_ns = self.deadline_ns.expect("a group of one waits for its election"),
            }
        }
        panic!("a group of one never leads itself");
    }
}

#[test]
fn what_was_agreed_is_there_after_a_restart_and_the_log_stays_small() {
    let (mut alone, mut rng) = (Alone::leading(), Rng::new(3));
    for token in 1..=1000 {
        alone.propose(token, Proposal::Agree(commands::draw(&mut rng)));
        alone.settle();
        let (answered, result) = alone.answers.pop().expect("an answer");
        assert!(answered == token && matches!(result, Ok(Answer::Agreed { .. })), "{result:?}");
    }
    let (table, applied) = (alone.member.table().encode(), alone.member.applied());
    assert!(alone.log_bytes_most < 60_000, "{} bytes of log", alone.log_bytes_most);
    let mut again = Alone::started(alone.log.take(), alone.snapshot.take());
    assert!(again.until_readable() >= applied.expect("a thousand entries"));
    assert_eq!(again.member.table().encode(), table);
}

#[test]
fn nothing_is_said_before_what_was_read_is_written_anew() {
    let mut alone = Alone::leading();
    let image = Image { log: alone.log.as_deref(), snapshot: None };
    let member = Member::start(start(&small()), image).expect("a log of a member");
    let asked = member.tick(0, Vec::new());
    assert!(matches!(&asked.effects[..], [Effect::ReplaceLog { ordinal: 1, .. }]), "{:?}", asked.effects);
    let proposal = Proposal::Agree(commands::draw(&mut Rng::new(1)));
    let refused = member.tick(60_000_000_000, vec![Event::Proposed { token: 1, proposal }]).effects;
    let elsewhere = Err(Refusal::Elsewhere { leader: None });
    assert!(matches!(&refused[..], [Effect::Answered { token: 1, result }] if *result == elsewhere), "{refused:?}");
    alone.settle();
}

/// Whether an end is by a failed sync or by wish, who waits is answered and nothing else is ever said.
#[test]
fn a_member_that_has_ended_is_silent() {
    for by_failure in [true, false] {
        let mut alone = Alone::leading();
        let mut rng = Rng::new(1);
        alone.propose(1, Proposal::Agree(commands::draw(&mut rng)));
        assert!(alone.answers.is_empty(), "not before it is stored");
        alone.asked.clear();
        alone.tick(vec![if by_failure { Event::WriteFailed { reason: "full".to_owned() } } else { Event::Stop }]);
        assert_eq!(alone.answers, [(1, Err(Refusal::Unknown))]);
        let failed = alone.asked.iter().filter(|effect| matches!(effect, Effect::Failed { .. })).count();
        assert_eq!((failed, alone.asked.len()), (usize::from(by_failure), usize::from(by_failure)));
        assert_eq!(alone.deadline_ns, None);
        alone.asked.clear();
        alone.answers.clear();
        alone.now_ns += 60_000_000_000;
        alone.tick(vec![Event::Durable { ordinal: u64::MAX }]);
        alone.propose(2, Proposal::Read);
        assert_eq!(alone.answers, [(2, Err(Refusal::Elsewhere { leader: None }))]);
        assert!(alone.asked.is_empty(), "{:?}", alone.asked);
    }
}

#[test]
fn more_proposals_than_the_bound_are_refused() {
    let (mut alone, mut rng) = (Alone::leading(), Rng::new(1));
    for token in 0..=PROPOSALS_MAX as u64 {
        alone.propose(token, Proposal::Agree(commands::draw(&mut rng)));
    }
    assert_eq!(alone.answers, [(PROPOSALS_MAX as u64, Err(Refusal::Busy))]);
    alone.settle();
    assert_eq!(alone.answers.len(), PROPOSALS_MAX + 1);
}

/// A group that nobody could read back from the log is never begun.
#[test]
fn more_members_than_the_bound_are_refused() {
    let many: BTreeSet<u64> = (1..=MANAGERS_MAX as u64 + 1).collect();
    let mut alone = Alone::started(None, None);
    alone.propose(0, Proposal::Begin(many.clone()));
    alone.settle();
    assert!(matches!(alone.answers.pop(), Some((0, Err(Refusal::Refused(_))))));
    let mut alone = Alone::leading();
    alone.propose(1, Proposal::Voters(many));
    alone.settle();
    assert!(matches!(alone.answers.pop(), Some((1, Err(Refusal::Refused(_))))));
}

#[test]
fn a_view_is_told_when_it_changes() {
    let mut alone = Alone::started(None, None);
    alone.propose(0, Proposal::Begin(BTreeSet::from([1])));
    alone.settle();
    alone.until_readable();
    let views: Vec<_> = alone.views.iter().map(|view| (view.role, view.term, view.leader)).collect();
    assert_eq!((views.first(), views.last()), (Some(&(Role::Listener, 0, None)), Some(&(Role::Leader, 1, Some(1)))));
    assert!(alone.views.is_sorted_by(|a, b| a != b), "{views:?}");
    assert_eq!(alone.views.last().map(|view| view.voters.clone()), Some(vec![BTreeSet::from([1])]));
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let (mut alone, mut rng) = (Alone::leading(), Rng::new(3));
    for token in 1..=200 {
        alone.propose(token, Proposal::Agree(commands::draw(&mut rng)));
        alone.settle();
    }
    let (log, snapshot) = (alone.log.as_deref(), alone.snapshot.as_deref());
    assert!(snapshot.is_some());
    let refused = |start: Start, image| Member::start(start, image).err().map(|damage| damage.file);
    assert_eq!(refused(start(&small()), Image { log, snapshot }), None);
    assert_eq!(refused(start(&small()), Image { log: None, snapshot }), Some(log_file::NAME));
    assert_eq!(refused(start(&small()), Image { log, snapshot: None }), Some(snapshot_file::NAME));
    let other = Start { cluster: [1; 16], ..start(&small()) };
    assert_eq!(refused(other, Image { log, snapshot: None }), Some(log_file::NAME));
    assert_eq!(refused(Start { id: 2, ..start(&small()) }, Image { log, snapshot }), Some(log_file::NAME));
}
