//! What a client does next.

use base::Door;
use base::rng::Rng;

use crate::client::{Client, OWN_KEYS};
use crate::history::Action;
use crate::own::{OwnAction, set_of};
use crate::swarm::{Feature, Swarm};

/// Token keys: every second pair shares a hash tag, so that cluster clients have units too.
pub fn token_key(number: u64) -> String {
    if number.is_multiple_of(2) { format!("t{number}") } else { format!("{{tag}}t{number}") }
}

/// Tagged keys that always exist, for units of cluster clients.
pub fn tagged_key(number: u64) -> String {
    format!("{{tag}}u{number}")
}

/// Name of a counter.
pub fn counter_key(number: u64) -> String {
    format!("c{number}")
}

/// Name of a list.
pub fn list_key(number: u64) -> String {
    format!("l{number}")
}

/// How many tagged keys exist.
pub const TAGGED_KEYS: u64 = 3;

/// Every key that several clients share, as the reads that audit them.
pub fn audit(swarm: &Swarm) -> Vec<Action> {
    let mut actions = Vec::new();
    actions.extend((0..swarm.token_keys).map(|number| Action::Get { key: token_key(number) }));
    actions.extend((0..TAGGED_KEYS).map(|number| Action::Get { key: tagged_key(number) }));
    actions.extend((0..swarm.other_keys).map(|number| Action::Count { key: counter_key(number) }));
    actions.extend((0..swarm.other_keys).map(|number| Action::Range { key: list_key(number) }));
    actions
}

/// The next operation of a client.
pub fn next(client: &mut Client, swarm: &Swarm, rng: &mut Rng) -> Action {
    if client.database > 0 {
        // All that this client sees is its own.
        return own(client, swarm, rng);
    }
    let total: u64 = swarm.weights.iter().map(|(_, weight)| weight).sum();
    let mut at = rng.below(total);
    let picked = swarm.weights.iter().find(|(_, weight)| {
        let here = at < *weight;
        at = at.saturating_sub(*weight);
        here
    });
    let feature = picked.map_or(Feature::Get, |(feature, _)| *feature);
    let other = rng.below(swarm.other_keys);
    match feature {
        Feature::Append => Action::Append { key: token(swarm, rng), token: client.token() },
        Feature::Get => Action::Get { key: token(swarm, rng) },
        Feature::Compare => compare(client, swarm, rng),
        Feature::Unit => Action::Unit { keys: unit_keys(client, swarm, rng), token: client.token() },
        Feature::UnitRead => Action::UnitRead { keys: unit_keys(client, swarm, rng) },
        Feature::Increment => Action::Increment { key: counter_key(other) },
        Feature::Count => Action::Count { key: counter_key(other) },
        Feature::Push => Action::Push { key: list_key(other), token: client.token() },
        Feature::Pop => Action::Pop { key: list_key(other) },
        Feature::Echo => Action::Echo { text: client.token() },
        Feature::Wait => wait(client, swarm, rng),
        Feature::Own => own(client, swarm, rng),
        Feature::BlockingPop => {
            Action::BlockingPop { keys: list_keys(client, swarm, rng), timeout_ms: timeout_ms(rng) }
        }
        Feature::BlockingMove => blocking_move(client, swarm, rng),
        Feature::PushAll => {
            let keys = list_keys(client, swarm, rng);
            Action::PushAll { pushes: keys.into_iter().map(|key| (key, client.token())).collect() }
        }
        // Ids count connections, in turns of cores.
        Feature::Unblock => {
            let client_id = (1 + rng.below(12)) * base::limits::CORES_MAX as u64 + rng.below(u64::from(swarm.cores));
            Action::Unblock { client_id, with_error: rng.chance(1, 2) }
        }
    }
}

/// Mostly short, so that there is progress; long enough that a push finds somebody waiting.
fn timeout_ms(rng: &mut Rng) -> u64 {
    let most_ms = [20, 200, 2_000][rng.below(3) as usize];
    1 + rng.below(most_ms)
}

