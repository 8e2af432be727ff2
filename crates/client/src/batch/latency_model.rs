//! How long a batch takes: L = a·bytes + n·c_exe + c2 (Li, ZHT/Q 2015, section 4.3), by least squares over what was measured.
//!
//! The sums of the normal equations are all that is kept of a sample, and they fade: memory is bounded, and a destination that
//! changed is known after some hundred batches. What is assumed at first counts like a fraction of a sample, so that batches
//! which are all alike (bytes and count in proportion, or always one) still have one solution.
//!
//! Errors count relatively, so a batch that takes long says little. Where requests become a hundred times as heavy, batches that
//! took a hundred times less would decide for ten thousand batches more what they cost; so four in a row that take much longer than
//! expected are taken for another load, and what was learned of the one before is forgotten.

use super::config::LatencyPrior;

/// What a sample weighs after the next one: some 64 are remembered.
const FADING: f64 = 1.0 - 1.0 / 64.0;
/// Samples that are solved for one by one; later every [`SOLVED_EVERY`]th is.
const SOLVED_AT_ONCE: u64 = 32;
/// See [`SOLVED_AT_ONCE`].
const SOLVED_EVERY: u64 = 8;
/// Shortest latency whose relative error counts fully, microseconds.
const LATENCY_US_MIN: f64 = 50.0;
/// Weight of what is assumed, in samples: per batch, per request, per KiB. Slopes are doubted later than the constant.
const PRIOR_WEIGHTS: [f64; 3] = [0.1, 10.0, 10.0];
/// How far latencies lie from the estimate until some did, as a share of it.
const SPREAD_START: f64 = 0.1;
/// Weight of the last deviation among those before.
const SPREAD_WEIGHT: f64 = 1.0 / 32.0;
/// Mean deviations that one latency in a thousand exceeds: three standard deviations and a little (as in TCP's timeouts).
const SPREADS: f64 = 4.0;
/// What is left at least of the work of a request when terms are fitted anew: batches that are alike for a moment may put all of their
/// time into the constant, and whoever believed that would send without bound.
const WORK_KEPT: f64 = 0.9;
/// So many batches in a row that take so many times what was expected are of another load.
const SURPRISES: u32 = 4;
/// See [`SURPRISES`].
const SURPRISE: f64 = 4.0;
const TERMS: usize = 3;

/// See the module. Errors count relatively, so that long batches do not decide what a short one costs.
#[derive(Clone, Debug)]
pub struct LatencyModel {
    prior: [f64; TERMS],
    /// c2, c_exe and a, microseconds per batch, request and KiB.
    terms: [f64; TERMS],
    /// c_exe and a as what a destination has to do is judged by: they fall slowly.
    work: [f64; 2],
    /// Sums of products of what was measured.
    products: [[f64; TERMS]; TERMS],
    latencies: [f64; TERMS],
    /// Mean deviation from the estimate, as a share of it.
    spread: f64,
    /// Sum of what samples weighed before they faded, faded as they are; and how many there were.
    weight: f64,
    samples: u64,
    /// Batches that took much longer than expected, since the last one that did not.
    surprises: u32,
}

impl LatencyModel {
    /// A model that knows nothing beyond `prior`.
    pub fn new(prior: LatencyPrior) -> LatencyModel {
        let prior = [prior.per_batch_us, prior.per_request_us, prior.per_kib_us];
        LatencyModel {
            prior,
            terms: prior,
            work: [prior[1], prior[2]],
            products: [[0.0; TERMS]; TERMS],
            latencies: [0.0; TERMS],
            spread: SPREAD_START,
            weight: 0.0,
            samples: 0,
            surprises: 0,
        }
    }

    /// Latency of a batch of so many requests and bytes, microseconds.
    #[inline]
    pub fn estimate_us(&self, count: usize, bytes: usize) -> u64 {
        let [per_batch, per_request, per_kib] = self.terms;
        (per_batch + per_request * count as f64 + per_kib * (bytes as f64 / 1024.0)) as u64
    }

    /// What one latency in a thousand is above the estimate, microseconds.
    #[inline]
    pub fn margin_us(&self, estimate_us: u64) -> u64 {
        (SPREADS * self.spread * estimate_us as f64) as u64
    }

