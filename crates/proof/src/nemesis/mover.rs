//! Slots that go from node to node all the time, asked for as operators do: `CLUSTER MIGRATESLOTS`, now and then called off.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use base::rng::Rng;

use super::client::Stage;
use super::doors::{Door, Doors};
use crate::reply::Reply;

/// Slots that go together: few stretches, because an instance has no more than 16.
const STRETCH_SLOTS: u64 = 2048;
const STRETCHES: u64 = 16384 / STRETCH_SLOTS;
/// How long a move is looked after before the next one is asked for.
const MOVED_WITHIN: Duration = Duration::from_secs(3);
/// Without a single one that has arrived it goes on for so long.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(150);

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moves {
    /// Orders that a node took.
    pub(crate) ordered: u64,
    /// Of them, those after which the slots were served by who was to get them.
    pub(crate) arrived: u64,
    /// Times that moves were called off.
    pub(crate) called_off: u64,
}

/// Moves slots until they are over and at least one has arrived, or until the whole stage is.
pub(crate) fn run(stage: &Stage<'_>, seed: u64) -> Moves {
    let (mut rng, mut moves) = (Rng::new(seed ^ 0x6d6f_7665), Moves::default());
    let nodes = stage.doors.len();
    let cores = stage.doors.cores;
    let mut names: BTreeMap<Door, String> = BTreeMap::new();
    let begun = Instant::now();
    let is_over = |moves: &Moves| {
        let has_moved = moves.arrived > 0 || begun.elapsed() > GIVEN_UP_AFTER;
        stage.is_over() || stage.moves_are_over.load(Ordering::Relaxed) && has_moved
    };
    while !is_over(&moves) {
        thread::sleep(PAUSE);
        let stretch = rng.below(STRETCHES);
        let first = stretch * STRETCH_SLOTS;
        // The same core on every node has a stretch: slots are divided among cores in order.
        let core = (stretch * u64::from(cores) / STRETCHES) as u16;
        let asked = Door::of_core(rng.below(nodes as u64) as usize, 0);
        let target = Door::of_core(rng.below(nodes as u64) as usize, core);
        let calls_off = rng.chance(1, 8);
        if !names.contains_key(&target) {
            names.extend(stage.doors.told(target, &["CLUSTER", "MYID"]).map(|name| (target, name)));
        }
        let Some(name) = names.get(&target) else { continue };
        if owner(stage.doors, asked, first).is_none_or(|owner| owner == target) {
            continue;
        }
        let (from, to) = (first.to_string(), (first + STRETCH_SLOTS - 1).to_string());
        let order = stage.doors.ask(asked, &["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", &from, &to, "NODE", name]);
        if !matches!(order, Ok(Reply::Status(_))) {
            continue;
        }
        moves.ordered += 1;
        stage.moves_ordered.fetch_add(1, Ordering::Relaxed);
        if calls_off {
            let called_off = (0..nodes).filter(|node| {
                matches!(
                    stage.doors.ask(Door::of_core(*node, core), &["CLUSTER", "CANCELSLOTMIGRATIONS"]),
                    Ok(Reply::Status(_))
                )
            });
            moves.called_off += u64::from(called_off.count() > 0);
        }
        moves.arrived += u64::from(has_arrived(stage, first, target));
    }
    moves
}

fn has_arrived(stage: &Stage<'_>, slot: u64, target: Door) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < stage.doors.patience(MOVED_WITHIN) && !stage.is_over() {
        if owner(stage.doors, target, slot) == Some(target) {
            return true;
        }
        thread::sleep(LOOK_EVERY);
    }
    false
}

/// Who serves a slot, by what a node says.
fn owner(doors: &Doors, asked: Door, slot: u64) -> Option<Door> {
    let Ok(Reply::Array(stretches)) = doors.ask(asked, &["CLUSTER", "SLOTS"]) else { return None };
    stretches.iter().find_map(|stretch| {
        let Reply::Array(parts) = stretch else { return None };
        let [Reply::Integer(first), Reply::Integer(last), Reply::Array(owner), ..] = &parts[..] else { return None };
        let [Reply::Bulk(host), Reply::Integer(port), ..] = &owner[..] else { return None };
        let is_in = (*first..=*last).contains(&(slot as i64));
        is_in.then(|| doors.ground.door_at(&format!("{}:{port}", String::from_utf8_lossy(host)))).flatten()
    })
}
