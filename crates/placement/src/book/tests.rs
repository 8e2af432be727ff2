//! Address books of clusters with primaries, replicas, holes and nodes that are down.

use base::{NodeId, Slot};

use super::*;
use crate::view::NodePlace;

fn name(node: u32, core: u16) -> InstanceName {
    InstanceName { node: NodeId(node), core: CoreId(core) }
}

fn place(node: u32, cores: u16) -> NodePlace {
    NodePlace { node: NodeId(node), host: format!("10.0.0.{node}"), port: 7000, cores, is_up: true, incarnation: 1 }
}

/// Stretches by first slot, epoch and members.
fn view(nodes: Vec<NodePlace>, stretches: &[(u16, u64, &[InstanceName])]) -> ClusterView {
    let stretch = |&(first, epoch, members): &(u16, u64, &[InstanceName])| {
        (Slot::wrapping(first), Chain { epoch, members: members.to_vec(), whole: members.len() })
    };
    ClusterView::new([9; 16], 50, nodes, stretches.iter().map(stretch).collect())
}

fn book(view: &ClusterView, me: InstanceName) -> AddressBook {
    AddressBook::of_cluster(view, me, &Endpoint { host: "10.0.0.99".into(), port: 99 })
}

fn numbers(range: SlotRange) -> (u16, u16) {
    (range.first.number(), range.last.number())
}

/// First slot, last slot, who serves, who else has them.
fn holders(book: &AddressBook) -> Vec<(u16, u16, usize, Vec<usize>)> {
    let holders = book.holders().iter();
    holders
        .map(|holders| (numbers(holders.range).0, numbers(holders.range).1, holders.first, holders.replicas.clone()))
        .collect()
}

fn ranges(book: &AddressBook, place: usize) -> Vec<(u16, u16)> {
    book.entries()[place].ranges.iter().map(|range| numbers(*range)).collect()
}

#[test]
fn whoever_is_first_anywhere_is_a_primary_and_nothing_else() {
    let (a, b, c) = (name(1, 0), name(2, 0), name(3, 0));
    let ring: &[(u16, u64, &[InstanceName])] = &[(0, 3, &[a, b]), (5461, 4, &[b, c]), (10923, 5, &[c, a])];
    let view = view(vec![place(1, 1), place(2, 1), place(3, 1)], ring);
    let book = book(&view, b);
    assert!(book.entries().iter().all(|entry| entry.primary.is_none()));
    assert_eq!(holders(&book), [(0, 5460, 0, vec![]), (5461, 10922, 1, vec![]), (10923, 16383, 2, vec![])]);
    assert_eq!((book.myself(), book.version(), book.is_whole()), (1, 50, true));
    assert_eq!(book.entries().iter().map(|entry| entry.epoch).collect::<Vec<_>>(), [3, 4, 5]);
}

#[test]
fn who_serves_nothing_is_a_replica_of_the_first_of_its_first_chain() {
    let (a, b, c) = (name(1, 0), name(2, 0), name(3, 0));
    let view = view(
        vec![place(1, 1), place(2, 1), place(3, 2)],
        // Neighbours that differ in their epoch only, or in who is behind and serves elsewhere, are one range.
        &[
            (0, 3, &[a, c]),
            (100, 7, &[a, c]),
            (200, 4, &[a, c, b]),
            (300, 4, &[a, b]),
            (400, 9, &[b, c]),
            (500, 2, &[b, a]),
        ],
    );
    let book = book(&view, c);
    assert_eq!(
        holders(&book),
        [(0, 299, 0, vec![2]), (300, 399, 0, vec![]), (400, 499, 1, vec![2]), (500, 16383, 1, vec![])]
    );
    assert_eq!((ranges(&book, 0), ranges(&book, 1), ranges(&book, 2)), (vec![(0, 399)], vec![(400, 16383)], vec![]));
    let [first, second, replica, idle] = book.entries() else { panic!("four instances") };
    assert_eq!((first.epoch, second.epoch, replica.epoch, idle.epoch), (7, 9, 7, 0));
    assert_eq!((first.primary, replica.primary, idle.primary), (None, Some(0), None));
    assert_eq!(replica.shard_id, first.shard_id);
    assert_ne!(replica.shard_id, second.shard_id);
    assert_eq!((book.replicas(0).collect::<Vec<_>>(), book.replicas(1).count()), (vec![2], 0));
    assert_eq!(idle.endpoint, Endpoint { host: "10.0.0.3".into(), port: 7002 });
}

