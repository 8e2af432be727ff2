//! What goes wrong with a town, one after the other, as far as the promise allows.
//!
//! Nothing acknowledged is lost when one node goes while everything has two copies. So who may lose its place is chosen only
//! when every chain is whole, everybody knows so, and every way was free for a while since; the network may be bad at any time.

use base::Door;
use control::NodeState;

use super::network::MANAGERS;
use super::oracle::number_of;
use super::{Draw, Item, Phase, Town, Trouble};
use crate::disk::CrashKind;
use crate::faults::Fault;
use crate::history::encode;
use crate::street::CrashPoint;

/// Between two looks at what could go wrong, microseconds.
const LOOK_US: u64 = 10_000;
/// How long the ways have to be free before third members count as caught up.
const CAUGHT_UP_US: u64 = 200_000;
/// How long a crash waits for a durable step.
const STEP_US_MAX: u64 = 200_000;
/// How long a trouble waits for its moment.
const WAIT_US_MAX: u64 = 16_000_000;

/// Something ends.
pub(super) enum Healing {
    Ways {
        ways: Vec<(usize, usize)>,
        isolated: Option<usize>,
    },
    /// A node has memory again.
    Room {
        node: usize,
    },
    Stop {
        wire: usize,
    },
    Go {
        wire: usize,
    },
    /// A crash that waited for a durable step comes now.
    Crash {
        node: usize,
    },
}

/// See the module.
pub(super) struct Troubles {
    /// Last one first.
    left: Vec<Trouble>,
    next_us: u64,
    since_us: u64,
    /// Troubles of the network that have not ended.
    under_way: u32,
    /// The table by which everything was whole and known, and stays so while nobody goes: moves change nothing about that.
    settled: u64,
    quiet_since_us: u64,
    /// Those that never found their moment.
    pub unfired: Vec<Trouble>,
}

impl Troubles {
    pub fn new(draw: &Draw) -> Troubles {
        let left = draw.troubles.iter().rev().copied().collect();
        let unfired = Vec::new();
        Troubles { left, next_us: 0, since_us: 0, under_way: 0, settled: 0, quiet_since_us: 0, unfired }
    }

    pub fn are_over(&self) -> bool {
        self.left.is_empty() && self.under_way == 0
    }
}

impl Town {
    pub(super) fn troubles_turn(&mut self) {
        self.agenda.after(LOOK_US, Item::Troubles);
        let now_us = self.now_us();
        if !self.network.is_quiet() {
            self.troubles.quiet_since_us = now_us;
        }
        if self.is_settled() && now_us >= self.troubles.quiet_since_us + CAUGHT_UP_US {
            self.troubles.settled = self.oracle.table().version();
        }
        let Some(trouble) = self.troubles.left.last().copied() else { return };
        if self.phase != Phase::Working || now_us < self.troubles.next_us {
            return;
        }
        if !self.is_allowed(trouble) {
            if now_us > self.troubles.since_us + WAIT_US_MAX {
                self.troubles.unfired.push(trouble);
                self.next_trouble();
            }
            return;
        }
        self.begin(trouble);
        self.next_trouble();
    }

    fn next_trouble(&mut self) {
        self.troubles.left.pop();
        self.troubles.since_us = self.now_us();
        self.troubles.next_us = self.now_us() + self.rng.below(self.draw.quiet_us_max + 1);
    }

    fn is_allowed(&self, trouble: Trouble) -> bool {
        match trouble {
            _ if trouble.loses_a_node() => {
                self.troubles.settled >= self.oracle.disturbed() && self.are_all_as_the_table_says()
            }
            Trouble::Reset | Trouble::Swizzle => !self.network.alive().is_empty(),
            Trouble::Blackout => self.are_disks_good(),
            _ => true,
        }
    }

    /// Nobody counts as having what its disk may have lost: whoever lost its power in `interval` has come again as another one.
    fn are_disks_good(&self) -> bool {
        self.oracle.table().nodes().all(|node| {
            let torn_boot = u64::from(self.members[number_of(node.id())].torn_boot);
            node.facts.incarnation > torn_boot || node.state == NodeState::Down
        })
    }

    /// Whoever should be up is, and can say so.
    pub(super) fn are_all_as_the_table_says(&self) -> bool {
        let now_us = self.now_us();
        self.oracle.table().nodes().all(|node| {
            let member = &self.members[number_of(node.id())];
            let street = &member.street;
            let is_itself = street.is_up() && u64::from(street.boot_number()) == node.facts.incarnation;
            match node.state {
                NodeState::Up | NodeState::Draining => {
                    is_itself
                        && street.paused_until_us() <= now_us
                        && member.isolated == 0
                        && member.stopping.is_none()
                        && !street.crash_is_waiting()
                }
                state => state == NodeState::Down,
            }
        })
    }

