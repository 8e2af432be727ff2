//! Plans for clusters of every size: what they ask is granted, they move no more than a share, keep to ranges, machines and
//! zones, and come to rest.

use std::collections::BTreeSet;

use base::Slot;
use base::rng::Rng;
use control::plan::{self, Violation};
use control::*;

use placement::SlotRange;

use crate::rig::{Rig, newcomer, place, unplanted};

/// A node somewhere, with any number of cores and any weight.
fn anybody(rng: &mut Rng, id: u32, (zones, machines): (u64, u64)) -> Newcomer {
    let machine = rng.below(machines);
    let mut facts = newcomer(id, 1 + rng.below(8) as u16, &format!("z{}", machine % zones), &format!("m{machine}"));
    facts.weight = if rng.chance(1, 3) { 1 + rng.below(8) as u16 } else { 0 };
    facts
}

/// Everything that was begun comes to its end, and chains get and lose who they should.
fn settle(rig: &mut Rig) {
    for _ in 0..12 {
        rig.fill();
        let wanted = rig.table.moves().iter().filter(|one| one.state == MoveState::Wanted);
        let waiting: Vec<u64> = wanted.map(|one| one.id).collect();
        let epoch = rig.table.version();
        waiting.iter().for_each(|&id| rig.done(Action::HandOver { id, epoch }));
        end_moves(rig);
        let mut actions = plan::fill_up(&rig.table);
        if actions.is_empty() {
            actions = plan::mend(&rig.table);
        }
        if actions.is_empty() {
            actions = plan::trim(&rig.table);
        }
        if actions.is_empty() && rig.table.moves().is_empty() {
            return assert_view(&rig.table);
        }
        actions.into_iter().for_each(|action| rig.done(action));
    }
    panic!("plans do not come to rest: {:?}", plan::violations(&rig.table));
}

/// Requests are routed as the table says.
fn assert_view(table: &Table) {
    let view = table.view();
    assert_eq!((view.cluster(), view.version()), (table.cluster(), table.version()));
    for (slot, chain) in view.slots() {
        let stretch = table.stretch(slot);
        let members: Vec<InstanceName> = stretch.chain.iter().map(|member| member.place).collect();
        assert_eq!((chain.epoch, &chain.members), (stretch.epoch.0, &members));
        assert_eq!(view.first(slot), stretch.chain.primary());
        for member in members {
            let facts = &table.node(member.node).unwrap().facts;
            let endpoint = view.endpoint(member);
            assert_eq!((endpoint.host.as_str(), endpoint.port), (facts.host.as_str(), facts.port + 1 + member.core.0));
        }
    }
}

/// Moves that were handed over end, those that need another copy first wait for it.
fn end_moves(rig: &mut Rig) {
    for id in rig.table.moves().iter().map(|one| one.id).collect::<Vec<_>>() {
        let outcome = rig.apply(Action::MoveEnd { id });
        let is_right = matches!(outcome, Outcome::Changed { .. } | Outcome::Refused(Refusal::FewerWhole(_)));
        assert!(is_right, "{outcome:?}");
    }
}

fn moved(actions: &[Action]) -> u32 {
    let count = |action: &Action| match action {
        Action::MoveBegin { slots, .. } => u32::from(slots.len()),
        other => panic!("{other:?} moves nothing"),
    };
    actions.iter().map(count).sum()
}

fn firsts(table: &Table, node: NodeId) -> u32 {
    table.places_of(node).flat_map(|place| table.ranges_of(place)).map(|slots| u32::from(slots.len())).sum()
}

fn share(table: &Table, node: NodeId) -> u32 {
    let up = || table.nodes().filter(|node| node.state == NodeState::Up);
    let sum: u32 = up().map(Node::share).sum();
    16384 * up().find(|other| other.id() == node).map_or(0, Node::share) / sum
}

