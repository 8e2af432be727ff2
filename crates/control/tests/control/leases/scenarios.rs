//! Leases by example: the moments that the worlds meet too rarely.

use control::lease::{Answer, Denial, Grants, Judge, Question, Renewal, Report, Voters, Wish};
use control::*;

use crate::rig::{Rig, newcomer};

const LEASE_US: u64 = 300_000;

fn voters() -> Voters {
    Voters { version: 1, sets: vec![vec![NodeId(1), NodeId(2), NodeId(3)]] }
}

fn two() -> Rig {
    let mut rig = Rig::founded(newcomer(1, 1, "", "a"), 2);
    rig.done(Action::Join(newcomer(2, 1, "", "b")));
    plan::fill_up(&rig.table).into_iter().for_each(|action| rig.done(action));
    rig.fill();
    rig
}

fn renewal(node: u32, incarnation: u64) -> Renewal {
    Renewal { node: NodeId(node), incarnation, number: 1, voters: 1 }
}

fn fence(node: u32) -> Action {
    Action::Fence { node: NodeId(node), incarnation: 1 }
}

fn clear(node: u32, may_run_us: u64) -> Answer {
    Answer { node: NodeId(node), incarnation: 1, fenced: true, may_run_us }
}

/// A manager that obeyed a fence, said so, and starts with the table from before must not grant that lease again.
pub fn is_refused_after_a_start() -> bool {
    let mut rig = two();
    let before = rig.table.clone();
    let mut grants = Grants::start(0, &rig.table, 1);
    grants.set_current();
    rig.done(fence(1));
    let question = Question { node: NodeId(1), incarnation: 1 };
    let answer = grants.answer(400_000, &rig.table, question);
    assert!(answer.fenced && answer.may_run_us == 0);
    let mut started = Grants::start(500_000, &before, 1);
    let reply = started.on_renewal(600_000, &before, renewal(1, 1));
    reply.granted_us == Err(Denial::NotCurrent) && !started.answer(600_000, &rig.table, question).fenced
}

#[test]
fn a_manager_that_started_grants_nothing_until_its_table_is_current() {
    let _unplanted = crate::rig::unplanted();
    assert!(is_refused_after_a_start());
    let rig = two();
    let mut grants = Grants::start(0, &rig.table, 1);
    assert!(!grants.is_current());
    grants.set_current();
    assert_eq!(grants.on_renewal(10, &rig.table, renewal(1, 1)).granted_us, Ok(LEASE_US));
}

#[test]
fn a_manager_denies_by_what_it_knows() {
    let _unplanted = crate::rig::unplanted();
    let mut rig = two();
    let mut grants = Grants::start(0, &rig.table, 1);
    grants.set_current();
    let mut why = |rig: &Rig, renewal| grants.on_renewal(10, &rig.table, renewal).granted_us.err();
    assert_eq!(why(&rig, renewal(1, 1)), None);
    assert_eq!(why(&rig, renewal(1, 0)), Some(Denial::Over));
    assert_eq!(why(&rig, renewal(1, 2)), Some(Denial::NotReturned));
    assert_eq!(why(&rig, renewal(7, 1)), Some(Denial::Unknown));
    rig.done(fence(1));
    assert_eq!(why(&rig, renewal(1, 1)), Some(Denial::Over));
    grants.set_voters(2);
    assert_eq!(grants.on_renewal(10, &rig.table, renewal(2, 1)).granted_us, Err(Denial::OldVoters));
    let question = Question { node: NodeId(1), incarnation: 1 };
    let answer = grants.answer(100_000, &rig.table, question);
    assert_eq!(answer, clear(1, 10 + 315_001 - 100_000));
    assert_eq!(grants.answer(400_000, &rig.table, question), clear(1, 0));
}

