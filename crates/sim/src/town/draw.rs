//! Which town a seed draws.

use base::rng::Rng;
use control::Settings;

use shard::strays::STRAY_QUIET_US;

use crate::node::Durability;
use crate::street::Weather;
use crate::swarm::{FEATURES_OF_TOWNS, Feature, Swarm, weigh};

/// What a run is asked for; the rest is the seed's.
#[derive(Clone, Debug)]
pub struct Wish {
    /// All chance.
    pub seed: u64,
    /// Nodes, at least 2; `None`: 2 to 5.
    pub nodes: Option<usize>,
    /// Operations of all clients.
    pub steps: u64,
    /// Whether anything goes wrong.
    pub faults: bool,
    /// Whether slots go from node to node.
    pub moves: bool,
    /// Whether clients read from copies.
    pub readers: bool,
    /// Instead of the seed's choice, which may be another one for each node.
    pub durability: Option<Durability>,
    /// Longest that a disk takes to sync, instead of the seed's choice, microseconds.
    pub sync_us_max: Option<u64>,
}

impl Wish {
    /// Everything by the seed.
    pub fn of(seed: u64) -> Wish {
        Wish {
            seed,
            nodes: None,
            steps: 400,
            faults: true,
            moves: true,
            readers: true,
            durability: None,
            sync_us_max: None,
        }
    }
}

/// What goes wrong with a town; most of it for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// `kill -9` of a node, which starts again.
    Kill,
    /// Loss of power of a node, which starts again.
    PowerCut,
    /// A clean stop of a node, which starts again.
    Stop,
    /// A node's process stands still for longer than its lease.
    Pause,
    /// A node is cut off from the managers, and perhaps from others; both ways, or one.
    Isolate,
    /// The ways between two nodes are cut; both ways, or one.
    Part,
    /// A node's memory is full for a while.
    Squeeze,
    /// Slots are to go elsewhere, or one of the moves under way is called off.
    Move,
    /// A node is to be emptied, or not any more.
    Drain,
    /// Wires stop one after the other, and are let go in another order.
    Swizzle,
    /// A wire breaks.
    Reset,
    /// All nodes are killed at once, or lose their power where everything is in `commit`.
    Blackout,
}

impl Trouble {
    /// Whether who is hit may lose its place: what is promised holds for one of these at a time.
    pub fn loses_a_node(self) -> bool {
        matches!(self, Trouble::Kill | Trouble::PowerCut | Trouble::Stop | Trouble::Pause | Trouble::Isolate)
    }
}

/// One seed's town.
#[derive(Clone, Debug)]
pub struct Draw {
    /// What clients do, and the delays.
    pub swarm: Swarm,
    /// How many nodes.
    pub nodes: usize,
    /// Cores of each node at its first start; a later one may have others.
    pub cores: Vec<u16>,
    /// The most that a node has.
    pub cores_max: u16,
    /// What the table obeys.
    pub settings: Settings,
    /// Of each node.
    pub durability: Vec<Durability>,
    /// How wrong each node's clock runs, and at the end the managers', millionths.
    pub clock_error_ppm: Vec<i64>,
    /// Longest way between two nodes, beside the weather's, microseconds.
    pub way_us_max: u64,
    /// What goes wrong, in this order.
    pub troubles: Vec<Trouble>,
    /// Longest quiet between two troubles, microseconds.
    pub quiet_us_max: u64,
    /// How long nodes keep what they are no members of, microseconds.
    pub stray_quiet_us: u64,
}

impl Draw {
    /// The town of a seed.
    pub fn of(wish: &Wish) -> Draw {
        let mut rng = Rng::new(wish.seed ^ 0x7044_5EED);
        let rng = &mut rng;
        let nodes = wish.nodes.unwrap_or([2, 3, 3, 3, 4, 5][rng.below(6) as usize]).max(2);
        let chain_length = if nodes > 2 && rng.chance(1, 4) { 3 } else { 2 };
        let lease_ms = [100, 300, 300, 600][rng.below(4) as usize];
        let all_commit = rng.chance(1, 3);
        let mut durability = |_| match wish.durability {
            Some(durability) => durability,
            None if all_commit || rng.chance(1, 2) => Durability::Commit,
            None => Durability::Interval,
        };
        let durability: Vec<Durability> = (0..nodes).map(&mut durability).collect();
        let clock_error_ppm = (0..=nodes).map(|_| draw_clock(rng)).collect();
        let all_commit = durability.iter().all(|one| *one == Durability::Commit);
        let mut troubles = if wish.faults { draw_troubles(all_commit, rng) } else { Vec::new() };
        if wish.moves {
            add_moves(&mut troubles, &mut Rng::new(wish.seed ^ 0x5107_5A11));
        }
        if wish.faults {
            add_some(Trouble::Stop, &mut troubles, &mut Rng::new(wish.seed ^ 0x570_9500));
            add_some(Trouble::Squeeze, &mut troubles, &mut Rng::new(wish.seed ^ 0x5_90EE_2E00));
        }
        let cores = draw_cores(nodes, &mut Rng::new(wish.seed ^ 0xC0_4E5));
        let cores_max = if cores.iter().any(|cores| *cores > 1) { CORES_MAX } else { 1 };
        let mut swarm = draw_swarm(nodes, rng);
        swarm.weather.sync_us_max = wish.sync_us_max.unwrap_or(swarm.weather.sync_us_max);
        add_own_keys(&mut swarm, &mut Rng::new(wish.seed ^ 0x0017_4E75));
        if cores_max > 1 {
            swarm.weather.hop_us_max = [1, 50, 2_000][(wish.seed % 3) as usize];
        }
        Draw {
            swarm,
            nodes,
            cores,
            cores_max,
            settings: Settings { lease_ms, chain_length },
            durability,
            clock_error_ppm,
            way_us_max: [0, 500, 5_000][rng.below(3) as usize],
            troubles,
            quiet_us_max: [20_000, 200_000, 600_000][rng.below(3) as usize],
            stray_quiet_us: [1_000, 100_000, 1_000_000, STRAY_QUIET_US][draw_below(4, wish.seed ^ 0x57_4A75)],
        }
    }

