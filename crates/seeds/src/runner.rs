//! Runs worlds, each twice, and says what was violated and how to see it again.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::coverage::Counts;
use crate::trace::Trace;

/// How a run of one kind of worlds is wished.
pub trait Wish: Copy {
    /// What the variables of the environment begin with that choose worlds: `NAME_FROM`, `NAME_WORLDS`, `NAME_TRACE`.
    const NAME: &'static str;
    /// What is counted in these worlds.
    type Coverage: Counts;
    /// What is found out in some of them.
    type More;

    /// The world of a seed, its trace printed or not.
    fn of(seed: u64, prints: bool) -> Self;

    /// The same world without printing.
    fn silent(self) -> Self;

    /// Runs it once.
    fn run(self) -> Verdict<Self::Coverage, Self::More>;
}

/// What a run found.
pub struct Verdict<Coverage, More = ()> {
    /// Everything that happened.
    pub trace: Trace,
    /// What was violated.
    pub violation: Option<String>,
    /// What was met.
    pub coverage: Coverage,
    /// Virtual time that passed, microseconds.
    pub virtual_us: u64,
    /// What is found out in some worlds.
    pub more: More,
}

type VerdictOf<W> = Verdict<<W as Wish>::Coverage, <W as Wish>::More>;

/// What came of many worlds.
#[derive(Default)]
pub struct Sum<Coverage> {
    /// A line per world that failed.
    pub failed: Vec<String>,
    /// What they met.
    pub coverage: Coverage,
    /// Virtual seconds.
    pub virtual_s: u64,
}

impl<Coverage: Counts> Sum<Coverage> {
    fn add(&mut self, other: Sum<Coverage>) {
        self.failed.extend(other.failed);
        self.coverage.add(&other.coverage);
        self.virtual_s += other.virtual_s;
    }
}

/// What the environment wishes otherwise.
///
/// # Panics
/// When that is no number.
pub fn number(name: &str, default: u64) -> u64 {
    let Ok(word) = std::env::var(name) else { return default };
    word.parse().expect("a number")
}

/// Run a world once: what was violated.
pub fn once<W: Wish>(wish: W) -> Result<VerdictOf<W>, String> {
    let verdict = catch_unwind(AssertUnwindSafe(|| wish.run()));
    let verdict = verdict.map_err(|panic| format!("panic: {}", words_of(panic.as_ref())))?;
    match verdict.violation {
        Some(words) => Err(words),
        None => Ok(verdict),
    }
}

/// Run a world twice: what was violated, or where the two runs part.
pub fn twice<W: Wish>(wish: W) -> Result<VerdictOf<W>, String> {
    let first = once(wish)?;
    let again = once(wish.silent())?;
    if again.trace.text() == first.trace.text() {
        return Ok(first);
    }
    let mut lines = first.trace.text().lines().zip(again.trace.text().lines());
    Err(format!("two runs of one seed part at {:?}", lines.find(|(a, b)| a != b)))
}

/// Run `count` worlds from `from` on, each in one thread: worlds of their own, of which no thread sees another one's.
///
/// # Panics
/// Never: a world's panic is caught.
pub fn many<W: Wish>(from: u64, count: u64) -> Sum<W::Coverage> {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut sum = Sum::<W::Coverage>::default();
    std::thread::scope(|scope| {
        let shares: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || share::<W>((from..from + count).skip(first).step_by(threads))))
            .collect();
        for share in shares {
            sum.add(share.join().expect("a world's panic is caught"));
        }
    });
    sum
}

fn share<W: Wish>(seeds: impl Iterator<Item = u64>) -> Sum<W::Coverage> {
    let mut sum = Sum::<W::Coverage>::default();
    for seed in seeds {
        match twice(W::of(seed, false)) {
            Ok(verdict) => {
                sum.coverage.add(&verdict.coverage);
                sum.virtual_s += verdict.virtual_us / 1_000_000;
            }
            Err(words) => {
                let name = W::NAME;
                sum.failed
                    .push(format!("seed {seed}: {words}; {name}_FROM={seed} {name}_WORLDS=1 {name}_TRACE=1 shows it"));
            }
        }
    }
    sum
}

/// The worlds of the gate, or those that the environment names: all keep every promise, and if they are as many as in the gate,
/// everything that is counted happens in one of them.
///
/// # Panics
/// When that is not so.
pub fn keep_every_promise<W: Wish>(from: u64, worlds: u64) {
    let of = |word: &str, default| number(&format!("{}_{word}", W::NAME), default);
    let (from, count) = (of("FROM", from), of("WORLDS", worlds));
    if of("TRACE", 0) > 0 {
        drop(once(W::of(from, true)));
    }
    let sum = many::<W>(from, count);
    println!("{count} worlds from {from}, {} virtual seconds, each twice", sum.virtual_s);
    sum.coverage.lines().iter().for_each(|(name, count)| println!("{name:>20} {count:>12}"));
    assert!(sum.failed.is_empty(), "{} worlds failed:\n{}", sum.failed.len(), sum.failed.join("\n"));
    let missed: Vec<&str> = sum.coverage.lines().into_iter().filter(|line| line.1 == 0).map(|line| line.0).collect();
    assert!(count < worlds || missed.is_empty(), "no world met {missed:?}");
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let word = panic.downcast_ref::<&str>().map(|word| (*word).to_owned());
    word.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "of another kind".to_owned())
}
