//! Reply order against a model: random interleavings of replies, gaps, holds, commits and sends.

use base::limits;
use base::rng::Rng;
use base::{BLOCK_BYTES, Blocks, Horizon, Lanes, LogOrdinal, Promise, Scope, Slot, Text};
use session::{EncodedReply, Output, Pressure, Ticket};
use wire::Protocol;

#[derive(Default)]
struct Reply {
    bytes: Vec<u8>,
    ready: bool,
    held_until: Option<Promise>,
}

/// What the output is compared with: every reply ever asked for, in request order.
#[derive(Default)]
struct Model {
    replies: Vec<Reply>,
    open: Vec<(Ticket, usize)>,
    horizon: Horizon,
    lanes: Lanes,
    /// Of the lanes 1 and 2.
    committed: [u64; 2],
    next_ordinal: u64,
    received: Vec<u8>,
    /// Few lives have long replies: they are slow to compare.
    is_with_long: bool,
}

impl Model {
    fn expected(&self) -> Vec<u8> {
        let leaves = |reply: &&Reply| reply.ready && reply.held_until.is_none_or(|promise| self.horizon.keeps(promise));
        self.replies.iter().take_while(leaves).flat_map(|reply| reply.bytes.clone()).collect()
    }

    fn commit(&mut self, committed: [u64; 2]) {
        self.committed = committed;
        let [first, second] = committed;
        self.horizon.advance(&self.lanes, |lane| LogOrdinal([first.min(second), first, second][lane]));
    }

    fn pending(&self) -> usize {
        let ready: usize = self.replies.iter().filter(|reply| reply.ready).map(|reply| reply.bytes.len()).sum();
        ready - self.received.len()
    }
}

/// A reply that says which request it answers.
fn reply_bytes(number: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::Reply::new(&mut bytes, Protocol::Resp2).simple(&format!("{number}{}", "x".repeat(rng.below(20) as usize)));
    bytes
}

/// Long strings and the reply that has them, alone or with others between.
fn long_reply(rng: &mut Rng) -> (Vec<Blocks>, Vec<u8>) {
    let count = 1 + rng.below(3);
    let value = |rng: &mut Rng| {
        let bytes = BLOCK_BYTES + 1 + rng.below(2 * BLOCK_BYTES as u64) as usize;
        Blocks::of(&vec![b'a' + rng.below(26) as u8; bytes])
    };
    let values: Vec<Blocks> = (0..count).map(|_| value(rng)).collect();
    let mut bytes = Vec::new();
    write_all(&values, &mut wire::Reply::new(&mut bytes, Protocol::Resp2));
    (values, bytes)
}

fn write_all(values: &[Blocks], reply: &mut wire::Reply<'_>) {
    if let [value] = values {
        return reply.text(Text::Long(value));
    }
    reply.array(2 * values.len());
    for value in values {
        reply.text(Text::Long(value));
        reply.bulk(b"between");
    }
}

/// The reply as the core that has the values gives it to another one.
fn in_blocks(values: &[Blocks]) -> EncodedReply {
    let mut reply = EncodedReply::default();
    write_all(values, &mut reply.encoder(Protocol::Resp2));
    assert!(reply.bytes.len() < 100 && reply.long.len() == values.len());
    reply
}

/// What a reply may wait for: one of the slots of two lanes, or all.
fn promise_of(until: u64, rng: &mut Rng) -> Promise {
    let scope = match rng.below(3) {
        2 => Scope::Several,
        slot => Scope::One(Slot::wrapping(slot as u16)),
    };
    Promise { until: LogOrdinal(until), scope }
}

fn step(output: &mut Output, model: &mut Model, rng: &mut Rng) {
    match rng.below(7) {
        0 | 1 => {
            let mut bytes = reply_bytes(model.replies.len(), rng);
            let mark = output.mark();
            if model.is_with_long && rng.chance(1, 20) {
                let values;
                (values, bytes) = long_reply(rng);
                if rng.chance(1, 2) {
                    output.relay(Protocol::Resp2, in_blocks(&values));
                } else {
                    write_all(&values, &mut output.reply(Protocol::Resp2));
                    output.settle_long();
                }
            } else {
                output.reply(Protocol::Resp2).raw(&bytes);
            }
            model.replies.push(Reply { bytes, ready: true, held_until: None });
            if rng.chance(1, 3) {
                model.next_ordinal += rng.below(2);
                let promise = promise_of(model.next_ordinal, rng);
                output.hold(mark, promise);
                let last = model.replies.last_mut().unwrap();
                last.held_until = Some(promise);
            }
        }
        2 => {
            let ticket = output.reserve();
            model.open.push((ticket, model.replies.len()));
            model.replies.push(Reply::default());
        }
        3 | 4 if !model.open.is_empty() => {
            let (ticket, number) = model.open.swap_remove(rng.below(model.open.len() as u64) as usize);
            let is_long = model.is_with_long && rng.chance(1, 20);
            let (values, long) = if is_long { long_reply(rng) } else { Default::default() };
            let bytes = if is_long { long } else { reply_bytes(number, rng) };
            model.replies[number].bytes = bytes.clone();
            model.replies[number].ready = true;
            output.fill(ticket, if is_long { in_blocks(&values) } else { bytes.into() });
            output.release(&model.horizon);
        }
        5 => {
            let mut committed = model.committed;
            let lane = &mut committed[rng.below(2) as usize];
            *lane = (*lane).max(rng.below(model.next_ordinal + 1));
            model.commit(committed);
            output.release(&model.horizon);
        }
        _ => {
            let mut budget = rng.below(3 * BLOCK_BYTES as u64) as usize;
            let before = budget;
            if let Some(bytes) = output.take_sendable(&mut budget, Vec::new) {
                assert!(!bytes.is_empty() && (before == budget || bytes.len() < 3 * BLOCK_BYTES));
                model.received.extend_from_slice(&bytes);
                output.sent();
            }
            output.release(&model.horizon);
        }
    }
}

