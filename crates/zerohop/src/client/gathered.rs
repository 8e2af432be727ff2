//! Answers of a request's parts, put together to the one that its caller waits for.
//!
//! What is not known of a part is never left out: values have an error in the place of each key that could not be read; other
//! replies become an error that says how many keys were reached.

use super::error::{Error, ServerError};
use super::reply::Reply;
use super::seat::Answer;
use client::spread::Gathering;

/// What is said of a value in whose place no node said anything.
const NO_REPLY: &str = "NOREPLY";

/// What came of one part.
pub(super) struct Answered {
    /// Which of the request's keys it was about.
    pub places: Vec<u32>,
    pub answer: Answer,
}

/// The answer to a request whose parts, of which there is one at least, were answered so.
pub(super) fn put_together(gathering: Gathering, parts: Vec<Answered>) -> Answer {
    let parts: Vec<Answered> = parts.into_iter().map(|part| in_shape(gathering, part)).collect();
    let keys = |part: &Answered| part.places.len();
    let all = parts.iter().map(keys).sum();
    let reached = parts.iter().filter(|part| part.answer.is_ok()).map(keys).sum();
    let is_whole = reached == all || (gathering == Gathering::Elements && reached > 0);
    match gathering {
        _ if !is_whole => Err(failed(parts, reached, all)),
        Gathering::Elements => Ok(elements(parts, all)),
        Gathering::Sum => Ok(Reply::Int(parts.iter().map(|part| number(&part.answer)).sum())),
        _ => parts.into_iter().next().expect("a request has a part").answer,
    }
}

/// A reply of another shape than its command's is an error.
fn in_shape(gathering: Gathering, Answered { places, answer }: Answered) -> Answered {
    let (wanted, is_right): (_, fn(&Reply, usize) -> bool) = match gathering {
        Gathering::Elements => (
            "an array of a value for each key",
            |reply, count| matches!(reply, Reply::Array(items) if items.len() == count),
        ),
        Gathering::Sum => ("a number", |reply, _| matches!(reply, Reply::Int(_))),
        _ => ("OK", |reply, _| matches!(reply, Reply::Okay)),
    };
    let in_shape =
        |reply: Reply| if is_right(&reply, places.len()) { Ok(reply) } else { Err(reply.unexpected(wanted)) };
    let answer = answer.and_then(in_shape);
    Answered { places, answer }
}

fn number(answer: &Answer) -> i64 {
    match answer {
        Ok(Reply::Int(number)) => *number,
        _ => 0,
    }
}

fn elements(parts: Vec<Answered>, all: usize) -> Reply {
    let mut values = vec![Reply::Nil; all];
    for Answered { places, answer } in parts {
        let places = places.into_iter().map(|place| place as usize);
        match answer {
            Ok(Reply::Array(items)) => places.zip(items).for_each(|(place, item)| values[place] = item),
            Ok(_) => unreachable!("its shape was looked at"),
            Err(error) => {
                let error = Reply::ServerError(unread(error));
                places.for_each(|place| values[place] = error.clone());
            }
        }
    }
    Reply::Array(values)
}

/// As an error reply: the node's, or that there is none.
fn unread(error: Error) -> ServerError {
    match error {
        Error::Server(error) => error,
        other => ServerError::new(format!("{NO_REPLY} {other}").as_bytes()),
    }
}