/// The rules of placement, by another reading of the page than the crate's.
fn judge_places(table: &Table) {
    for (slots, stretch) in table.stretches() {
        let facts = |member: &Member| &table.node(member.place.node).expect("members are nodes").facts;
        let is_staying =
            |member: &&Member| table.node(member.place.node).is_some_and(|node| node.state == NodeState::Up);
        let staying = || stretch.chain.iter().filter(is_staying);
        let machines: BTreeSet<&str> = staying().map(|member| facts(member).machine.as_str()).collect();
        assert_eq!(machines.len(), staying().count(), "{slots:?}: one machine twice");
        let zones: BTreeSet<&str> = stretch.chain.iter().map(|member| facts(member).zone.as_str()).collect();
        // For the last of two in one zone somebody else would have been possible.
        for (at, member) in stretch.chain.iter().enumerate() {
            let is_twice = stretch.chain[..at].iter().any(|other| facts(other).zone == facts(member).zone);
            let is_possible = |node: &&Node| {
                let others = || stretch.chain.iter().filter(|other| other.place.node != member.place.node);
                node.state == NodeState::Up
                    && !zones.contains(node.facts.zone.as_str())
                    && others().all(|other| facts(other).machine != node.facts.machine)
            };
            let better = table.nodes().find(is_possible);
            assert!(!is_twice || better.is_none(), "{slots:?}: {:?} although {better:?}", stretch.chain);
        }
    }
}

fn judge_ranges(table: &Table) {
    for (place, count) in table.range_counts() {
        assert!(count <= 16, "{place} has {count} ranges");
    }
}

/// A cluster of `nodes` nodes that came one after the other; each join is judged.
fn grown(seed: u64, nodes: u32, judge: bool) -> Rig {
    joined(seed, nodes, judge).0
}

/// The same, with how many slots joins took, and how many shares there were.
fn joined(seed: u64, nodes: u32, judge: bool) -> (Rig, (u32, u32)) {
    let (mut taken, mut shares) = (0, 0);
    let mut rng = Rng::new(seed);
    let shape = (1 + rng.below(4), u64::from(nodes) + 2 + rng.below(20));
    let mut rig = Rig::founded(anybody(&mut rng, 1, shape), 1 + rng.below(3) as u8);
    for id in 2..=nodes {
        rig.done(Action::Join(anybody(&mut rng, id, shape)));
        let (node, actions) = (NodeId(id), plan::join(&rig.table, NodeId(id)));
        let share = share(&rig.table, node);
        assert!(moved(&actions) <= share, "{node} takes {} of {share}", moved(&actions));
        taken += moved(&actions);
        shares += share;
        let is_only_to = |action: &Action| matches!(action, Action::MoveBegin { to, .. } if to.node == node);
        assert!(actions.iter().all(is_only_to), "a join moves to who joins");
        actions.into_iter().for_each(|action| rig.done(action));
        settle(&mut rig);
        if judge {
            judge_ranges(&rig.table);
            judge_places(&rig.table);
        }
    }
    (rig, (taken, shares))
}

#[test]
fn a_join_takes_its_share_and_no_more_for_every_size_up_to_forty() {
    let _unplanted = unplanted();
    for (seed, nodes) in [(1, 2), (2, 3), (3, 5), (4, 9), (5, 16), (6, 40)] {
        let (rig, (taken, shares)) = joined(seed, nodes, true);
        // Zones, machines and ranges leave some without all of it.
        assert!(taken * 2 > shares, "seed {seed}: joins took {taken} of {shares}");
        println!("seed {seed}: joins took {taken} of {shares}");
        let table = &rig.table;
        let shares = table.nodes().map(|node| (node.id(), share(table, node.id()), firsts(table, node.id())));
        for (node, share, has) in shares {
            println!("seed {seed}, {nodes} nodes: {node} has {has} of {share}");
        }
    }
}

#[test]
fn a_fourth_equal_node_gets_a_quarter_in_one_piece_of_each() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 1, "", "m1"), 2);
    for id in 2..=4 {
        rig.done(Action::Join(newcomer(id, 1, "", &format!("m{id}"))));
        let actions = plan::join(&rig.table, NodeId(id));
        assert_eq!(actions.len() as u32, id - 1, "one piece of each");
        actions.into_iter().for_each(|action| rig.done(action));
        settle(&mut rig);
    }
    for id in 1..=4 {
        let has = firsts(&rig.table, NodeId(id));
        assert!((3600..=4600).contains(&has), "node {id} has {has}");
    }
    assert_eq!(plan::violations(&rig.table), []);
}

/// Copies go where they are missing until none do; how many slots were copied.
fn spread(rig: &mut Rig) -> u32 {
    let mut copied = 0;
    for _ in 0..60 {
        let actions = plan::spread(&rig.table);
        if actions.is_empty() {
            return copied;
        }
        for action in actions {
            let Action::Replace { slots, .. } = &action else { panic!("{action:?} copies nothing") };
            copied += u32::from(slots.len());
            rig.done(action);
        }
        assert_eq!(plan::trim(&rig.table), [], "who is being filled stays, or it would come and go for ever");
        settle(rig);
        judge_places(&rig.table);
    }
    panic!("copies do not come to rest");
}

