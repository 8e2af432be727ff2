//! The rules by example: each command once as it should be, and what it is refused for.

use control::*;

use crate::rig::{Rig, founding, newcomer, place, slots, unplanted};

/// Three nodes on three machines, chains of two, everything filled: slots 0 to 8191 are 1's with 2 behind, the others 2's
/// with 3 behind.
fn trio() -> Rig {
    let mut rig = Rig::founded(newcomer(1, 1, "", "a"), 2);
    rig.done(Action::Join(newcomer(2, 1, "", "b")));
    rig.done(Action::Join(newcomer(3, 1, "", "c")));
    let epoch = rig.table.version();
    let places = vec![place(1, 0), place(2, 0)];
    rig.done(Action::Replace { slots: slots(0, 16383), epoch, places, counted: false });
    rig.fill();
    let (whole, epoch) = (slots(8192, 16383), rig.table.version());
    rig.done(Action::MoveBegin { slots: whole, epoch, from: place(1, 0), to: place(2, 0) });
    let id = rig.table.moves()[0].id;
    rig.done(Action::HandOver { id, epoch: rig.table.version() });
    rig.done(Action::MoveEnd { id });
    let (epoch, places) = (rig.table.version(), vec![place(2, 0), place(1, 0), place(3, 0)]);
    rig.done(Action::Replace { slots: whole, epoch, places, counted: false });
    rig.fill();
    let (epoch, places) = (rig.table.version(), vec![place(2, 0), place(3, 0)]);
    let step = Action::Replace { slots: whole, epoch, places, counted: true };
    rig.done(step);
    assert_eq!((rig.chain(0), rig.chain(16383)), ("[1.0 2.0]".to_owned(), "[2.0 3.0]".to_owned()));
    rig
}

#[test]
fn a_founder_owns_all_slots_split_over_its_cores() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 4, "", "a"), 1);
    assert_eq!(rig.table.stretches().count(), 4);
    assert_eq!(rig.chain(4096), "[1.1]");
    assert_eq!(rig.refused(founding(newcomer(2, 1, "", "b"), 1)), Refusal::Created);
    assert_eq!(Rig::empty().refused(Action::Drain { node: NodeId(1) }), Refusal::NotCreated);
}

#[test]
fn numbers_addresses_and_identities_are_given_once() {
    let _unplanted = unplanted();
    let mut rig = trio();
    assert_eq!(rig.refused(Action::Join(newcomer(3, 1, "", "d"))), Refusal::NumberTaken(NodeId(3)));
    let mut twin = newcomer(4, 1, "", "d");
    twin.host = "host-2".to_owned();
    assert_eq!(rig.refused(Action::Join(twin.clone())), Refusal::AddressTaken(NodeId(2)));
    (twin.host, twin.identity) = ("host-4".to_owned(), [3; 32]);
    assert_eq!(rig.refused(Action::Join(twin.clone())), Refusal::IdentityTaken(NodeId(3)));
    (twin.identity, twin.machine) = ([4; 32], String::new());
    assert_eq!(rig.refused(Action::Join(twin)), Refusal::Impossible(Flaw::Machine));
    assert_eq!(rig.table.next_node(), Some(NodeId(4)));
}

/// Two nodes come back and have changed places; or a newcomer comes to the address of who is away.
#[test]
fn who_comes_back_has_the_address_that_it_says_unless_somebody_may_be_there() {
    let _unplanted = unplanted();
    let mut rig = trio();
    let address = |node: u32| (format!("host-{node}"), 7000);
    let back = |node: u32, (host, port): (String, u16), takes_address| {
        let node = NodeId(node);
        Action::Returned(Comeback { node, incarnation: 2, host, port, cores: 1, takes_address })
    };
    rig.kill(1);
    rig.kill(2);
    assert_eq!(rig.refused(back(1, address(3), true)), Refusal::AddressTaken(NodeId(3)), "who is there is up");
    assert_eq!(
        rig.refused(back(1, address(2), false)),
        Refusal::AddressTaken(NodeId(2)),
        "as commands of before say it"
    );
    rig.done(back(1, address(2), true));
    assert_eq!(rig.refused(back(2, address(2), true)), Refusal::AddressTaken(NodeId(1)), "it is the other one's now");
    rig.done(Action::Fence { node: NodeId(1), incarnation: 2 });
    assert_eq!(rig.refused(back(2, address(2), true)), Refusal::AddressTaken(NodeId(1)), "its lease may run");
    rig.done(back(2, address(1), true));
    // Whoever lost its disk is taken out before somebody else comes to its address.
    rig.kill(3);
    let newcomer = Newcomer { host: address(3).0, ..newcomer(4, 1, "", "d") };
    assert_eq!(rig.refused(Action::Join(newcomer)), Refusal::AddressTaken(NodeId(3)));
}

