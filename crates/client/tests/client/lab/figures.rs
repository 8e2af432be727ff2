//! Figures: a histogram in steps of three percent, and tables as they are printed.

/// Steps of the histogram per factor e.
const STEPS: f64 = 32.0;

/// Latencies, microseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    sum_us: f64,
    count: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; 1024], sum_us: 0.0, count: 0 }
    }
}

impl Histogram {
    pub fn note(&mut self, us: u64) {
        let index = ((us as f64 + 1.0).ln() * STEPS) as usize;
        self.counts[index.min(1023)] += 1;
        self.sum_us += us as f64;
        self.count += 1;
    }

    pub fn mean_ms(&self) -> f64 {
        self.sum_us / (self.count as f64).max(1.0) / 1000.0
    }

    /// Latency that so large a share stays below, milliseconds.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = (self.count as f64 * share) as u64;
        let mut below = 0;
        let index = self.counts.iter().position(|count| {
            below += count;
            below > wanted
        });
        ((index.unwrap_or(1023) as f64 + 0.5) / STEPS).exp() / 1000.0
    }
}

/// A row of a table: a name and numbers.
pub fn row(name: &str, numbers: impl IntoIterator<Item = f64>) -> String {
    let cell = |number: f64| if number >= 100.0 { format!(" {number:>8.0}") } else { format!(" {number:>8.2}") };
    format!("{name:<24}{}", numbers.into_iter().map(cell).collect::<String>())
}

/// Jain's index of fairness: 1 where all have the same, 1/n where one has everything.
pub fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    sum * sum / (values.len() as f64 * squares)
}

#[test]
fn figures_are_what_they_are_called() {
    let mut histogram = Histogram::default();
    (1..=1000).for_each(|i| histogram.note(i * 1000));
    assert!((histogram.mean_ms() - 500.5).abs() < 0.1);
    let p99 = histogram.quantile_ms(0.99);
    assert!((960.0..1020.0).contains(&p99), "{p99}");
    assert_eq!(jain(&[2.0; 5]), 1.0);
    assert!((jain(&[1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-9);
}