/// One random life of a connection, to its end.
fn check(seed: u64) -> Result<(), String> {
    let (mut output, mut rng) = (Output::default(), Rng::new(seed));
    let lanes = Lanes::new(std::array::from_fn(|slot| if slot == 0 { 1 } else { 2 }));
    let mut model = Model { is_with_long: seed.is_multiple_of(100), lanes, ..Model::default() };
    model.commit([0, 0]);
    for number in 0..200 {
        step(&mut output, &mut model, &mut rng);
        if !model.expected().starts_with(&model.received) {
            return Err(format!("seed {seed}, step {number}: sent out of order or too early"));
        }
        if output.pending_bytes() != model.pending() {
            return Err(format!("seed {seed}, step {number}: {} pending", output.pending_bytes()));
        }
    }
    while let Some((ticket, number)) = model.open.pop() {
        model.replies[number] = Reply { bytes: reply_bytes(number, &mut rng), ready: true, held_until: None };
        output.fill(ticket, model.replies[number].bytes.clone().into());
    }
    model.commit([model.next_ordinal; 2]);
    output.release(&model.horizon);
    while let Some(bytes) = output.take_sendable(&mut usize::MAX.clone(), Vec::new) {
        model.received.extend(bytes);
        output.sent();
        output.release(&model.horizon);
    }
    if model.received != model.expected() || !output.is_empty() {
        return Err(format!("seed {seed}: the replies are not those of the requests"));
    }
    Ok(())
}

#[test]
fn replies_leave_in_request_order_and_not_before_their_commit() {
    let _unplanted = crate::rig::unplanted();
    (0..3000).try_for_each(check).unwrap();
}

#[cfg(feature = "planted")]
#[test]
fn m14_swapped_replies_are_caught() {
    let caught = crate::rig::with_planted(base::planted::Bug::M14RepliesSwapped, || (0..20).any(|s| check(s).is_err()));
    assert!(caught, "the model does not see that replies changed places");
}

/// Everything up to log group `until` is committed.
fn committed(until: u64) -> Horizon {
    let mut horizon = Horizon::default();
    horizon.advance(&Lanes::default(), |_| LogOrdinal(until));
    horizon
}

fn group(until: u64) -> Promise {
    Promise::of_all(LogOrdinal(until))
}

#[test]
fn a_hold_covers_what_follows_it_even_a_gap() {
    let _unplanted = crate::rig::unplanted();
    let mut output = Output::default();
    output.reply(Protocol::Resp2).raw(b"a");
    let mark = output.mark();
    let ticket = output.reserve();
    output.hold(mark, group(4));
    output.reply(Protocol::Resp2).raw(b"c");
    output.fill(ticket, b"b".to_vec().into());
    assert_eq!(output.take_sendable(&mut usize::MAX.clone(), Vec::new).unwrap(), b"a");
    output.sent();
    assert!(output.is_held());
    assert!(!output.release(&committed(3)));
    assert!(output.release(&committed(4)));
    assert_eq!(output.take_sendable(&mut usize::MAX.clone(), Vec::new).unwrap(), b"bc");
}

#[test]
fn what_is_cut_never_leaves_whatever_comes_to_hold() {
    let _unplanted = crate::rig::unplanted();
    let mut output = Output::default();
    output.reply(Protocol::Resp2).raw(b"a");
    let mark = output.mark();
    output.reply(Protocol::Resp2).raw(b"b");
    output.hold(mark, group(2));
    let ticket = output.reserve();
    output.cut();
    output.fill(ticket, b"c".to_vec().into());
    output.release(&committed(u64::MAX - 1));
    assert_eq!(output.take_sendable(&mut usize::MAX.clone(), Vec::new).unwrap(), b"a");
    output.sent();
    assert!(output.take_sendable(&mut usize::MAX.clone(), Vec::new).is_none() && output.is_held());
}

#[test]
fn an_earlier_mark_held_later_is_still_covered() {
    let _unplanted = crate::rig::unplanted();
    let mut output = Output::default();
    let first = output.mark();
    output.reply(Protocol::Resp2).raw(b"a");
    let second = output.mark();
    output.reply(Protocol::Resp2).raw(b"b");
    output.hold(second, group(2));
    output.hold(first, group(1));
    assert!(output.take_sendable(&mut usize::MAX.clone(), Vec::new).is_none());
    output.release(&committed(1));
    assert_eq!(output.take_sendable(&mut usize::MAX.clone(), Vec::new).unwrap(), b"a");
}

