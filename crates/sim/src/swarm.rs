//! Swarm testing (Groce et al., ISSTA 2012): every seed draws its own small set of features, sizes, delays and faults,
//! so that rare combinations are not drowned by common ones.

use std::collections::BTreeMap;

use base::rng::Rng;

use crate::faults::Fault;
use crate::node::{Abilities, Durability, MemoryLimit};
use crate::street::Weather;

/// What a run is asked for; the rest is the seed's.
#[derive(Clone, Debug)]
pub struct Wish {
    /// All chance.
    pub seed: u64,
    /// Operations of all clients.
    pub steps: u64,
    /// Instead of the seed's choice.
    pub durability: Option<Durability>,
    /// Instead of the seed's choice.
    pub cores: Option<u16>,
    /// Whether anything goes wrong.
    pub faults: bool,
    /// Whether the disk rots at the end: the node must refuse to start, or serve what it served before.
    pub damage: bool,
}

impl Wish {
    /// Everything by the seed.
    pub fn of(seed: u64) -> Wish {
        Wish { seed, steps: 600, durability: None, cores: None, faults: true, damage: false }
    }
}

/// Kinds of operations, with the weight each seed gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// APPEND.
    Append,
    /// GET.
    Get,
    /// SET IFEQ.
    Compare,
    /// MULTI/EXEC that writes.
    Unit,
    /// MULTI/EXEC that reads.
    UnitRead,
    /// INCR.
    Increment,
    /// GET of a counter.
    Count,
    /// RPUSH.
    Push,
    /// LPOP.
    Pop,
    /// ECHO.
    Echo,
    /// ZH.WAIT.
    Wait,
    /// Keys of a client's own.
    Own,
    /// BLPOP.
    BlockingPop,
    /// BLMOVE.
    BlockingMove,
    /// MULTI/EXEC that pushes.
    PushAll,
    /// CLIENT UNBLOCK.
    Unblock,
}

/// What the clients of towns do, and of one node, too.
pub(crate) const FEATURES_OF_TOWNS: [Feature; 10] = [
    Feature::Append,
    Feature::Get,
    Feature::Compare,
    Feature::Unit,
    Feature::UnitRead,
    Feature::Increment,
    Feature::Count,
    Feature::Push,
    Feature::Pop,
    Feature::Echo,
];

/// What only those of one node do.
const FEATURES_OF_ONE_NODE: [Feature; 6] =
    [Feature::Wait, Feature::Own, Feature::BlockingPop, Feature::BlockingMove, Feature::PushAll, Feature::Unblock];

/// One seed's world.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// Machines of the first start.
    pub cores: u16,
    /// The promise.
    pub durability: Durability,
    /// Clients.
    pub clients: usize,
    /// Most operations of one client without a reply.
    pub pipeline_max: u64,
    /// Keys of tokens; few keys, much contention.
    pub token_keys: u64,
    /// Counters and lists, each.
    pub other_keys: u64,
    /// Clients at the cluster door, of 8.
    pub cluster_of_8: u64,
    /// Longest pause of a client, microseconds.
    pub think_us_max: u64,
    /// Delays.
    pub weather: Weather,
    /// Size of a log segment.
    pub segment_bytes: u64,
    /// Operations that this world knows, with weights.
    pub weights: Vec<(Feature, u64)>,
    /// Faults by count of completed operations.
    pub plan: Vec<(u64, Fault)>,
    /// Values of clients' own keys that are longer than a block, of 16.
    pub long_of_16: u64,
    /// What the node's memory is limited to.
    pub memory: Option<MemoryLimit>,
    /// Whether somebody takes backups while it works.
    pub backups: bool,
    /// Reads of runs may fail, or bring wrong bits.
    pub reads_fail: bool,
    /// Publications of runs may fail. Runs rest behind each, so this is not for every world.
    pub publications_fail: bool,
}

impl Swarm {
    /// The world of a seed, within what the node can do.
    pub fn draw(wish: &Wish, abilities: Abilities) -> Swarm {
        let mut rng = Rng::new(wish.seed);
        let rng = &mut rng;
        let all =
            [Durability::Interval, Durability::Commit, Durability::Commit, Durability::Interval, Durability::Memory];
        let durability = wish.durability.unwrap_or(all[rng.below(5) as usize]);
        let cores = wish.cores.unwrap_or([1, 2, 4][rng.below(3) as usize]).min(abilities.cores_max);
        let cluster_of_8 = if abilities.cluster { [0, 2, 4, 8][rng.below(4) as usize] } else { 0 };
        let plan = if wish.faults { draw_plan(wish.steps, durability, rng) } else { Vec::new() };
        let swarm = Swarm {
            cores,
            durability,
            clients: 1 + rng.below(8) as usize,
            pipeline_max: [1, 1, 4, 32][rng.below(4) as usize],
            token_keys: 1 + rng.below(6),
            other_keys: 1 + rng.below(3),
            cluster_of_8,
            think_us_max: [0, 200, 5_000, 100_000][rng.below(4) as usize],
            weather: Weather {
                network_us_max: [10, 300, 3_000][rng.below(3) as usize],
                tick_us_max: [0, 20, 1_000][rng.below(3) as usize],
                hop_us_max: [1, 50, 2_000][rng.below(3) as usize],
                write_us_max: [0, 0, 300][rng.below(3) as usize],
                sync_us_max: [100, 2_000, 20_000][rng.below(3) as usize],
                whole_segments_of_8: [0, 4, 7, 8][rng.below(4) as usize],
            },
            segment_bytes: [1 << 10, 1 << 10, 2 << 10, 8 << 10, 64 << 10][rng.below(5) as usize],
            weights: draw_weights(abilities, rng),
            plan,
            long_of_16: if rng.chance(1, 8) { 1 + rng.below(6) } else { 0 },
            memory: draw_limit(cores, durability, rng),
            // Drawn last: the rest of a seed's world is as it was before there were backups.
            backups: rng.chance(1, 3) && durability != Durability::Memory,
            reads_fail: wish.faults && rng.chance(1, 2),
            publications_fail: wish.faults && rng.chance(1, 4),
        };
        swarm.with_values_to_move(abilities)
    }

