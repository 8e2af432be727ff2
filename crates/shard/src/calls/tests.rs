//! What INFO commandstats tells of each request.

use base::{CoreId, Door, Entrance};
use wire::registry::CommandId as Id;

use crate::one_core::{Core, request, turn};
use crate::split_node::SplitNode;
use crate::{Durability, Shard};

/// Calls, rejected and failed ones of a command, of all these cores.
fn counts<'s>(shards: impl IntoIterator<Item = &'s Shard>, id: Id) -> (u64, u64, u64) {
    shards.into_iter().fold((0, 0, 0), |(executed, rejected, failed), shard| {
        let calls = *shard.facts().statistics.calls(id);
        (executed + calls.executed, rejected + calls.rejected, failed + calls.failed)
    })
}

fn say(core: &mut Core, client: u32, lines: &[&str]) {
    let words = |line: &&str| request(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    core.tick(client, &lines.iter().flat_map(words).collect::<Vec<_>>());
}

fn of(core: &Core, id: Id) -> (u64, u64, u64) {
    counts([&core.shard], id)
}

#[test]
fn what_is_refused_is_rejected_and_what_runs_into_an_error_has_failed() {
    let _turn = turn();
    let mut core = Core::new(Durability::Memory, 3);
    say(
        &mut core,
        0,
        &["LPUSH list a", "GET none", "GET list", "GET list", "GET", "NOSUCH", "CONFIG NOSUCH", "CONFIG"],
    );
    assert_eq!(of(&core, Id::Get), (3, 1, 2));
    assert_eq!(of(&core, Id::Lpush), (1, 0, 0));
    assert_eq!(of(&core, Id::Config), (0, 1, 0), "only without a subcommand it is it that is meant");
    // Of a transaction what it runs fails, and EXEC only if it runs nothing.
    say(&mut core, 0, &["MULTI", "GET list", "SET k v", "EXEC"]);
    assert_eq!((of(&core, Id::Get), of(&core, Id::Exec)), ((4, 1, 3), (1, 0, 0)));
    say(&mut core, 0, &["MULTI", "GET", "EXEC", "EXEC"]);
    assert_eq!((of(&core, Id::Get), of(&core, Id::Exec)), ((4, 2, 3), (3, 0, 2)));
    // Who waits has its error late, and nobody wants to hear of this one.
    say(&mut core, 1, &["BLPOP none 0"]);
    assert_eq!(of(&core, Id::Blpop), (1, 0, 0));
    let id = core.shard.connections.iter().map(|connection| connection.session.client_id()).nth(1).expect("three");
    say(&mut core, 0, &[&format!("CLIENT UNBLOCK {id} ERROR"), "CLIENT UNBLOCK 999 ERROR"]);
    assert_eq!((of(&core, Id::Blpop), of(&core, Id::ClientUnblock)), ((1, 0, 1), (2, 0, 0)));
    say(&mut core, 2, &["CLIENT REPLY OFF", "GET list"]);
    assert_eq!(of(&core, Id::Get), (5, 2, 4));
    say(&mut core, 0, &["CONFIG RESETSTAT"]);
    assert_eq!(of(&core, Id::Get), (0, 0, 0));
}

#[test]
fn what_the_user_or_the_memory_does_not_allow_is_rejected() {
    let _turn = turn();
    let mut core = Core::new(Durability::Memory, 3);
    say(&mut core, 0, &["ACL SETUSER al on >p ~* +@all -get"]);
    say(&mut core, 1, &["AUTH al wrong", "AUTH al p", "GET k", "MULTI", "GET k", "DISCARD"]);
    assert_eq!((of(&core, Id::Get), of(&core, Id::Auth)), ((0, 2, 0), (2, 0, 1)));
    say(&mut core, 0, &["CONFIG SET maxmemory 1"]);
    say(&mut core, 0, &["SET k v", "GET k", "MULTI", "SET k v", "DISCARD"]);
    assert_eq!((of(&core, Id::Set), of(&core, Id::Get)), ((0, 2, 0), (1, 2, 0)));
    say(&mut core, 0, &["CONFIG SET requirepass p"]);
    core.tick(0, b"");
    say(&mut core, 0, &["RESET", "GET k"]);
    assert_eq!(of(&core, Id::Get), (1, 3, 0));
}

/// Each request is counted once, whatever cores it was on.
#[test]
fn what_hops_is_counted_where_it_runs_and_what_moved_is_rejected() {
    let _turn = turn();
    let mut node = SplitNode::new(3);
    assert_ne!(node.owner(b"key"), CoreId(0), "it hops");
    let of = |node: &SplitNode, id| counts(&node.shards, id);
    let ask = |node: &mut SplitNode, words: &[&[u8]]| {
        node.send(1, &request(words));
        node.rest();
        node.told(1)
    };
    node.connect(1, Door::Standalone, Entrance::default());
    assert_eq!(ask(&mut node, &[b"SET", b"key", b"v"]), "+OK\r\n");
    assert!(ask(&mut node, &[b"LPUSH", b"key", b"v"]).starts_with("-WRONGTYPE "));
    assert!(ask(&mut node, &[b"BLPOP", b"key", b"0"]).starts_with("-WRONGTYPE "));
    assert_eq!(ask(&mut node, &[b"BLPOP", b"{key}2", b"0"]), "");
    assert_eq!([Id::Set, Id::Lpush, Id::Blpop].map(|id| of(&node, id)), [(1, 0, 0), (1, 0, 1), (2, 0, 1)]);
    // Who is blocked, who is on its way, and who comes later.
    node.connect(2, Door::Standalone, Entrance::default());
    let (table, owner) = (node.next_table(2, &[]), node.owner(b"key").0);
    node.tell_view(owner, &table);
    node.send(2, &request(&[b"GET", b"key"]));
    node.rest();
    node.tell_view(0, &table);
    node.rest();
    assert!(node.told(1).starts_with("-MOVED ") && node.told(2).starts_with("-MOVED "));
    assert_eq!([Id::Get, Id::Blpop].map(|id| of(&node, id)), [(0, 1, 0), (1, 1, 1)]);
    assert!(ask(&mut node, &[b"GET", b"key"]).starts_with("-MOVED "));
    let long = vec![b'x'; 4 << 20];
    assert!(ask(&mut node, &[b"SET", b"key", &long]).starts_with("-MOVED "));
    assert_eq!([Id::Get, Id::Set].map(|id| of(&node, id)), [(0, 2, 0), (1, 1, 0)]);
}