#[test]
fn one_send_at_a_time_into_the_spare_buffer() {
    let _unplanted = crate::rig::unplanted();
    let mut output = Output::default();
    output.reply(Protocol::Resp2).raw(b"one");
    let sent = output.take_sendable(&mut 0, || Vec::with_capacity(64)).unwrap();
    output.reply(Protocol::Resp2).raw(b"two");
    assert!(output.take_sendable(&mut 0, || panic!("no spare is needed")).is_none());
    assert_eq!(output.pending_bytes(), 6);
    output.sent();
    assert_eq!((sent.as_slice(), output.pending_bytes()), (&b"one"[..], 3));
    let second = output.take_sendable(&mut usize::MAX.clone(), Vec::new).unwrap();
    assert_eq!((second.as_slice(), second.capacity()), (&b"two"[..], 64));
}

#[test]
fn pressure_counts_everything_unsent() {
    let _unplanted = crate::rig::unplanted();
    let mut output = Output::default();
    let ticket = output.reserve();
    output.reply(Protocol::Resp2).raw(&vec![b'x'; limits::OUTPUT_PAUSE_BYTES]);
    assert_eq!(output.pressure(), Pressure::Ok);
    output.fill(ticket, vec![b'y'].into());
    assert_eq!(output.pressure(), Pressure::Pause);
    drop(output.take_sendable(&mut usize::MAX.clone(), Vec::new).unwrap());
    assert_eq!(output.pressure(), Pressure::Pause);
    output.sent();
    assert_eq!(output.pressure(), Pressure::Ok);
}

#[test]
fn long_values_are_no_copies_that_a_connection_has_to_be_closed_for() {
    let _unplanted = crate::rig::unplanted();
    let mut output = Output::default();
    let value = vec![Blocks::of(&vec![b'v'; 16 << 20])];
    let one = 16 << 20;
    let most = limits::OUTPUT_BYTES_MAX / one + 1;
    (0..most).for_each(|_| output.relay(Protocol::Resp2, in_blocks(&value)));
    assert!(output.pending_bytes() > limits::OUTPUT_BYTES_MAX);
    assert_eq!(output.pressure(), Pressure::Pause, "two of the longest in one reply are served");
    // While some leave, and where some are taken back, the count stays right.
    let mark = output.mark();
    output.relay(Protocol::Resp2, in_blocks(&value));
    drop(output.rewind(mark));
    for _ in 0..3 * (one / BLOCK_BYTES) {
        drop(output.take_sendable(&mut usize::MAX.clone(), Vec::new).unwrap());
        output.sent();
    }
    assert!(output.pending_bytes() < (most - 2) * one);
    assert_eq!(output.pressure(), Pressure::Pause);
    // What was copied counts as before.
    output.reply(Protocol::Resp2).raw(&vec![0; limits::OUTPUT_BYTES_MAX - BLOCK_BYTES]);
    assert_eq!(output.pressure(), Pressure::Pause);
    output.reply(Protocol::Resp2).raw(&[0; 2 * BLOCK_BYTES]);
    assert_eq!(output.pressure(), Pressure::Close);
}

#[test]
fn muted_replies_vanish_wherever_they_come_from() {
    let _unplanted = crate::rig::unplanted();
    let mut output = Output::default();
    output.set_muted(true);
    output.reply(Protocol::Resp2).raw(b"no");
    let ticket = output.reserve();
    output.set_muted(false);
    output.reply(Protocol::Resp2).raw(b"yes");
    output.fill(ticket, b"no".to_vec().into());
    assert_eq!(output.take_sendable(&mut usize::MAX.clone(), Vec::new).unwrap(), b"yes");
}

#[test]
fn an_error_is_counted_once_wherever_it_was_encoded_and_whoever_wants_it() {
    let mut output = Output::default();
    output.reply(Protocol::Resp2).error("ERR", "here");
    let tickets = [output.reserve(), output.reserve()];
    output.fill(tickets[1], b"-MOVED 5 there\r\n".to_vec().into());
    output.fill(tickets[0], b"$1\r\n-\r\n".to_vec().into());
    output.reply(Protocol::Resp2).relay(b"-OOM no room\r\n");
    output.reply(Protocol::Resp2).relay(b"+OK\r\n");
    output.set_muted(true);
    output.reply(Protocol::Resp2).error("ERR", "nobody reads it");
    let ticket = output.reserve();
    output.fill(ticket, b"-MOVED 6 there\r\n".to_vec().into());
    let counts = |output: &Output| -> Vec<(String, u64)> {
        output.errors().iter().map(|(code, count)| (code.to_owned(), count)).collect()
    };
    assert_eq!(counts(&output), [("ERR", 2), ("MOVED", 2), ("OOM", 1)].map(|(code, count)| (code.to_owned(), count)));
    assert_eq!(output.take_errors().total(), 5);
    assert_eq!(counts(&output), []);
}
