//! The split corpus: 2,000 requests of every form, each cut in two at every place, and all of them cut at random.
//!
//! A server that keeps state between two reads of one request has to come to the same replies wherever the cut is.
//! Every request is followed by a sentinel, so that "no reply" is a reply that can be compared.
//!
//! ```text
//! connection A   ── first part ──┐             ┌── second part, sentinel ──► replies up to the sentinel's
//! connection B                   └── PING PONG ┘   B is served after A's first part was: both are of one core
//! ```

use std::io;

use base::rng::Rng;

use crate::connection::{Connection, encode};
use crate::reply::show;
use crate::values::pick;

/// Requests of the corpus.
const CORPUS: usize = 2000;
/// Connections cut in step, so that one round trip of the watching connection serves them all.
const LANES: usize = 32;
/// Times the whole stream is cut at random.
const RANDOM_ROUNDS: u64 = 20;
/// What follows every request.
const SENTINEL: &[u8] = b"*2\r\n$4\r\nECHO\r\n$8\r\nsentinel\r\n";
/// What ends the replies to every request.
const SENTINEL_REPLY: &[u8] = b"$8\r\nsentinel\r\n";
/// Differences printed in full.
const PRINTED_MAX: u64 = 20;

/// One request and how it leaves its connection.
#[derive(Clone, Debug)]
pub struct Request {
    /// As sent; it may hold several commands, or none.
    pub bytes: Vec<u8>,
    /// Whether it is a protocol error, after which the server closes.
    pub closes: bool,
}

/// The corpus of `seed`; replies do not depend on what ran before, so any request may be repeated.
pub fn corpus(seed: u64) -> Vec<Request> {
    let mut rng = Rng::new(seed);
    (0..CORPUS)
        .map(|_| match rng.below(20) {
            0..=8 => open(multibulk(&mut rng)),
            9..=12 => open(inline(&mut rng)),
            13 => open(empty(&mut rng)),
            14..=17 => {
                let count = 2 + rng.below(4);
                open((0..count).flat_map(|_| one_of_any_kind(&mut rng)).collect())
            }
            _ => Request { bytes: broken(&mut rng), closes: true },
        })
        .collect()
}

fn open(bytes: Vec<u8>) -> Request {
    Request { bytes, closes: false }
}

fn one_of_any_kind(rng: &mut Rng) -> Vec<u8> {
    match rng.below(6) {
        0 => empty(rng),
        1..=2 => inline(rng),
        _ => multibulk(rng),
    }
}

/// Commands that can be repeated without changing their reply.
fn multibulk(rng: &mut Rng) -> Vec<u8> {
    let key = format!("{{split}}{}", rng.below(8)).into_bytes();
    let value: Vec<u8> = match rng.below(4) {
        0 => b"a\r\nb\r\n".to_vec(),
        1 => Vec::new(),
        _ => (0..rng.below(30)).map(|_| rng.next_u64() as u8).collect(),
    };
    let command: Vec<&[u8]> = match rng.below(12) {
        0 => vec![b"SET", b"{split}set", &value],
        1 => vec![b"GET", b"{split}absent"],
        2 => vec![b"ECHO", &value],
        3 => vec![b"PING"],
        4 => vec![b"MGET", b"{split}absent", b"{split}none"],
        5 => vec![b"EXISTS", b"{split}absent", &key],
        6 => vec![b"GET"],
        7 => vec![b"NOSUCH", &value],
        8 => vec![b"STRLEN", b"{split}absent"],
        9 => vec![b"", b"x"],
        10 => vec![b"ping", &value],
        _ => vec![b"LRANGE", b"{split}absent", b"0", b"-1"],
    };
    let mut bytes = Vec::new();
    encode(&command, &mut bytes);
    bytes
}

