//! Q6: the equations of throughput (Li 2015, 4.4 to 4.9, as corrected in `docs/internals/batching.md`) against the emulation. The
//! terms are learned at batch sizes of 2 to 50, and have to hold from 1 to 1,000.

use super::world::Shard;
use base::rng::Rng;
use client::batch::*;

const REQUEST_BYTES: usize = 32;
const SIZES: [usize; 4] = [1, 10, 100, 1000];

/// One client that always has requests, batches of `count`, `depth` of them out at once.
struct Closed {
    batcher: Batcher<()>,
    rng: Rng,
    shard: Shard,
    count: usize,
    now_us: u64,
    free_us: u64,
    /// By time of their answers.
    out: std::collections::VecDeque<(u64, BatchTicket)>,
}

impl Closed {
    fn new(shard: Shard, count: usize) -> Closed {
        let fixed =
            FixedConfig { count_max: count, bytes_max: usize::MAX, interval_us: 1_000_000, is_stop_and_wait: false };
        let bounds = BatchBounds { work_us_max: u64::MAX, ..BatchBounds::default() };
        let config = BatcherConfig { policy: PolicyConfig::Fixed(fixed), bounds, ..BatcherConfig::default() };
        let (batcher, rng) = (Batcher::new(config, 0), Rng::new(count as u64));
        Closed { batcher, rng, shard, count, now_us: 0, free_us: 0, out: Default::default() }
    }

    fn fill(&mut self) {
        for i in 0..self.count {
            let encode = |bytes: &mut Vec<u8>| bytes.extend_from_slice(&[0; REQUEST_BYTES]);
            self.batcher.push(self.now_us, i as u64, Qos::Batch, (), encode).unwrap();
        }
        let batch = self.batcher.due(self.now_us).expect("the count is reached");
        assert_eq!(batch.items.len(), self.count);
        let half_us = self.shard.round_trip_us / 2;
        self.free_us = self.free_us.max(self.now_us + half_us) + self.shard.service_us(self.count, &mut self.rng);
        self.out.push_back((self.free_us + half_us, batch.ticket));
        self.batcher.recycle(batch.bytes, batch.items);
    }

    /// Latencies of `batches` batches, microseconds.
    fn run(&mut self, depth: usize, batches: usize) -> Vec<u64> {
        (0..depth).for_each(|_| self.fill());
        let mut latencies = Vec::new();
        for _ in 0..batches {
            let (at_us, ticket) = self.out.pop_front().expect("something is out");
            self.now_us = at_us;
            latencies.push(at_us - ticket.sent_us);
            self.batcher.answered(at_us, BatchAnswer { ticket, outcome: BatchOutcome::Answered });
            self.fill();
        }
        latencies
    }

    /// Requests per second of such a run.
    fn throughput(shard: Shard, count: usize, depth: usize) -> f64 {
        let mut closed = Closed::new(shard, count);
        let batches = (1_000_000 / count).clamp(100, 2000);
        closed.run(depth, batches);
        (count * batches) as f64 / closed.now_us as f64 * 1e6
    }
}

/// A model that has seen batches of 2, 5, 20 and 50 requests, 50 of each.
fn taught(shard: Shard) -> LatencyModel {
    let mut model = LatencyModel::new(LatencyPrior::default());
    let mut runs: Vec<(usize, Vec<u64>)> =
        [2, 5, 20, 50].iter().map(|&count| (count, Closed::new(shard, count).run(1, 50))).collect();
    for _ in 0..50 {
        for (count, latencies) in &mut runs {
            let latency_us = latencies.pop().expect("there are fifty");
            model.learn(*count, *count * REQUEST_BYTES, latency_us);
        }
    }
    model
}

fn assert_close(what: &str, count: usize, predicted: f64, measured: f64) {
    let error = predicted / measured - 1.0;
    println!("Q6 {what}, n = {count}: predicted {predicted:.0}/s, measured {measured:.0}/s, {:+.1} %", 100.0 * error);
    assert!(error.abs() <= 0.1, "{what}, n = {count}: {error}");
}

/// One batch at a time: Th(n) = n / L(n), L(n) = c2 + n·c_exe + a·n·S, the terms learned at other sizes.
#[test]
fn one_batch_at_a_time_is_predicted_from_learned_terms() {
    for (name, shard) in [("store", Shard::STORE), ("memory", Shard::MEMORY)] {
        let model = taught(shard);
        for count in SIZES {
            let predicted = count as f64 / model.estimate_us(count, count * REQUEST_BYTES) as f64 * 1e6;
            assert_close(&format!("{name}, one out"), count, predicted, Closed::throughput(shard, count, 1));
        }
    }
}

/// Batches always under way: Th(n) = n / (c0 + n·c1), and 1/c1 as n grows. What the round trip takes of c2 is not in it.
#[test]
fn pipelined_batches_are_predicted_without_the_round_trip() {
    for (name, shard) in [("store", Shard::STORE), ("memory", Shard::MEMORY)] {
        let model = taught(shard);
        let latency_us = |count: usize| model.estimate_us(count, count * REQUEST_BYTES) as f64;
        for count in SIZES {
            let predicted = count as f64 / (latency_us(count) - shard.round_trip_us as f64) * 1e6;
            assert_close(&format!("{name}, many out"), count, predicted, Closed::throughput(shard, count, 32));
        }
        let limit = 1e6 / shard.c1_us;
        let highest = Closed::throughput(shard, 10_000, 32);
        assert!((0.9..1.05).contains(&(highest / limit)), "{highest} of {limit}");
    }
}
