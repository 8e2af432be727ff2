//! Slots that go to and fro under load, while ends of the move, the leading manager and the second of the
//! chain are killed or stand still in a phase of it (AT-07).
//!
//! ```text
//!   rounds   who dies in which phase of which move      barrage   clients with many requests at once, all in the slots that move
//!   pairs    transactions across the hand-over          freight   a long value and a crowded slot, written to all the time
//! ```

mod barrage;
mod freight;
mod pairs;
mod rounds;

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use base::rng::Rng;

use self::barrage::{Barrage, Field, Sent};
use self::freight::Freight;
use self::pairs::Pairs;
use self::rounds::{Moved, Rounds};
use super::client::{Course, Stage};
use super::doors::Door;
use super::history::Operation;
use super::mover::Moves;
use super::run::Verdict;
use super::scene::{Played, Scene};
use super::standing::Slots;
use super::tally::Ends;
use super::whole::await_whole;
use crate::reply::Reply;

/// What moves: the first slots, of one slot group.
const SLOTS: Slots = (0, 63);
/// Clients with many requests at once, and with transactions.
const BARRAGES: usize = 6;
const PAIRS: usize = 3;
/// Tags of the keys that the first ones use; further ones are the freight's and the pairs'.
const TAGS: usize = 12;
/// How long clients ask before anything moves, and behind the last round.
const STEADY: Duration = Duration::from_secs(2);
/// What is looked at.
pub(super) const WHOLE_TRANSACTIONS: &str = "transactions are whole";
pub(super) const FREIGHT: &str = "a long value and a crowded slot are as they were written";

/// How much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Times that something happens to slots on their way.
    pub rounds: usize,
    /// Bytes of a value that goes with them.
    pub long_bytes: usize,
    /// Keys of a slot that goes with them.
    pub many_keys: usize,
}

/// A whole cluster is loaded, harmed, healed and judged.
///
/// # Errors
/// When the cluster cannot be started, loaded or healed.
pub(super) fn play(scene: &Scene<'_>, rng: &mut Rng, lease_ms: u64, size: Size) -> io::Result<Verdict> {
    let (fleet, doors) = (scene.fleet, &scene.fleet.doors);
    let mut tags = tags(scene, TAGS + 3).map_err(io::Error::other)?;
    let of_freight = [tags.pop(), tags.pop()].map(|tag| tag.expect("so many were asked for"));
    let of_pairs = tags.pop().expect("so many were asked for");
    let mut freight = Freight::load(doors, of_freight, (size.long_bytes, size.many_keys)).map_err(io::Error::other)?;
    println!("  a value of {} bytes and a slot of {} keys go with the slots", size.long_bytes, size.many_keys);
    let drawn = rounds::draw(rng, size.rounds);
    println!("  {} rounds: {}", drawn.len(), drawn.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(" "));
    let course = Course::new();
    let (stage, field) = (Stage::new(doors, &course), Field::new(tags));
    let seed = scene.options.seed;
    let (rng, moved) = (Rng::new(seed ^ 0x6d6f_7665), Moved::default());
    let mut rounds = Rounds { fleet, stage: &stage, field: &field, slots: SLOTS, lease_ms, rng, moved };
    let is_over = || stage.is_over.load(Ordering::Relaxed);
    let (healed, sent, pairs, written) = thread::scope(|scope| {
        let (stage, field, tag) = (&stage, &field, of_pairs.as_str());
        let barrages: Vec<_> =
            (0..BARRAGES).map(|number| scope.spawn(move || Barrage::new(stage, field, number, seed).run())).collect();
        let pairs: Vec<_> = (BARRAGES..BARRAGES + PAIRS)
            .map(|number| scope.spawn(move || Pairs::new(stage, tag, number, seed).run()))
            .collect();
        let freight = &mut freight;
        let writer = scope.spawn(move || freight.run(doors, is_over));
        thread::sleep(STEADY);
        // Nodes that are started here live as long as this thread.
        let healed = rounds.run(&drawn).and_then(|()| await_whole(doors, || false).map(drop));
        if healed.is_ok() {
            thread::sleep(STEADY / 4);
        }
        stage.is_over.store(true, Ordering::Relaxed);
        let sent: Vec<Sent> = barrages.into_iter().map(|one| one.join().expect("it does not panic")).collect();
        let pairs: Vec<pairs::Done> = pairs.into_iter().map(|one| one.join().expect("it does not panic")).collect();
        (healed, sent, pairs, writer.join().expect("it does not panic"))
    });
    let moved = rounds.moved;
    tell(&sent, &pairs, &moved, &freight);
    let mut gaps = moved.gaps.clone();
    if pairs.iter().any(|one| one.ends[0] == 0) {
        gaps.push("it proves nothing: a client's transactions were never done".to_owned());
    }
    if freight.writes() == 0 {
        gaps.push("it proves nothing: nothing was written to the freight".to_owned());
    }
    let mut wrong: Vec<String> = pairs.iter().flat_map(|one| one.wrong.clone()).collect();
    let history: Vec<Operation> =
        sent.into_iter().flat_map(|one| one.history).chain(pairs.into_iter().flat_map(|one| one.history)).collect();
    let moves = Moves { ordered: moved.arrived, arrived: moved.arrived, called_off: moved.called_off };
    let mut verdict = Verdict::default();
    verdict.checks.push(("what was written without end was done", written.err().into_iter().collect()));
    let played = Played { history, fired: moved.fired, moves: Some(moves), healed, besides: freight.count(), gaps };
    let history = scene.judge(&stage, played, &mut verdict, || {
        let server = super::standing::Standing::of_any(doors).and_then(|standing| standing.server(SLOTS));
        let differences = server.ok_or("nobody serves the slots".to_owned());
        let differences = differences.and_then(|server| freight.differences(doors, server));
        (FREIGHT, differences.unwrap_or_else(|error| vec![error]))
    })?;
    wrong.extend(pairs::halves(&history));
    verdict.checks.push((WHOLE_TRANSACTIONS, wrong));
    scene.tell_checks(&verdict);
    Ok(verdict)
}