fn inline(rng: &mut Rng) -> Vec<u8> {
    let line = *pick(
        rng,
        &[
            "PING",
            "ping",
            "  PING  ",
            "ECHO hello",
            "ECHO \"a b\"",
            "ECHO 'a \\' b'",
            "ECHO \"\\x41\\n\\t\\\"\"",
            "SET {split}inline value",
            "GET {split}absent",
            "EXISTS a{split} b{split}",
            "NOSUCH a b",
            "GET",
            "ECHO \"\"",
            "\tPING",
            "ECHO a\\b",
        ],
    );
    format!("{line}{}", pick(rng, &["\r\n", "\n"])).into_bytes()
}

fn empty(rng: &mut Rng) -> Vec<u8> {
    pick(rng, &["*0\r\n", "*-1\r\n", "\r\n", "\n", "  \r\n", "*-5\r\n", "*0\r\n*0\r\n\r\n"]).as_bytes().to_vec()
}

/// What no server may go on after.
fn broken(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = if rng.chance(1, 2) { one_of_any_kind(rng) } else { Vec::new() };
    let tail = *pick(
        rng,
        &[
            "*1\r\n+PING\r\n",
            "*1\r\n$-1\r\n",
            "*1\r\n$abc\r\n",
            "*abc\r\n",
            "*2147483648\r\n",
            "*1\r\n$536870913\r\n",
            "*1\r\n$99999999999999999999\r\n",
            "\"unbalanced\r\n",
            "ECHO 'a\r\n",
            "ECHO \"a\"b\r\n",
            "*\r\n",
            "*1\r\n$\r\n",
            "*1\r\n:1\r\n",
        ],
    );
    bytes.extend_from_slice(tail.as_bytes());
    bytes
}

/// What came out.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Cuts whose replies were those of the uncut request.
    pub passed: u64,
    /// Cuts that changed them.
    pub failed: u64,
}

/// Runs the corpus against `target`; with `judge`, uncut replies are compared with that server's as well.
///
/// # Errors
/// Those of the connections.
pub fn split(target: &str, judge: Option<&str>, seed: u64) -> io::Result<Outcome> {
    let corpus = corpus(seed);
    let whole = whole_replies(target, &corpus)?;
    let mut outcome = Outcome::default();
    if let Some(judge) = judge {
        for (request, (ours, theirs)) in corpus.iter().zip(whole.iter().zip(whole_replies(judge, &corpus)?)) {
            outcome.note(ours == &theirs, "uncut, against the judge", &request.bytes, &theirs, ours);
        }
    }
    every_cut(target, &corpus, &whole, &mut outcome)?;
    let cuts = outcome.passed + outcome.failed;
    random_cuts(target, &corpus, &whole, seed, &mut outcome)?;
    println!(
        "split: {} requests, {cuts} comparisons in two parts, {RANDOM_ROUNDS} times the whole stream at random",
        corpus.len()
    );
    Ok(outcome)
}

impl Outcome {
    fn note(&mut self, same: bool, what: &str, sent: &[u8], expected: &[u8], actual: &[u8]) {
        if same {
            self.passed += 1;
            return;
        }
        self.failed += 1;
        if self.failed <= PRINTED_MAX {
            println!("DIFFERENCE {what}: {}", show(sent));
            println!("  expected {}\n  actual   {}", show(expected), show(actual));
        }
    }
}

/// The replies to each request when it is sent at once.
fn whole_replies(address: &str, corpus: &[Request]) -> io::Result<Vec<Vec<u8>>> {
    let mut connection = Connection::open(address)?;
    corpus
        .iter()
        .map(|request| {
            let replies = if request.closes {
                let mut alone = Connection::open(address)?;
                alone.write(&request.bytes)?;
                alone.read_until_closed()
            } else {
                connection.write(&[&request.bytes, SENTINEL].concat())?;
                read_to_sentinel(&mut connection)
            };
            let sent = || show(&request.bytes);
            replies.map_err(|error| io::Error::new(error.kind(), format!("{address} on {}: {error}", sent())))
        })
        .collect()
}