    /// Whether everything that was acknowledged is on a disk.
    pub fn is_all_commit(&self) -> bool {
        self.durability.iter().all(|durability| *durability == Durability::Commit)
    }
}

/// A draw that leaves all others of the seed as they are.
fn draw_below(bound: u64, seed: u64) -> usize {
    Rng::new(seed).below(bound) as usize
}

/// Cores of a node that has several.
const CORES_MAX: u16 = 3;

/// One core each, or different ones, in a third of the towns.
fn draw_cores(nodes: usize, rng: &mut Rng) -> Vec<u16> {
    let are_several = rng.chance(1, 3);
    (0..nodes).map(|_| if are_several { 1 + rng.below(u64::from(CORES_MAX)) as u16 } else { 1 }).collect()
}

/// Right in half of the cases, else wrong by up to 5 %, mostly by all of it.
fn draw_clock(rng: &mut Rng) -> i64 {
    match rng.below(6) {
        0 => 50_000,
        1 => -50_000,
        2 => rng.below(100_001) as i64 - 50_000,
        _ => 0,
    }
}

fn draw_troubles(all_commit: bool, rng: &mut Rng) -> Vec<Trouble> {
    let count = [1, 3, 5, 8][rng.below(4) as usize];
    let mut draw = || match rng.below(16) {
        0..3 => Trouble::Kill,
        3..5 => Trouble::PowerCut,
        5..7 => Trouble::Pause,
        7..10 => Trouble::Isolate,
        10..12 => Trouble::Part,
        12..14 => Trouble::Swizzle,
        14 => Trouble::Blackout,
        _ => Trouble::Reset,
    };
    let mut troubles: Vec<Trouble> = (0..count).map(|_| draw()).collect();
    if all_commit && rng.chance(1, 2) {
        troubles.push(Trouble::Blackout);
    }
    troubles
}

/// Between the other troubles, by chance of their own: with or without them a seed has the others.
fn add_moves(troubles: &mut Vec<Trouble>, rng: &mut Rng) {
    for _ in 0..[0, 1, 2, 6][rng.below(4) as usize] {
        let at = rng.below(troubles.len() as u64 + 1) as usize;
        troubles.insert(at, if rng.chance(1, 3) { Trouble::Drain } else { Trouble::Move });
    }
}

/// As [`add_moves`].
fn add_some(trouble: Trouble, troubles: &mut Vec<Trouble>, rng: &mut Rng) {
    for _ in 0..[0, 0, 1, 3][rng.below(4) as usize] {
        let at = rng.below(troubles.len() as u64 + 1) as usize;
        troubles.insert(at, trouble);
    }
}

/// In half of the towns clients have keys of their own, some with long values.
fn add_own_keys(swarm: &mut Swarm, rng: &mut Rng) {
    if rng.chance(1, 2) {
        swarm.weights.push((Feature::Own, 1 + rng.below(8)));
        swarm.long_of_16 = [0, 1, 4][rng.below(3) as usize];
    }
}

fn draw_swarm(nodes: usize, rng: &mut Rng) -> Swarm {
    let weights = weigh(FEATURES_OF_TOWNS.into_iter(), rng);
    Swarm {
        cores: nodes as u16,
        durability: Durability::Commit,
        clients: 2 + rng.below(5) as usize,
        pipeline_max: [1, 1, 4][rng.below(3) as usize],
        token_keys: 2 + rng.below(6),
        other_keys: 1 + rng.below(3),
        cluster_of_8: 8,
        think_us_max: [2_000, 10_000, 40_000][rng.below(3) as usize],
        weather: Weather {
            network_us_max: [10, 300, 3_000][rng.below(3) as usize],
            tick_us_max: [0, 20, 1_000][rng.below(3) as usize],
            hop_us_max: 1,
            write_us_max: [0, 0, 300][rng.below(3) as usize],
            sync_us_max: [100, 2_000, 20_000][rng.below(3) as usize],
            whole_segments_of_8: [4, 7, 8][rng.below(3) as usize],
        },
        segment_bytes: [64 << 10, 256 << 10, 1 << 20][rng.below(3) as usize],
        weights,
        plan: Vec::new(),
        long_of_16: 0,
        memory: None,
        backups: false,
        reads_fail: false,
        publications_fail: false,
    }
}
