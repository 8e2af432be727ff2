//! Who is who, by what is known.

use control::lease::{Renewal, Voters};

use super::*;
use crate::rig::{founder, leading};

#[test]
fn an_older_copy_of_a_directory_and_who_runs_on_one_are_told_from_the_node() {
    let mut inside = leading();
    assert!(inside.table().is_created() && inside.imposture().is_none(), "it founded the cluster");
    let known = inside.table().node(inside.me()).expect("itself").facts.incarnation;
    // A later start of the directory has not come yet, and one of the same number cannot be the one that the table knows.
    inside.has_come = false;
    let mut with = |start: u64, now: u64, port: u16, has_come: bool| {
        (inside.start.newcomer.incarnation, inside.incarnation, inside.has_come) = (start, now, has_come);
        inside.start.newcomer.port = port;
        inside.imposture().is_some()
    };
    assert!(!with(known + (1 << 16), known + (1 << 16), 7000, false));
    assert!(with(known, known, 7000, false), "a copy of the directory as it was before that start");
    assert!(with(known - (1 << 16), known - (1 << 16), 7000, false), "an older one");
    assert!(with(known - (1 << 16), known + 1, 7000, false), "and it does not count up to it");
    assert!(with(known, known, 7001, true), "two came, and the other one is in the table");
    assert!(with(known - (1 << 16), known - (1 << 16), 7000, true), "another one has come since");
    assert!(!with(known, known + 3, 7000, true), "it was fenced itself, and comes again");
    let me = inside.me();
    assert!(inside.is_outdated(me, known - 1) && !inside.is_outdated(me, known) && !inside.is_outdated(me, known + 7));
}

#[test]
fn who_votes_no_more_says_who_does() {
    let mut inside = founder();
    inside.identity.voters = Voters { version: 9, sets: vec![vec![NodeId(2)]] };
    let ask = |inside: &mut Inside, voters| {
        let renewal = Renewal { node: NodeId(3), incarnation: 1, number: 1, voters };
        inside.heed(0, NodeId(3), Message::Renewal { renewal, table: 0 });
        std::mem::take(&mut inside.outbox)
    };
    let told = ask(&mut inside, 1);
    assert!(matches!(&told[..], [(NodeId(3), Message::News(news))] if news.voters.version == 9), "{told:?}");
    assert!(ask(&mut inside, 9).is_empty(), "who knows them is told nothing");
}

#[test]
fn whose_number_is_not_given_to_anybody_any_more_is_gone() {
    let inside = crate::rig::leading();
    let next = inside.table().next_node().expect("there are numbers left");
    let is_gone = |inside: &Inside, node| inside.table().is_gone(node);
    assert!(!is_gone(&inside, inside.me()) && !is_gone(&inside, next), "a newer one may be in a newer table");
    let inside = crate::rig::without(next);
    assert!(is_gone(&inside, next) && !is_gone(&inside, NodeId(next.0 + 1)));
}
