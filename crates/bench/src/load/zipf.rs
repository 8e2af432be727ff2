//! Zipf's law by inversion: Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994), the
//! method YCSB uses.

use base::rng::Rng;

/// Ranks `0..count`, rank r drawn with probability proportional to `1 / (r+1)^theta`.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: u64,
    theta: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Ranks below `count` (at least 1) with exponent `theta` between 0 and 1. Takes time proportional to `count`.
    pub fn new(count: u64, theta: f64) -> Zipf {
        assert!(count > 0 && theta > 0.0 && theta < 1.0, "the plan was checked");
        let zeta_two = 1.0 + 0.5f64.powf(theta);
        let zeta: f64 = (1..=count).map(|rank| (rank as f64).powf(-theta)).sum();
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - theta)) / (1.0 - zeta_two / zeta);
        Zipf { count, theta, zeta, alpha: 1.0 / (1.0 - theta), eta }
    }

    /// The next rank; 0 is the most popular.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit();
        let scaled = u * self.zeta;
        if scaled < 1.0 || self.count == 1 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        let rank = self.count as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Rng, Zipf};

    #[test]
    fn the_first_ranks_have_the_share_of_zipfs_law() {
        let (count, theta, draws) = (1000u64, 0.99, 200_000);
        let zipf = Zipf::new(count, theta);
        let mut rng = Rng::new(5);
        let mut seen = vec![0u32; count as usize];
        for _ in 0..draws {
            seen[zipf.draw(&mut rng) as usize] += 1;
        }
        let zeta: f64 = (1..=count).map(|rank| (rank as f64).powf(-theta)).sum();
        for rank in [0usize, 1] {
            let share = f64::from(seen[rank]) / f64::from(draws);
            let law = (rank as f64 + 1.0).powf(-theta) / zeta;
            assert!((share / law - 1.0).abs() < 0.05, "rank {rank}: {share} against {law}");
        }
        assert!(seen[999] < seen[100], "the tail is thin");
    }

    #[test]
    fn one_key_is_always_that_key() {
        let zipf = Zipf::new(1, 0.5);
        let mut rng = Rng::new(1);
        assert!((0..100).all(|_| zipf.draw(&mut rng) == 0));
    }
}
