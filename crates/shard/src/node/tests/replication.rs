//! ROLE, INFO replication and what is told of chains, in the forms that clients of Redis 7.2 parse.

use super::members::{member, name, three_nodes};
use super::*;
use base::LogOrdinal;
use replica::{FollowStanding, LeadStanding};

fn lead(to: InstanceName, has_until: u64) -> LeadStanding {
    LeadStanding {
        to,
        is_whole: true,
        is_connected: true,
        has_until: LogOrdinal(has_until),
        silent_us: 0,
        is_full: false,
        backlog_bytes: 0,
    }
}

/// The value of a line of a section.
fn line<'a>(text: &'a str, name: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or_else(|| panic!("{name} in\n{text}"))
}

/// A member that serves the second quarter, with three followers: one is as far as it is, one is being filled, one is not there.
fn first() -> Node {
    let mut node = member(name(1, 1), Some(three_nodes()));
    let filling = LeadStanding {
        is_whole: false,
        silent_us: 2_500_000,
        is_full: true,
        backlog_bytes: 700,
        ..lead(name(2, 1), 12)
    };
    let gone = LeadStanding { is_connected: false, ..lead(name(2, 0), 5) };
    node.member.as_mut().unwrap().links =
        LinkFacts { offset: 40, followers: vec![lead(name(3, 1), 40), filling, gone], firsts: Vec::new() };
    node
}

#[test]
fn a_first_names_its_followers_and_how_far_they_are() {
    let mut node = first();
    let info = node.text("INFO replication");
    assert!(info.starts_with("# Replication\r\nrole:master\r\nconnected_slaves:2\r\nslave0:"), "{info}");
    assert_eq!(line(&info, "slave0"), "ip=10.0.0.3,port=7002,state=online,offset=40,lag=0,backlog_bytes=0,has_room=1");
    assert_eq!(
        line(&info, "slave1"),
        "ip=10.0.0.2,port=7002,state=send_bulk,offset=12,lag=2,backlog_bytes=700,has_room=0"
    );
    assert_eq!(line(&info, "master_repl_offset"), "40");
    let follower = Value::Array(vec![bulk("10.0.0.3"), bulk("7002"), bulk("40")]);
    let role = Value::Array(vec![bulk("master"), Value::Integer(40), Value::Array(vec![follower])]);
    assert_eq!(node.value("ROLE"), role);
    assert!(
        node.say("CLUSTER SHARDS").matches("replication-offset\r\n:40\r\n").count() == 2,
        "its own and its replica's"
    );
}

#[test]
fn a_replica_names_its_first() {
    let mut node = member(name(3, 1), Some(three_nodes()));
    let info = node.text("INFO replication");
    assert!(info.starts_with("# Replication\r\nrole:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:7002\r\n"), "{info}");
    assert_eq!((line(&info, "master_link_status"), line(&info, "master_last_io_seconds_ago")), ("down", "-1"));
    let role = |state, taken| {
        let first = [bulk("slave"), bulk("10.0.0.1"), Value::Integer(7002)];
        Value::Array([&first[..], &[bulk(state), Value::Integer(taken)]].concat())
    };
    assert_eq!(node.value("ROLE"), role("connect", -1));
    let link = FollowStanding { from: name(1, 1), is_connected: true, taken: 9, silent_us: Some(3_999_999) };
    let other = FollowStanding { from: name(2, 0), is_connected: true, taken: 77, silent_us: Some(0) };
    node.member.as_mut().unwrap().links.firsts = vec![other, link];
    let info = node.text("INFO replication");
    assert_eq!((line(&info, "master_link_status"), line(&info, "master_last_io_seconds_ago")), ("up", "3"));
    assert_eq!((line(&info, "slave_repl_offset"), line(&info, "connected_slaves")), ("9", "0"));
    assert_eq!(node.value("ROLE"), role("connected", 9));
}

#[test]
fn chains_are_counted_by_the_table() {
    let (mut node, me) = (first(), name(1, 1));
    for text in [node.text("CLUSTER INFO"), node.text("INFO cluster")] {
        assert_eq!(
            (line(&text, "zh_node"), line(&text, "zh_lease"), line(&text, "zh_table_version")),
            ("1", "1", "50")
        );
        assert_eq!((line(&text, "zh_chains"), line(&text, "zh_chains_degraded")), ("5", "0"));
        assert_eq!((line(&text, "zh_nodes"), line(&text, "zh_nodes_up"), line(&text, "zh_moves")), ("3", "3", "0"));
    }
    let chain = |members: &[InstanceName], whole| placement::Chain { epoch: 1, members: members.to_vec(), whole };
    let (other, third) = (name(2, 0), name(3, 0));
    let stretches = vec![
        (Slot::wrapping(0), chain(&[me, other], 2)),
        (Slot::wrapping(100), chain(&[me, third], 1)),
        (Slot::wrapping(150), chain(&[other], 1)),
        (Slot::wrapping(200), chain(&[me, third], 1)),
        (Slot::wrapping(300), chain(&[], 0)),
        (Slot::wrapping(301), chain(&[me, other], 2)),
    ];
    let view = ClusterView::new([9; 16], 51, three_nodes().nodes().to_vec(), stretches);
    node.member.as_mut().unwrap().view = Some(view.clone());
    let text = node.text("CLUSTER INFO");
    assert_eq!((line(&text, "zh_chains"), line(&text, "zh_chains_degraded")), ("4", "3"));
    assert_eq!((line(&text, "zh_slots_filling"), line(&text, "zh_slots_unserved")), ("150", "1"));
    assert_eq!(line(&text, "cluster_slots_degraded"), "201");
    // Where one copy is all that is promised only what nobody has is degraded.
    node.member.as_mut().unwrap().view = Some(view.with_chain_length(1));
    let text = node.text("CLUSTER INFO");
    assert_eq!((line(&text, "zh_chains_degraded"), line(&text, "cluster_slots_degraded")), ("1", "1"));
    let mut alone = Node::new();
    assert!(!alone.text("CLUSTER INFO").contains("zh_"), "of a node on its own nothing is told");
}