    /// The part of it that the destination works on nothing else, microseconds.
    #[inline]
    pub fn work_us(&self, count: usize, bytes: usize) -> u64 {
        let [per_request, per_kib] = self.work;
        (per_request * count as f64 + per_kib * (bytes as f64 / 1024.0)) as u64
    }

    /// c2, microseconds.
    #[inline]
    pub fn per_batch_us(&self) -> u64 {
        self.terms[0] as u64
    }

    /// A batch took so long, microseconds.
    pub fn learn(&mut self, count: usize, bytes: usize, latency_us: u64) {
        let latency = latency_us as f64;
        if self.samples >= SOLVED_AT_ONCE / 4 {
            let expected = self.estimate_us(count, bytes).max(1) as f64;
            self.spread += SPREAD_WEIGHT * ((latency / expected - 1.0).abs().min(1.0) - self.spread);
            self.surprises = if latency > SURPRISE * expected { self.surprises + 1 } else { 0 };
        }
        if self.surprises == SURPRISES {
            self.forget();
        }
        let row = [1.0, count as f64, bytes as f64 / 1024.0];
        // One sample of a millisecond weighs 1.
        let weight = (1000.0 / latency.max(LATENCY_US_MIN)).powi(2);
        for (i, left) in row.iter().enumerate() {
            for (j, right) in row.iter().enumerate() {
                self.products[i][j] = self.products[i][j] * FADING + weight * left * right;
            }
            self.latencies[i] = self.latencies[i] * FADING + weight * left * latency;
        }
        self.weight = self.weight.mul_add(FADING, weight * (1.0 - FADING));
        self.samples += 1;
        if self.samples <= SOLVED_AT_ONCE || self.samples.is_multiple_of(SOLVED_EVERY) {
            self.solve();
        }
    }

    /// The load is another one: what was measured of the one before says nothing of it. The terms hold until the next fit.
    fn forget(&mut self) {
        (self.products, self.latencies) = ([[0.0; TERMS]; TERMS], [0.0; TERMS]);
        (self.weight, self.samples, self.surprises) = (0.0, 0, 0);
    }

    /// What was learned is void; what is assumed holds again.
    pub fn reset(&mut self) {
        let [per_batch_us, per_request_us, per_kib_us] = self.prior;
        *self = LatencyModel::new(LatencyPrior { per_kib_us, per_request_us, per_batch_us });
    }

    /// Fits the terms. Time is never gained by more bytes or requests: a term that comes out negative is 0, and the others are
    /// fitted without it.
    fn solve(&mut self) {
        let mut is_free = [true; TERMS];
        loop {
            let terms = self.solve_for(is_free);
            let negative = (0..TERMS).rev().find(|&i| is_free[i] && terms[i] < 0.0);
            match negative {
                Some(i) => is_free[i] = false,
                None => {
                    self.terms = terms;
                    let falling = self.work.map(|work| work * WORK_KEPT);
                    self.work = [terms[1].max(falling[0]), terms[2].max(falling[1])];
                    return;
                }
            }
        }
    }

