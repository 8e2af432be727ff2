//! Tests of what who leads plans and asks for: shares, voters, who comes back.

use control::RequestId;

use super::*;
use crate::rig::newcomer;

/// Nodes 1 to `count`; those of `down` are fenced and taken out.
fn table(count: u32, down: &[u32]) -> Table {
    let mut table = Table::new();
    let mut number = 0;
    let mut apply = |action| {
        number += 1;
        let id = RequestId { proposer: 1, number };
        let outcome = table.apply(number, &Command { id, action });
        assert!(matches!(outcome, control::Outcome::Changed { .. }), "{outcome:?}");
    };
    let node = |id: u32| control::Newcomer { id: NodeId(id), ..newcomer(&format!("host {id}"), 1) };
    let settings = control::Settings { lease_ms: 300, chain_length: 2 };
    apply(Action::Create(control::Founding { cluster: [1; 16], settings, relaxed: false, node: node(1) }));
    (2..=count).for_each(|id| apply(Action::Join(node(id))));
    for id in down {
        let (node, incarnation) = (NodeId(*id), 1);
        apply(Action::Fence { node, incarnation });
        apply(Action::Promote { node, incarnation, replacements: Vec::new() });
    }
    table
}

fn agree(table: &mut Table, action: Action) {
    let number = table.version() + 1;
    let outcome = table.apply(number, &Command { id: RequestId { proposer: 2, number }, action });
    assert!(matches!(outcome, control::Outcome::Changed { .. }), "{outcome:?}");
}

/// As [`table`], without this node, which had nothing.
fn without(mut table: Table, node: u32) -> Table {
    agree(&mut table, Action::Drain { node: NodeId(node) });
    agree(&mut table, Action::Remove { node: NodeId(node), abandon: false });
    table
}

/// Somebody else is at its address, say: that does not change from one tick to the next.
#[test]
fn who_is_refused_to_come_back_asks_again_after_a_while() {
    let mut inside = crate::rig::leading();
    let (me, incarnation) = (inside.me(), inside.incarnation);
    let mut table = inside.table().clone();
    agree(&mut table, Action::Fence { node: me, incarnation });
    agree(&mut table, Action::Promote { node: me, incarnation, replacements: Vec::new() });
    inside.identity.table = table;
    inside.incarnation += 1;
    let mut now_us = 3_000_000;
    for _ in 0..3 {
        inside.renew(now_us);
        let [Message::Propose { number, command }] = &inside.proposals.due(now_us)[..] else { panic!("it comes") };
        assert!(matches!(command.action, Action::Returned(_)));
        let result = Proposed::Refused(control::Refusal::AddressTaken(NodeId(2)));
        inside.heed(now_us, me, Message::Proposed { number: *number, result });
        now_us += RETURN_AGAIN_US - 1;
        inside.renew(now_us);
        assert!(inside.proposals.is_empty() && inside.return_deadline_us(now_us) == Some(now_us + 1));
        now_us += 1;
    }
}

/// A deadline that has come would have it tick without end, for nothing.
#[test]
fn who_is_fenced_again_before_it_knows_that_it_came_back_waits_for_that() {
    let mut inside = crate::rig::leading();
    let (me, number) = (inside.me(), inside.incarnation);
    inside.returning = Some(Returning { number, had_come: true });
    let now_us = 3_000_000;
    inside.renew(now_us);
    assert!(inside.lease_deadline_us(now_us).is_some_and(|at_us| at_us > now_us), "it renews");
    inside.lease.on_reply(
        me,
        control::lease::Reply {
            incarnation: inside.incarnation,
            number: 1,
            granted_us: Err(control::lease::Denial::Over),
        },
    );
    assert!(inside.lease.is_over());
    let later_us = now_us + 1_000_000;
    inside.renew(later_us);
    assert_eq!(inside.lease_deadline_us(later_us), None);
    inside.returning = None;
    inside.renew(later_us);
    assert!(inside.lease_deadline_us(later_us).is_some_and(|at_us| at_us > later_us), "as somebody new");
}

#[test]
fn who_was_removed_votes_no_more_even_if_one_is_left_to_vote_alone() {
    assert_eq!(wanted(&without(table(3, &[]), 3), &[&[1, 2, 3]], &[1, 2]), Some(vec![1]));
    assert_eq!(wanted(&without(table(4, &[]), 3), &[&[1, 2, 3]], &[1, 2, 4]), Some(vec![1, 2, 4]));
    assert_eq!(wanted(&without(table(5, &[]), 4), &[&[1, 2, 3]], &[1, 2, 3, 5]), None, "it did not vote");
}

