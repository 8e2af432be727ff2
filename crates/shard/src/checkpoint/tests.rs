//! Four cores of one node on a virtual clock, with a disk that takes its time: how many make a run at once.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::Arc;

use base::rng::Rng;
use base::{CoreId, Database, Effect, Event, Machine, Now, TickInput, TickOutput};
use placement::NodeTable;
use storage::log::LogIdentity;
use types::{Change, End, Expiry, Kind, List};

use crate::hop::{HopBatch, WaitId};
use crate::one_core::turn;
use crate::{Durability, NodeState, Shard, ShardConfig};

const CORES: u16 = 4;

struct Cores {
    shards: Vec<Shard>,
    hops: Vec<Vec<(CoreId, HopBatch)>>,
    /// What the disk of a core will say, and when, microseconds.
    disk: Vec<VecDeque<(u64, Event)>>,
    /// Whether a core makes a run, as its disk sees it, and how many have been published.
    makes_run: Vec<bool>,
    published: Vec<usize>,
    /// Every run fails from now on.
    is_full: bool,
    stopped: usize,
    /// The most that did at once.
    most: usize,
    /// When a core ticks again though nothing happens.
    wakes_us: Vec<Option<u64>>,
    random: Rng,
    now_us: u64,
}

impl Cores {
    fn new() -> Cores {
        let table = Arc::new(NodeTable::even([3; 16], CORES, "", 1).unwrap());
        let shards = (0..CORES).map(|core| {
            let mut shard = Shard::new(ShardConfig {
                core: CoreId(core),
                table: Arc::clone(&table),
                seed: 1,
                durability: Durability::Interval,
                log: Some(LogIdentity { store_id: [3; 16], incarnation: 1, core, cores: CORES }),
                node: NodeState::anonymous(),
            });
            shard.set_segment_bytes(2048);
            shard.set_run_bounds(u64::MAX, 1024);
            shard
        });
        Cores {
            shards: shards.collect(),
            hops: (0..CORES).map(|_| Vec::new()).collect(),
            disk: (0..CORES).map(|_| VecDeque::new()).collect(),
            makes_run: vec![false; usize::from(CORES)],
            published: vec![0; usize::from(CORES)],
            is_full: false,
            stopped: 0,
            most: 0,
            wakes_us: vec![None; usize::from(CORES)],
            random: Rng::new(5),
            now_us: 0,
        }
    }

    /// So many ticks of any core, in each of `write_of` of which a key is written; the disk takes `disk_us` for what it syncs and
    /// for runs.
    fn go_on(&mut self, ticks: usize, write_of: u64, disk_us: u64) {
        for _ in 0..ticks {
            let core = self.random.below(u64::from(CORES)) as usize;
            if self.random.below(write_of) == 0 {
                self.write(core);
            }
            self.tick(core, disk_us);
        }
    }

    fn write(&mut self, core: usize) {
        let number = self.random.below(256) as u8;
        let group = self.shards[core].table.groups_of(CoreId(core as u16)).nth(usize::from(number % 16)).unwrap();
        let store = self.shards[core].store_mut();
        let name = [number];
        let key = store.key(&name, Database(0), group.slot(number));
        store.apply(&key, &Change::put_string(&[7; 100], Expiry::Clear)).unwrap();
    }

