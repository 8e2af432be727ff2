//! What a seed draws: what goes wrong, for whom, when and for how long.

use std::fmt;

use base::rng::Rng;

/// Something that goes wrong, and is made good again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// SIGKILL; started again in the end.
    Kill { node: usize },
    /// SIGKILL for everybody at once.
    KillAll,
    /// SIGSTOP, and SIGCONT in the end.
    Stop { node: usize },
    /// Nobody else of the nodes is heard, nor hears it; clients may be.
    Isolate { node: usize, from_clients: bool },
    /// It hears the others, who do not hear it.
    Mute { node: usize },
    /// The others hear it, and it does not hear them.
    Deaf { node: usize },
    /// Two do not hear each other; further ones hear both.
    Cut { one: usize, other: usize },
    /// So many of a hundred packets that come to it are lost.
    Loss { node: usize, percent: u64 },
    /// No more than so many kilobits leave it in a second.
    Slow { node: usize, kilobits: u64 },
    /// SIGKILL of a gate; started again in the end.
    KillGate { gate: usize },
    /// SIGSTOP of a gate, and SIGCONT in the end.
    StopGate { gate: usize },
    /// A gate and a node do not hear each other; others hear both.
    CutGate { gate: usize, node: usize },
    /// A node hears a gate, which does not hear it: requests are carried out, and nobody tells it.
    DeafGate { gate: usize, node: usize },
    /// Each connection of a gate to a node is reset once the gate says something.
    ResetGate { gate: usize, node: usize },
}

/// The kinds of faults, each of which a plan has at least once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Kill,
    KillAll,
    StopForASecond,
    StopForThreeLeases,
    Isolate,
    IsolateFromAll,
    Mute,
    Deaf,
    Cut,
    CutThenKill,
    KillInTurn,
    Loss,
    Slow,
    KillGate,
    StopGate,
    CutGate,
    ResetGate,
}

/// One fault with its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) kind: Kind,
    pub(super) fault: Fault,
    /// Since the plan began.
    pub(super) begin_ms: u64,
    pub(super) end_ms: u64,
}

/// What is possible where the run takes place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Means {
    pub(super) nodes: usize,
    pub(super) gates: usize,
    pub(super) lease_ms: u64,
    /// Networks can be harmed.
    pub(super) has_networks: bool,
    /// Links can be made narrow.
    pub(super) has_shaping: bool,
}

const PROCESSES: [Kind; 5] =
    [Kind::Kill, Kind::KillAll, Kind::KillInTurn, Kind::StopForASecond, Kind::StopForThreeLeases];
const NETWORKS: [Kind; 7] =
    [Kind::Isolate, Kind::IsolateFromAll, Kind::Mute, Kind::Deaf, Kind::Cut, Kind::CutThenKill, Kind::Loss];

/// Faults of about so many milliseconds, every kind that is possible at least once.
pub(super) fn draw(rng: &mut Rng, means: Means, time_ms: u64) -> Vec<Step> {
    let mut kinds = PROCESSES.to_vec();
    if means.has_networks {
        kinds.extend(NETWORKS);
    }
    if means.has_shaping {
        kinds.push(Kind::Slow);
    }
    if means.gates > 0 {
        kinds.extend([Kind::KillGate, Kind::StopGate]);
        kinds.extend([Kind::CutGate, Kind::ResetGate].into_iter().filter(|_| means.has_networks));
    }
    let mut steps: Vec<Step> = Vec::new();
    let (mut at_ms, mut ahead, mut overlaps) = (500, shuffled(rng, &kinds), false);
    loop {
        let Some(kind) = ahead.pop() else {
            if at_ms >= time_ms {
                return steps;
            }
            ahead = shuffled(rng, &kinds);
            continue;
        };
        let last = steps.last().copied();
        // One in four begins while the one before lasts, elsewhere; never three at a time.
        let is_of_one = !matches!(kind, Kind::KillAll | Kind::KillInTurn);
        // Nor two of gates: they may be the same one.
        let is_elsewhere = |last: Step| last.fault != Fault::KillAll && !(kind.is_of_gate() && last.kind.is_of_gate());
        let may_overlap = is_of_one && last.is_some_and(is_elsewhere) && !overlaps;
        overlaps = rng.chance(1, 4) && may_overlap;
        let begin_ms = match last {
            Some(last) if overlaps => last.begin_ms + (last.end_ms - last.begin_ms) / 2,
            _ => at_ms + 200 + rng.below(900),
        };
        let avoided = last.filter(|_| overlaps).and_then(|last| last.fault.node());
        let drawn = of_kind(rng, means, kind, (begin_ms, avoided));
        at_ms = drawn.iter().map(|step| step.end_ms).max().unwrap_or(at_ms).max(at_ms);
        steps.extend(drawn);
        if steps.len() >= kinds.len() && at_ms >= time_ms && ahead.iter().all(|kind| has(&steps, *kind)) {
            return steps;
        }
    }
}

