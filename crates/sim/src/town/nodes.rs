//! The nodes of a town: how they start and die, and the resident of each, who keeps its lease.

use std::collections::BTreeMap;

use base::CoreId;
use control::lease::NodeLease;

use super::network::MANAGERS;
use super::oracle::{Ask, MANAGER, Tell, id_of, voters};
use super::{Draw, Item, Phase, Town};
use crate::disk::CrashKind;
use crate::faults::Fault;
use crate::node::{Durability, Refusal};
use crate::shard_node::ShardNode;
use crate::street::Street;
use crate::trace::Trace;
use shard::HopBatch;
use shard::hop::Control;

/// Turns of a resident, and of the oracle, in a lease.
const TURNS_PER_LEASE: u64 = 10;

/// See the module.
pub(super) struct Member {
    pub street: Street<ShardNode>,
    pub durability: Durability,
    segment_bytes: u64,
    lease: NodeLease,
    /// When it asked for what it was granted last, by the town's clock.
    granted_us: u64,
    /// Cores of its next start.
    cores: u16,
    /// What each core said last of its followers, and by which table.
    held: BTreeMap<CoreId, (u64, Vec<shard::Held>)>,
    /// The move whose slots each core keeps still, and by which table.
    sealed: BTreeMap<CoreId, (u64, u64)>,
    /// Cut off from the managers; as often as somebody did that.
    pub isolated: u32,
    /// The last start that ended with the loss of what was promised of its disk; 0: none did.
    pub torn_boot: u32,
    /// It was asked to stop, and has not yet; runs that had failed until then.
    pub stopping: Option<u64>,
    /// It stopped, and little had failed: its next start replays nothing.
    is_left_clean: bool,
}

impl Member {
    /// Not started.
    pub fn new(number: usize, draw: &Draw, seed: u64, prints: bool) -> Member {
        let trace = Trace::labelled(prints, format!("node {number} "));
        let mut street = Street::new(ShardNode::member(draw.stray_quiet_us), draw.swarm.weather, seed, trace);
        street.join_world(draw.clock_error_ppm[number]);
        let lease = NodeLease::new(id_of(number), 0, voters(), 0);
        let (durability, segment_bytes) = (draw.durability[number], draw.swarm.segment_bytes);
        let (held, sealed, cores) = (BTreeMap::new(), BTreeMap::new(), draw.cores[number]);
        Member {
            street,
            durability,
            segment_bytes,
            lease,
            granted_us: 0,
            cores,
            held,
            sealed,
            isolated: 0,
            torn_boot: 0,
            stopping: None,
            is_left_clean: false,
        }
    }
}

impl Member {
    /// Hears what its cores have to say.
    fn listen(&mut self) {
        let told = self.street.take_for_resident().into_iter();
        for (core, control) in told.flat_map(|(core, batch)| batch.controls.into_iter().map(move |one| (core, one))) {
            match control {
                Control::Held { table, held } => drop(self.held.insert(core, (table, held))),
                Control::Sealed { id, table } => drop(self.sealed.insert(core, (id, table))),
                Control::Unsealed { id } => self.sealed.retain(|_, (sealed, _)| *sealed != id),
                _ => {}
            }
        }
    }

    /// The table that each of its cores knows; 0: none.
    pub fn knows(&self) -> Vec<u64> {
        self.street.machines().map(|machine| machine.table_version().unwrap_or(0)).collect()
    }

    /// What followers hold, as each of its cores knows it.
    pub fn all_held(&self) -> Vec<Vec<shard::Held>> {
        self.street.machines().map(shard::Shard::held).collect()
    }

    /// Keys that followers had already when it filled them.
    pub fn kept_keys(&self) -> u64 {
        self.street.machines().map(|machine| machine.fills().kept_keys).sum()
    }

    /// Keys of others' slots that it dropped.
    pub fn swept_keys(&self) -> u64 {
        self.street.machines().map(shard::Shard::swept_keys).sum()
    }

    /// All of its cores are told the same.
    fn tell_all(&mut self, batch: impl Fn() -> HopBatch) {
        (0..self.street.core_count()).for_each(|core| self.street.tell_from_resident(core, batch()));
    }