    fn tick(&mut self, core: usize, disk_us: u64) {
        self.now_us += 10;
        let mut events = Vec::new();
        while let Some((_, event)) = self.disk[core].pop_front_if(|(at_us, _)| *at_us <= self.now_us) {
            if matches!(event, Event::RunsPublished) {
                self.makes_run[core] = false;
                self.published[core] += 1;
            }
            events.push(event);
        }
        let mut hops = std::mem::take(&mut self.hops[core]);
        let now = Now { monotonic_us: self.now_us, unix_ms: 1_000_000 };
        let mut output = TickOutput::default();
        self.shards[core].tick(TickInput { now, received: &[], events: &mut events, hops: &mut hops }, &mut output);
        self.wakes_us[core] = if output.more { Some(self.now_us) } else { output.deadline_us };
        for (to, batch) in output.hops {
            self.hops[usize::from(to.0)].push((CoreId(core as u16), batch));
        }
        for effect in output.effects {
            let (at_us, event) = match effect {
                Effect::WriteLog { bytes, ordinal, .. } => (0, Event::LogWritten { ordinal, buffer: bytes }),
                Effect::CreateSegment { segment, .. } => (0, Event::SegmentReady { segment }),
                Effect::SyncLog { ordinal, .. } => (self.now_us + disk_us, Event::LogSynced { ordinal }),
                Effect::WriteRun { offset, bytes, .. } if !self.is_full => {
                    self.makes_run[core] |= offset == 0;
                    (self.now_us + disk_us, Event::RunWritten { buffer: bytes })
                }
                Effect::Stop => {
                    self.stopped += 1;
                    continue;
                }
                Effect::DropRuns { .. } => continue,
                Effect::WriteRun { .. } if self.is_full => (self.now_us + disk_us, full()),
                Effect::PublishRuns { .. } => (self.now_us + disk_us, Event::RunsPublished),
                Effect::RemoveFiles { .. } => continue,
                other => panic!("{other:?}"),
            };
            self.disk[core].push_back((at_us, event));
        }
        self.most = self.most.max(self.makes_run.iter().filter(|makes| **makes).count());
    }

    /// Nothing comes from outside, until nobody wakes any more: the microseconds that this takes.
    fn fall_asleep(&mut self) -> u64 {
        let begin_us = self.now_us;
        for _ in 0..100_000 {
            let Some(core) = self.next_core(|_| true) else { return self.now_us - begin_us };
            self.tick(core, 200);
        }
        panic!("somebody always wakes: {:?}", self.wakes_us);
    }

    /// Whose tick is next, of these, at its time.
    fn next_core(&mut self, of: impl Fn(usize) -> bool) -> Option<usize> {
        let due_us = |core: usize| {
            let hop_us = (!self.hops[core].is_empty()).then_some(self.now_us);
            let disk_us = self.disk[core].front().map(|(at_us, _)| *at_us);
            [hop_us, disk_us, self.wakes_us[core]].into_iter().flatten().min()
        };
        let those = (0..usize::from(CORES)).filter(|core| of(*core));
        let (at_us, core) = those.filter_map(|core| due_us(core).map(|at_us| (at_us, core))).min()?;
        self.now_us = self.now_us.max(at_us);
        Some(core)
    }

    fn ask_to_stop(&mut self) {
        self.disk.iter_mut().for_each(|disk| disk.push_back((0, Event::ShutdownRequested)));
    }

    fn alarms(&self) -> u64 {
        self.shards.iter().map(|shard| shard.checkpoints.as_ref().unwrap().alarm().1).sum()
    }
}

fn full() -> Event {
    Event::RunFailed { reason: "disk full".to_owned() }
}

/// A node that keeps up, after a while.
fn that_keeps_up() -> Cores {
    let mut cores = Cores::new();
    cores.go_on(120_000, 20, 200);
    cores
}

#[test]
fn no_more_than_half_of_the_cores_make_a_run_at_once() {
    let _turn = turn();
    let cores = that_keeps_up();
    assert_eq!((cores.most, cores.alarms()), (2, 0));
    assert!(cores.published.iter().all(|published| *published > 50), "{:?}", cores.published);
}

#[test]
fn where_runs_fall_behind_all_cores_may_make_one_until_they_do_not() {
    let _turn = turn();
    let mut cores = Cores::new();
    cores.go_on(20_000, 1, 1000);
    assert!(cores.alarms() > 0);
    assert!(cores.most > 2, "{} at once", cores.most);
    cores.go_on(20_000, 1_000_000, 10);
    let is_alarmed = |shard: &Shard| shard.checkpoints.as_ref().unwrap().alarm().0;
    assert!(!cores.shards.iter().any(is_alarmed));
    assert_eq!(cores.shards[0].permits.cap(), 2);
    // And then as before.
    let most = std::mem::take(&mut cores.most);
    cores.go_on(20_000, 20, 100);
    assert!(cores.most <= 2 && most > 2, "{} after {most}", cores.most);
}

