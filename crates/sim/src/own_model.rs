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

#[cfg(test)]
mod tests {
    use wire::reply_parse::Value;

    use super::check;
    use crate::history::{Action, Answer, Operation};
    use crate::own::OwnAction;

    /// One millisecond after the other.
    fn history(steps: &[(OwnAction, Answer)]) -> Vec<Operation> {
        let operation = |(number, (own, answer)): (usize, &(OwnAction, Answer))| {
            let at = number as u64;
            Operation {
                client: 0,
                action: Action::Own(own.clone()),
                invoked: 2 * at,
                returned: 2 * at + 1,
                invoked_us: 1000 * at,
                returned_us: if *answer == Answer::None { u64::MAX } else { 1000 * at + 500 },
                answer: answer.clone(),
            }
        };
        steps.iter().enumerate().map(operation).collect()
    }

    fn key() -> String {
        "o0.0.1".into()
    }

    fn other() -> String {
        "{o0.0.1}.1".into()
    }

    fn told(value: Value) -> Answer {
        Answer::Reply(value)
    }

    fn ok() -> Answer {
        told(Value::Simple(b"OK".to_vec()))
    }

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.into())
    }

    fn set(value: &str, life_ms: Option<u64>) -> OwnAction {
        OwnAction::Set { key: key(), value: value.into(), life_ms }
    }

    fn get() -> OwnAction {
        OwnAction::Get { key: key(), takes: false }
    }

    /// Strings, lists, a transaction, a value given away; every single wrong reply is seen.
    #[test]
    fn what_happened_is_right_and_any_other_reply_is_wrong() {
        let wrong_type = Value::Error(b"WRONGTYPE Operation against a key".to_vec());
        let push = |values: &[&str], front| OwnAction::Push {
            key: other(),
            values: values.iter().map(|value| (*value).into()).collect(),
            front,
        };
        let together = OwnAction::Together {
            actions: vec![
                OwnAction::Append { key: key(), value: "c".into() },
                OwnAction::Give { key: key(), target: other(), renames: true },
                get(),
            ],
        };
        let steps = [
            (set("ab", None), ok()),
            (OwnAction::Overwrite { key: key(), offset: 1, value: "x".into() }, told(Value::Integer(2))),
            (OwnAction::GetPart { key: key(), first: 1, last: 9 }, told(bulk("x"))),
            (OwnAction::Remove { key: other() }, told(Value::Integer(0))),
            (push(&["1", "2"], true), told(Value::Integer(2))),
            (push(&["3"], false), told(Value::Integer(3))),
            (OwnAction::Append { key: other(), value: "no".into() }, told(wrong_type)),
            (OwnAction::Range { key: other() }, told(Value::Array(vec![bulk("2"), bulk("1"), bulk("3")]))),
            (OwnAction::Pop { key: other(), front: true }, told(bulk("2"))),
            (OwnAction::SetElement { key: other(), index: 1, value: "4".into() }, ok()),
            (OwnAction::Trim { key: other(), first: 1 }, ok()),
            (OwnAction::GetAll { keys: vec![key(), other()] }, told(Value::Array(vec![bulk("ax"), Value::Null]))),
            (OwnAction::Pop { key: other(), front: false }, told(bulk("4"))),
            (OwnAction::Pop { key: other(), front: false }, told(Value::Null)),
            (together, told(Value::Array(vec![Value::Integer(3), Value::Simple(b"OK".to_vec()), Value::Null]))),
            (OwnAction::Give { key: key(), target: other(), renames: false }, told(Value::Integer(0))),
            (OwnAction::Get { key: other(), takes: true }, told(bulk("axc"))),
            (OwnAction::Expire { key: other(), life_ms: 5 }, told(Value::Integer(0))),
        ];
        check(&history(&steps), false).unwrap();
        // Of the other key nothing is known until it is removed.
        let unknown = 3;
        for at in (0..steps.len()).filter(|at| *at != unknown) {
            let mut wrong = steps.to_vec();
            wrong[at].1 = told(bulk("nobody wrote this"));
            check(&history(&wrong), false).expect_err(&format!("step {at}"));
        }
    }

    #[test]
    fn what_was_not_answered_happened_or_not_but_as_a_whole() {
        let both = |first: &str, second: &str| {
            let set = |key: String, value: &str| OwnAction::Set { key, value: value.into(), life_ms: None };
            let read = OwnAction::GetAll { keys: vec![key(), other()] };
            let pairs = vec![(key(), "a".to_owned()), (other(), "a".to_owned())];
            let steps = [
                (OwnAction::SetAll { pairs }, ok()),
                (OwnAction::Together { actions: vec![set(key(), "b"), set(other(), "b")] }, Answer::None),
                (read, told(Value::Array(vec![bulk(first), bulk(second)]))),
            ];
            check(&history(&steps), false)
        };
        both("a", "a").unwrap();
        both("b", "b").unwrap();
        both("a", "b").unwrap_err();
        both("b", "a").unwrap_err();
    }

    #[test]
    fn a_value_whose_time_may_have_come_is_there_or_not_and_does_not_come_back() {
        let reads = |life_ms, first: Value, second: Value| {
            check(&history(&[(set("a", Some(life_ms)), ok()), (get(), told(first)), (get(), told(second))]), false)
        };
        for (first, second) in [("a", true), ("a", false)] {
            reads(3, bulk(first), if second { bulk("a") } else { Value::Null }).unwrap();
        }
        reads(3, Value::Null, Value::Null).unwrap();
        reads(3, Value::Null, bulk("a")).unwrap_err();
        reads(100, Value::Null, Value::Null).unwrap_err();
        reads(100, bulk("a"), bulk("a")).unwrap();
        let evicted = [(set("a", Some(100)), ok()), (get(), told(Value::Null)), (get(), told(bulk("a")))];
        check(&history(&evicted[..2]), true).unwrap();
        check(&history(&evicted), true).unwrap_err();
    }
}