/// How many keys were reached, and of the others the error that says least about what became of them: who is told that a key was not
/// changed may rely on it for all.
fn failed(parts: Vec<Answered>, reached: usize, all: usize) -> Error {
    let of_part = |part: Answered| Some((part.places.first().copied(), part.answer.err()?));
    let errors = parts.into_iter().filter_map(of_part);
    let worst = errors.min_by_key(|(first, error)| (!error.leaves_it_open(), *first));
    let (_, error) = worst.expect("who was not reached has an error");
    if reached == 0 { error } else { Error::Partly { reached, all, error: Box::new(error) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::FromReply;

    fn together(gathering: Gathering, parts: &[(&[u32], Answer)]) -> Answer {
        let answered =
            |(places, answer): &(&[u32], Answer)| Answered { places: places.to_vec(), answer: answer.clone() };
        put_together(gathering, parts.iter().map(answered).collect())
    }

    fn read(bytes: &str) -> Answer {
        Reply::read(bytes.as_bytes())
    }

    fn gone() -> Answer {
        Err(Error::Unreachable { address: "there".to_owned(), reason: "refused".to_owned() })
    }

    fn unknown() -> Answer {
        Err(Error::Unknown { address: "there".to_owned() })
    }

    #[test]
    fn values_are_in_the_places_of_their_keys() {
        let parts = [(&[1, 3][..], read("*2\r\n$1\r\nb\r\n$-1\r\n")), (&[2, 0], read("*2\r\n$1\r\nc\r\n$1\r\na\r\n"))];
        let values = together(Gathering::Elements, &parts).and_then(Vec::<Option<String>>::from_reply);
        assert_eq!(values, Ok(["a", "b", "c"].map(|value| Some(value.to_owned())).into_iter().chain([None]).collect()));
    }

    #[test]
    fn what_could_not_be_read_is_an_error_in_its_place_and_counted() {
        let parts = [(&[1, 2][..], gone()), (&[0], read("*1\r\n$1\r\na\r\n")), (&[3], read("-LOADING wait\r\n"))];
        let reply = together(Gathering::Elements, &parts).unwrap();
        let each = Vec::<Result<Option<String>, ServerError>>::from_reply(reply.clone()).unwrap();
        let codes: Vec<_> = each.iter().map(|one| one.as_ref().map_err(ServerError::code)).collect();
        assert_eq!(codes, [Ok(&Some("a".to_owned())), Err("NOREPLY"), Err("NOREPLY"), Err("LOADING")]);
        let error = Vec::<Option<String>>::from_reply(reply).unwrap_err();
        assert!(matches!(error, Error::Partly { reached: 1, all: 4, .. }), "{error}");
        assert!(error.to_string().starts_with("1 of 4 keys were reached, "), "{error}");
        assert_eq!(together(Gathering::Elements, &[(&[0], gone()), (&[1], gone())]), gone());
        // A node that leaves out a value says nothing about any.
        let parts = [(&[0, 1][..], read("*1\r\n$1\r\na\r\n")), (&[2], read("*1\r\n$1\r\nb\r\n"))];
        let error = together(Gathering::Elements, &parts).and_then(Vec::<Option<String>>::from_reply).unwrap_err();
        assert!(matches!(error, Error::Partly { reached: 1, all: 3, .. }), "{error}");
    }

    #[test]
    fn numbers_are_added_and_statuses_agree() {
        assert_eq!(together(Gathering::Sum, &[(&[0], read(":1\r\n")), (&[1, 2], read(":2\r\n"))]), Ok(Reply::Int(3)));
        let okay = || read("+OK\r\n");
        assert_eq!(together(Gathering::Agreed, &[(&[0], okay()), (&[1], okay())]), Ok(Reply::Okay));
        let odd = together(Gathering::Agreed, &[(&[0], okay()), (&[1], read("+NO\r\n"))]).unwrap_err();
        assert!(matches!(odd, Error::Partly { reached: 1, all: 2, .. }), "{odd}");
    }

    #[test]
    fn a_failure_says_the_worst_of_what_is_not_known() {
        let refused = || read("-READONLY no\r\n");
        let parts = [(&[0][..], refused()), (&[1], unknown()), (&[2, 3], read(":2\r\n")), (&[4], gone())];
        let expected = Error::Partly { reached: 2, all: 5, error: Box::new(unknown().unwrap_err()) };
        assert_eq!(together(Gathering::Sum, &parts), Err(expected));
        // Nothing was done, and all of them say so: the first key's error says it.
        assert_eq!(together(Gathering::Agreed, &[(&[1], gone()), (&[0], refused())]), refused());
        assert_eq!(together(Gathering::Agreed, &[(&[0], gone()), (&[1], unknown())]), unknown());
    }
}
