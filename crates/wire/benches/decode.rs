//! What decoding costs: `cargo bench -p wire`. Nanoseconds per request (or per call), the best of several rounds.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;
use wire::registry::{self, Resolved};
use wire::{Arguments, ParseLimits, Parsed, Protocol, Reply, parse};

const ROUNDS: usize = 15;
const BATCHES: usize = 2_000;

/// Best nanoseconds per item of `run`, which handles `items` items at a time.
fn measure(name: &str, items: usize, mut run: impl FnMut()) {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..BATCHES).for_each(|_| run());
            start.elapsed().as_nanos() as f64 / (BATCHES * items) as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:<44} {best:>8.1} ns");
}

fn multibulk(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::request::encode(words.iter().copied(), &mut bytes);
    bytes
}

fn parse_all(bytes: &[u8], spans: &mut Vec<base::Span>) -> usize {
    let mut start = 0;
    spans.clear();
    while start < bytes.len() {
        match parse(bytes, start, spans, &ParseLimits::AUTHENTICATED) {
            Parsed::Request { consumed } => start += consumed,
            other => panic!("{other:?}"),
        }
    }
    spans.len()
}

fn main() {
    const REQUESTS: usize = 64;
    let value = [b'v'; 132];
    let requests: [(&str, Vec<u8>); 4] = [
        ("parse GET, key 15 B", multibulk(&[b"GET", b"key:00000000012"])),
        ("parse SET, key 15 B, value 9 B", multibulk(&[b"SET", b"key:00000000012", b"value-xyz"])),
        ("parse SET, key 15 B, value 132 B", multibulk(&[b"SET", b"key:00000000012", &value])),
        ("parse inline GET", b"GET key:00000000012\r\n".to_vec()),
    ];
    let mut spans = Vec::new();
    for (name, request) in &requests {
        let stream = request.repeat(REQUESTS);
        measure(name, REQUESTS, || {
            black_box(parse_all(black_box(&stream), &mut spans));
        });
    }
    let names: Vec<&[u8]> = vec![b"GET", b"SET", b"get", b"INCRBY", b"BITFIELD_RO", b"PING", b"ZH.WAIT", b"expire"];
    measure("look up a command's name", names.len(), || {
        for name in &names {
            black_box(registry::lookup(black_box(name)));
        }
    });
    let stream = requests[1].1.clone();
    parse_all(&stream, &mut spans);
    measure("resolve SET", 1, || {
        let resolved = registry::resolve(Arguments::new(black_box(&stream), black_box(&spans)));
        assert!(matches!(black_box(resolved), Resolved::Command(_)));
    });
    let mut out = Vec::with_capacity(REQUESTS * 200);
    measure("encode a bulk of 132 B", REQUESTS, || {
        out.clear();
        let mut reply = Reply::new(&mut out, Protocol::Resp2);
        (0..REQUESTS).for_each(|_| reply.bulk(black_box(&value)));
    });
    measure("encode a six-digit integer", REQUESTS, || {
        out.clear();
        let mut reply = Reply::new(&mut out, Protocol::Resp2);
        (0..REQUESTS).for_each(|_| reply.integer(black_box(123_456)));
    });
}