    /// Whether its lease runs now, by the town's clock: its own stands where something happened to it last, and a lease that ran
    /// then may be over.
    pub fn may_serve(&self, now_us: u64) -> bool {
        self.lease.may_serve(self.street.now_at(now_us).monotonic_us)
    }

    /// When it asked for what it was granted last, by the town's clock, and until when that runs, by its own.
    pub fn granted(&self) -> (u64, u64) {
        (self.granted_us, self.lease.until_us())
    }
}

fn told(controls: impl IntoIterator<Item = Control>) -> HopBatch {
    let mut batch = HopBatch::default();
    batch.controls.extend(controls);
    batch
}

impl Town {
    pub(super) fn start(&mut self, node: usize) {
        if self.members[node].street.is_up() {
            return;
        }
        let (durability, segment_bytes) = (self.members[node].durability, self.members[node].segment_bytes);
        let may_crash = self.phase == Phase::Working && self.wish.faults && self.now_us() > 0;
        if may_crash && self.rng.chance(1, 6) {
            let operations = self.rng.below(4);
            self.street(node).disk.crash_recovery_after(operations);
        }
        if may_crash && self.draw.cores_max > 1 && self.rng.chance(1, 6) {
            self.members[node].cores = 1 + self.rng.below(u64::from(self.draw.cores_max)) as u16;
        }
        let cores = self.members[node].cores;
        let started = self.street(node).start(cores, durability, segment_bytes);
        self.street(node).disk.forget_recovery_crash();
        match started {
            Ok(()) => {
                self.judge_start(node);
                let boot = self.members[node].street.boot_number();
                let lease_us = u64::from(self.draw.settings.lease_ms) * 1000;
                let member = &mut self.members[node];
                member.granted_us = 0;
                member.lease = NodeLease::new(id_of(node), u64::from(boot), voters(), lease_us);
                (member.held, member.sealed) = Default::default();
                self.agenda.after(1, Item::Resident { node, boot });
            }
            Err(Refusal::Crashed) => {
                // In `interval` the disk may lose what others lost with their memory.
                let kind = match durability {
                    Durability::Commit => self.street(node).random_crash_kind(),
                    _ => CrashKind::Kill,
                };
                let street = &mut self.members[node].street;
                street.disk.crash(kind, &mut self.rng);
                let delay_us = 1 + self.rng.below(100_000);
                self.agenda.after(delay_us, Item::Start(node));
            }
            Err(Refusal::Damaged(words)) => self.violate(format!("node {node} does not start again: {words}")),
        }
    }

    pub(super) fn crashed(&mut self, node: usize, kind: CrashKind) {
        self.note("crashed", &[node as u64]);
        self.members[node].stopping = None;
        self.faults.fired(kind.into());
        self.lose_wires(node, kind);
        let member = &mut self.members[node];
        if kind == CrashKind::PowerCut && member.durability == Durability::Interval {
            member.torn_boot = member.street.boot_number();
        }
        self.start_again(node);
    }

    pub(super) fn stopped(&mut self, node: usize) {
        self.note("stopped", &[node as u64]);
        let member = &mut self.members[node];
        let failed_runs = member.street.faults.of(Fault::RunFails) - member.stopping.take().unwrap_or(0);
        // A core that fails three times leaves the rest to a replay.
        member.is_left_clean = failed_runs < 3 && member.street.log_failed_us().is_none();
        self.start_again(node);
    }

    /// What a start replayed.
    fn judge_start(&mut self, node: usize) {
        let member = &mut self.members[node];
        let records = member.street.node.replayed_records;
        if std::mem::take(&mut member.is_left_clean) && records > 0 {
            self.violate(format!("node {node} replayed {records} records behind a clean stop"));
        }
    }

    fn start_again(&mut self, node: usize) {
        // Sometimes it is there again before anybody noticed.
        let most_us = [1_000, 100_000, 2_000_000][self.rng.below(3) as usize];
        let delay_us = 1 + self.rng.below(most_us);
        self.agenda.after(delay_us, Item::Start(node));
    }

    // --- the resident ---