    /// Whether every slot has two copies that are whole, everybody knows the table, and firsts wait for their seconds.
    pub(super) fn is_settled(&self) -> bool {
        let table = self.oracle.table();
        let is_whole =
            |(_, stretch): (_, &control::Stretch)| stretch.chain.whole_count() >= 2 && stretch.chain.len() >= 2;
        if !table.stretches().all(is_whole) || !self.are_all_as_the_table_says() {
            return false;
        }
        let knows = |node: &control::Node| {
            let mut known = self.members[number_of(node.id())].knows().into_iter();
            known.all(|version| version == table.version())
        };
        table.nodes().filter(|node| node.state.has_lease()).all(knows) && self.is_held()
    }

    /// Whether followers hold what the table says, by what the firsts know.
    fn is_held(&self) -> bool {
        let held: Vec<_> = self.members.iter().map(|member| member.all_held()).collect();
        self.oracle.table().stretches().all(|(slots, stretch)| {
            let Some((first, others)) = stretch.chain.split_first() else { return false };
            let Some(held) = held[number_of(first.place.node)].get(usize::from(first.place.core.0)) else {
                return false;
            };
            others.iter().filter(|member| member.whole).all(|member| {
                let has = held.iter().find(|held| held.to == member.place).map(|held| &held.slots);
                let mut numbers = slots.first.number()..=slots.last.number();
                has.is_some_and(|has| numbers.all(|number| has.contains(base::Slot::wrapping(number))))
            })
        })
    }

    // --- beginnings ---

    fn begin(&mut self, trouble: Trouble) {
        let up: Vec<usize> = (0..self.members.len()).filter(|node| self.members[*node].street.is_up()).collect();
        if trouble.loses_a_node() {
            self.troubles.settled = 0;
        }
        let first_of_some = self.some_first();
        let node = match up.get(self.rng.below(up.len().max(1) as u64) as usize) {
            // Mostly one that serves something.
            Some(_) if self.rng.chance(2, 3) && up.contains(&first_of_some) => first_of_some,
            Some(node) => *node,
            None => return,
        };
        self.note("trouble", &[trouble as u64, node as u64]);
        match trouble {
            Trouble::Kill => self.end_node(node, CrashKind::Kill),
            Trouble::PowerCut => self.end_node(node, CrashKind::PowerCut),
            Trouble::Stop => {
                self.faults.fired(Fault::Shutdown);
                self.street(node).request_shutdown();
                self.members[node].stopping = Some(self.members[node].street.faults.of(Fault::RunFails));
            }
            Trouble::Pause => {
                let lease_us = u64::from(self.draw.settings.lease_ms) * 1000;
                let for_us = lease_us + self.rng.below(4 * lease_us);
                self.faults.fired(Fault::Paused);
                self.street(node).pause_process(for_us);
            }
            Trouble::Isolate => self.isolate(node),
            Trouble::Squeeze => {
                self.faults.fired(Fault::Squeezed);
                let bytes = [1, 8 << 10, 64 << 10][self.rng.below(3) as usize];
                self.limit_memory(node, bytes);
                self.troubles.under_way += 1;
                let for_us = 1_000 + self.rng.below(1_500_000);
                self.agenda.after(for_us, Item::Heal(Healing::Room { node }));
            }
            Trouble::Move => {
                self.faults.fired(Fault::Moved);
                self.oracle.move_some(node, &mut self.rng);
            }
            Trouble::Drain => {
                self.faults.fired(Fault::Drained);
                self.oracle.drain_some(node);
            }
            Trouble::Part => self.part(node),
            Trouble::Swizzle => self.swizzle(),
            Trouble::Reset => {
                let wires = self.network.alive();
                let wire = wires[self.rng.below(wires.len() as u64) as usize];
                self.faults.fired(Fault::Reset);
                (0..2).for_each(|end| self.break_end(wire, end));
            }
            Trouble::Blackout => {
                let kind = if self.draw.is_all_commit() { CrashKind::PowerCut } else { CrashKind::Kill };
                self.faults.fired(Fault::Blackout);
                self.troubles.settled = 0;
                up.into_iter().for_each(|node| self.crash(node, kind));
            }
        }
    }

    /// Who serves a slot by the table.
    fn some_first(&mut self) -> usize {
        let slot = base::Slot::wrapping(self.rng.below(u64::from(base::SLOT_COUNT)) as u16);
        self.oracle.table().stretch(slot).chain.primary().map_or(0, |place| number_of(place.node))
    }

