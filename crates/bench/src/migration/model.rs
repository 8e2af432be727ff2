//! What the ways can reach by arithmetic: both ends always busy with what they may do, keys asked for alike, copying at an even pace.
//!
//! With `f` of the keys gone, `s` what the source may serve and `d` what the destination may, copying taken off both:
//!
//! ```text
//!  one piece     s                         writes there   min(d, s / (1-f)(1-w))
//!  cursor        min(s / (1-f), d / f)     at once        d / (1 + (1-f)(1-w)(1 + 1/16)), and what is pulled fits s
//! ```

use super::Arm;

const STEPS: u32 = 10_000;
/// Of an operation, for a pair that is pulled.
const PULL: f64 = 1.0 / 16.0;

/// Requests a second over a migration, of what the destination may serve at all: `write` of them SETs, the source with `budget` of the
/// destination's rate, `copying` of that spent on copying at both. None where it depends on how long an end waits for the other.
pub fn mean(arm: Arm, write: f64, budget: f64, copying: f64) -> Option<f64> {
    let (source, destination) = (budget - copying, 1.0 - copying);
    let read = 1.0 - write;
    let at = |gone: f64| {
        let left = 1.0 - gone;
        match arm {
            Arm::SourceBased | Arm::ZerohopWhole => source,
            Arm::Cursor | Arm::ZerohopPieces => (source / left).min(destination / gone),
            Arm::Writes => destination.min(source / (left * read)),
            Arm::AtOnce => (destination / (1.0 + left * read * (1.0 + PULL))).min(source / (left * read * PULL)),
            Arm::Stopped => f64::NAN,
        }
    };
    let sum: f64 = (0..STEPS).map(|step| at((f64::from(step) + 0.5) / f64::from(STEPS))).sum();
    let mean = sum / f64::from(STEPS);
    mean.is_finite().then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: Option<f64>, expected: f64) {
        assert!(value.is_some_and(|value| (value - expected).abs() < 1e-3), "{value:?} is not {expected}");
    }

    #[test]
    fn the_bounds_are_those_of_the_integrals() {
        near(mean(Arm::SourceBased, 0.2, 0.4, 0.0), 0.4);
        // 2 ln 2: more than this against the source alone is a baseline that was held back.
        near(mean(Arm::Cursor, 0.0, 1.0, 0.0), 2.0 * 2f64.ln());
        near(mean(Arm::Cursor, 0.3, 0.4, 0.0), 0.4 * (1.4f64 / 0.4).ln() + 1.4f64.ln());
        near(mean(Arm::Writes, 0.0, 1.0, 0.1), 0.9);
        near(mean(Arm::Writes, 0.3, 0.4, 0.0), 0.4 / 0.7 * (0.7f64 / 0.4).ln() + 0.4 / 0.7);
        // ln 2.0625 / 1.0625.
        near(mean(Arm::AtOnce, 0.0, 1.0, 0.0), 0.6814);
        assert_eq!(mean(Arm::Stopped, 0.0, 1.0, 0.0), None);
    }
}