#[test]
fn nodes_take_their_share_until_nothing_more_can_be_had() {
    let mut two = table(2, &[]);
    let place = |node| base::InstanceName { node: NodeId(node), core: base::CoreId(0) };
    let served = |table: &Table| table.ranges_of(place(2)).iter().map(|slots| u32::from(slots.len())).sum::<u32>();
    for _ in 0..200 {
        let actions = planned(&two);
        if let [Action::Share { node: NodeId(2), takes: false }] = actions[..] {
            assert!((7_000..=9_400).contains(&served(&two)) && two.slots_held(NodeId(2)) == 16_384);
            agree(&mut two, Action::Share { node: NodeId(2), takes: false });
            for slots in two.ranges_of(place(2)) {
                let epoch = two.version();
                agree(&mut two, Action::MoveBegin { slots, epoch, from: place(2), to: place(1) });
                bring_on(&mut two);
            }
            assert_eq!((served(&two), planned(&two)), (0, Vec::new()), "what operators move stays where they put it");
            return;
        }
        actions.into_iter().for_each(|action| agree(&mut two, action));
        bring_on(&mut two);
    }
    panic!("it is never sated: {:?}", planned(&two));
}

/// Who is filled becomes whole, moves are handed over and end.
fn bring_on(table: &mut Table) {
    let filling: Vec<(placement::SlotRange, NodeId)> = table
        .stretches()
        .filter_map(|(slots, stretch)| Some((slots, stretch.chain.iter().find(|member| !member.whole)?.place.node)))
        .collect();
    for (slots, node) in filling {
        let epoch = table.version();
        agree(table, Action::Whole { slots, node, epoch });
    }
    for id in table.moves().iter().map(|one| one.id).collect::<Vec<_>>() {
        let epoch = table.version();
        agree(table, Action::HandOver { id, epoch });
        agree(table, Action::MoveEnd { id });
    }
}

fn wanted(table: &Table, sets: &[&[u32]], heard: &[u32]) -> Option<Vec<u32>> {
    let sets: Vec<Vec<NodeId>> = sets.iter().map(|set| set.iter().copied().map(NodeId).collect()).collect();
    let heard = heard.iter().copied().map(NodeId).collect();
    managers(table, &sets, &heard).map(|wanted| wanted.into_iter().map(|node| node.0).collect())
}

#[test]
fn one_becomes_three_and_three_become_five_as_nodes_are_heard() {
    assert_eq!(wanted(&table(2, &[]), &[&[1]], &[1, 2]), None);
    assert_eq!(wanted(&table(3, &[]), &[&[1]], &[1, 2]), None, "the third one may not know that it is a node");
    assert_eq!(wanted(&table(3, &[]), &[&[1]], &[2, 3]), Some(vec![1, 2, 3]));
    assert_eq!(wanted(&table(4, &[]), &[&[2, 3, 4]], &[1, 2, 3, 4]), None);
    assert_eq!(wanted(&table(5, &[]), &[&[2, 3, 4]], &[1, 2, 3, 4, 5]), Some(vec![1, 2, 3, 4, 5]));
    assert_eq!(wanted(&table(6, &[]), &[&[2, 3, 4, 5, 6]], &[1, 2, 3, 4, 5, 6]), None);
}

#[test]
fn who_is_down_is_replaced_if_somebody_is_there_and_managers_become_no_fewer() {
    assert_eq!(wanted(&table(4, &[2]), &[&[1, 2, 3]], &[1, 3, 4]), Some(vec![1, 3, 4]));
    assert_eq!(wanted(&table(4, &[2]), &[&[1, 2, 3]], &[1, 3]), None, "nobody else was heard");
    assert_eq!(wanted(&table(3, &[2]), &[&[1, 2, 3]], &[1, 3]), None);
    assert_eq!(wanted(&table(5, &[2]), &[&[1, 2, 3, 4, 5]], &[1, 3, 4, 5]), None);
    assert_eq!(wanted(&table(2, &[1]), &[&[1]], &[2]), None, "nobody could agree on that");
}

#[test]
fn a_change_that_was_begun_is_ended() {
    assert_eq!(wanted(&table(3, &[]), &[&[1], &[1, 2, 3]], &[1, 2, 3]), Some(vec![1, 2, 3]));
    assert_eq!(wanted(&table(3, &[3]), &[&[1], &[1, 2, 3]], &[1, 2]), Some(vec![1, 2, 3]));
    assert_eq!(wanted(&table(4, &[3]), &[&[1], &[1, 2, 3]], &[1, 2, 4]), Some(vec![1, 2, 4]));
}