fn held(table: &Table, node: u32) -> u32 {
    u32::from(table.slots_held(NodeId(node)))
}

#[test]
fn copies_go_to_who_has_few_and_come_to_rest() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 1, "", "m1"), 2);
    for id in 2..=4 {
        rig.done(Action::Join(newcomer(id, 1, "", &format!("m{id}"))));
        plan::join(&rig.table, NodeId(id)).into_iter().for_each(|action| rig.done(action));
        settle(&mut rig);
    }
    let before: Vec<u32> = (1..=4).map(|id| held(&rig.table, id)).collect();
    assert!(before.iter().any(|held| *held < 6000), "nothing to spread: {before:?}");
    let copied = spread(&mut rig);
    for id in 1..=4 {
        let held = held(&rig.table, id);
        assert!((7000..=9400).contains(&held), "node {id} has {held} of 8192, before {before:?}");
    }
    let lacking: u32 = before.iter().map(|held| 8192u32.saturating_sub(*held)).sum();
    assert!(copied <= lacking, "{copied} slots were copied, {lacking} were missing");
    // Who has had his share takes no more.
    for id in 1..=4 {
        rig.done(Action::Share { node: NodeId(id), takes: false });
    }
    rig.done(Action::Join(newcomer(5, 1, "", "m5")));
    let to = |action: &Action| match action {
        Action::Replace { places, .. } => places.last().map(|place| place.node.0),
        other => panic!("{other:?}"),
    };
    let takers: BTreeSet<_> = plan::spread(&rig.table).iter().filter_map(to).collect();
    assert_eq!(takers, BTreeSet::from([5]));
}

/// The one that founded the cluster gave slots away, and is to get no share of those: copies it gets all the same.
#[test]
fn whoever_gave_slots_to_newcomers_gets_copies() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 1, "", "m1"), 2);
    for id in 2..=3 {
        rig.done(Action::Join(newcomer(id, 1, "", &format!("m{id}"))));
    }
    settle(&mut rig);
    let moves = plan::with_members(&rig.table, plan::share_out(&rig.table));
    moves.into_iter().for_each(|action| rig.done(action));
    settle(&mut rig);
    let before: Vec<u32> = (1..=3).map(|id| held(&rig.table, id)).collect();
    assert!(before[0] < 6000, "{before:?}");
    spread(&mut rig);
    for id in 1..=3 {
        let held = held(&rig.table, id);
        assert!((9500..=12_400).contains(&held), "node {id} has {held} of 10922, before {before:?}");
    }
    // What an operator puts elsewhere stays there.
    (1..=3).for_each(|id| rig.done(Action::Share { node: NodeId(id), takes: false }));
    let slots = rig.table.ranges_of(place(1, 0))[0];
    rig.done(Action::MoveBegin { slots, epoch: rig.table.version(), from: place(1, 0), to: place(2, 0) });
    settle(&mut rig);
    assert_eq!(plan::spread(&rig.table), []);
}

/// Equal nodes that join at once, or one after the other, come to have about the same, in whatever part.
#[test]
fn equal_nodes_have_equal_parts() {
    let _unplanted = unplanted();
    for (nodes, chain_length, at_once) in
        (2..=12).flat_map(|nodes| [(nodes, 2, true), (nodes, 2, false), (nodes, 3, true), (nodes, 1, false)])
    {
        let mut rig = Rig::founded(newcomer(1, 1, "", "m1"), chain_length);
        for id in 2..=nodes {
            rig.done(Action::Join(newcomer(id, 1, "", &format!("m{id}"))));
            if !at_once || id == nodes {
                share_out(&mut rig);
            }
        }
        let share = 16384 * u32::from(chain_length).min(nodes) / nodes;
        for id in 1..=nodes {
            let held = held(&rig.table, id);
            let all = || (1..=nodes).map(|id| self::held(&rig.table, id)).collect::<Vec<u32>>();
            let is_fair = held.abs_diff(share) <= share / 4;
            assert!(is_fair, "{nodes} nodes, chains of {chain_length}, at once {at_once}: {:?} of {share}", all());
        }
    }
}

