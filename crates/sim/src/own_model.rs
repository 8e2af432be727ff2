//! The model of keys that one client has to itself, with at most one request under way for each set of them.
//!
//! After an acknowledged request a set is in one state; a request without a reply because the node died leaves two: it ran, or it did not.
//! Expiry needs no state: a value whose time may have come may be there or not, and the next reply tells.

use std::collections::BTreeMap;

use crate::history::{Answer, Operation};
use crate::own::{OwnAction, name_of_set};
use crate::own_world::{Moment, World};

/// States of a set of keys of which nothing is known yet but that one of them is true.
type Possible<'a> = Vec<World<'a>>;

/// Check the operations on own keys of a span in which nothing acknowledged may be lost. `evicts`: memory is limited, and
/// a key with an expiry may go at any time; like one whose time was over, it does not come back.
///
/// # Errors
/// Words about the first violation.
pub fn check(operations: &[Operation], evicts: bool) -> Result<(), String> {
    let mut sets: BTreeMap<(usize, &str), Possible<'_>> = BTreeMap::new();
    for operation in operations {
        let Some(own) = operation.action.own() else { continue };
        if *own == OwnAction::Flush {
            let of_client = sets.iter_mut().filter(|((client, _), _)| *client == operation.client);
            of_client.for_each(|(_, possible)| flush(possible, &operation.answer));
            continue;
        }
        let Some(key) = own.key() else { continue };
        // What an earlier span left is not known until the first write.
        let possible = sets.entry((operation.client, name_of_set(key))).or_insert_with(|| vec![World::default()]);
        let after = step(possible, own, operation, evicts);
        if after.is_empty() {
            let (began_us, ended_us) = (operation.invoked_us, operation.returned_us);
            let told = shortened(&operation.answer);
            let own = shortened(own);
            return Err(format!("{own} at {began_us}..{ended_us} was answered {told}, possible: {possible:?}"));
        }
        *possible = after;
    }
    Ok(())
}

/// The states after an operation that can have been answered as it was.
fn step<'a>(possible: &Possible<'a>, own: &'a OwnAction, operation: &'a Operation, evicts: bool) -> Possible<'a> {
    let moment = Moment::of(operation, evicts);
    let reply = match &operation.answer {
        Answer::Refused(_) => return possible.clone(),
        Answer::Reply(reply) => Some(reply),
        Answer::None => None,
    };
    // Without a reply it may not have happened.
    let mut after = if reply.is_none() { possible.clone() } else { Vec::new() };
    for before in possible {
        for mut world in before.clone().alternatives(&own.keys(), moment) {
            if world.run(own, reply, moment) && !after.contains(&world) {
                after.push(world);
            }
        }
    }
    after
}

/// All keys of the client are gone, or may be.
fn flush(possible: &mut Possible<'_>, answer: &Answer) {
    let mut flushed = possible.clone();
    flushed.iter_mut().for_each(World::flush);
    match answer {
        Answer::Refused(_) => {}
        Answer::Reply(_) => *possible = flushed,
        Answer::None => possible.extend(flushed),
    }
}

/// Values may be long.
fn shortened(what: &impl std::fmt::Debug) -> String {
    let words = format!("{what:?}");
    match words.char_indices().nth(400) {
        Some((end, _)) => format!("{}… ({} bytes)", &words[..end], words.len()),
        None => words,
    }
}