    /// At once, or at one of its next durable steps.
    fn end_node(&mut self, node: usize, kind: CrashKind) {
        if self.rng.chance(1, 2) {
            return self.crash(node, kind);
        }
        let step = self.members[node].street.durable_steps() + 1 + self.rng.below(4);
        self.street(node).plan_crash(CrashPoint { step, kind });
        self.troubles.under_way += 1;
        self.agenda.after(STEP_US_MAX, Item::Heal(Healing::Crash { node }));
    }

    /// From the managers at least, and for longer than a lease mostly.
    fn isolate(&mut self, node: usize) {
        let (says, hears, alone) = [(true, true, true), (true, true, false), (true, false, true), (false, true, false)]
            [self.rng.below(4) as usize];
        let others = (0..self.members.len()).filter(|other| *other != node && alone).chain([MANAGERS]);
        let ways = others.flat_map(|other| {
            let (out, back) = (says.then_some((node, other)), hears.then_some((other, node)));
            out.into_iter().chain(back)
        });
        let ways: Vec<(usize, usize)> = ways.collect();
        self.faults.fired(if says && hears { Fault::Isolated } else { Fault::IsolatedOneWay });
        self.members[node].isolated += 1;
        let lease_us = u64::from(self.draw.settings.lease_ms) * 1000;
        let for_us = lease_us / 2 + self.rng.below(5 * lease_us);
        self.cut(ways, Some(node), for_us);
    }

    /// As an operator does; one who does not wait for the answer.
    fn limit_memory(&mut self, node: usize, bytes: u64) {
        if !self.members[node].street.is_up() {
            return; // Its next start has no limit.
        }
        let street = self.street(node);
        let socket = street.connect(0, Door::Standalone, 1);
        let mut request = Vec::new();
        let bytes = bytes.to_string();
        encode(&["CONFIG", "SET", "maxmemory", &bytes].map(|word| word.as_bytes().to_vec()), &mut request);
        street.write(socket, &request);
    }

    fn part(&mut self, node: usize) {
        let other = (node + 1 + self.rng.below(self.members.len() as u64 - 1) as usize) % self.members.len();
        let ways = match self.rng.below(3) {
            0 => vec![(node, other), (other, node)],
            1 => vec![(node, other)],
            _ => vec![(other, node)],
        };
        self.faults.fired(if ways.len() == 2 { Fault::Parted } else { Fault::PartedOneWay });
        let for_us = 1_000 + self.rng.below(1_500_000);
        self.cut(ways, None, for_us);
    }

    pub(super) fn cut(&mut self, ways: Vec<(usize, usize)>, isolated: Option<usize>, for_us: u64) {
        self.network.cut(&ways);
        self.troubles.under_way += 1;
        self.agenda.after(for_us, Item::Heal(Healing::Ways { ways, isolated }));
    }

    /// FoundationDB's: connections stop one after the other, and are let go in another order.
    fn swizzle(&mut self) {
        let mut wires = self.network.alive();
        wires.retain(|_| self.rng.chance(2, 3));
        self.faults.fired(Fault::Swizzled);
        let gap_us = [1_000, 30_000, 150_000][self.rng.below(3) as usize];
        let mut at_us = 0;
        for wire in &wires {
            at_us += self.rng.below(gap_us);
            self.troubles.under_way += 1;
            self.agenda.after(at_us, Item::Heal(Healing::Stop { wire: *wire }));
        }
        while !wires.is_empty() {
            at_us += self.rng.below(gap_us);
            let wire = wires.swap_remove(self.rng.below(wires.len() as u64) as usize);
            self.agenda.after(at_us, Item::Heal(Healing::Go { wire }));
        }
    }

    // --- ends ---

    pub(super) fn heal(&mut self, healing: Healing) {
        match healing {
            Healing::Ways { ways, isolated } => {
                self.network.mend(&ways);
                if let Some(node) = isolated {
                    self.members[node].isolated -= 1;
                }
                self.troubles.under_way -= 1;
            }
            Healing::Room { node } => {
                self.limit_memory(node, 0);
                self.troubles.under_way -= 1;
            }
            Healing::Stop { wire } => return self.network.stop(wire, true),
            Healing::Go { wire } => {
                self.network.stop(wire, false);
                self.troubles.under_way -= 1;
            }
            Healing::Crash { node } => {
                self.troubles.under_way -= 1;
                if let Some(kind) = self.members[node].street.take_planned_crash() {
                    self.crash(node, kind);
                }
            }
        }
        self.plan_waiting();
    }
}