    /// The terms that are free by elimination, the others 0.
    fn solve_for(&self, is_free: [bool; TERMS]) -> [f64; TERMS] {
        // What is assumed weighs as if it were so many samples of the present kind.
        let mean_weight = self.weight / (1.0 - FADING.powf(self.samples as f64));
        let mut matrix = self.products;
        let mut right = self.latencies;
        for i in 0..TERMS {
            matrix[i][i] += mean_weight * PRIOR_WEIGHTS[i];
            right[i] += mean_weight * PRIOR_WEIGHTS[i] * self.prior[i];
            if !is_free[i] {
                matrix[i] = [0.0; TERMS];
                matrix.iter_mut().for_each(|row| row[i] = 0.0);
                matrix[i][i] = 1.0;
                right[i] = 0.0;
            }
        }
        // Positive definite by the weights of what is assumed: no pivot is 0.
        for i in 0..TERMS {
            let pivot = matrix[i];
            for below in i + 1..TERMS {
                let share = matrix[below][i] / pivot[i];
                matrix[below].iter_mut().zip(pivot).for_each(|(cell, above)| *cell -= share * above);
                right[below] -= share * right[i];
            }
        }
        let mut terms = [0.0; TERMS];
        for i in (0..TERMS).rev() {
            let known: f64 = (i + 1..TERMS).map(|j| matrix[i][j] * terms[j]).sum();
            terms[i] = (right[i] - known) / matrix[i][i];
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    fn truth_us(count: usize, bytes: usize) -> f64 {
        800.0 + 20.0 * count as f64 + 3.0 * bytes as f64 / 1024.0
    }

    fn taught(seed: u64, batch: impl Fn(&mut Rng) -> (usize, usize)) -> LatencyModel {
        let mut rng = Rng::new(seed);
        let mut model = LatencyModel::new(LatencyPrior::default());
        for _ in 0..500 {
            let (count, bytes) = batch(&mut rng);
            let noise = 0.9 + 0.2 * rng.unit();
            model.learn(count, bytes, (truth_us(count, bytes) * noise) as u64);
        }
        model
    }

    fn assert_close(model: &LatencyModel, count: usize, bytes: usize) {
        let ratio = model.estimate_us(count, bytes) as f64 / truth_us(count, bytes);
        assert!((0.9..1.1).contains(&ratio), "{ratio} at {count} requests, {bytes} bytes: {model:?}");
    }

    #[test]
    fn three_terms_are_found_through_noise() {
        for seed in 0..10 {
            let model = taught(seed, |rng| (1 + rng.below(300) as usize, rng.below(1 << 20) as usize));
            for (count, bytes) in [(1, 50), (10, 100_000), (300, 20_000), (300, 1 << 20)] {
                assert_close(&model, count, bytes);
            }
        }
    }

    #[test]
    fn requests_of_one_length_and_batches_of_one_request_have_a_solution() {
        for seed in 0..10 {
            let proportional = taught(seed, |rng| {
                let count = 1 + rng.below(300) as usize;
                (count, count * 50)
            });
            [1, 30, 300].into_iter().for_each(|count| assert_close(&proportional, count, count * 50));
            let single = taught(seed, |_| (1, 50));
            assert_close(&single, 1, 50);
            assert!(single.estimate_us(100, 5000) >= single.estimate_us(1, 50));
        }
    }

    /// Batches of up to so many requests, of so many microseconds each.
    fn learn_load(model: &mut LatencyModel, batches: usize, (count_max, each_us): (u64, u64)) {
        let mut rng = Rng::new(3);
        for _ in 0..batches {
            let count = count_max / 2 + rng.below(count_max / 2) + 1;
            model.learn(count as usize, 30 * count as usize, 200 + each_us * count);
        }
    }

    /// As it was before, the work of these was told as 22 us of 8 ms after 120 batches: nobody was held back.
    #[test]
    fn requests_that_become_hundreds_of_times_as_heavy_are_known_after_some_batches() {
        for (count_max, each_us) in [(160, 500), (20, 500), (320, 200)] {
            let mut model = LatencyModel::new(LatencyPrior::default());
            learn_load(&mut model, 2000, (300, 2));
            assert!(model.work_us(16, 480) < 100, "{model:?}");
            learn_load(&mut model, 10, (count_max, each_us));
            let part = model.work_us(16, 480) as f64 / (16 * each_us) as f64;
            assert!((0.5..1.5).contains(&part), "{part} of {each_us} us each by {count_max}: {model:?}");
        }
    }

    #[test]
    fn some_batches_that_take_long_by_themselves_change_little() {
        let mut model = LatencyModel::new(LatencyPrior::default());
        learn_load(&mut model, 2000, (300, 2));
        let before_us = model.estimate_us(100, 3000);
        for _ in 0..100 {
            (0..3).for_each(|_| model.learn(100, 3000, 100 * before_us));
            model.learn(100, 3000, before_us);
        }
        let ratio = model.estimate_us(100, 3000) as f64 / before_us as f64;
        assert!((0.5..2.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_destination_that_changed_is_known_after_some_hundred_batches() {
        let mut model = taught(1, |rng| (1 + rng.below(100) as usize, 1000));
        let mut rng = Rng::new(2);
        for _ in 0..600 {
            let count = 1 + rng.below(100) as usize;
            model.learn(count, 1000, 10_000 + 100 * count as u64);
        }
        let ratio = model.estimate_us(50, 1000) as f64 / 15_000.0;
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
        model.reset();
        assert_eq!(model.estimate_us(1, 0), 302);
    }
}