/// Some lists in any order; a cluster client names one.
fn list_keys(client: &Client, swarm: &Swarm, rng: &mut Rng) -> Vec<String> {
    let mut all: Vec<String> = (0..swarm.other_keys).map(list_key).collect();
    let count = if client.door() == Door::Cluster { 1 } else { 1 + rng.below(all.len() as u64) };
    (0..count).map(|_| all.swap_remove(rng.below(all.len() as u64) as usize)).collect()
}

fn blocking_move(client: &Client, swarm: &Swarm, rng: &mut Rng) -> Action {
    let timeout_ms = timeout_ms(rng);
    if swarm.other_keys < 2 || client.door() == Door::Cluster {
        return Action::BlockingPop { keys: vec![list_key(0)], timeout_ms };
    }
    let destination = 1 + rng.below(swarm.other_keys - 1);
    let source = list_key(rng.below(destination));
    Action::BlockingMove { source, destination: list_key(destination), timeout_ms }
}

fn token(swarm: &Swarm, rng: &mut Rng) -> String {
    let number = rng.below(swarm.token_keys + TAGGED_KEYS);
    if number < swarm.token_keys { token_key(number) } else { tagged_key(number - swarm.token_keys) }
}

/// Compare with what was read last, where something was.
fn compare(client: &mut Client, swarm: &Swarm, rng: &mut Rng) -> Action {
    let key = token(swarm, rng);
    match client.seen.get(&key) {
        Some(old) if !old.is_empty() => {
            let (mut old, feigned) = (old.clone(), rng.chance(1, 4));
            if feigned {
                // No client has this number's letter.
                old[0] = b'x';
            }
            Action::Compare { old, token: client.token(), key, feigned }
        }
        _ => Action::Get { key },
    }
}

fn wait(client: &mut Client, swarm: &Swarm, rng: &mut Rng) -> Action {
    let key = token(swarm, rng);
    match client.seen.get(&key) {
        Some(old) if !old.is_empty() => Action::Wait { old: old.clone(), timeout_ms: 1 + rng.below(500), key },
        _ => Action::Get { key },
    }
}

fn unit_keys(client: &Client, swarm: &Swarm, rng: &mut Rng) -> Vec<String> {
    let tagged = || (0..TAGGED_KEYS).map(tagged_key);
    let mut all: Vec<String> = match client.door() {
        Door::Cluster | Door::Node => tagged().collect(),
        Door::Standalone => tagged().chain((0..swarm.token_keys).map(token_key)).collect(),
    };
    let count = 2 + rng.below(all.len() as u64 - 1) as usize;
    let mut keys = Vec::new();
    for _ in 0..count {
        keys.push(all.swap_remove(rng.below(all.len() as u64) as usize));
    }
    keys
}

/// An own key that has no request under way; an echo if there is none.
fn own(client: &mut Client, swarm: &Swarm, rng: &mut Rng) -> Action {
    let mut value = client.token();
    if client.database > 0 && rng.chance(1, 25) {
        return Action::Own(OwnAction::Flush);
    }
    let number = rng.below(OWN_KEYS as u64) as usize;
    if client.own_busy[number] {
        return Action::Echo { text: value };
    }
    client.own_busy[number] = true;
    if rng.chance(swarm.long_of_16, 16) {
        // Short of a block, of two, and beyond; different at every place.
        let len = base::BLOCK_BYTES / 2 + rng.below(2 * base::BLOCK_BYTES as u64) as usize;
        value = value.repeat(len / value.len() + 1);
    }
    if swarm.tiers() {
        // Long enough to leave memory, and of several sizes.
        value = value.repeat((20 + rng.below(3000) as usize) / value.len() + 1);
    }
    Action::Own(OwnAction::random(own_set(client, number), &value, rng))
}

/// Keys of which a client has one request at a time under way.
pub fn own_set(client: &Client, number: usize) -> Vec<String> {
    set_of(&format!("o{}.{}", client.number, client.own_generation), number, client.door())
}