/// Raw replies up to and without the sentinel's.
fn read_to_sentinel(connection: &mut Connection) -> io::Result<Vec<u8>> {
    let mut replies = Vec::new();
    loop {
        let reply = connection.read_reply()?;
        if reply == SENTINEL_REPLY {
            return Ok(replies);
        }
        replies.extend_from_slice(&reply);
    }
}

/// Cuts every request at every place.
fn every_cut(target: &str, corpus: &[Request], whole: &[Vec<u8>], outcome: &mut Outcome) -> io::Result<()> {
    let mut watching = Connection::open(target)?;
    let mut lanes: Vec<Connection> = (0..LANES).map(|_| Connection::open(target)).collect::<io::Result<_>>()?;
    let cuts: Vec<(usize, usize)> = corpus
        .iter()
        .enumerate()
        .flat_map(|(index, request)| (1..request.bytes.len()).map(move |cut| (index, cut)))
        .collect();
    for group in cuts.chunks(LANES) {
        for (lane, (index, cut)) in lanes.iter_mut().zip(group) {
            lane.write(&corpus[*index].bytes[..*cut])?;
        }
        watching.call_line("PING")?;
        for (lane, (index, cut)) in lanes.iter_mut().zip(group) {
            let sentinel = if corpus[*index].closes { &b""[..] } else { SENTINEL };
            // The first part alone may be the protocol error: then the server is right to have closed.
            drop(lane.write(&[&corpus[*index].bytes[*cut..], sentinel].concat()));
        }
        for (lane, (index, cut)) in lanes.iter_mut().zip(group) {
            let request = &corpus[*index];
            let replies = if request.closes { lane.read_until_closed() } else { read_to_sentinel(lane) };
            let replies = replies.unwrap_or_else(|error| error.to_string().into_bytes());
            let same = replies == whole[*index];
            outcome.note(same, &format!("cut at byte {cut}"), &request.bytes, &whole[*index], &replies);
            if request.closes || !same {
                *lane = Connection::open(target)?;
            }
        }
    }
    Ok(())
}

/// Cuts the stream of all requests that do not close at random, in pieces of different mean sizes.
fn random_cuts(
    target: &str,
    corpus: &[Request],
    whole: &[Vec<u8>],
    seed: u64,
    outcome: &mut Outcome,
) -> io::Result<()> {
    let lasting = || corpus.iter().zip(whole).filter(|(request, _)| !request.closes);
    let mut stream: Vec<u8> = lasting().flat_map(|(request, _)| request.bytes.clone()).collect();
    stream.extend_from_slice(SENTINEL);
    let expected: Vec<u8> = lasting().flat_map(|(_, replies)| replies.clone()).collect();
    let mut watching = Connection::open(target)?;
    for round in 0..RANDOM_ROUNDS {
        let mut rng = Rng::new(seed ^ round);
        let longest = *pick(&mut rng, &[3, 17, 80, 1000, 20_000]);
        let mut connection = Connection::open(target)?;
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((1 + rng.below(longest) as usize).min(rest.len()));
            connection.write(piece)?;
            rest = after;
            if rng.chance(1, 8) {
                watching.call_line("PING")?;
            }
        }
        let replies = read_to_sentinel(&mut connection)?;
        let what = format!("round {round}, pieces of up to {longest} bytes");
        outcome.note(replies == expected, &what, b"(the whole stream)", &expected, &replies);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::corpus;

    #[test]
    fn a_seed_stands_for_one_corpus_with_every_form() {
        let (first, second) = (corpus(1), corpus(1));
        assert!(first.iter().zip(&second).all(|(a, b)| a.bytes == b.bytes));
        assert!(first.iter().any(|request| request.bytes.starts_with(b"*-1")));
        assert!(first.iter().any(|request| request.bytes == b"\n"));
        assert!(first.iter().filter(|request| request.closes).count() > 100);
        assert_eq!(first.len(), 2000);
    }
}