fn has(steps: &[Step], kind: Kind) -> bool {
    steps.iter().any(|step| step.kind == kind)
}

fn shuffled(rng: &mut Rng, kinds: &[Kind]) -> Vec<Kind> {
    let mut kinds = kinds.to_vec();
    for index in (1..kinds.len()).rev() {
        kinds.swap(index, rng.below(index as u64 + 1) as usize);
    }
    kinds
}

fn of_kind(rng: &mut Rng, means: Means, kind: Kind, (begin_ms, avoided): (u64, Option<usize>)) -> Vec<Step> {
    let node = other_than(rng, means.nodes, avoided);
    let other = other_than(rng, means.nodes, Some(node));
    let shorter_or_longer = 2 * means.lease_ms / 3 + rng.below(4 * means.lease_ms) + rng.below(700);
    let (fault, hold_ms) = match kind {
        Kind::Kill | Kind::KillInTurn => (Fault::Kill { node }, 100 + rng.below(2 * means.lease_ms + 1200)),
        Kind::KillAll => (Fault::KillAll, 50 + rng.below(600)),
        Kind::StopForASecond => (Fault::Stop { node }, 1000),
        Kind::StopForThreeLeases => (Fault::Stop { node }, 3 * means.lease_ms),
        Kind::Isolate => (Fault::Isolate { node, from_clients: false }, shorter_or_longer),
        Kind::IsolateFromAll => (Fault::Isolate { node, from_clients: true }, shorter_or_longer),
        Kind::Mute => (Fault::Mute { node }, shorter_or_longer),
        Kind::Deaf => (Fault::Deaf { node }, shorter_or_longer),
        Kind::Cut | Kind::CutThenKill => (Fault::Cut { one: node, other }, shorter_or_longer),
        Kind::Loss => (Fault::Loss { node, percent: 5 + rng.below(46) }, 1000 + rng.below(1500)),
        Kind::Slow => (Fault::Slow { node, kilobits: 200 + rng.below(3000) }, 1000 + rng.below(1500)),
        Kind::KillGate => (Fault::KillGate { gate: other_than(rng, means.gates, None) }, 50 + rng.below(600)),
        Kind::StopGate => (Fault::StopGate { gate: other_than(rng, means.gates, None) }, shorter_or_longer),
        Kind::CutGate => (Fault::CutGate { gate: other_than(rng, means.gates, None), node }, shorter_or_longer),
        Kind::ResetGate => (Fault::DeafGate { gate: other_than(rng, means.gates, None), node }, 400 + rng.below(900)),
    };
    let mut steps = vec![Step { kind, fault, begin_ms, end_ms: begin_ms + hold_ms }];
    if let Fault::DeafGate { gate, node } = fault {
        // By then something is under way that the node has done.
        steps.push(Step { kind, fault: Fault::ResetGate { gate, node }, begin_ms: begin_ms + 150, ..steps[0] });
    }
    if kind == Kind::CutThenKill {
        let begin_ms = begin_ms + hold_ms / 2;
        let end_ms = begin_ms + 300 + rng.below(2 * means.lease_ms + 800);
        steps.push(Step { kind, fault: Fault::Kill { node }, begin_ms, end_ms });
    }
    if kind == Kind::KillInTurn {
        // The next one dies while the first is being filled, or before anybody noticed.
        let begin_ms = begin_ms + hold_ms + 20 + rng.below(means.lease_ms + 300);
        let end_ms = begin_ms + 200 + rng.below(means.lease_ms + 600);
        steps.push(Step { kind, fault: Fault::Kill { node: other }, begin_ms, end_ms });
    }
    steps
}

fn other_than(rng: &mut Rng, nodes: usize, avoided: Option<usize>) -> usize {
    match avoided {
        Some(avoided) => (avoided + 1 + rng.below(nodes as u64 - 1) as usize) % nodes,
        None => rng.below(nodes as u64) as usize,
    }
}

