//! Which world a seed draws: how many nodes, what weather, which faults.

use base::rng::{Rng, mix};
use control::{Newcomer, NodeId, Settings};

/// A world's properties.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// Nodes there are.
    pub nodes: usize,
    /// Cores of each.
    pub cores: u16,
    /// Members of a chain.
    pub chain_length: u8,
    /// Members of a chain may share a machine.
    pub relaxed: bool,
    /// For each node the machine it is on.
    pub machines: Vec<u8>,
    /// Slowest ordinary way, microseconds.
    pub delay_us_max: u64,
    /// Slowest ordinary write, microseconds.
    pub write_us_max: u64,
    /// Slowest ordinary filling of a follower, microseconds.
    pub fill_us_max: u64,
    /// How far a clock may go wrong, parts of a million.
    pub skew_ppm_max: u64,
    /// Faults begin when all nodes are there, or at once.
    pub calm_start: bool,
    /// One-way and two-way partitions.
    pub cuts: bool,
    /// Deaths, by power or by signal.
    pub crashes: bool,
    /// Processes that stand still for a while.
    pub pauses: bool,
    /// Operators want nodes emptied, slots moved and the like.
    pub orders: bool,
    /// Nodes that come back at another port.
    pub wanders: bool,
    /// Connections that break.
    pub resets: bool,
    /// Writes that fail, of 10,000.
    pub failed_writes_of_10000: u64,
    /// Virtual time of trouble, milliseconds.
    pub trouble_ms: u64,
    /// Longest time between two troubles, milliseconds.
    pub between_ms_max: u64,
}

impl Swarm {
    /// The world of `seed`.
    pub fn draw(seed: u64) -> Swarm {
        let mut rng = Rng::new(mix(seed ^ 0x3A57));
        let nodes = 3 + rng.below(4) as usize;
        let relaxed = rng.chance(1, 3);
        // Mostly a machine for each; sometimes two nodes share one.
        let shared = rng.chance(1, 3);
        let machine = |node: usize| if relaxed { 0 } else { node.min(nodes - 1 - usize::from(shared)) as u8 };
        Swarm {
            nodes,
            cores: 1 + rng.below(2) as u16,
            chain_length: 2 + rng.below(2) as u8,
            relaxed,
            machines: (0..nodes).map(machine).collect(),
            delay_us_max: 100 + rarely(&mut rng, 4, (30_000, 5_000)),
            write_us_max: 100 + rarely(&mut rng, 4, (30_000, 5_000)),
            fill_us_max: 1000 + rng.below(400_000),
            skew_ppm_max: if rng.chance(1, 4) { 0 } else { rng.below(50_001) },
            calm_start: rng.chance(2, 3),
            cuts: rng.chance(3, 4),
            crashes: rng.chance(3, 4),
            pauses: rng.chance(1, 2),
            orders: rng.chance(1, 2),
            resets: rng.chance(1, 2),
            failed_writes_of_10000: if rng.chance(1, 3) { 5 + rng.below(60) } else { 0 },
            trouble_ms: 3_000 + rng.below(6_000),
            between_ms_max: 100 + rng.below(900),
            wanders: rng.chance(1, 2),
        }
    }

    /// One of three nodes on a quick network, where nothing goes wrong by itself.
    pub fn calm(seed: u64) -> Swarm {
        Swarm {
            nodes: 3,
            chain_length: 2,
            relaxed: false,
            machines: (0..3).collect(),
            delay_us_max: 1_000,
            write_us_max: 5_000,
            fill_us_max: 50_000,
            calm_start: true,
            cuts: false,
            crashes: false,
            pauses: false,
            orders: false,
            resets: false,
            wanders: false,
            failed_writes_of_10000: 0,
            ..Swarm::draw(seed)
        }
    }

    /// What a node says of itself.
    pub fn newcomer(&self, node: usize, port: u16, incarnation: u64) -> Newcomer {
        Newcomer {
            id: NodeId(0),
            incarnation,
            host: host(node),
            port,
            cores: self.cores,
            weight: 0,
            zone: String::new(),
            machine: format!("machine {}", self.machines[node]),
            // Who does not say which directory it has is known by its address.
            identity: if self.wanders { [node as u8 + 1; 32] } else { [0; 32] },
        }
    }

    /// What the table obeys.
    pub fn settings(&self) -> Settings {
        Settings { lease_ms: 300, chain_length: self.chain_length }
    }

    /// Members that a chain has when all nodes are up.
    pub fn members(&self) -> usize {
        let mut machines = self.machines.clone();
        machines.dedup();
        let places = if self.relaxed { self.nodes } else { machines.len() };
        places.min(usize::from(self.chain_length))
    }

    /// Managers when all nodes are up.
    pub fn managers(&self) -> usize {
        if self.nodes >= 5 { 5 } else { 3 }
    }
}

/// Something below the first bound once in so many times, and below the second one otherwise.
pub fn rarely(rng: &mut Rng, times: u64, (rare, usual): (u64, u64)) -> u64 {
    let bound = if rng.chance(1, times) { rare } else { usual };
    rng.below(bound)
}

/// Where nodes are that never came back elsewhere.
pub const PORT: u16 = 7000;

/// As others reach it.
pub fn host(node: usize) -> String {
    format!("10.0.0.{}", node + 1)
}

/// Where the manager of a node is reached.
pub fn address(node: usize, port: u16) -> String {
    format!("{}:{}", host(node), port + manager::PORT_OFFSET)
}

/// Which node it is whose manager is reached there if it listens on that port.
pub fn node_at(address: &str, nodes: usize) -> Option<(usize, u16)> {
    let (named, port) = address.rsplit_once(':')?;
    let node = (0..nodes).find(|node| host(*node) == named)?;
    Some((node, port.parse::<u16>().ok()?.checked_sub(manager::PORT_OFFSET)?))
}