/// Hash tags whose slots move.
fn tags(scene: &Scene<'_>, count: usize) -> Result<Vec<String>, String> {
    let mut tags = Vec::new();
    for number in 0..1_000_000 {
        let tag = number.to_string();
        match scene.fleet.doors.ask(Door::of_core(0, 0), &["CLUSTER", "KEYSLOT", &tag]) {
            Ok(Reply::Integer(slot)) if (SLOTS.0..=SLOTS.1).contains(&slot) => tags.push(tag),
            Ok(Reply::Integer(_)) => {}
            other => return Err(format!("{tag} has no slot: {other:?}")),
        }
        if tags.len() == count {
            return Ok(tags);
        }
    }
    Err("too few tags have the slots that move".to_owned())
}

/// What was done, and how it felt: numbers by which nobody is judged.
fn tell(sent: &[Sent], pairs: &[pairs::Done], moved: &Moved, freight: &Freight) {
    let redirected = |index: usize| sent.iter().map(|one| one.redirected[index]).sum::<u64>();
    println!("  told to go elsewhere: {} requests once, {} once more", redirected(0), redirected(1));
    let ends = |index: usize| pairs.iter().map(|one| one.ends[index]).sum::<u64>();
    println!("  transactions: {} done, {} given up by what they watched, {} refused", ends(0), ends(1), ends(2));
    println!("  {} writes to the crowded slot, and to the long value now and then", freight.writes());
    let all = || sent.iter().flat_map(|one| &one.history);
    let steady_us = STEADY.as_micros() as u64;
    for (name, windows) in [("steady", vec![(0, steady_us)]), ("moves without a fault", moved.calm.clone())] {
        let is_in = |one: &&Operation| windows.iter().any(|(from, to)| (*from..*to).contains(&one.begun_us));
        let mut took: Vec<u64> =
            all().filter(|one| one.is_ok()).filter(is_in).map(|one| one.ended_us - one.begun_us).collect();
        took.sort_unstable();
        let Some(longest) = took.last() else { continue };
        let seconds = windows.iter().map(|(from, to)| to - from).sum::<u64>() as f64 / 1e6;
        let p99 = took[took.len() * 99 / 100];
        println!("  {name}: {:.0} requests/s, p99 {} us, the longest {longest} us", took.len() as f64 / seconds, p99);
    }
    let ends = Ends::of(all());
    println!("  barrage: {} ok, {} refused, {} unknown", ends.ok, ends.refused, ends.unknown);
}