#[test]
fn a_node_stops_although_no_last_run_can_be_written() {
    let _turn = turn();
    let mut cores = Cores::new();
    cores.go_on(1_000, 2, 10);
    cores.is_full = true;
    cores.ask_to_stop();
    for _ in 0..20_000 {
        let core = cores.random.below(u64::from(CORES)) as usize;
        cores.tick(core, 10);
        if cores.stopped > 0 {
            return;
        }
    }
    panic!("no core stopped");
}

/// What a stop leaves undone the next start replays: it waits for a disk that works, also another core's.
#[test]
fn a_stop_waits_for_a_disk_that_takes_its_time() {
    let _turn = turn();
    let mut cores = Cores::new();
    cores.go_on(1_000, 2, 10);
    (0..usize::from(CORES)).for_each(|core| cores.write(core));
    cores.ask_to_stop();
    let mut has_stopped = [false; CORES as usize];
    while let Some(core) = cores.next_core(|core| !has_stopped[core]) {
        let before = cores.stopped;
        cores.tick(core, if core == 1 { 7_000_000 } else { 200 });
        has_stopped[core] = cores.stopped > before;
    }
    assert_eq!(has_stopped, [true; CORES as usize]);
    let is_finished = |shard: &Shard| shard.checkpoints.as_ref().unwrap().is_finished(&shard.store);
    assert!(cores.shards.iter().all(is_finished), "the next start replays something");
}

/// A blocked client of another core was told of a key, and the node stops before that core comes for it.
#[test]
fn a_group_that_is_set_aside_has_its_last_run_too() {
    let _turn = turn();
    let mut cores = Cores::new();
    cores.go_on(1_000, 2, 10);
    let is_of_core_1 = |name: &Vec<u8>| cores.shards[1].table.owner(placement::slot_of(name)) == CoreId(1);
    let name = (0..64).map(|number: u8| vec![number]).find(is_of_core_1).unwrap();
    let group = placement::slot_of(&name).group();
    let owner = &mut cores.shards[1];
    owner.on_interest(WaitId::new(CoreId(0), 1), Database(0), vec![name.clone()]);
    let key = owner.store.key(&name, Database(0), placement::slot_of(&name));
    let (mut list, mut encoded) = (List::new(), Vec::new());
    list.push(End::Tail, b"element");
    list.encode(&mut encoded);
    let put = Change::Put { kind: Kind::List, value: &encoded, expiry: Expiry::Clear };
    owner.store_mut().apply(&key, &put).unwrap();
    owner.fire_waiters();
    assert!(owner.store.group(group).is_none(), "the group waits for the client's core");
    cores.ask_to_stop();
    let mut has_stopped = [false; CORES as usize];
    while let Some(core) = cores.next_core(|core| !has_stopped[core]) {
        let before = cores.stopped;
        cores.tick(core, 200);
        has_stopped[core] = cores.stopped > before;
    }
    let owner = &cores.shards[1];
    assert!(owner.store.group(group).is_some() && owner.checkpoints.as_ref().unwrap().is_finished(&owner.store));
}

#[test]
fn a_node_that_nobody_writes_to_keeps_one_segment_a_log_and_sleeps() {
    let _turn = turn();
    let mut cores = that_keeps_up();
    let segments = |cores: &Cores| -> Vec<u64> {
        cores.shards.iter().map(|shard| shard.log.as_ref().unwrap().segment_count()).collect()
    };
    assert!(segments(&cores).iter().all(|segments| *segments > 2), "{:?}", segments(&cores));
    let took_us = cores.fall_asleep();
    assert_eq!(segments(&cores), [1; CORES as usize]);
    assert!((30_000_000..31_000_000).contains(&took_us), "{took_us} us");
}

#[cfg(feature = "planted")]
#[test]
fn m26_synchronised_maintenance_is_caught() {
    let _turn = turn();
    base::planted::plant(Some(base::planted::Bug::M26SynchronisedMaintenance));
    let most = that_keeps_up().most;
    base::planted::plant(None);
    assert!(most > 2, "{most} at once");
}
