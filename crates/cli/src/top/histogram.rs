//! Quantiles of a histogram: within the bucket where one falls, as if what is in there were spread evenly.

use super::reading::Reading;

/// Bounds in seconds, ascending, and how many were at most as long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram(Vec<(f64, f64)>);

impl Histogram {
    /// That of a name and labels, less what was there before.
    pub fn of(now: &Reading, before: Option<&Reading>, name: &str, labels: &[(&str, &str)]) -> Histogram {
        let name = format!("{name}_bucket");
        let bounds = now.values(&name, "le").into_iter();
        let mut buckets: Vec<(f64, f64)> = bounds
            .filter_map(|bound| {
                let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
                let count = |reading: &Reading| reading.sum(&name, &labels);
                let seconds = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
                Some((seconds, count(now) - before.map_or(0.0, count)))
            })
            .collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        Histogram(buckets)
    }

    /// So that this part of all is at most as long, seconds; `None` when there is nothing. What is beyond the longest bound is at
    /// that bound.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let all = self.0.last()?.1;
        if all <= 0.0 {
            return None;
        }
        let wanted = part * all;
        let (mut low, mut below) = (0.0, 0.0);
        for &(bound, count) in &self.0 {
            if count >= wanted && count > below {
                return Some(if bound.is_finite() {
                    low + (bound - low) * (wanted - below) / (count - below)
                } else {
                    low
                });
            }
            (low, below) = (bound, count);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(counts: [u32; 4]) -> Reading {
        let line = |(bound, count)| format!("t_bucket{{class=\"a\",le=\"{bound}\"}} {count}\n");
        let lines = ["0.001", "0.002", "0.010", "+Inf"].into_iter().zip(counts).map(line);
        Reading::of(&lines.collect::<String>()).unwrap()
    }

    #[test]
    fn a_quantile_lies_in_its_bucket_and_only_what_is_new_counts() {
        let of = |now, before: Option<[u32; 4]>| {
            let before = before.map(reading);
            Histogram::of(&reading(now), before.as_ref(), "t", &[("class", "a")])
        };
        let all = of([50, 100, 100, 100], None);
        assert_eq!(
            [all.quantile(0.25), all.quantile(0.5), all.quantile(0.75)],
            [Some(0.0005), Some(0.001), Some(0.0015)]
        );
        let new = of([50, 100, 200, 200], Some([50, 100, 100, 100]));
        assert!((new.quantile(0.5).unwrap() - 0.006).abs() < 1e-9, "{new:?}");
        assert_eq!(of([0, 0, 0, 9], None).quantile(0.5), Some(0.010), "beyond the longest");
        assert_eq!(of([5, 5, 5, 5], Some([5, 5, 5, 5])).quantile(0.5), None);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
