//! Requests that were right once: commands of the catalogue, mutated where structure is, against a running server.
//!
//! ```text
//!   words     dropped, doubled, exchanged, emptied, long, numbers at their bounds
//!   framing   counts and lengths one off, negative, huge; LF alone; a line for an array
//!   bytes     flipped, cut off, put in
//! ```

use std::net::Shutdown;

use base::rng::Rng;

use super::{Target, Verdict, expect, memory, still_serves, told};
use crate::connection::encode;
use crate::reply;
use crate::sequence::Generator;
use crate::values::{BOUNDARIES, pick};

/// Conversations of one run, each on a connection of its own.
const CONVERSATIONS: u64 = 4000;
/// After so many a bystander asks, and the store is emptied.
const ROUND: u64 = 200;
/// What all of them may leave behind.
const GROWTH_MAX: u64 = 64 << 20;
/// Expiries of the catalogue lie around this Unix time, seconds: all are over.
const NOW_S: i64 = 1_600_000_000;
/// Commands whose numbers are offsets: one in bounds would make half a gigabyte, which is right and slow.
const WITH_OFFSETS: [&[u8]; 5] = [b"setrange", b"setbit", b"bitfield", b"bitfield_ro", b"bitop"];
/// Lengths and counts that no request has.
const LENGTHS: [&str; 8] =
    ["-1", "-2", "536870913", "1048577", "9223372036854775807", "18446744073709551616", "", "0x1"];

/// No crash, no hang, whole replies and bounded memory, whatever the seed makes of right requests.
pub fn mutated(target: &Target) -> Verdict {
    let seed = target.seed;
    let mut server = target.start(&[])?;
    let mut bystander = told("connect", server.connect())?;
    expect(&mut bystander, "PING", b"+PONG\r\n")?;
    let before = told("resident memory", server.resident_bytes())?;
    let generator = Generator::new(NOW_S, true);
    let (mut replies, mut bytes_sent) = (0, 0);
    for number in 0..CONVERSATIONS {
        let number_seed = seed.wrapping_add(number);
        let failed = |what: &str, reason: String| format!("seed {number_seed}: {what}: {reason}");
        let stream = conversation(&generator, number_seed);
        bytes_sent += stream.len();
        let mut connection = told("connect", server.connect())?;
        // A server that refused the first half may close before it has the rest, which is an answer too.
        let is_taken = connection.write(&stream).and_then(|()| connection.stream().shutdown(Shutdown::Write)).is_ok();
        let answer = connection.read_until_closed();
        let answer = answer.map_err(|error| failed("the server neither answers nor closes", error.to_string()))?;
        let (count, rest) = frames(&answer).map_err(|reason| failed("no reply", reason))?;
        if is_taken && !rest.is_empty() {
            return Err(failed("half a reply", reply::show(rest)));
        }
        replies += count;
        if number % ROUND == 0 {
            still_serves(&mut server).map_err(|reason| failed("after it", reason))?;
            expect(&mut bystander, "FLUSHALL", b"+OK\r\n")?;
        }
    }
    expect(&mut bystander, "FLUSHALL", b"+OK\r\n")?;
    still_serves(&mut server)?;
    let text = memory::bounded(&server, before, GROWTH_MAX)?;
    Ok(format!("{CONVERSATIONS} conversations from seed {seed}, {bytes_sent} bytes, {replies} replies, {text}"))
}

/// How many whole replies `answer` begins with, and what follows them.
fn frames(answer: &[u8]) -> Result<(u64, &[u8]), String> {
    let (mut count, mut rest) = (0, answer);
    while let Some(length) = reply::frame_length(rest).map_err(|malformed| malformed.to_string())? {
        rest = &rest[length..];
        count += 1;
        if rest.is_empty() {
            break;
        }
    }
    Ok((count, rest))
}

/// The bytes of one conversation.
fn conversation(generator: &Generator, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut stream = Vec::new();
    for step in generator.sequence(seed, None).steps {
        let mut words = step.arguments;
        if rng.chance(1, 3) && !pauses(&words) {
            mutate_words(&mut words, &mut rng);
        }
        let mut request = Vec::new();
        if rng.chance(1, 10) {
            request = words.join(&b' ');
            request.extend_from_slice(if rng.chance(1, 2) { b"\r\n" } else { b"\n" });
        } else {
            encode(&words, &mut request);
        }
        if rng.chance(1, 25) {
            mutate_framing(&mut request, &mut rng);
        }
        stream.extend_from_slice(&request);
    }
    if rng.chance(1, 4) {
        mutate_bytes(&mut stream, &mut rng);
    }
    stream
}

/// Whether a number at its bounds would rightly make the server answer nobody for years.
fn pauses(words: &[Vec<u8>]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(b"pause"))
}

fn mutate_words(words: &mut Vec<Vec<u8>>, rng: &mut Rng) {
    let has_offsets = WITH_OFFSETS.iter().any(|name| words[0].eq_ignore_ascii_case(name));
    let at = rng.below(words.len() as u64) as usize;
    match rng.below(7) {
        0 => drop(words.remove(at)),
        1 => words.insert(at, words[at].clone()),
        2 => {
            let other = rng.below(words.len() as u64) as usize;
            words.swap(at, other);
        }
        3 => words[at].clear(),
        4 => words[at] = vec![b'x'; 1 << rng.below(17)],
        5 if !has_offsets => words[at] = pick(rng, &BOUNDARIES).as_bytes().to_vec(),
        _ => words[at].insert(0, rng.next_u64() as u8),
    }
    if words.is_empty() {
        words.push(Vec::new());
    }
}

/// Replaces the number behind one `*` or `$`, or takes a carriage return away.
fn mutate_framing(request: &mut Vec<u8>, rng: &mut Rng) {
    let marks: Vec<usize> = (0..request.len()).filter(|at| matches!(request[*at], b'*' | b'$' | b'\r')).collect();
    let Some(at) = marks.get(rng.below(marks.len().max(1) as u64) as usize).copied() else { return };
    if request[at] == b'\r' {
        request.remove(at);
        return;
    }
    let digits = request[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value: u64 = String::from_utf8_lossy(&request[at + 1..at + 1 + digits]).parse().unwrap_or(0);
    let number = match rng.below(3) {
        0 => value.saturating_add(1).to_string(),
        1 => value.saturating_sub(1).to_string(),
        _ => (*pick(rng, &LENGTHS)).to_owned(),
    };
    request.splice(at + 1..at + 1 + digits, number.into_bytes());
}

fn mutate_bytes(stream: &mut Vec<u8>, rng: &mut Rng) {
    if stream.is_empty() {
        return;
    }
    let at = rng.below(stream.len() as u64) as usize;
    match rng.below(3) {
        0 => stream[at] ^= 1 << rng.below(8),
        1 => stream.truncate(at),
        _ => stream.insert(at, rng.next_u64() as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::{NOW_S, conversation, frames};
    use crate::sequence::Generator;

    #[test]
    fn a_seed_is_a_conversation_and_seeds_differ() {
        let generator = Generator::new(NOW_S, true);
        assert_eq!(conversation(&generator, 3), conversation(&generator, 3));
        assert_ne!(conversation(&generator, 3), conversation(&generator, 4));
    }

    #[test]
    fn half_a_reply_and_what_is_none_are_seen() {
        assert_eq!(frames(b"+OK\r\n:1\r\n"), Ok((2, &b""[..])));
        assert_eq!(frames(b"+OK\r\n$5\r\nhel"), Ok((1, &b"$5\r\nhel"[..])));
        assert!(frames(b"+OK\r\nhello\r\n").is_err());
    }
}