#[test]
fn a_manager_that_started_says_that_the_longest_lease_may_run() {
    let _unplanted = crate::rig::unplanted();
    let mut rig = two();
    rig.done(Action::Configure(Settings { lease_ms: 1000, chain_length: 2 }));
    rig.done(Action::Configure(Settings { lease_ms: 100, chain_length: 2 }));
    rig.done(fence(1));
    let mut grants = Grants::start(5, &rig.table, 1);
    grants.set_current();
    let question = Question { node: NodeId(1), incarnation: 1 };
    assert_eq!(grants.answer(5, &rig.table, question), clear(1, 1_050_001));
    assert_eq!(grants.answer(2_000_000, &rig.table, question), clear(1, 0));
}

/// A report of a manager that has heard nothing of node 1 for `silent_us`.
fn silence(silent_us: u64) -> Report {
    let nodes = (1..=2).map(|node| control::lease::Heard {
        node: NodeId(node),
        incarnation: 1,
        silent_us: if node == 1 { silent_us } else { 0 },
    });
    Report { nodes: nodes.collect() }
}

#[test]
fn the_leader_fences_once_asks_and_promotes_once() {
    let _unplanted = crate::rig::unplanted();
    let mut rig = two();
    let mut judge = Judge::start(0, &rig.table, voters());
    judge.set_leading(true);
    let start = 1_000_000;
    judge.on_report(start, NodeId(1), silence(LEASE_US));
    judge.on_report(start, NodeId(2), silence(LEASE_US - 10));
    assert_eq!(judge.wishes(start, &rig.table), [], "one of three is no majority, and the third may grant");
    let wishes = judge.wishes(start + 10, &rig.table);
    assert_eq!(wishes, [Wish::Propose { node: NodeId(1), action: fence(1) }]);
    assert_eq!(judge.wishes(start + 20, &rig.table), [], "nothing twice");
    judge.on_failed(NodeId(1));
    assert_eq!(judge.wishes(start + 30, &rig.table).len(), 1, "but again when it failed");
    rig.done(fence(1));
    let asked = judge.wishes(start + 100, &rig.table);
    assert_eq!(asked.len(), 3);
    assert_eq!(judge.deadline_us(), Some(start + 100 + LEASE_US / 10), "who did not answer is asked again");
    assert!(asked.iter().all(|wish| matches!(wish, Wish::Ask { .. })));
    judge.on_answer(start + 200, NodeId(1), clear(1, 0));
    judge.on_answer(start + 200, NodeId(2), clear(1, 5_000));
    judge.on_answer(start + 200, NodeId(3), Answer { fenced: false, ..clear(1, 0) });
    assert_eq!(judge.wishes(start + 300, &rig.table), []);
    assert_eq!(judge.deadline_us(), Some(start + 5_200), "when what the second one granted is over");
    let again = judge.wishes(start + 5_300, &rig.table);
    assert!(matches!(again[..], [Wish::Ask { manager: NodeId(2), .. }]), "{again:?}");
    judge.on_answer(start + 5_400, NodeId(2), clear(1, 0));
    let wishes = judge.wishes(start + 5_500, &rig.table);
    assert!(matches!(&wishes[..], [Wish::Propose { action: Action::Promote { .. }, .. }]), "{wishes:?}");
    assert_eq!(judge.wishes(start + 5_600, &rig.table), [], "nothing twice");
    assert_eq!(judge.deadline_us(), None);
}

#[test]
fn a_node_that_started_again_is_fenced_at_once_and_silence_of_managers_says_nothing() {
    let _unplanted = crate::rig::unplanted();
    let rig = two();
    let mut judge = Judge::start(0, &rig.table, voters());
    judge.set_leading(true);
    assert_eq!(judge.wishes(10_000_000, &rig.table), []);
    let mut report = silence(0);
    report.nodes[1].incarnation = 2;
    judge.on_report(10_000_000, NodeId(3), report);
    let [fenced, Wish::Propose { node: NodeId(2), action: Action::Detach { incarnation: 1, .. } }] =
        &judge.wishes(10_000_000, &rig.table)[..]
    else {
        panic!("who is first of its chains goes on without it")
    };
    assert_eq!(*fenced, Wish::Propose { node: NodeId(2), action: fence(2) });
    assert_eq!(judge.wishes(10_000_000, &rig.table), [], "nothing twice");
}

