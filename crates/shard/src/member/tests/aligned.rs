//! Long values that are written into others at a follower: they lie there already as they will in these.

use base::BLOCK_BYTES;

use super::long::{MIB, pair, send};
use crate::one_core::turn;

/// A value of so many bytes, and what a request with a long argument makes of it; bytes of a block that the argument lay behind at the
/// follower. Both nodes have the same in the end.
fn written(len: usize, words: &[&[u8]], meanwhile: &[&str]) -> usize {
    let mut town = pair();
    let writer = town.client(0);
    send(&mut town, writer, &[b"SET", b"a", &vec![b'o'; len]]);
    town.settle().unwrap();
    assert_eq!(town.answer(0, writer).as_deref(), Some("+OK\r\n"));
    send(&mut town, writer, words);
    let mut skip = 0;
    for step in 0..2000 {
        town.step();
        skip = skip.max(town.arriving_at(1).0 % BLOCK_BYTES);
        if step == 5 && !meanwhile.is_empty() {
            let other = town.client(0);
            let replies = town.say(0, other, meanwhile);
            assert!(replies.starts_with(':'), "{}", &replies[..20.min(replies.len())]);
        }
    }
    town.settle().unwrap();
    let answer = town.answer(0, writer).unwrap_or_default();
    let [ours, theirs] = [0, 1].map(|at| town.string_at(at, b"a"));
    assert_eq!(answer, format!(":{}\r\n", ours.len()));
    assert!(ours == theirs, "{} and {} bytes", ours.len(), theirs.len());
    assert_eq!(ours.iter().filter(|byte| **byte == b'n').count(), words.last().map_or(0, |last| last.len()));
    skip
}

fn argument() -> Vec<u8> {
    vec![b'n'; 2 * MIB]
}

#[test]
fn what_is_appended_or_written_into_a_value_lies_at_a_follower_as_it_will_in_that() {
    let _turn = turn();
    let long = 3 * BLOCK_BYTES + 77;
    assert_eq!(written(100, &[b"APPEND", b"a", &argument()], &[]), 100);
    assert_eq!(written(long, &[b"APPEND", b"a", &argument()], &[]), 77);
    assert_eq!(written(long, &[b"SETRANGE", b"a", b"70000", &argument()], &[]), 70_000 - BLOCK_BYTES);
    assert_eq!(written(long, &[b"SETRANGE", b"a", b"0", &argument()], &[]), 0);
}

/// What was told of it is right no more: it is copied, and right all the same.
#[test]
fn a_value_that_grew_meanwhile_gets_it_where_it_ends_now() {
    let _turn = turn();
    assert_eq!(written(100, &[b"APPEND", b"a", &argument()], &["APPEND a oooooooo"]), 100);
}