    /// Where values move to the disk, there are some that are long enough.
    fn with_values_to_move(mut self, abilities: Abilities) -> Swarm {
        if self.tiers() && abilities.keyspace && !self.has(Feature::Own) {
            self.weights.push((Feature::Own, 6));
        }
        self
    }

    /// Whether values move to the disk.
    pub fn tiers(&self) -> bool {
        self.memory.is_some_and(|limit| limit.policy == "tier")
    }

    /// Whether this world knows a feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.weights.iter().any(|(known, _)| *known == feature)
    }

    /// Features of this world for the coverage histogram.
    pub fn count(&self, coverage: &mut BTreeMap<String, u64>) {
        let mut seen = |name: String| *coverage.entry(name).or_default() += 1;
        seen(format!("cores {}", self.cores));
        seen(format!("durability {:?}", self.durability));
        seen(format!("pipeline {:02}", self.pipeline_max));
        seen(format!("cluster clients {} of 8", self.cluster_of_8));
        seen(format!("think us {:06}", self.think_us_max));
        seen(format!("tick us {:04}", self.weather.tick_us_max));
        seen(format!("long values {} of 16", self.long_of_16));
        seen(format!("segment bytes {:06}", self.segment_bytes));
        seen(format!("backups {}", self.backups));
        if let Some(limit) = self.memory {
            seen(format!("memory {:07} {}", limit.bytes / u64::from(self.cores), limit.policy));
        }
        self.weights.iter().for_each(|(feature, _)| seen(format!("feature {feature:?}")));
    }
}

/// Without a limit half of the time; values move to the disk in a quarter of the worlds that have one.
fn draw_limit(cores: u16, durability: Durability, rng: &mut Rng) -> Option<MemoryLimit> {
    match rng.below(8) {
        0..2 => Some(draw_memory(cores, rng)),
        2..4 if durability != Durability::Memory => {
            // Less than clients write, and more than their keys and a value or two.
            let bytes = [4 << 10, 6 << 10, 8 << 10, 12 << 10, 32 << 10][rng.below(5) as usize];
            Some(MemoryLimit { bytes: bytes * u64::from(cores), policy: "tier" })
        }
        _ => None,
    }
}

/// Small enough that a few hundred operations fill it: a group's index and tables alone take a few kilobytes.
fn draw_memory(cores: u16, rng: &mut Rng) -> MemoryLimit {
    let policies = ["noeviction", "volatile-ttl", "volatile-lru", "volatile-lfu", "volatile-random"];
    let bytes = [10 << 10, 16 << 10, 32 << 10, 256 << 10][rng.below(4) as usize];
    MemoryLimit { bytes: bytes * u64::from(cores), policy: policies[rng.below(5) as usize] }
}

/// Some of these, each by a weight; two of them in any world.
pub(crate) fn weigh(features: impl Iterator<Item = Feature>, rng: &mut Rng) -> Vec<(Feature, u64)> {
    let mut weights = Vec::new();
    for feature in features {
        let always = matches!(feature, Feature::Append | Feature::Get);
        if always || rng.chance(1, 2) {
            weights.push((feature, 1 + rng.below(8)));
        }
    }
    weights
}

fn draw_weights(abilities: Abilities, rng: &mut Rng) -> Vec<(Feature, u64)> {
    let possible = |feature: &Feature| match feature {
        Feature::Wait => abilities.waits,
        Feature::Own => abilities.keyspace,
        Feature::BlockingPop | Feature::BlockingMove | Feature::PushAll | Feature::Unblock => abilities.blocks,
        _ => true,
    };
    let features = FEATURES_OF_TOWNS.into_iter().chain(FEATURES_OF_ONE_NODE);
    let mut weights = weigh(features.filter(possible), rng);
    let has = |wanted: &[Feature]| weights.iter().any(|(feature, _)| wanted.contains(feature));
    // Who only waits proves nothing: somebody has to push.
    if has(&[Feature::BlockingPop, Feature::BlockingMove]) && !has(&[Feature::Push, Feature::PushAll]) {
        weights.push((Feature::PushAll, 1 + rng.below(8)));
    }
    weights
}

fn draw_plan(steps: u64, durability: Durability, rng: &mut Rng) -> Vec<(u64, Fault)> {
    let mut plan = Vec::new();
    let count = [0, 1, 2, 4][rng.below(4) as usize];
    for _ in 0..count {
        let logs = durability != Durability::Memory;
        let fault = match rng.below(16) {
            0..5 => Fault::Kill,
            5..9 => Fault::PowerCut,
            9..11 => Fault::Reset,
            11 => Fault::HalfClose,
            12 => Fault::Shutdown,
            13 if logs => Fault::SyncFails,
            14 if logs => Fault::WriteFails,
            _ => Fault::Reset,
        };
        // Not in the last tenth, so that what follows a fault is seen.
        plan.push((1 + rng.below(steps * 9 / 10), fault));
    }
    plan.sort_unstable();
    plan
}
