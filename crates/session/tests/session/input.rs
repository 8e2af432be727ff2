//! Requests in every split, and memory that follows the bytes that came, not those announced.

use base::limits;
use base::street::Span;
use session::{Input, Rest};
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
                    let arguments = Arguments::new(bytes, &spans);
                    requests.push(arguments.iter().map(<[u8]>::to_vec).collect());
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
