//! The median of paired ratios and how far it can be trusted.

/// Probability that may lie beyond a bound.
const ALPHA: f64 = 0.05;

/// A median with bounds that each hold with 95 % confidence, from order statistics: no distribution is assumed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// The true median is at least this (95 %).
    pub low: f64,
    /// The true median is at most this (95 %).
    pub high: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// How many values.
    pub count: usize,
}

impl Median {
    /// Of `values`; `None` of nothing. Below 5 values no order statistic reaches 95 %: the extremes stand in, and the
    /// number of pairs is printed beside them.
    pub fn of(values: &[f64]) -> Option<Median> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        let middle = count / 2;
        let value = if count % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        let rank = rank_of_low_bound(count);
        Some(Median { value, low: sorted[rank], high: sorted[count - 1 - rank], min: first, max: last, count })
    }
}

/// Index (from 0) of the order statistic below the median with 95 % confidence: the largest k with
/// P(Binomial(n, 1/2) <= k) <= 5 %.
fn rank_of_low_bound(count: usize) -> usize {
    let mut term = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    let mut rank = 0;
    for k in 0..count / 2 {
        sum += term;
        if sum > ALPHA {
            break;
        }
        rank = k;
        term *= (count - k) as f64 / (k + 1) as f64;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::{Median, rank_of_low_bound};

    #[test]
    fn the_ranks_are_those_of_the_binomial_tables() {
        // P(B(15) <= 3) = 0.0176, P(<= 4) = 0.0592; P(B(5) = 0) = 0.03125; P(B(30) <= 10) = 0.0494.
        assert_eq!(rank_of_low_bound(15), 3);
        assert_eq!(rank_of_low_bound(5), 0);
        assert_eq!(rank_of_low_bound(30), 10);
    }

    #[test]
    fn bounds_enclose_the_median() {
        let values: Vec<f64> = (1..=15).map(f64::from).collect();
        let median = Median::of(&values).expect("15 values");
        assert_eq!((median.value, median.low, median.high), (8.0, 4.0, 12.0));
        assert_eq!((median.min, median.max, median.count), (1.0, 15.0, 15));
        assert_eq!(Median::of(&[2.0, 1.0]).expect("two values").value, 1.5);
        assert_eq!(Median::of(&[]), None);
    }
}