#[test]
fn slots_of_nobody_and_of_nodes_that_are_down_are_not_served() {
    let (a, b, c) = (name(1, 0), name(2, 0), name(3, 0));
    let down = NodePlace { is_up: false, ..place(2, 1) };
    let view = view(
        vec![place(1, 1), down, place(3, 1)],
        &[(0, 1, &[a, c]), (10, 1, &[]), (11, 1, &[a, c]), (12, 1, &[b]), (20, 1, &[a, c])],
    );
    let book = book(&view, a);
    assert_eq!((book.slots_of(true), book.slots_of(false), book.is_whole()), (16384 - 9, 8, false));
    assert_eq!(ranges(&book, 0), [(0, 9), (11, 11), (20, 16383)]);
    let served = [(0, 9, 0, vec![2]), (11, 11, 0, vec![2]), (12, 19, 1, vec![]), (20, 16383, 0, vec![2])];
    assert_eq!(holders(&book), served);
    let text = book.nodes_text("");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(" 10.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-9 11 20-16383"), "{text}");
    assert!(lines[1].ends_with(" 10.0.0.2:7001@17001 master,fail - 0 0 1 disconnected 12-19"), "{text}");
    let primary = book.entries()[0].id;
    assert!(lines[2].ends_with(&format!(" 10.0.0.3:7001@17001 slave {primary} 0 0 1 connected")), "{text}");
}

#[test]
fn a_replica_that_is_down_is_listed_and_not_offered() {
    let (a, b) = (name(1, 0), name(2, 0));
    let view = view(vec![place(1, 1), NodePlace { is_up: false, ..place(2, 1) }], &[(0, 1, &[a, b])]);
    let book = book(&view, a);
    assert_eq!(holders(&book), [(0, 16383, 0, vec![])]);
    assert_eq!(book.entries()[1].primary, Some(0));
}

#[test]
fn everybody_calls_an_instance_the_same_and_no_two_alike() {
    let nodes = |host: &str| (1..=40).map(|node| NodePlace { host: host.into(), ..place(node, 8) }).collect();
    let chain = [name(1, 0)];
    let (one, other) = (view(nodes("a"), &[(0, 1, &chain)]), view(nodes("b"), &[(0, 8, &chain)]));
    let ids = |view, me| book(view, me).entries().iter().map(|entry| entry.id).collect::<Vec<_>>();
    assert_eq!(ids(&one, name(1, 0)), ids(&other, name(7, 3)), "whoever asks, and wherever it is by now");
    let mut all = ids(&one, name(1, 0));
    all.extend(book(&one, name(1, 0)).entries().iter().map(|entry| entry.shard_id));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2 * 40 * 8);
    let elsewhere = InstanceId::derive_in_cluster([8; 16], name(1, 0));
    assert!(!all.contains(&elsewhere), "another cluster has other instances");
}

#[test]
fn who_is_in_no_table_or_has_fewer_cores_than_it_had_is_listed() {
    let chain = [name(1, 3)];
    let view = view(vec![place(1, 2)], &[(0, 1, &chain)]);
    let book = book(&view, name(8, 0));
    let ports: Vec<u16> = book.entries().iter().map(|entry| entry.endpoint.port).collect();
    assert_eq!((ports, book.myself()), (vec![7001, 7002, 7004, 99], 3));
    assert_eq!(holders(&book), [(0, 16383, 2, vec![])]);
}

#[test]
fn a_node_without_a_table_knows_itself_and_no_slots() {
    let table = NodeTable::even([1; 16], 3, "", 7001).expect("a possible split");
    let book = AddressBook::without_slots(&table, CoreId(2));
    assert_eq!((book.entries().len(), book.myself(), book.version(), book.slots_of(true)), (3, 2, 0, 0));
    assert_eq!((holders(&book).len(), ranges(&book, 0).len()), (0, 0));
}

#[test]
fn a_node_on_its_own_is_all_there_is() {
    let table = NodeTable::even([1; 16], 3, "", 7001).expect("a possible split");
    let book = AddressBook::of_node(&table, CoreId(1));
    assert_eq!((book.is_whole(), book.version(), book.myself()), (true, 1, 1));
    let served: Vec<(u16, u16, usize, Vec<usize>)> = holders(&book);
    assert_eq!(served, [(0, 5631, 0, vec![]), (5632, 11007, 1, vec![]), (11008, 16383, 2, vec![])]);
    assert_eq!(book.entries()[2].id, table.instances()[2].id);
}

#[test]
fn stretches_cover_every_slot() {
    let a = [name(1, 0)];
    let view = view(vec![place(1, 1)], &[(0, 1, &a), (1, 2, &[]), (16383, 3, &a)]);
    let stretches: Vec<_> = view.stretches().map(|(range, chain)| (numbers(range), chain.epoch)).collect();
    assert_eq!(stretches, [((0, 0), 1), ((1, 16382), 2), ((16383, 16383), 3)]);
}
