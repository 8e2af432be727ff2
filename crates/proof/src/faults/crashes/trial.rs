//! What a trial is like: which life, at which call it dies, and whether its recovery dies, too.

use base::rng::Rng;

use super::super::Setting;
use super::super::node::BURST;

/// Written by a life, bytes: the log leaves its first segment, and runs are made.
const LOAD_BYTES: u64 = 3 << 20;
/// The most that is written by a life whose log recycles a segment: faster than runs are made it has new ones first.
const LONG_LOAD_BYTES: u64 = 80 << 20;
/// Calls behind the beginning of that, within which such a life dies.
const RECYCLING_CALLS: f64 = 60.0;
/// Of so many trials one is such a life, which takes ten times as long as another one.
const LONG_OF: u64 = 30;
/// Units under way at a time of a client that sends a segment's worth at once: the log enters the next one right when that is there.
const LONG_BURST: usize = 500;
/// The lives of which every call is met.
pub(super) const EVERY: [Life; 3] = [
    Life { setting: setting("epoll", 1), clients: 1, burst: BURST, bytes: LOAD_BYTES },
    Life { setting: setting("uring", 2), clients: 4, burst: BURST, bytes: LOAD_BYTES },
    Life { setting: setting("uring", 1), clients: 1, burst: LONG_BURST, bytes: LOAD_BYTES },
];

const fn setting(backend: &'static str, cores: u32) -> Setting {
    Setting { durability: "commit", backend, cores }
}

/// What a process is and is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub setting: Setting,
    pub clients: usize,
    /// Units that each client has under way at a time.
    pub burst: usize,
    /// Written, in all.
    pub bytes: u64,
}

/// What a trial is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub life: Life,
    pub death: Death,
    /// The recovery dies, too, before this call of it.
    pub then_nth: Option<u32>,
    /// Draws what is lost.
    pub loss: u64,
}

/// When a process dies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Death {
    /// Before this of its calls.
    At(u32),
    /// So many calls behind the first by which a segment is recycled.
    Recycling(u32),
}

/// Calls of a life, and of its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    pub all: u32,
    pub start: u32,
}

impl Trial {
    /// Any life and any call of it; of so many calls there are.
    pub fn draw(rng: &mut Rng, calls: Calls) -> Trial {
        let setting = setting(if rng.chance(1, 2) { "epoll" } else { "uring" }, 1 + rng.below(2) as u32);
        if rng.chance(1, LONG_OF) {
            let setting = Setting { cores: 1, ..setting };
            let life = Life { setting, clients: 1, burst: BURST, bytes: LONG_LOAD_BYTES };
            return Trial::of(life, Death::Recycling(RECYCLING_CALLS.powf(rng.unit()) as u32 - 1), calls, rng);
        }
        // Every order of magnitude as often as any other, so that starts are met as well as loads and stops; and of two trials one at any
        // call, because most of them are late.
        let nth = match rng.chance(1, 2) {
            true => f64::from(calls.all).powf(rng.unit()) as u32,
            false => 1 + rng.below(calls.all.into()) as u32,
        };
        let (clients, burst) = [(1, BURST), (4, BURST), (1, LONG_BURST)][rng.below(3) as usize];
        Trial::of(Life { setting, clients, burst, bytes: LOAD_BYTES }, Death::At(nth), calls, rng)
    }

    /// That one.
    pub fn of(life: Life, death: Death, calls: Calls, rng: &mut Rng) -> Trial {
        let then_nth = rng.chance(1, 2).then(|| 1 + rng.below(calls.start.into()) as u32);
        Trial { life, death, then_nth, loss: rng.next_u64() }
    }
}

impl std::fmt::Display for Trial {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Trial { life, death, then_nth, .. } = self;
        match death {
            Death::At(nth) => write!(formatter, "dies before call {nth}, then {then_nth:?} ({life})"),
            Death::Recycling(calls) => {
                write!(formatter, "dies {calls} calls behind the recycling of a segment, then {then_nth:?} ({life})")
            }
        }
    }
}

impl std::fmt::Display for Life {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, {} x {} units", self.setting, self.clients, self.burst)
    }
}

impl std::fmt::Display for Calls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} calls in a life, {} of them in its start", self.all, self.start)
    }
}
