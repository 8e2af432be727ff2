//! Long values on their way to followers, beside what else goes there.

use base::ConnectionId;

use super::lanes::two_followers;
use super::town::Town;
use crate::one_core::{request, turn};

pub(super) const MIB: usize = 1 << 20;

/// Two nodes, the second of which follows the first everywhere.
pub(super) fn pair() -> Town {
    let mut town = Town::new(2, 1);
    for (version, whole) in [(2, 1), (3, 2)] {
        town.tell_chains(version, &[(0, &[0, 1], whole)]);
        town.settle().unwrap();
    }
    town
}

/// A request comes as a client sends it.
pub(super) fn send(town: &mut Town, writer: ConnectionId, words: &[&[u8]]) {
    for piece in request(words).chunks(MIB) {
        town.write(0, writer, piece);
        town.step();
    }
}

#[test]
fn its_blocks_arrive_while_it_is_logged_and_a_run_leaves_them_to_a_replay() {
    let _turn = turn();
    assert!(arrives_and_is_minded());
}

#[cfg(feature = "planted")]
#[test]
fn m24_run_forgets_uploads_is_caught_where_they_arrive() {
    let _turn = turn();
    base::planted::plant(Some(base::planted::Bug::M24RunForgetsUploads));
    let minds = arrives_and_is_minded();
    base::planted::plant(None);
    assert!(!minds);
}

/// Whether every run that began while a value arrived would have left its blocks.
fn arrives_and_is_minded() -> bool {
    let mut town = pair();
    let writer = town.client(0);
    let value = vec![b'x'; 8 * MIB];
    send(&mut town, writer, &[b"SET", b"a", &value]);
    let (mut most, mut minds) = (0, true);
    for _ in 0..1000 {
        town.step();
        let (bytes, is_minded) = town.arriving_at(1);
        most = most.max(bytes);
        minds &= is_minded || bytes == 0;
    }
    assert!(most > 7 * MIB, "it comes in blocks: {most} bytes at most");
    assert_eq!(town.answer(0, writer).as_deref(), Some("+OK\r\n"));
    assert_eq!(town.arriving_at(1), (0, false), "nothing is on its way any more");
    assert_eq!(town.string_at(1, b"a").len(), value.len());
    minds
}

#[test]
fn a_value_that_no_request_used_is_let_go_of_everywhere() {
    let _turn = turn();
    let mut town = pair();
    let writer = town.client(0);
    assert_eq!(town.say(0, writer, &["SET a 1"]), "+OK\r\n");
    send(&mut town, writer, &[b"SET", b"a", &vec![b'x'; 2 * MIB], b"NX"]);
    town.settle().unwrap();
    assert_eq!(town.answer(0, writer).as_deref(), Some("$-1\r\n"));
    assert_eq!(town.arriving_at(1), (0, false));
    assert_eq!(town.string_at(1, b"a"), b"1");
}

/// More than a link may have on its way would end its life, and everything would go again.
#[test]
fn a_follower_that_is_gone_holds_up_long_values_of_its_slots_and_no_others() {
    let _turn = turn();
    let mut town = two_followers();
    let [held, free] = [town.client(0), town.client(0)];
    assert_eq!(town.say(0, held, &["SET a 0"]), "+OK\r\n");
    town.kill(2);
    send(&mut town, held, &[b"SET", b"a", &vec![b'x'; 100 * MIB]]);
    town.settle().unwrap();
    assert_eq!(town.answer(0, held), None, "its second is gone");
    let most = town.backlogs_at(0).into_iter().max();
    assert!(most.is_some_and(|bytes| (8 * MIB..9 * MIB).contains(&bytes)), "{most:?} bytes on their way");
    send(&mut town, free, &[b"SET", b"b", &vec![b'y'; 2 * MIB]]);
    town.settle().unwrap();
    assert_eq!(town.answer(0, free).as_deref(), Some("+OK\r\n"));
    town.tell_chains(4, &[(0, &[0, 1], 2), (8192, &[0], 1)]);
    town.settle().unwrap();
    assert_eq!(town.answer(0, held).as_deref(), Some("+OK\r\n"), "nobody else has it any more");
}

/// Whoever is first next knows nothing of what was on its way: its second keeps neither memory nor log for it.
#[test]
fn what_was_on_its_way_from_a_first_that_is_gone_is_let_go_of() {
    let _turn = turn();
    let mut town = pair();
    let writer = town.client(0);
    send(&mut town, writer, &[b"SET", b"a", &vec![b'x'; 8 * MIB]]);
    (0..8).for_each(|_| town.step());
    let (bytes, _) = town.arriving_at(1);
    assert!(bytes > 0 && town.answer(0, writer).is_none(), "{bytes} bytes came");
    town.kill(0);
    town.tell_chains(4, &[(0, &[1], 1)]);
    town.settle().unwrap();
    assert_eq!(town.arriving_at(1), (0, false));
    let reader = town.client(1);
    assert_eq!(town.say(1, reader, &["GET a", "SET a 1"]), "$-1\r\n+OK\r\n");
}
