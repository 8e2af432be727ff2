//! What holds for every command and all arguments: one reply, no panic, and no change where there is an error.

use base::rng::Rng;
use wire::Protocol;
use wire::registry::{CommandSpec, Family, all};
use wire::reply_parse::skip_reply;

use crate::Outcome;
use crate::harness::Harness;

/// Words that mean something to some command, and numbers at their bounds.
const WORDS: &str = "a b c l m n s 0 1 -1 2 3 7 8 10 100 -2 16 64 4294967296 9223372036854775807 \
    -9223372036854775808 18446744073709551616 1.5 1e5 0x10 -inf nan u8 i64 u63 i1 #3 #-1 GET SET INCRBY OVERFLOW SAT FAIL \
    WRAP NX XX GT LT EX PX EXAT PXAT KEEPTTL PERSIST IFEQ IFNE IFDEQ IFDNE 2d06800538d394c2 BYTE BIT AND OR XOR NOT \
    LEFT RIGHT BEFORE AFTER COUNT RANK MAXLEN LEN IDX MINMATCHLEN WITHMATCHLEN REPLACE DB EQ NE EXISTS ABSENT VERSION";

fn word(rng: &mut Rng) -> Vec<u8> {
    if rng.chance(1, 12) {
        return (0..rng.below(60)).map(|_| rng.next_u64() as u8).collect();
    }
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    // Keys first, so that most commands find one.
    let bound = if rng.chance(1, 2) { 7 } else { words.len() as u64 };
    words[rng.below(bound) as usize].as_bytes().to_vec()
}

fn request(spec: &CommandSpec, rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = spec.full_name.split('|').map(|part| part.as_bytes().to_vec()).collect();
    let least = usize::from(spec.arity.unsigned_abs());
    let count = if spec.arity > 0 { least } else { least + rng.below(6) as usize };
    while words.len() < count {
        words.push(word(rng));
    }
    words
}

#[test]
fn errors_change_nothing_and_every_request_has_one_reply() {
    let _unplanted = crate::strings::swap_tests::unplanted();
    let containers = all().filter(|spec| !spec.subcommands.is_empty()).flat_map(|spec| spec.subcommands);
    let plain = all().filter(|spec| spec.subcommands.is_empty());
    let specs: Vec<&CommandSpec> = plain.chain(containers).filter(|spec| spec.family == Family::Data).collect();
    let mut rng = Rng::new(0x5EED);
    for _ in 0..40 {
        let mut client = Harness::new();
        client.now_ms = 0; // Nothing expires by itself: every deadline is later.
        client.transcript("RPUSH l a b a 1 => :4");
        client.protocol = if rng.chance(1, 2) { Protocol::Resp2 } else { Protocol::Resp3 };
        for _ in 0..500 {
            let spec = specs[rng.below(specs.len() as u64) as usize];
            client.may_block = rng.chance(1, 2);
            let words = request(spec, &mut rng);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let before = client.store.changes();
            let (outcome, reply) = client.call(&words);
            let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
            if outcome != Outcome::Done || reply.starts_with(b"-") {
                assert_eq!(client.store.changes(), before, "{}", shown());
            }
            assert_eq!(outcome == Outcome::Done, !reply.is_empty(), "{}", shown());
            if outcome == Outcome::Done {
                assert_eq!(skip_reply(&reply), Ok(Some(reply.len())), "{}", shown());
            }
        }
    }
}