/// Slots and copies go to newcomers until nothing more is planned.
fn share_out(rig: &mut Rig) {
    settle(rig);
    for _ in 0..40 {
        let mut actions = plan::share_out(&rig.table);
        actions.truncate(8);
        let mut actions = plan::with_members(&rig.table, actions);
        if actions.is_empty() {
            actions = plan::spread(&rig.table);
        }
        if actions.is_empty() {
            return;
        }
        actions.into_iter().for_each(|action| rig.done(action));
        settle(rig);
    }
    panic!("shares do not come to rest");
}

#[test]
fn copies_come_to_rest_in_clusters_of_every_kind() {
    let _unplanted = unplanted();
    let mut copied = 0;
    for (seed, nodes) in [(11, 3), (12, 4), (13, 5), (14, 8), (15, 12), (16, 12), (17, 20)] {
        let mut rig = grown(seed, nodes, false);
        copied += spread(&mut rig);
    }
    assert!(copied > 10_000, "only {copied} slots were copied");
}

#[test]
fn a_node_of_several_cores_gets_slots_on_each() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 4, "", "a"), 1);
    rig.done(Action::Join(newcomer(2, 4, "", "b")));
    plan::join(&rig.table, NodeId(2)).into_iter().for_each(|action| rig.done(action));
    settle(&mut rig);
    for (node, core) in (1..=2).flat_map(|node| (0..4).map(move |core| (node, core))) {
        let has: u32 = rig.table.ranges_of(place(node, core)).iter().map(|slots| u32::from(slots.len())).sum();
        assert!((1792..=2304).contains(&has), "node {node} core {core} has {has}");
        assert!(rig.table.ranges_of(place(node, core)).len() <= 2);
    }
}

#[test]
fn whichever_node_is_lost_every_slot_that_had_two_copies_is_served() {
    let _unplanted = unplanted();
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let rig = grown(100 + seed, 2 + rng.below(9) as u32, false);
        for lost in rig.table.nodes().map(Node::id).collect::<Vec<_>>() {
            let mut rig = rig.clone();
            let before = rig.table.clone();
            rig.done(Action::Fence { node: lost, incarnation: 1 });
            let replacements = plan::replacements(&rig.table, lost);
            rig.done(Action::Promote { node: lost, incarnation: 1, replacements });
            for number in (0..16384).step_by(7) {
                let (was, is) = (before.stretch(Slot::wrapping(number)), rig.table.stretch(Slot::wrapping(number)));
                assert!(was.chain.whole_count() < 2 || !is.chain.has(lost), "slot {number} waits for {lost}");
                assert!(is.chain.whole_count() > 0, "slot {number} has nobody");
            }
            assert_eq!(plan::fill_up(&rig.table), [], "a promotion names every replacement there is");
            settle(&mut rig);
            judge_places(&rig.table);
        }
    }
}

#[test]
fn a_drained_node_has_nothing_left_and_may_go() {
    let _unplanted = unplanted();
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let mut rig = grown(200 + seed, 3 + rng.below(8) as u32, false);
        let node = NodeId(1 + rng.below(3) as u32);
        rig.done(Action::Drain { node });
        for _ in 0..4 {
            plan::drain(&rig.table, node).into_iter().for_each(|action| rig.done(action));
            settle(&mut rig);
        }
        let held = rig.table.slots_held(node);
        println!("seed {seed}: {held} left, {:?}", plan::violations(&rig.table));
        if held == 0 {
            rig.done(Action::Remove { node, abandon: false });
        }
        // Without another node on another machine there is nowhere to go.
        let others: BTreeSet<&str> = rig
            .table
            .nodes()
            .filter(|node| node.state == NodeState::Up)
            .map(|node| node.facts.machine.as_str())
            .collect();
        let wanted = usize::from(rig.table.settings().chain_length);
        assert!(held == 0 || others.len() < wanted, "{node} still has {held}");
        judge_places(&rig.table);
    }
}

#[test]
fn rebalancing_comes_to_rest() {
    let _unplanted = unplanted();
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let mut rig = grown(300 + seed, 2 + rng.below(12) as u32, false);
        for id in 1..=2 {
            rig.done(Action::Weigh { node: NodeId(id), weight: 1 + rng.below(20) as u16 });
        }
        let mut rounds = 0;
        loop {
            let actions = plan::rebalance(&rig.table);
            if actions.is_empty() {
                break;
            }
            actions.into_iter().for_each(|action| rig.done(action));
            settle(&mut rig);
            judge_ranges(&rig.table);
            rounds += 1;
            assert!(rounds < 6, "seed {seed} moves for ever");
        }
    }
}

