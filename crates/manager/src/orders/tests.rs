//! Orders of a node that leads its cluster of one, and of tables of more.

use control::{Command, Newcomer, Outcome, RequestId};

use super::*;
use crate::rig::{leading, newcomer, work};

fn apply(table: &mut Table, action: Action) {
    let number = table.version() + 1;
    let command = Command { id: RequestId { proposer: 99, number }, action };
    assert_eq!(table.apply(number, &command), Outcome::Changed { version: number }, "{command:?}");
}

fn name(node: u32) -> InstanceName {
    InstanceName { node: NodeId(node), core: CoreId(0) }
}

fn slots(first: u16, last: u16) -> SlotRange {
    SlotRange { first: base::Slot::wrapping(first), last: base::Slot::wrapping(last) }
}

/// Nodes 1 to `count`, each on a machine of its own; the first one has everything.
fn table(count: u32, chain_length: u8) -> Table {
    let mut table = Table::new();
    let node = |id: u32| Newcomer { id: NodeId(id), ..newcomer(&format!("host {id}"), 1) };
    let settings = Settings { lease_ms: 300, chain_length };
    let founding = control::Founding { cluster: [1; 16], settings, relaxed: false, node: node(1) };
    apply(&mut table, Action::Create(founding));
    (2..=count).for_each(|id| apply(&mut table, Action::Join(node(id))));
    table
}

/// Gives an order to a node that leads alone, and lets it work: what it answers.
fn answered(order: Order) -> (Inside, Ordered) {
    let mut inside = leading();
    inside.on_order(CoreId(3), 7, order);
    for turn in 0..40 {
        inside.carry_out();
        inside.send_proposals(2_000_000 + turn * 1000);
        work(&mut inside, 2_000_000 + turn * 1000, 2_001_000 + turn * 1000);
    }
    let mut answers = inside.orders.take_answers();
    assert_eq!(answers.len(), 1, "one order, one answer");
    let (core, gather, ordered) = answers.remove(0);
    assert_eq!((core, gather), (CoreId(3), 7));
    (inside, ordered)
}

#[test]
fn what_is_agreed_is_answered_and_in_the_table() {
    let (inside, ordered) = answered(Order::Configure { lease_ms: Some(700), chain_length: None });
    assert_eq!(ordered, Ordered::Done);
    assert_eq!(inside.table().settings(), Settings { lease_ms: 700, chain_length: 2 });
    assert!(inside.orders.list.is_empty());
    let (_, ordered) = answered(Order::Status);
    let Ordered::Status(standing) = ordered else { panic!("{ordered:?}") };
    assert_eq!((standing.nodes.len(), standing.leader, standing.chain_length), (1, Some(NodeId(1)), 2));
    assert!(standing.violations.iter().any(|text| text.contains("one whole copy")), "{:?}", standing.violations);
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let refused = |table: &Table, order: Order| actions(table, order).expect_err("it cannot be");
    let two = table(2, 2);
    let text = refused(&two, Order::Drain(NodeId(2)));
    assert!(text.contains("1 places for copies") && text.contains("--chain-length 1"), "{text}");
    let text = refused(&two, Order::Remove { node: NodeId(1), abandon: false });
    assert!(text.contains("still has 16384 slots: drain it first ('zerohop cluster drain 1')"), "{text}");
    assert!(refused(&two, Order::Keep(NodeId(2))).contains("node 2 is up"));
    assert!(refused(&two, Order::Weigh { node: NodeId(9), weight: 1 }).contains("there is no node 9"));
    let move_all = |to| Order::Move(vec![(slots(0, 16383), name(to))]);
    assert!(refused(&two, move_all(1)).contains("serves all of these slots already"));
    let twice = Order::Move(vec![(slots(0, 99), name(2)), (slots(50, 60), name(2))]);
    assert!(refused(&two, twice).contains("slot ranges 0-99 and 50-60 overlap"));
    let half = Order::Move(vec![(slots(0, 99), name(2)), (slots(200, 210), name(9))]);
    assert!(refused(&two, half).contains("there is no node 9"), "all of it or nothing");
    assert!(actions(&two, move_all(2)).is_ok());
    assert!(actions(&table(3, 2), Order::Drain(NodeId(1))).is_ok());
}

