//! Requests in every split, and memory that follows the bytes that came, not those announced.

use base::BLOCK_BYTES;
use base::limits;
use base::rng::Rng;
use base::street::Span;
use session::{Input, Rest};
use wire::request::ProtocolError;
use wire::{Arguments, Parsed};

/// Feeds `pieces` as the shard does and returns the requests.
fn feed(input: &mut Input, pieces: &[&[u8]], authenticated: bool) -> Vec<Vec<Vec<u8>>> {
    let limits = Input::parse_limits(authenticated);
    let mut requests = Vec::new();
    for piece in pieces {
        let taken = match input.is_empty() {
            true => None,
            false if !input.append(piece) => continue,
            false => Some(input.take()),
        };
        let bytes = taken.as_deref().unwrap_or(piece);
        let mut start = 0;
        let mut spans: Vec<Span> = Vec::new();
        while start < bytes.len() {
            spans.clear();
            match input.next(bytes, start, &mut spans, limits) {
                Parsed::Request { consumed } => {
                    let mut request: Vec<Vec<u8>> = Arguments::new(bytes, &spans).iter().map(<[u8]>::to_vec).collect();
                    for (number, blocks) in input.take_long() {
                        assert!(request[number].is_empty(), "its bytes are in blocks");
                        request[number] = blocks.to_vec();
                    }
                    requests.push(request);
                    start += consumed;
                }
                Parsed::Empty { consumed } => start += consumed,
                Parsed::Incomplete { .. } => {
                    assert!(spans.is_empty(), "the arguments of half a request are no arguments");
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        match taken {
            Some(bytes) => input.keep(Rest::Taken(bytes, start)),
            None => input.keep(Rest::Received(&piece[start..])),
        }
    }
    requests
}

#[test]
fn every_split_gives_the_same_requests() {
    let _unplanted = crate::rig::unplanted();
    let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n*0\r\n*3\r\n$3\r\nSET\r\n$11\r\nhello world\r\n$0\r\n\r\n\r\nECHO x\r\n";
    let mut input = Input::default();
    let whole = feed(&mut input, &[bytes], true);
    assert_eq!(whole.len(), 4);
    assert!(input.is_empty());
    for first in 0..bytes.len() {
        for second in first..bytes.len() {
            let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            assert_eq!(feed(&mut input, &pieces, true), whole, "split at {first} and {second}");
            assert_eq!(input.capacity(), 0, "an idle connection keeps no memory");
        }
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(feed(&mut input, &single, true), whole);
}

#[test]
fn a_large_bulk_is_not_parsed_before_it_is_there() {
    let _unplanted = crate::rig::unplanted();
    let mut input = Input::default();
    let head = format!("*1\r\n${}\r\n", 1 << 20);
    assert!(feed(&mut input, &[head.as_bytes()], true).is_empty());
    let piece = vec![b'v'; limits::RECEIVE_BYTES];
    for _ in 0..(1 << 20) / limits::RECEIVE_BYTES {
        assert!(!input.append(&piece), "not complete");
    }
    assert!(input.append(b"\r\n"));
}

/// Requests with long arguments in several places, and short ones before, between and after them.
fn requests_with_long_arguments(rng: &mut Rng) -> Vec<Vec<Vec<u8>>> {
    let argument = |rng: &mut Rng| {
        let len = [rng.below(9), BLOCK_BYTES as u64 - 1 + rng.below(4), rng.below(200_000)][rng.below(3) as usize];
        vec![b'a' + rng.below(26) as u8; len as usize]
    };
    (0..1 + rng.below(4)).map(|_| (0..1 + rng.below(5)).map(|_| argument(rng)).collect()).collect()
}

#[test]
fn long_arguments_come_whole_in_any_split() {
    let _unplanted = crate::rig::unplanted();
    let mut rng = Rng::new(3);
    let mut in_blocks = 0;
    for _ in 0..150 {
        let requests = requests_with_long_arguments(&mut rng);
        let mut bytes = Vec::new();
        for request in &requests {
            bytes.extend(format!("*{}\r\n", request.len()).into_bytes());
            for argument in request {
                bytes.extend(format!("${}\r\n", argument.len()).into_bytes());
                bytes.extend_from_slice(argument);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        let (mut input, mut rest, mut found) = (Input::default(), &bytes[..], Vec::new());
        while !rest.is_empty() {
            let most = [3, 300, 16_384, 100_000][rng.below(4) as usize];
            let (piece, later) = rest.split_at((1 + rng.below(most) as usize).min(rest.len()));
            found.extend(feed(&mut input, &[piece], true));
            in_blocks += usize::from(input.has_long());
            if rng.chance(1, 30) && !input.is_empty() {
                // As if a request before it had to run again: it is understood from its start.
                let kept = input.len();
                input.put_back(b"");
                assert_eq!((input.len(), input.has_long()), (kept, false));
            }
            rest = later;
        }
        assert!(found == requests && input.is_empty());
    }
    assert!(in_blocks > 1000, "{in_blocks} pieces went to blocks");
}

#[test]
fn a_long_argument_that_does_not_end_is_an_error() {
    let _unplanted = crate::rig::unplanted();
    let mut input = Input::default();
    let head = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", 2 * BLOCK_BYTES);
    let value = vec![b'v'; 2 * BLOCK_BYTES];
    assert!(feed(&mut input, &[head.as_bytes(), &value, b"\r"], true).is_empty());
    assert!(input.append(b"x"));
    let bytes = input.take();
    let parsed = input.next(&bytes, 0, &mut Vec::new(), Input::parse_limits(true));
    assert_eq!(parsed, Parsed::Error(ProtocolError::ExpectedLineEnd));
    assert_eq!(input.into_blocks().map(|blocks| blocks.len()).sum::<usize>(), 2 * BLOCK_BYTES);
}

/// Memory that 200 connections hold after announcing a bulk each and sending none of it.
fn hostile_capacity() -> usize {
    let mut inputs: Vec<Input> = (0..200).map(|_| Input::default()).collect();
    for input in &mut inputs {
        feed(input, &[b"*2\r\n$4\r\nAUTH\r\n$16384\r\n"], false);
    }
    inputs.iter().map(Input::capacity).sum()
}

#[test]
fn announced_bytes_cost_nothing() {
    let _unplanted = crate::rig::unplanted();
    assert!(hostile_capacity() < 200 * 1024, "{} bytes", hostile_capacity());
    let mut spans = Vec::new();
    let parsed = Input::default().next(b"*2\r\n$4\r\nAUTH\r\n$1048576\r\n", 0, &mut spans, Input::parse_limits(false));
    assert!(matches!(parsed, Parsed::Error(_)), "{parsed:?}");
}

#[cfg(feature = "planted")]
#[test]
fn m20_allocation_before_login_is_caught() {
    let capacity = crate::rig::with_planted(base::planted::Bug::M20UnauthenticatedAllocation, hostile_capacity);
    assert!(capacity > 200 * 16384, "the test does not see the planted allocation: {capacity} bytes");
}

#[test]
fn memory_of_a_large_request_is_given_back() {
    let _unplanted = crate::rig::unplanted();
    let mut input = Input::default();
    let mut bytes = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", 1 << 20).into_bytes();
    bytes.extend(vec![b'v'; 1 << 20]);
    bytes.extend_from_slice(b"\r\n*1\r\n$4\r\nPI");
    let pieces: Vec<&[u8]> = bytes.chunks(limits::RECEIVE_BYTES).collect();
    assert_eq!(feed(&mut input, &pieces, true).len(), 1);
    assert_eq!(input.len(), 10);
    assert!(input.capacity() <= 2 * limits::RECEIVE_BYTES, "{}", input.capacity());
}