#[test]
fn who_is_lost_is_replaced_by_who_has_everything() {
    let _unplanted = unplanted();
    let mut rig = trio();
    let replacements = vec![Replacement { slots: slots(0, 16383), place: place(3, 0) }];
    let promote = Action::Promote { node: NodeId(1), incarnation: 1, replacements };
    assert_eq!(rig.refused(promote.clone()), Refusal::NodeIs(NodeId(1), NodeState::Up));
    assert_eq!(rig.refused(Action::Fence { node: NodeId(1), incarnation: 2 }), Refusal::OtherIncarnation(NodeId(1), 1));
    rig.done(Action::Fence { node: NodeId(1), incarnation: 1 });
    rig.done(promote);
    assert_eq!((rig.chain(0), rig.chain(16383)), ("[2.0 ~3.0]".to_owned(), "[2.0 3.0]".to_owned()));
    // Nobody but 2 has the first half now: when 2 goes, its slots wait for it, and the others do not.
    rig.kill(2);
    assert_eq!((rig.chain(0), rig.chain(16383)), ("[2.0]".to_owned(), "[3.0]".to_owned()));
    let back = Comeback {
        node: NodeId(2),
        incarnation: 1,
        host: "host-2".to_owned(),
        port: 7000,
        cores: 2,
        takes_address: true,
    };
    assert_eq!(rig.refused(Action::Returned(back.clone())), Refusal::OtherIncarnation(NodeId(2), 1));
    rig.done(Action::Returned(Comeback { incarnation: 2, ..back }));
    assert_eq!(rig.table.node(NodeId(2)).unwrap().state, NodeState::Up);
    assert_eq!((rig.chain(0), rig.chain(8191)), ("[2.0]".to_owned(), "[2.0]".to_owned()));
    assert_eq!(rig.table.node(NodeId(2)).unwrap().place(slots(16383, 16383).first.group()), place(2, 1));
}

#[test]
fn who_is_fenced_leaves_chains_of_others_before_its_lease_is_over() {
    let _unplanted = unplanted();
    let mut rig = trio();
    let detach = || Action::Detach {
        node: NodeId(2),
        incarnation: 1,
        replacements: vec![Replacement { slots: slots(0, 16383), place: place(3, 0) }],
    };
    assert_eq!((rig.chain(0), rig.chain(16383)), ("[1.0 2.0]".to_owned(), "[2.0 3.0]".to_owned()));
    assert_eq!(rig.refused(detach()), Refusal::NodeIs(NodeId(2), NodeState::Up));
    rig.done(Action::Fence { node: NodeId(2), incarnation: 1 });
    assert_eq!(plan::detachment(&rig.table, NodeId(2)).map(|some| some.len()), Some(1));
    rig.done(detach());
    assert_eq!(rig.chain(0), "[1.0 ~3.0]", "who is first goes on without it");
    assert_eq!(rig.chain(16383), "[2.0 3.0]", "where it is first its lease may run");
    assert_eq!(plan::detachment(&rig.table, NodeId(2)), None);
    rig.done(Action::Promote { node: NodeId(2), incarnation: 1, replacements: Vec::new() });
    assert_eq!((rig.chain(0), rig.chain(16383)), ("[1.0 ~3.0]".to_owned(), "[3.0]".to_owned()));
}