    pub(super) fn resident_turn(&mut self, node: usize, boot: u32) {
        let street = self.street(node);
        if street.boot_number() != boot || !street.is_up() {
            return;
        }
        let now_us = self.now_us();
        let paused_until_us = self.members[node].street.paused_until_us();
        if paused_until_us > now_us {
            return self.agenda.at(paused_until_us, Item::Resident { node, boot });
        }
        let lease_us = u64::from(self.draw.settings.lease_ms) * 1000;
        self.agenda.after(lease_us / TURNS_PER_LEASE, Item::Resident { node, boot });
        let clock_us = self.street(node).now().monotonic_us;
        self.members[node].listen();
        self.met.crowded_cores +=
            self.members[node].street.machines().filter(|machine| machine.has_crowd()).count() as u64;
        self.members[node].tell_all(|| told([Control::AskHeld]));
        for (_, renewal) in self.members[node].lease.renewals(clock_us) {
            let member = &self.members[node];
            let (held, sealed) = (member.held.values().cloned().collect(), member.sealed.values().copied().collect());
            let (asked_us, knows) = (now_us, member.knows());
            let ask = Ask { node, boot, renewal, asked_us, knows, held, sealed };
            if !self.network.is_cut(node, MANAGERS) {
                let delay_us = self.way_us();
                self.agenda.after(delay_us, Item::Ask(Box::new(ask)));
            }
        }
    }

    /// How long something small is on its way.
    pub(super) fn way_us(&mut self) -> u64 {
        let most_us = self.draw.way_us_max + self.draw.swarm.weather.network_us_max;
        1 + self.rng.below(most_us + 1)
    }

    pub(super) fn ask_oracle(&mut self, ask: Ask) {
        let clock_us = self.oracle_clock_us();
        let node = ask.node;
        let tell = self.oracle.hear(clock_us, ask);
        if !self.network.is_cut(MANAGERS, node) {
            let delay_us = self.way_us();
            self.agenda.after(delay_us, Item::Tell(Box::new(tell)));
        }
    }

    /// Who stands still gets it when it goes on: it lies in the kernel until then.
    pub(super) fn told(&mut self, tell: Tell) {
        let Tell { node, boot, reply, asked_us, view, seals } = tell;
        let street = self.street(node);
        if street.boot_number() != boot || !street.is_up() {
            return;
        }
        let paused_until_us = street.paused_until_us();
        if paused_until_us > self.now_us() {
            let again = Item::Tell(Box::new(Tell { node, boot, reply, asked_us, view, seals }));
            return self.agenda.at(paused_until_us, again);
        }
        let Member { lease, granted_us, .. } = &mut self.members[node];
        lease.on_reply(MANAGER, reply);
        if reply.granted_us.is_ok() {
            *granted_us = asked_us.max(*granted_us);
        }
        if lease.is_over() {
            // What it was is over for good: it starts again as who it is now.
            self.note("over", &[node as u64]);
            return self.crash(node, CrashKind::Kill);
        }
        let until_us = lease.until_us();
        self.street(node);
        let view = || view.clone().map(|view| Control::View { node: id_of(node), view });
        self.members[node].tell_all(|| told(view().into_iter().chain([Control::Lease { until_us }])));
        for (core, id) in seals {
            self.street(node).tell_from_resident(core.0, told([Control::Seal { id }]));
        }
    }

    // --- the oracle ---

    fn oracle_clock_us(&self) -> u64 {
        let now_us = self.now_us();
        let error_ppm = self.draw.clock_error_ppm[self.draw.nodes];
        now_us.saturating_add_signed(now_us as i64 / 1_000 * error_ppm / 1_000)
    }

    pub(super) fn oracle_turn(&mut self) {
        let lease_us = u64::from(self.draw.settings.lease_ms) * 1000;
        self.agenda.after(lease_us / TURNS_PER_LEASE, Item::Oracle);
        let down = |town: &Town| {
            let nodes = town.oracle.table().nodes();
            nodes.filter(|node| node.state == control::NodeState::Down).count()
        };
        let (before, clock_us) = (down(self), self.oracle_clock_us());
        let version = self.oracle.table().version();
        self.oracle.turn(clock_us);
        if self.oracle.table().version() != version {
            self.note("table", &[self.oracle.table().version()]);
        }
        self.met.promotions += down(self).saturating_sub(before) as u64;
    }
}
