//! Runs worlds, each twice, and says what was violated and how to see it again.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::coverage::Coverage;
use crate::world::{self, Verdict, Wishes};

/// What came of many worlds.
#[derive(Default)]
pub struct Sum {
    /// A line per world that failed.
    pub failed: Vec<String>,
    /// What they met.
    pub coverage: Coverage,
    /// Virtual seconds.
    pub virtual_s: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.failed.extend(other.failed);
        self.coverage.add(&other.coverage);
        self.virtual_s += other.virtual_s;
    }
}

/// What the environment wishes otherwise.
#[allow(clippy::disallowed_methods, reason = "a test may be asked for other worlds")]
pub fn number(name: &str, default: u64) -> u64 {
    let Ok(word) = std::env::var(name) else { return default };
    word.parse().expect("a number")
}

/// Run a world once: what was violated.
pub fn once(wishes: Wishes) -> Result<Verdict, String> {
    let verdict = catch_unwind(AssertUnwindSafe(|| world::run(wishes)));
    let verdict = verdict.map_err(|panic| format!("panic: {}", words_of(panic.as_ref())))?;
    match verdict.violation {
        Some(words) => Err(words),
        None => Ok(verdict),
    }
}

/// Run a world twice: what was violated, or where the two runs part.
pub fn twice(wishes: Wishes) -> Result<Verdict, String> {
    let first = once(wishes)?;
    let again = once(Wishes { prints: false, ..wishes })?;
    if again.trace.text() == first.trace.text() {
        return Ok(first);
    }
    let mut lines = first.trace.text().lines().zip(again.trace.text().lines());
    Err(format!("two runs of one seed part at {:?}", lines.find(|(a, b)| a != b)))
}

/// Run `count` worlds from `from` on, each in one thread.
#[allow(clippy::disallowed_methods, reason = "worlds of their own: no thread sees another one's")]
pub fn many(from: u64, count: u64) -> Sum {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut sum = Sum::default();
    std::thread::scope(|scope| {
        let shares: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || share((from..from + count).skip(first).step_by(threads))))
            .collect();
        for share in shares {
            sum.add(share.join().expect("a world's panic is caught"));
        }
    });
    sum
}

fn share(seeds: impl Iterator<Item = u64>) -> Sum {
    let mut sum = Sum::default();
    for seed in seeds {
        match twice(Wishes { seed, ..Wishes::default() }) {
            Ok(verdict) => {
                sum.coverage.add(&verdict.coverage);
                sum.virtual_s += verdict.virtual_us / 1_000_000;
            }
            Err(words) => {
                sum.failed.push(format!(
                    "seed {seed}: {words}; MANAGER_FROM={seed} MANAGER_WORLDS=1 MANAGER_TRACE=1 shows it"
                ));
            }
        }
    }
    sum
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let word = panic.downcast_ref::<&str>().map(|word| (*word).to_owned());
    word.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "of another kind".to_owned())
}