#[test]
fn who_is_fenced_stays_where_nobody_else_can_serve_and_where_slots_move() {
    let _unplanted = unplanted();
    let mut rig = trio();
    rig.done(Action::Fence { node: NodeId(2), incarnation: 1 });
    rig.done(Action::Fence { node: NodeId(1), incarnation: 1 });
    assert_eq!(plan::detachment(&rig.table, NodeId(2)), None, "whoever of the two comes back has everything");
    let mut rig = trio();
    let epoch = rig.table.version();
    rig.done(Action::MoveBegin { slots: slots(0, 99), epoch, from: place(1, 0), to: place(3, 0) });
    rig.done(Action::Fence { node: NodeId(2), incarnation: 1 });
    rig.done(Action::Detach { node: NodeId(2), incarnation: 1, replacements: Vec::new() });
    assert_eq!((rig.chain(0), rig.chain(100)), ("[1.0 2.0 ~3.0]".to_owned(), "[1.0]".to_owned()));
    // To who is in the chain already: the stretch is larger than the move.
    let mut rig = trio();
    let epoch = rig.table.version();
    rig.done(Action::MoveBegin { slots: slots(64, 127), epoch, from: place(1, 0), to: place(2, 0) });
    rig.done(Action::Fence { node: NodeId(2), incarnation: 1 });
    rig.done(Action::Detach { node: NodeId(2), incarnation: 1, replacements: Vec::new() });
    let chains = [0, 63, 64, 127, 128].map(|slot| rig.chain(slot));
    assert_eq!(chains, ["[1.0]", "[1.0]", "[1.0 2.0]", "[1.0 2.0]", "[1.0]"]);
}

#[test]
fn a_promotion_waits_for_the_lease_of_the_incarnation_it_names() {
    let _unplanted = unplanted();
    let mut rig = trio();
    rig.kill(1);
    let (node, host) = (NodeId(1), "h".to_owned());
    rig.done(Action::Returned(Comeback { node, incarnation: 2, host, port: 1, cores: 1, takes_address: true }));
    rig.done(Action::Fence { node: NodeId(1), incarnation: 2 });
    let late = Action::Promote { node: NodeId(1), incarnation: 1, replacements: Vec::new() };
    assert_eq!(rig.refused(late), Refusal::OtherIncarnation(NodeId(1), 2));
}

#[test]
fn what_was_planned_for_an_older_chain_is_refused() {
    let _unplanted = unplanted();
    let mut rig = trio();
    let epoch = rig.table.version();
    rig.kill(3);
    let places = vec![place(2, 0), place(1, 0)];
    let (half, planned) = (slots(8192, 16383), rig.table.version());
    let refusal = rig.refused(Action::Replace { slots: half, epoch, places: places.clone(), counted: false });
    assert!(matches!(refusal, Refusal::Overtaken(..)), "{refusal}");
    rig.done(Action::Replace { slots: half, epoch: planned, places, counted: false });
    let refusal = rig.refused(Action::Whole { slots: half, node: NodeId(1), epoch: planned });
    assert!(matches!(refusal, Refusal::Overtaken(..)), "{refusal}");
    let refusal = rig.refused(Action::Whole { slots: half, node: NodeId(1), epoch: planned + 50 });
    assert!(matches!(refusal, Refusal::FromTheFuture(..)), "{refusal}");
    rig.fill();
    assert_eq!(rig.chain(9000), "[2.0 1.0]");
}

#[test]
fn who_takes_over_is_who_was_waited_for() {
    let _unplanted = unplanted();
    let mut rig = trio();
    let (half, epoch) = (slots(0, 8191), rig.table.version());
    let replace = |epoch, nodes: &[u32], counted| {
        let places = nodes.iter().map(|&node| place(node, 0)).collect();
        Action::Replace { slots: half, epoch, places, counted }
    };
    rig.done(replace(epoch, &[1, 2, 3], false));
    let epoch = rig.table.version();
    assert_eq!(rig.refused(replace(epoch, &[1, 3], true)), Refusal::FewerWhole(half.first));
    assert_eq!(rig.refused(replace(epoch, &[1, 3, 2], true)), Refusal::FillingBefore(half.first, NodeId(2)));
    rig.fill();
    assert_eq!(rig.refused(replace(epoch, &[1, 3], false)), Refusal::Uncounted(half.first));
    assert_eq!(rig.refused(replace(epoch, &[2, 1], true)), Refusal::NotFirst(half.first, place(1, 0)));
    rig.done(replace(epoch, &[1, 3], true));
    assert_eq!(rig.chain(0), "[1.0 3.0]");
}

