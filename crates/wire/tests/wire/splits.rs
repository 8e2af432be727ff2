//! However the bytes are cut, the meaning is the same: every split into two, random splits into many, one by one.

use crate::corpus::{Handling, Meaning, Receiver, STREAMS, meaning_of};
use proptest::prelude::*;
use wire::ParseLimits;

const HANDLINGS: [Handling; 3] = [Handling::Eager, Handling::Patient, Handling::Resuming];
const LIMITS: [ParseLimits; 2] = [ParseLimits::AUTHENTICATED, ParseLimits::UNAUTHENTICATED];

#[test]
fn every_split_into_two_means_the_same() {
    let mut errors = 0;
    for stream in STREAMS {
        for limits in LIMITS {
            let whole = meaning_of(Handling::Eager, limits, &[stream]);
            errors += usize::from(whole.error.is_some());
            for handling in HANDLINGS {
                for cut in 0..=stream.len() {
                    let (head, tail) = stream.split_at(cut);
                    let split = meaning_of(handling, limits, &[head, tail]);
                    assert_eq!(split, whole, "{} cut at {cut}, {handling:?}", stream.escape_ascii());
                }
                let single_bytes: Vec<&[u8]> = stream.chunks(1).collect();
                assert_eq!(meaning_of(handling, limits, &single_bytes), whole, "{}", stream.escape_ascii());
            }
        }
    }
    assert!(errors > 30, "the corpus has lost its invalid streams");
}

/// One request as bytes, in either form, with words that need no quotes in the inline form.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let word = proptest::collection::vec(any::<u8>(), 0..40);
    let multibulk = proptest::collection::vec(word, 1..12).prop_map(|words| {
        let mut bytes = Vec::new();
        wire::request::encode(words.iter().map(Vec::as_slice), &mut bytes);
        bytes
    });
    let inline = "[ -~]{0,30}(\r)?\n".prop_map(String::into_bytes);
    let noise = proptest::collection::vec(any::<u8>(), 0..20);
    prop_oneof![6 => multibulk, 2 => inline, 1 => noise]
}

proptest! {
    #[test]
    fn random_splits_mean_the_same(
        requests in proptest::collection::vec(request(), 1..6),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        handling in prop::sample::select(&HANDLINGS[..]),
        limits in prop::sample::select(&LIMITS[..]),
    ) {
        let stream = requests.concat();
        let whole = meaning_of(Handling::Eager, limits, &[&stream]);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        prop_assert_eq!(meaning_of(handling, limits, &pieces), whole);
    }

    #[test]
    fn arguments_survive(words in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..20)) {
        let mut bytes = Vec::new();
        wire::request::encode(words.iter().map(Vec::as_slice), &mut bytes);
        prop_assert_eq!(crate::corpus::arguments_of(&bytes), words);
    }

    #[test]
    fn quoted_words_survive(words in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..30), 1..6)) {
        // Every byte escaped, so the line holds no byte that could end it.
        let quoted: Vec<String> = words
            .iter()
            .map(|word| format!("\"{}\"", word.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>()))
            .collect();
        let line = format!("x {}\r\n", quoted.join(" "));
        let meaning = meaning_of(Handling::Eager, ParseLimits::AUTHENTICATED, &[line.as_bytes()]);
        let expected: Vec<Vec<u8>> = std::iter::once(b"x".to_vec()).chain(words).collect();
        prop_assert_eq!(meaning, Meaning { requests: vec![expected], error: None, rest: 0 });
    }
}

/// A request of many arguments in small pieces: resuming looks at every argument once, and being patient saves the
/// attempts that a large announced value would cost.
#[test]
fn pieces_do_not_make_parsing_quadratic() {
    let mut stream = b"*1001\r\n$4\r\nMSET\r\n".to_vec();
    stream.extend(b"$10\r\n0123456789\r\n".repeat(1000));
    let mut receiver = Receiver::new(Handling::Resuming, ParseLimits::AUTHENTICATED);
    stream.chunks(7).for_each(|piece| receiver.receive(piece));
    assert_eq!(receiver.meaning.requests.len(), 1);

    let mut stream = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n".to_vec();
    stream.extend(vec![b'x'; 100_000]);
    stream.extend(b"\r\n");
    let mut receiver = Receiver::new(Handling::Patient, ParseLimits::AUTHENTICATED);
    stream.chunks(100).for_each(|piece| receiver.receive(piece));
    assert_eq!(receiver.meaning.requests.len(), 1);
    assert_eq!(receiver.attempts, 2, "one at the first piece, one at the last");
}