impl Kind {
    fn is_of_gate(self) -> bool {
        matches!(self, Kind::KillGate | Kind::StopGate | Kind::CutGate | Kind::ResetGate)
    }
}

impl Fault {
    /// Which node it happens to, if it is one.
    fn node(self) -> Option<usize> {
        match self {
            Fault::KillAll
            | Fault::KillGate { .. }
            | Fault::StopGate { .. }
            | Fault::CutGate { .. }
            | Fault::DeafGate { .. }
            | Fault::ResetGate { .. } => None,
            Fault::Kill { node }
            | Fault::Stop { node }
            | Fault::Isolate { node, .. }
            | Fault::Mute { node }
            | Fault::Deaf { node }
            | Fault::Cut { one: node, .. }
            | Fault::Loss { node, .. }
            | Fault::Slow { node, .. } => Some(node),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Kill { node } => write!(formatter, "kill -9 of node {node}"),
            Fault::KillAll => write!(formatter, "kill -9 of all nodes"),
            Fault::Stop { node } => write!(formatter, "SIGSTOP of node {node}"),
            Fault::Isolate { node, from_clients: false } => write!(formatter, "node {node} cut off from the others"),
            Fault::Isolate { node, .. } => write!(formatter, "node {node} cut off from everybody"),
            Fault::Mute { node } => write!(formatter, "node {node} not heard by the others"),
            Fault::Deaf { node } => write!(formatter, "node {node} does not hear the others"),
            Fault::Cut { one, other } => write!(formatter, "nodes {one} and {other} cut off from each other"),
            Fault::Loss { node, percent } => write!(formatter, "{percent} % of the packets to node {node} lost"),
            Fault::Slow { node, kilobits } => write!(formatter, "{kilobits} kbit/s from node {node}"),
            Fault::KillGate { gate } => write!(formatter, "kill -9 of gate {gate}"),
            Fault::StopGate { gate } => write!(formatter, "SIGSTOP of gate {gate}"),
            Fault::CutGate { gate, node } => write!(formatter, "gate {gate} and node {node} cut off from each other"),
            Fault::DeafGate { gate, node } => write!(formatter, "gate {gate} does not hear node {node}"),
            Fault::ResetGate { gate, node } => write!(formatter, "connections of gate {gate} to node {node} reset"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATES: [Kind; 4] = [Kind::KillGate, Kind::StopGate, Kind::CutGate, Kind::ResetGate];
    const MEANS: Means = Means { nodes: 3, gates: 2, lease_ms: 250, has_networks: true, has_shaping: true };

    #[test]
    fn a_seed_draws_the_same_plan_twice_and_every_kind_is_in_it() {
        for seed in 0..200 {
            let steps = draw(&mut Rng::new(seed), MEANS, 20_000);
            assert_eq!(steps, draw(&mut Rng::new(seed), MEANS, 20_000));
            for kind in PROCESSES.iter().chain(&NETWORKS).chain(&[Kind::Slow]).chain(&GATES) {
                assert!(has(&steps, *kind), "{kind:?} of seed {seed}");
            }
            assert!(steps.iter().map(|step| step.end_ms).max().is_some_and(|end_ms| end_ms < 60_000), "seed {seed}");
        }
    }

    #[test]
    fn nobody_is_killed_or_stopped_who_is_so_already() {
        let touches = |fault: Fault| match fault {
            Fault::Kill { node } | Fault::Stop { node } => vec![node],
            Fault::KillAll => vec![0, 1, 2],
            Fault::KillGate { gate } | Fault::StopGate { gate } => vec![MEANS.nodes + gate],
            _ => Vec::new(),
        };
        for seed in 0..500 {
            let steps = draw(&mut Rng::new(seed), MEANS, 20_000);
            for (index, one) in steps.iter().enumerate() {
                for other in &steps[index + 1..] {
                    let meet = one.begin_ms <= other.end_ms && other.begin_ms <= one.end_ms;
                    let shared = touches(one.fault).iter().any(|node| touches(other.fault).contains(node));
                    assert!(!(meet && shared), "{one:?} and {other:?} of seed {seed}");
                }
            }
        }
    }

    #[test]
    fn without_networks_processes_are_harmed_only() {
        let steps =
            draw(&mut Rng::new(1), Means { has_networks: false, has_shaping: false, gates: 0, ..MEANS }, 20_000);
        assert!(steps.iter().all(|step| PROCESSES.contains(&step.kind)));
    }
}