/// Replies wait for the second: who stands behind it may lag, and is nobody's heir when those two are lost.
#[test]
fn who_was_not_waited_for_takes_over_from_nobody() {
    let _unplanted = unplanted();
    for (lost, left, gone) in [(1, "[2.0 ~3.0]", "[2.0]"), (2, "[1.0 ~3.0]", "[1.0]"), (3, "[1.0 2.0]", "[2.0]")] {
        let mut rig = trio();
        let places = [1, 2, 3].map(|node| place(node, 0)).to_vec();
        let epoch = rig.table.version();
        rig.done(Action::Replace { slots: slots(0, 8191), epoch, places, counted: false });
        rig.fill();
        rig.kill(lost);
        assert_eq!(rig.chain(0), left);
        let next = if lost == 1 { 2 } else { 1 };
        rig.kill(next);
        assert_eq!(rig.chain(0), gone);
    }
}

#[test]
fn members_are_whole_in_the_order_of_the_chain() {
    let _unplanted = unplanted();
    let mut rig = trio();
    rig.done(Action::Join(newcomer(4, 1, "", "d")));
    let (all, epoch) = (slots(0, 8191), rig.table.version());
    let places = vec![place(1, 0), place(2, 0), place(3, 0), place(4, 0)];
    rig.done(Action::Replace { slots: all, epoch, places, counted: false });
    let epoch = rig.table.version();
    let whole = |node| Action::Whole { slots: all, node: NodeId(node), epoch };
    assert_eq!(rig.refused(whole(4)), Refusal::FillingBefore(all.first, NodeId(4)));
    rig.done(whole(3));
    rig.done(whole(4));
    assert_eq!(rig.table.stretch(all.first).epoch.0, epoch, "the places stay, and so does the epoch");
}

#[test]
fn who_is_doubted_is_filled_anew_with_those_behind_it_and_what_was_said_of_them_is_void() {
    let _unplanted = unplanted();
    let mut rig = trio();
    let (half, epoch) = (slots(0, 8191), rig.table.version());
    let places = vec![place(1, 0), place(2, 0), place(3, 0)];
    rig.done(Action::Replace { slots: half, epoch, places, counted: false });
    let epoch = rig.table.version();
    rig.fill();
    assert_eq!(rig.chain(0), "[1.0 2.0 3.0]");
    let doubt = |node, epoch| Action::Doubt { slots: half, node: NodeId(node), epoch };
    assert_eq!(rig.refused(doubt(1, epoch)), Refusal::NotMember(half.first, NodeId(1)), "the first has everything");
    assert_eq!(rig.refused(doubt(4, epoch)), Refusal::NotMember(half.first, NodeId(4)));
    rig.done(doubt(2, epoch));
    assert_eq!(rig.chain(0), "[1.0 ~2.0 ~3.0]");
    let late = rig.refused(Action::Whole { slots: half, node: NodeId(2), epoch });
    assert!(matches!(late, Refusal::Overtaken(..)), "{late}");
    assert!(matches!(rig.refused(doubt(2, epoch)), Refusal::Overtaken(..)));
    let epoch = rig.table.version();
    rig.done(Action::Whole { slots: half, node: NodeId(2), epoch });
    rig.done(doubt(3, epoch));
    assert_eq!(rig.chain(0), "[1.0 2.0 ~3.0]");
    rig.kill(1);
    assert_eq!(rig.chain(0), "[2.0 ~3.0]");
}

#[test]
fn no_two_members_on_one_machine_nor_in_one_zone_while_another_has_room() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 1, "z1", "a"), 2);
    rig.done(Action::Join(newcomer(2, 1, "z1", "a")));
    rig.done(Action::Join(newcomer(3, 1, "z1", "b")));
    let behind = |rig: &Rig, node| Action::Replace {
        slots: slots(0, 16383),
        epoch: rig.table.version(),
        places: vec![place(1, 0), place(node, 0)],
        counted: false,
    };
    let action = behind(&rig, 2);
    assert_eq!(rig.refused(action), Refusal::OneMachine(NodeId(2), NodeId(1)));
    rig.done(Action::Join(newcomer(4, 1, "z2", "c")));
    let action = behind(&rig, 3);
    assert_eq!(rig.refused(action), Refusal::OneZone(NodeId(3), NodeId(1)));
    rig.done(Action::Drain { node: NodeId(4) });
    let action = behind(&rig, 3);
    rig.done(action);
    assert_eq!(rig.chain(0), "[1.0 ~3.0]");
}