#[test]
fn a_zone_that_comes_gets_its_member_and_status_says_so_until_then() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 1, "z1", "a"), 2);
    rig.done(Action::Join(newcomer(2, 1, "z1", "b")));
    settle(&mut rig);
    assert_eq!(rig.chain(0), "[1.0 2.0]");
    assert_eq!(plan::violations(&rig.table), []);
    rig.done(Action::Join(newcomer(3, 1, "z2", "c")));
    let all = control::stretch::all_slots();
    assert_eq!(plan::violations(&rig.table), [Violation::OneZone(all, NodeId(1), NodeId(2))]);
    plan::mend(&rig.table).into_iter().for_each(|action| rig.done(action));
    assert_eq!(rig.chain(0), "[1.0 2.0 ~3.0]");
    assert_eq!(plan::trim(&rig.table), [], "nobody goes before the other one is whole");
    rig.fill();
    let going = plan::trim(&rig.table);
    assert!(matches!(going[..], [Action::Replace { counted: true, .. }]), "the first has to wait for 3 before");
    settle(&mut rig);
    assert_eq!(rig.chain(0), "[1.0 3.0]");
    assert_eq!(plan::violations(&rig.table), []);
}

#[test]
fn what_waits_is_named() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 1, "", "a"), 2);
    let all = control::stretch::all_slots();
    assert_eq!(plan::violations(&rig.table), [Violation::OneCopy(all), Violation::Short(all, 1)]);
    rig.kill(1);
    let expected = [Violation::OneCopy(all), Violation::Short(all, 1), Violation::Waiting(all, NodeId(1))];
    assert_eq!(plan::violations(&rig.table), expected);
    rig.done(Action::Remove { node: NodeId(1), abandon: true });
    assert_eq!(plan::violations(&rig.table), [Violation::Nobody(all)]);
    assert_eq!(plan::violations(&Table::new()), []);
}

/// A node that drains does not count on its machine; kept, it would be there twice.
#[test]
fn a_node_is_not_kept_where_another_one_of_its_machine_has_come() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 1, "", "m1"), 2);
    rig.done(Action::Join(newcomer(2, 1, "", "m2")));
    rig.done(Action::Join(newcomer(3, 1, "", "m2")));
    let all = SlotRange { first: Slot::wrapping(0), last: Slot::wrapping(16383) };
    let chain = |rig: &Rig, members: &[u32]| Action::Replace {
        slots: all,
        epoch: rig.table.version(),
        places: members.iter().map(|node| place(*node, 0)).collect(),
        counted: false,
    };
    rig.done(chain(&rig, &[1, 2]));
    rig.done(Action::Drain { node: NodeId(2) });
    rig.done(chain(&rig, &[1, 2, 3]));
    let kept = rig.apply(Action::Keep { node: NodeId(2) });
    assert_eq!(kept, Outcome::Refused(Refusal::OneMachine(NodeId(2), NodeId(3))));
    rig.done(chain(&rig, &[1, 2]));
    rig.done(Action::Keep { node: NodeId(2) });
}

/// A move to a member leaves the chain one short: who comes then is named at once, or a source that was quick is refused each time.
#[test]
fn a_move_to_a_member_comes_with_who_takes_its_place() {
    let _unplanted = unplanted();
    let mut rig = Rig::founded(newcomer(1, 1, "", "m1"), 2);
    (2..=3).for_each(|id| rig.done(Action::Join(newcomer(id, 1, "", &format!("m{id}")))));
    settle(&mut rig);
    let table = &rig.table;
    let (range, from, to) = table
        .stretches()
        .find_map(|(slots, stretch)| {
            let members: Vec<InstanceName> = stretch.chain.iter().map(|member| member.place).collect();
            (members.len() == 2).then(|| (slots, members[0], members[1]))
        })
        .expect("chains have two members");
    let begin = Action::MoveBegin { slots: range, epoch: table.version(), from, to };
    let plan = plan::with_members(table, vec![begin.clone()]);
    assert_eq!((plan.len(), &plan[0], table.first_refusal(&plan)), (2, &begin, None));
    let Action::Replace { places, counted: false, .. } = &plan[1] else { panic!("{plan:?}") };
    assert_eq!((places[0], places[1], places.len()), (from, to, 3));
    let elsewhere = Action::MoveBegin { slots: range, epoch: table.version(), from, to: place(9, 0) };
    assert_eq!(plan::with_members(table, vec![elsewhere]), [], "what is refused is no plan");
}