#[test]
fn moves_begin_for_each_part_that_somebody_else_serves() {
    let mut two = table(2, 1);
    let epoch = two.version();
    apply(&mut two, Action::MoveBegin { slots: slots(100, 199), epoch, from: name(1), to: name(2) });
    let (id, epoch) = (two.version(), two.version());
    apply(&mut two, Action::Whole { slots: slots(100, 199), node: NodeId(2), epoch });
    let epoch = two.version();
    apply(&mut two, Action::HandOver { id, epoch });
    apply(&mut two, Action::MoveEnd { id });
    let wanted = actions(&two, Order::Move(vec![(slots(0, 299), name(2))])).expect("it can be");
    let begun: Vec<SlotRange> = wanted
        .iter()
        .map(|action| match action {
            Action::MoveBegin { slots, from, to, .. } if (*from, *to) == (name(1), name(2)) => *slots,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(begun, [slots(0, 99), slots(200, 299)]);
}

#[test]
fn who_calls_moves_off_keeps_them_from_being_planned_again() {
    let mut two = table(2, 1);
    let epoch = two.version();
    apply(&mut two, Action::MoveBegin { slots: slots(0, 99), epoch, from: name(1), to: name(2) });
    let id = two.version();
    let wanted = actions(&two, Order::CancelMoves(name(1))).expect("it can be");
    assert_eq!(wanted, [Action::Share { node: NodeId(2), takes: false }, Action::MoveCancel { id }]);
    assert_eq!(actions(&two, Order::CancelMoves(name(2))), Ok(Vec::new()), "they are not its own");
}

#[test]
fn what_the_table_was_ahead_of_is_planned_anew_and_a_refusal_ends_the_order() {
    let mut inside = leading();
    let move_some = |inside: &mut Inside| {
        let epoch = inside.table().version();
        let begin = |first| Action::MoveBegin { slots: slots(first, first), epoch, from: name(1), to: name(2) };
        let left = VecDeque::from([begin(0), begin(1)]);
        inside.orders.list.push(Open {
            core: CoreId(0),
            gather: 5,
            left,
            asked: None,
            from_version: 0,
            anew: 0,
            done: 0,
        });
        inside.carry_out();
        inside.orders.list[0].asked.expect("it is proposed")
    };
    let first = move_some(&mut inside);
    let version = inside.table().version();
    let overtaken = |version| Proposed::Refused(Refusal::Overtaken(base::Slot::wrapping(0), version));
    inside.on_outcome(first, overtaken(version + 1));
    inside.carry_out();
    assert_eq!(inside.orders.list[0].asked, None, "this node has to hear of that table first");
    inside.orders.list[0].from_version = version;
    inside.carry_out();
    let again = inside.orders.list[0].asked.expect("it is proposed again");
    assert_ne!(again, first);
    inside.on_outcome(again, Proposed::Agreed);
    inside.carry_out();
    let second = inside.orders.list[0].asked.expect("the next one");
    inside.on_outcome(second, Proposed::Refused(Refusal::TooManyMoves));
    let answers = inside.orders.take_answers();
    let [(_, 5, Ordered::Refused(text))] = &answers[..] else { panic!("{answers:?}") };
    assert!(text.contains("as many ranges are moving") && text.contains("1 steps of it were agreed before"), "{text}");
}

#[test]
fn orders_are_bounded_and_a_node_that_comes_again_answers_all() {
    let mut inside = leading();
    (0..=ORDERS_MAX as u64).for_each(|gather| inside.on_order(CoreId(0), gather, Order::Rebalance));
    let answers = inside.orders.take_answers();
    assert!(
        matches!(&answers[..], [(_, gather, Ordered::Refused(text))] if *gather == ORDERS_MAX as u64 && text.contains("too many orders")),
        "{answers:?}"
    );
    inside.forget_orders();
    assert_eq!(inside.orders.take_answers().len(), ORDERS_MAX);
    assert!(inside.orders.list.is_empty());
}