#[test]
fn a_slot_group_has_one_core_on_a_node() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 2, "", "a"), 1);
    rig.done(Action::Join(newcomer(2, 2, "", "b")));
    rig.done(Action::Join(newcomer(3, 1, "", "c")));
    let begin = |rig: &Rig, first, last, (from, to)| {
        let (slots, epoch) = (slots(first, last), rig.table.version());
        Action::MoveBegin { slots, epoch, from: place(1, from), to }
    };
    let action = begin(&rig, 0, 99, (0, place(2, 0)));
    rig.done(action);
    let action = begin(&rig, 100, 199, (0, place(2, 1)));
    let refusal = rig.refused(action);
    assert_eq!(refusal, Refusal::HomeElsewhere(NodeId(2), slots(0, 0).first.group(), place(2, 0).core));
    assert_eq!(refusal.to_string(), "slots 0 to 255 are those of core 0 on node 2: give them to 2.0");
    let action = begin(&rig, 8192, 8200, (1, place(2, 1)));
    rig.done(action);
    let action = begin(&rig, 9000, 9001, (1, place(3, 0)));
    rig.done(action);
    let action = begin(&rig, 400, 420, (0, place(2, 7)));
    assert_eq!(rig.refused(action), Refusal::NoSuchCore(place(2, 7)));
}

#[test]
fn a_move_ends_with_the_destination_first_and_the_source_gone() {
    let _unplanted = unplanted();
    let mut rig = trio();
    let (part, epoch) = (slots(0, 99), rig.table.version());
    rig.done(Action::MoveBegin { slots: part, epoch, from: place(1, 0), to: place(3, 0) });
    let id = rig.table.moves()[0].id;
    assert_eq!(rig.chain(0), "[1.0 2.0 ~3.0]");
    let epoch = rig.table.version();
    assert_eq!(rig.refused(Action::HandOver { id, epoch }), Refusal::NotWhole(part.first));
    assert_eq!(rig.refused(Action::MoveEnd { id }), Refusal::MoveNotHandedOver(id));
    let overlap = Action::MoveBegin { slots: slots(50, 150), epoch, from: place(1, 0), to: place(3, 0) };
    assert_eq!(rig.refused(overlap), Refusal::Moving(id));
    rig.fill();
    rig.done(Action::HandOver { id, epoch });
    assert_eq!(rig.chain(0), "[3.0 1.0 2.0]");
    assert_eq!(rig.refused(Action::MoveCancel { id }), Refusal::MoveHandedOver(id));
    rig.done(Action::MoveEnd { id });
    assert_eq!((rig.chain(0), rig.chain(100)), ("[3.0 2.0]".to_owned(), "[1.0 2.0]".to_owned()));
    assert_eq!(rig.refused(Action::MoveEnd { id }), Refusal::MoveUnknown(id));
}

#[test]
fn any_end_of_a_move_may_die() {
    let _unplanted = unplanted();
    for (dead, handed, expected) in
        [(1, false, "[2.0 ~3.0]"), (3, false, "[1.0 2.0]"), (1, true, "[3.0 2.0]"), (3, true, "[1.0 2.0]")]
    {
        let mut rig = trio();
        let epoch = rig.table.version();
        rig.done(Action::MoveBegin { slots: slots(0, 99), epoch, from: place(1, 0), to: place(3, 0) });
        if handed {
            rig.fill();
            let (id, epoch) = (rig.table.moves()[0].id, rig.table.version());
            rig.done(Action::HandOver { id, epoch });
        }
        rig.kill(dead);
        assert_eq!(rig.chain(0), expected, "node {dead}, handed over: {handed}");
        assert!(rig.table.moves().is_empty());
    }
}

#[test]
fn a_cancelled_move_leaves_the_chain_as_it_was() {
    let _unplanted = unplanted();
    let mut rig = trio();
    let before = rig.chain(0);
    rig.done(Action::MoveBegin { slots: slots(0, 99), epoch: rig.table.version(), from: place(1, 0), to: place(3, 0) });
    let id = rig.table.moves()[0].id;
    rig.done(Action::MoveCancel { id });
    assert_eq!(rig.chain(0), before);
}

