//! One process speaks for a node.

use base::Effect;
use control::lease::{Renewal, Voters};
use control::{Action, Command, NodeId, RequestId, Table};

use super::*;
use crate::message::{News, Proposed};
use crate::rig::{leading, newcomer};
use crate::start::{Entry, Files, Start};

const START: u64 = 2 << START_SHIFT;

/// Node 1 begins its second start: its file says that nodes 1 to `voters` are managers, and that nodes 2 and 3 are there.
fn beginning(voters: u32, seed: u64) -> Inside {
    let mut identity = leading().identity;
    for node in 2..=3 {
        let host = format!("host {node}");
        obey(&mut identity.table, Action::Join(control::Newcomer { id: NodeId(node), ..newcomer(&host, 1) }));
    }
    identity.voters = Voters { version: 9, sets: vec![(1..=voters).map(NodeId).collect()] };
    let files = Files { identity: Some(identity.encode()), ..Files::default() };
    let start = Start { entry: Entry::Resume, newcomer: newcomer("a", START), files, seed };
    let mut inside = Inside::new(0, identity, &start).expect("no other files");
    inside.begin(0);
    inside
}

fn obey(table: &mut Table, action: Action) {
    let number = table.version() + 1;
    let outcome = table.apply(number, &Command { id: RequestId { proposer: 5, number }, action });
    assert!(matches!(outcome, control::Outcome::Changed { .. }), "{outcome:?}");
}

/// Everything that it says and writes in a moment; disks are done at once.
fn says(inside: &mut Inside, now_us: u64) -> usize {
    let mut said = 0;
    for _ in 0..8 {
        let mut effects = Vec::new();
        inside.agree(now_us, &mut effects);
        inside.refresh(now_us);
        inside.renew(now_us);
        inside.judge(now_us);
        inside.wish(now_us);
        inside.plan(now_us);
        inside.send_proposals(now_us);
        said += effects.len() + std::mem::take(&mut inside.outbox).len();
        for effect in effects {
            if let Effect::WriteFile { token, .. } | Effect::ReplaceFile { token, .. } = effect {
                inside.agreement.tell(consensus::Event::Durable { ordinal: token });
            }
        }
    }
    said
}

fn said(start: u64, life: u64, has_come: bool) -> Introduction {
    Introduction { start, life, has_come, news: News::default() }
}

#[test]
fn a_process_says_nothing_for_its_node_before_all_managers_have_said_who_they_are() {
    let mut inside = beginning(3, 1);
    let renewal = Renewal { node: NodeId(2), incarnation: 1, number: 1, voters: 9 };
    let heeds = |inside: &mut Inside| {
        for message in
            [Message::Renewal { renewal, table: 0 }, Message::Read { number: 1 }, Message::Agreement(vec![1])]
        {
            inside.heed(1, NodeId(2), message);
        }
    };
    heeds(&mut inside);
    assert_eq!(says(&mut inside, 1), 0);
    assert_eq!(inside.on_start(NodeId(2), said(1, 7, true)), Welcome::Heard);
    heeds(&mut inside);
    assert_eq!(says(&mut inside, HEAR_US - 1), 0, "3 may have spoken to another one");
    assert_eq!(inside.agreement_deadline_us(), Some(HEAR_US));
    assert_eq!(inside.on_start(NodeId(3), said(1, 8, true)), Welcome::Heard);
    assert!(says(&mut inside, HEAR_US - 1) > 0 && inside.acts());
}

#[test]
fn who_cannot_be_heard_is_waited_for_a_while() {
    let mut inside = beginning(3, 1);
    assert_eq!(says(&mut inside, HEAR_US - 1), 0);
    assert!(says(&mut inside, HEAR_US) > 0);
}

/// There is no other manager that could know better, but there are nodes.
#[test]
fn who_decides_alone_asks_all_nodes_first() {
    let mut inside = beginning(1, 1);
    assert_eq!(says(&mut inside, 1), 0);
    assert_eq!(inside.searched(1, |_| false), [NodeId(2), NodeId(3)]);
    for node in [2, 3] {
        inside.on_start(NodeId(node), said(1, 7, true));
    }
    assert!(says(&mut inside, 2) > 0);
}

#[test]
fn of_two_processes_with_one_number_the_second_is_told_and_not_heard() {
    let mut inside = beginning(3, 1);
    let (node, start) = (NodeId(2), 5 << START_SHIFT);
    assert_eq!(inside.on_start(node, said(start, 7, false)), Welcome::Heard);
    assert_eq!(inside.on_start(node, said(start, 8, false)), Welcome::Another { acts: false });
    assert_eq!(inside.on_start(node, said(start, 7, false)), Welcome::Heard, "a second connection of the first");
    inside.heed(0, node, Message::Agreement(Vec::new()));
    assert_eq!(inside.on_start(node, said(start, 8, false)), Welcome::Another { acts: true });
    assert_eq!(inside.on_start(node, said(start, 8, true)), Welcome::Instead, "the managers agreed on this one");
    assert_eq!(inside.on_start(node, said(start - 1, 9, false)), Welcome::Outdated);
    assert_eq!(inside.on_start(node, said(start + 1, 9, false)), Welcome::Instead, "a later start");
}

#[test]
fn who_is_told_of_another_process_says_nothing_any_more_unless_it_is_the_one_that_was_agreed() {
    let mut inside = beginning(1, 1);
    says(&mut inside, HEAR_US);
    assert!(inside.acts() && !inside.has_come);
    inside.on_another(true);
    assert!(!inside.acts() && inside.rival() == Some(true) && says(&mut inside, 2 * HEAR_US) == 0);
    let mut agreed = leading();
    agreed.on_another(true);
    assert!(agreed.acts() && agreed.rival().is_none());
}

/// The table says the same of a copy that was started in the place of the first one: only what became of its own proposal tells them.
#[test]
fn a_copy_does_not_take_what_was_agreed_for_the_other_process_for_its_own() {
    let down = |inside: &mut Inside| {
        let incarnation = inside.table().node(NodeId(1)).expect("itself").facts.incarnation;
        let table = &mut inside.identity.table;
        obey(table, Action::Fence { node: NodeId(1), incarnation });
        obey(table, Action::Promote { node: NodeId(1), incarnation, replacements: Vec::new() });
    };
    let [mut one, mut copy] = [1, 2].map(|seed| beginning(1, seed));
    let commands = [&mut one, &mut copy].map(|inside| {
        inside.starts = Starts::acting();
        down(inside);
        inside.renew(1);
        let [Message::Propose { number, command }] = &inside.proposals.due(1)[..] else { panic!("it comes back") };
        (*number, command.clone())
    });
    let [(number, came), (copied, late)] = commands;
    assert_ne!(came.id, late.id, "or the table would answer the second as the first");
    let mut table = one.table().clone();
    let outcome = table.apply(table.version() + 1, &came);
    assert!(matches!(outcome, control::Outcome::Changed { .. }));
    for inside in [&mut one, &mut copy] {
        inside.identity.table = table.clone();
        assert!(!inside.is_up(), "nobody told it yet whose start that is");
    }
    let control::Outcome::Refused(why) = table.apply(table.version() + 1, &late) else { panic!("there are two") };
    one.heed(2, NodeId(1), Message::Proposed { number, result: Proposed::Agreed });
    copy.heed(2, NodeId(1), Message::Proposed { number: copied, result: Proposed::Refused(why) });
    assert!(one.is_up() && one.imposture().is_none());
    assert!(!copy.is_up() && copy.imposture().is_some());
}
