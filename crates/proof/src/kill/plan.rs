//! What a round is like: drawn from the campaign's seed and the round's number, and from nothing else.

use std::time::Duration;

use base::rng::{Rng, mix};

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// kill -9 under load.
    Kill,
    /// SIGTERM under load: a clean stop, behind which nothing is replayed.
    Terminate,
    /// SIGTERM under load, and kill -9 while it stops, unless it is faster.
    KillWhileStopping(Duration),
}

/// A start that does not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenStart {
    /// How long after its beginning.
    pub after: Duration,
    /// By SIGTERM instead of kill -9.
    pub by_terminate: bool,
}

/// One round.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its number, from 1.
    pub round: u64,
    /// Cores of the server.
    pub cores: u32,
    /// Its durability.
    pub durability: &'static str,
    /// Its backend.
    pub backend: &'static str,
    /// Starts that are ended before the one that serves.
    pub broken_starts: Vec<BrokenStart>,
    /// The process ends when so many bytes of the bulk were acknowledged,
    pub load_bytes: u64,
    /// and so many runs published.
    pub runs_min: u64,
    /// How it ends.
    pub ending: Ending,
    /// What its clients draw from.
    pub client_seed: u64,
}

impl Plan {
    /// Round `round` of the campaign with this seed, with loads of at most `load_bytes_max`.
    pub fn draw(seed: u64, round: u64, load_bytes_max: u64) -> Plan {
        let rng = &mut Rng::new(mix(seed) ^ round);
        let cores = [1, 2, 4][rng.below(3) as usize];
        let (durability, share) = if rng.chance(1, 2) { ("interval", 1) } else { ("commit", 4) };
        let backend = if rng.chance(1, 2) { "uring" } else { "epoll" };
        let load_bytes = between(rng, 64 << 10, (load_bytes_max / share).max(128 << 10));
        let runs_min = if rng.chance(1, 2) { 1 + rng.below(6) } else { 0 };
        let ending = match rng.below(8) {
            0..2 => Ending::Terminate,
            2 => Ending::KillWhileStopping(Duration::from_micros(between(rng, 50, 200_000))),
            _ => Ending::Kill,
        };
        let count = if rng.chance(1, 4) { 1 + rng.below(3) } else { 0 };
        let broken_starts = (0..count).map(|_| BrokenStart {
            after: Duration::from_micros(between(rng, 500, 500_000)),
            by_terminate: rng.chance(1, 3),
        });
        let broken_starts = broken_starts.collect();
        let client_seed = rng.next_u64();
        Plan { round, cores, durability, backend, broken_starts, load_bytes, runs_min, ending, client_seed }
    }

    /// The server's arguments besides port and directory.
    pub fn arguments(&self) -> Vec<String> {
        let cores = self.cores.to_string();
        ["--cores", &cores, "--io", self.backend, "--durability", self.durability].map(String::from).to_vec()
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Plan { round, cores, durability, backend, .. } = self;
        write!(formatter, "round {round}: {cores} cores, {durability}, {backend}")?;
        if !self.broken_starts.is_empty() {
            write!(formatter, ", {} starts broken off", self.broken_starts.len())?;
        }
        match self.ending {
            Ending::Kill => formatter.write_str(", kill -9"),
            Ending::Terminate => formatter.write_str(", SIGTERM"),
            Ending::KillWhileStopping(after) => write!(formatter, ", kill -9 {after:?} after SIGTERM"),
        }
    }
}

/// Between two bounds, every order of magnitude as likely as any other.
pub(crate) fn between(rng: &mut Rng, low: u64, high: u64) -> u64 {
    let (low, high) = (low as f64, high as f64);
    (low * (high / low).powf(rng.unit())) as u64
}

#[cfg(test)]
mod tests {
    use super::{Ending, Plan};

    #[test]
    fn a_seed_is_a_campaign_and_a_campaign_has_everything() {
        let plans: Vec<Plan> = (1..100).map(|round| Plan::draw(7, round, 512 << 20)).collect();
        for (plan, round) in plans.iter().zip(1..) {
            assert_eq!(format!("{plan:?}"), format!("{:?}", Plan::draw(7, round, 512 << 20)));
            assert!((64 << 10..=512 << 20).contains(&plan.load_bytes), "{plan:?}");
        }
        for cores in [1, 2, 4] {
            for durability in ["interval", "commit"] {
                for backend in ["uring", "epoll"] {
                    let is = |p: &&Plan| p.cores == cores && p.durability == durability && p.backend == backend;
                    assert!(plans.iter().any(|plan| is(&plan)), "{cores} {durability} {backend}");
                }
            }
        }
        assert!(plans.iter().any(|plan| plan.ending == Ending::Terminate));
        assert!(plans.iter().any(|plan| matches!(plan.ending, Ending::KillWhileStopping(_))));
        assert!(plans.iter().any(|plan| plan.broken_starts.len() > 1));
        assert_ne!(plans[0].client_seed, Plan::draw(8, 1, 512 << 20).client_seed);
    }
}