#[test]
fn an_instance_is_first_of_sixteen_ranges_at_most() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 1, "", "a"), 1);
    rig.done(Action::Join(newcomer(2, 1, "", "b")));
    let begin = |rig: &Rig, first: u16| Action::MoveBegin {
        slots: slots(first, first),
        epoch: rig.table.version(),
        from: place(1, 0),
        to: place(2, 0),
    };
    for number in 0..15 {
        let action = begin(&rig, 10 + 10 * number);
        rig.done(action);
    }
    let action = begin(&rig, 1000);
    assert_eq!(rig.refused(action), Refusal::TooManyRanges(place(1, 0)));
    let action = begin(&rig, 16383);
    rig.done(action);
    let action = begin(&rig, 0);
    assert_eq!(rig.refused(action), Refusal::TooManyRanges(place(2, 0)));
}

#[test]
fn a_node_leaves_for_ever_when_nothing_is_its_own() {
    let _unplanted = unplanted();
    let mut rig = trio();
    let remove = |node, abandon| Action::Remove { node: NodeId(node), abandon };
    assert_eq!(rig.refused(remove(3, true)), Refusal::HoldsSlots(NodeId(3), 8192));
    rig.kill(3);
    rig.done(remove(3, false));
    assert_eq!(rig.refused(Action::Drain { node: NodeId(3) }), Refusal::NodeIs(NodeId(3), NodeState::Gone));
    assert_eq!(rig.refused(Action::Join(newcomer(3, 1, "", "c"))), Refusal::NumberTaken(NodeId(3)));
    rig.kill(2);
    assert_eq!(rig.refused(remove(2, false)), Refusal::HoldsSlots(NodeId(2), 8192));
    rig.done(remove(2, true));
    assert_eq!((rig.chain(0), rig.chain(9000)), ("[1.0]".to_owned(), "[]".to_owned()));
    let (epoch, places) = (rig.table.version(), vec![place(1, 0)]);
    rig.done(Action::Replace { slots: slots(8192, 16383), epoch, places, counted: false });
    assert_eq!(rig.chain(9000), "[1.0]");
}

#[test]
fn instances_are_told_who_serves_where_and_who_is_up() {
    let _unplanted = unplanted();
    let mut rig = trio();
    let told = |rig: &Rig| {
        let view = rig.table.view();
        assert_eq!((view.version(), view.cluster()), (rig.table.version(), [7; 16]));
        let nodes = view.nodes().iter().map(|place| (place.node.0, place.host.clone(), place.cores, place.is_up));
        (
            nodes.collect::<Vec<_>>(),
            view.stretches().map(|(slots, chain)| (slots.last.number(), chain.members.clone())).collect::<Vec<_>>(),
        )
    };
    let node = |id: u32, is_up| (id, format!("host-{id}"), 1, is_up);
    let chains = vec![(8191, vec![place(1, 0), place(2, 0)]), (16383, vec![place(2, 0), place(3, 0)])];
    assert_eq!(told(&rig), (vec![node(1, true), node(2, true), node(3, true)], chains.clone()));
    rig.done(Action::Drain { node: NodeId(1) });
    rig.done(Action::Fence { node: NodeId(3), incarnation: 1 });
    assert_eq!(told(&rig), (vec![node(1, true), node(2, true), node(3, false)], chains));
    rig.done(Action::Promote { node: NodeId(3), incarnation: 1, replacements: Vec::new() });
    assert_eq!(told(&rig).0[2], node(3, false));
    rig.done(Action::Remove { node: NodeId(3), abandon: false });
    assert_eq!(told(&rig).0, [node(1, true), node(2, true)]);
}

#[test]
fn the_longest_lease_that_ever_was_is_remembered() {
    let _unplanted = unplanted();
    let mut rig = trio();
    rig.done(Action::Configure(Settings { lease_ms: 2000, chain_length: 2 }));
    rig.done(Action::Configure(Settings { lease_ms: 100, chain_length: 3 }));
    assert_eq!((rig.table.settings().lease_ms, rig.table.lease_ms_longest()), (100, 2000));
    let refusal = rig.refused(Action::Configure(Settings { lease_ms: 49, chain_length: 3 }));
    assert_eq!(refusal, Refusal::Impossible(Flaw::Lease));
}