#[test]
fn nobody_is_promoted_while_leases_of_other_voters_may_run() {
    let _unplanted = crate::rig::unplanted();
    let mut rig = two();
    let mut judge = Judge::start(0, &rig.table, voters());
    judge.set_leading(true);
    rig.done(fence(1));
    let start = 1_000_000;
    let both = Voters { version: 2, sets: vec![voters().sets[0].clone(), vec![NodeId(4), NodeId(5), NodeId(6)]] };
    judge.set_voters(start, &rig.table, both);
    assert_eq!(judge.wishes(start, &rig.table).len(), 6);
    let later = start + 400_000;
    [1, 2].into_iter().for_each(|manager| judge.on_answer(later, NodeId(manager), clear(1, 0)));
    let is_promotion = |wish: &Wish| matches!(wish, Wish::Propose { .. });
    assert!(!judge.wishes(later, &rig.table).iter().any(is_promotion), "a majority of the new ones is needed, too");
    let set = voters().sets[0].clone();
    judge.set_voters(later, &rig.table, Voters { version: 3, sets: vec![set] });
    assert!(!judge.wishes(later, &rig.table).iter().any(is_promotion), "the old ones may have granted just now");
    assert_eq!(judge.deadline_us(), Some(later + 315_001));
    let other = Voters { version: 4, sets: vec![[1, 2, 5].map(NodeId).to_vec()] };
    judge.set_voters(later, &rig.table, other.clone());
    assert_eq!(judge.deadline_us(), Some(later + 315_001), "a majority of these is clear as well");
    let new = Voters { version: 5, sets: vec![[1, 7, 8].map(NodeId).to_vec()] };
    judge.set_voters(later, &rig.table, new);
    assert_eq!(judge.deadline_us(), None, "whoever else was asked and votes no more is not waited for");
    judge.set_voters(later, &rig.table, other);
    assert!(judge.wishes(later + 315_001, &rig.table).iter().any(is_promotion));
}

#[test]
fn a_manager_that_stood_still_suspects_nobody_for_it() {
    let _unplanted = crate::rig::unplanted();
    let rig = two();
    let mut grants = Grants::start(0, &rig.table, 1);
    grants.set_current();
    assert_eq!(grants.report(0, &rig.table).nodes.len(), 2);
    grants.on_renewal(50_000, &rig.table, renewal(1, 1));
    let silent = |report: Report| report.nodes.iter().map(|heard| heard.silent_us).collect::<Vec<_>>();
    assert_eq!(silent(grants.report(100_000, &rig.table)), [50_000, 100_000]);
    assert_eq!(silent(grants.report(900_000, &rig.table)), [0, 0]);
    assert_eq!(silent(grants.report(1_000_000, &rig.table)), [100_000, 100_000]);
}

#[test]
fn the_moment_at_which_a_node_was_silent_for_a_lease_is_known() {
    let _unplanted = crate::rig::unplanted();
    let mut rig = two();
    let mut grants = Grants::start(0, &rig.table, 1);
    grants.set_current();
    assert_eq!(grants.next_silence_us(0, &rig.table), None, "nobody is listened to yet");
    grants.on_renewal(50_000, &rig.table, renewal(1, 1));
    grants.on_renewal(80_000, &rig.table, renewal(2, 1));
    assert_eq!(grants.next_silence_us(0, &rig.table), Some(50_000 + LEASE_US));
    assert_eq!(grants.next_silence_us(50_000 + LEASE_US, &rig.table), Some(80_000 + LEASE_US), "that was said");
    assert_eq!(grants.next_silence_us(80_000 + LEASE_US, &rig.table), None);
    rig.done(fence(1));
    assert_eq!(grants.next_silence_us(0, &rig.table), Some(80_000 + LEASE_US), "of who is fenced nobody wants to know");
}
