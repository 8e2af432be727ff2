//! What believing costs: `cargo bench -p wire --bench marks`. The best of several rounds, for one frame from one end to the other:
//! both marks, and what was there before (the frame's own checksum twice, and copies).
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use base::{ConnectionId, CoreId, Effect, InstanceName, NodeId};
use wire::frame::{Opened, open, seal};
use wire::line::Line;
use wire::trust::{Party, Purpose, Speaker, Token};

/// Short rounds and many of them: some are not disturbed by what else the machine does.
const ROUNDS: usize = 500;
const BYTES_MAX: usize = 1 << 24;

fn measure(mut run: impl FnMut(), times: usize) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..times).for_each(|_| run());
        start.elapsed().as_nanos() as f64 / times as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn said(line: &mut Line) -> Vec<u8> {
    let mut effects = Vec::new();
    line.flush(&mut effects);
    line.on_sent();
    match effects.pop() {
        Some(Effect::Send { buffer, .. }) => buffer,
        _ => Vec::new(),
    }
}

/// Two ends that have proved themselves.
fn lines() -> [Line; 2] {
    let token = Token::new([7; 16]);
    let name = |node| InstanceName { node: NodeId(node), core: CoreId(0) };
    let [mut one, mut two] = [1, 2].map(|node| {
        let mut speaker = Speaker::new(&token, u64::from(node));
        speaker.set_name([1; 16], Party { name: name(node), incarnation: 1 });
        speaker
    });
    let id = ConnectionId { index: 0, generation: 0 };
    let mut dials = Line::dialed(0, (id, String::new()), &mut one, (Purpose::Link, name(2)));
    let mut accepts = Line::accepted(0, id, String::new(), &[Purpose::Link]);
    while !(dials.is_proven() && accepts.is_proven()) {
        accepts.receive(&said(&mut dials));
        accepts.greet(0, &mut two);
        dials.receive(&said(&mut accepts));
        dials.greet(0, &mut one);
    }
    [dials, accepts]
}

fn main() {
    let shakes = measure(|| drop(black_box(lines())), 50);
    println!("a handshake, both ends: {:.1} us", shakes / 1000.0);
    println!("{:>10} {:>14} {:>14} {:>14}", "body", "with marks", "without", "a mark, each");
    for bytes in [8, 64, 300, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20] {
        let body = vec![b'x'; bytes];
        let times = (300_000 / (bytes + 500)).max(1);
        let [mut from, mut to] = lines();
        let mut marked = || {
            from.send(|out| seal(4, out, |out| out.extend_from_slice(&body)));
            to.receive(&said(&mut from));
            let Opened::Whole { bytes, .. } = to.frame(BYTES_MAX) else { panic!("a frame") };
            to.skip(bytes);
        };
        let with = measure(&mut marked, times);
        let mut pipe = wire::pipe::Pipe::new(ConnectionId { index: 0, generation: 0 });
        let mut plain = || {
            let mut out = Vec::new();
            seal(4, &mut out, |out| out.extend_from_slice(&body));
            pipe.receive(&out);
            let Opened::Whole { bytes, .. } = open(pipe.unread(), BYTES_MAX) else { panic!("a frame") };
            pipe.skip(bytes);
        };
        let without = measure(&mut plain, times);
        println!("{bytes:>10} {with:>11.0} ns {without:>11.0} ns {:>11.0} ns", (with - without) / 2.0);
    }
}
