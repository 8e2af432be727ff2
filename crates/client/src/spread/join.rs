//! One reply of several.

use super::{Gathering, write_cursor};
use wire::number::parse_integer;
use wire::reply_parse::{Value, parse_reply, skip_reply};
use wire::{Protocol, Reply};

/// What one node said to its part.
#[derive(Debug)]
pub struct Answered<'a> {
    /// Which of the request's keys it was about.
    pub places: &'a [u32],
    /// The reply as it came.
    pub reply: &'a [u8],
}

/// Room for the head of an array.
const HEAD_BYTES: usize = 16;

/// Said of a reply that does not have the shape of its command's.
const ODD: &[u8] = b"-ERR a node of the cluster gave a reply of another shape than the others\r\n";

/// The reply to a request whose parts were answered so. Errors: with [`Gathering::Elements`] in the place of each key that nobody
/// could read; otherwise the first one, with how many were reached.
pub fn join(gathering: Gathering, answers: &[Answered<'_>], protocol: Protocol) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + answers.iter().map(|answer| answer.reply.len()).sum::<usize>());
    let mut reply = Reply::new(&mut out, protocol);
    match gathering {
        Gathering::Elements => elements(answers, &mut reply),
        _ if answers.iter().any(|answer| is_error(answer.reply)) => reply.raw(&failed(answers)),
        Gathering::Sum => match answers.iter().map(|answer| integer(answer.reply)).sum::<Option<i64>>() {
            Some(sum) => reply.integer(sum),
            None => reply.raw(ODD),
        },
        Gathering::Agreed if answers.iter().all(|answer| answer.reply == answers[0].reply) => {
            reply.raw(answers[0].reply);
        }
        Gathering::Agreed => reply.raw(ODD),
        Gathering::Joined => joined(answers, &mut reply),
        Gathering::Any => {
            let is_value = |answer: &&Answered<'_>| !matches!(answer.reply, b"_\r\n" | b"$-1\r\n" | b"*-1\r\n");
            reply.raw(answers.iter().find(is_value).unwrap_or(&answers[0]).reply);
        }
        Gathering::Least => least(answers, &mut reply),
        Gathering::Walk { place, next } => walk(answers[0].reply, place, next, &mut reply),
    }
    out
}

fn is_error(reply: &[u8]) -> bool {
    matches!(reply.first(), Some(b'-' | b'!'))
}

fn integer(reply: &[u8]) -> Option<i64> {
    match reply {
        [b':', digits @ .., b'\r', b'\n'] => parse_integer(digits),
        _ => None,
    }
}

/// Elements of an array, each as it came.
pub fn items(reply: &[u8]) -> Option<Vec<&[u8]>> {
    // An element has three bytes at least.
    let mut items = Vec::with_capacity(count_of(reply)?.0.min(reply.len() / 3));
    each_item(reply, |item| items.push(item))?;
    Some(items)
}

/// The same, one after the other; `None` where the reply is no array, or no whole one.
#[inline]
pub fn each_item<'a>(reply: &'a [u8], mut visit: impl FnMut(&'a [u8])) -> Option<()> {
    let (count, mut rest) = count_of(reply)?;
    for _ in 0..count {
        let length = skip_reply(rest).ok()??;
        let (item, behind) = rest.split_at(length);
        visit(item);
        rest = behind;
    }
    Some(())
}

/// How many elements an array has, and what is behind its head.
fn count_of(reply: &[u8]) -> Option<(usize, &[u8])> {
    let end = reply.iter().position(|&byte| byte == b'\n')? + 1;
    match reply.split_at(end) {
        ([b'*' | b'~', digits @ .., b'\r', b'\n'], rest) => Some((usize::try_from(parse_integer(digits)?).ok()?, rest)),
        _ => None,
    }
}

fn elements(answers: &[Answered<'_>], reply: &mut Reply<'_>) {
    let count = answers.iter().map(|answer| answer.places.len()).sum();
    let mut at_places: Vec<&[u8]> = vec![ODD; count];
    for answer in answers {
        match items(answer.reply).filter(|items| items.len() == answer.places.len()) {
            Some(items) => {
                answer.places.iter().zip(items).for_each(|(&place, item)| at_places[place as usize] = item);
            }
            None if is_error(answer.reply) => {
                answer.places.iter().for_each(|&place| at_places[place as usize] = answer.reply);
            }
            None => {}
        }
    }
    reply.array(count);
    at_places.into_iter().for_each(|item| reply.raw(item));
}

/// The first error, and how much was done in spite of it.
fn failed(answers: &[Answered<'_>]) -> Vec<u8> {
    let (bad, good): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| is_error(answer.reply));
    if good.is_empty() && bad.iter().all(|answer| answer.reply == bad[0].reply) {
        // What each of them refuses is refused in their words.
        return bad[0].reply.to_vec();
    }
    let keys = |answers: &[&Answered<'_>]| answers.iter().map(|answer| answer.places.len()).sum::<usize>();
    let (reached, all, what) = match keys(&good) + keys(&bad) {
        0 => (good.len(), answers.len(), "nodes"),
        all => (keys(&good), all, "keys"),
    };
    let text = match parse_reply(bad[0].reply) {
        Ok(Some((Value::Error(text), _))) => text,
        _ => b"ERR".to_vec(),
    };
    [b"-".as_slice(), &text, format!(" ({reached} of {all} {what} were reached)\r\n").as_bytes()].concat()
}

fn joined(answers: &[Answered<'_>], reply: &mut Reply<'_>) {
    let all: Option<Vec<Vec<&[u8]>>> = answers.iter().map(|answer| items(answer.reply)).collect();
    let Some(all) = all else { return reply.raw(ODD) };
    reply.array(all.iter().map(Vec::len).sum());
    all.into_iter().flatten().for_each(|item| reply.raw(item));
}

fn least(answers: &[Answered<'_>], reply: &mut Reply<'_>) {
    let numbers = |answer: &Answered<'_>| items(answer.reply)?.into_iter().map(integer).collect::<Option<Vec<i64>>>();
    let all: Option<Vec<Vec<i64>>> = answers.iter().map(numbers).collect();
    let Some(all) = all.filter(|all| all.iter().all(|one| one.len() == all[0].len())) else { return reply.raw(ODD) };
    reply.array(all[0].len());
    for place in 0..all[0].len() {
        reply.integer(all.iter().map(|one| one[place]).min().unwrap_or(0));
    }
}

fn walk(answer: &[u8], place: u16, next: Option<u16>, reply: &mut Reply<'_>) {
    let parts = items(answer).filter(|items| items.len() == 2);
    let Some(parts) = parts else { return reply.raw(ODD) };
    let inner = match parse_reply(parts[0]) {
        Ok(Some((Value::Bulk(digits) | Value::Simple(digits), _))) => {
            std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok())
        }
        _ => None,
    };
    let cursor = match (inner, next) {
        (Some(0), None) => Some(0),
        (Some(0), Some(next)) => write_cursor(next, 0),
        (Some(inner), _) => write_cursor(place, inner),
        (None, _) => None,
    };
    let Some(cursor) = cursor else { return reply.raw(ODD) };
    reply.array(2);
    reply.bulk(cursor.to_string().as_bytes());
    reply.raw(parts[1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(gathering: Gathering, answers: &[(&[u32], &str)]) -> String {
        let answers: Vec<Answered<'_>> =
            answers.iter().map(|(places, reply)| Answered { places, reply: reply.as_bytes() }).collect();
        String::from_utf8(join(gathering, &answers, Protocol::Resp2)).unwrap()
    }

    #[test]
    fn values_go_to_the_places_of_their_keys_and_errors_too() {
        let down = "-CLUSTERDOWN slot\r\n";
        let parts = [(&[0, 3][..], "*2\r\n$1\r\na\r\n$-1\r\n"), (&[2], down), (&[1], "*1\r\n$2\r\n\r\n\r\n")];
        assert_eq!(said(Gathering::Elements, &parts), format!("*4\r\n$1\r\na\r\n$2\r\n\r\n\r\n{down}$-1\r\n"));
        let odd = String::from_utf8(ODD.to_vec()).unwrap();
        assert_eq!(
            said(Gathering::Elements, &[(&[0], "*2\r\n_\r\n_\r\n"), (&[1], "+x\r\n")]),
            format!("*2\r\n{odd}{odd}")
        );
    }

    #[test]
    fn numbers_are_added_and_a_failure_says_how_much_was_reached() {
        assert_eq!(said(Gathering::Sum, &[(&[0], ":1\r\n"), (&[1, 2], ":2\r\n")]), ":3\r\n");
        assert_eq!(
            said(Gathering::Sum, &[(&[0], "-LOADING x\r\n"), (&[1, 2], ":2\r\n")]),
            "-LOADING x (2 of 3 keys were reached)\r\n"
        );
        assert_eq!(
            said(Gathering::Agreed, &[(&[], "+OK\r\n"), (&[], "-READONLY y\r\n")]),
            "-READONLY y (1 of 2 nodes were reached)\r\n"
        );
        assert_eq!(said(Gathering::Agreed, &[(&[], "+OK\r\n"), (&[], "+OK\r\n")]), "+OK\r\n");
        assert_eq!(said(Gathering::Sum, &[(&[], "-ERR no\r\n"), (&[], "-ERR no\r\n")]), "-ERR no\r\n");
        assert_eq!(said(Gathering::Any, &[(&[], "$-1\r\n"), (&[], "$1\r\na\r\n")]), "$1\r\na\r\n");
        assert_eq!(said(Gathering::Any, &[(&[], "_\r\n"), (&[], "_\r\n")]), "_\r\n");
        assert!(said(Gathering::Agreed, &[(&[], "+a\r\n"), (&[], "+b\r\n")]).starts_with("-ERR"));
        assert!(said(Gathering::Sum, &[(&[0], "+a\r\n")]).starts_with("-ERR"));
    }

    #[test]
    fn arrays_are_joined_and_the_least_of_numbers_taken() {
        let parts = [(&[][..], "*2\r\n$1\r\na\r\n$1\r\nb\r\n"), (&[], "*0\r\n"), (&[], "*1\r\n$1\r\nc\r\n")];
        assert_eq!(said(Gathering::Joined, &parts), "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
        assert_eq!(
            said(Gathering::Least, &[(&[], "*2\r\n:1\r\n:1\r\n"), (&[], "*2\r\n:1\r\n:0\r\n")]),
            "*2\r\n:1\r\n:0\r\n"
        );
        assert!(said(Gathering::Least, &[(&[], "*1\r\n:1\r\n"), (&[], "*0\r\n")]).starts_with("-ERR"));
    }

    #[test]
    fn a_walk_goes_on_at_the_next_holder_when_one_has_said_all() {
        let at = |place, next, cursor: &str| {
            let reply = format!("*2\r\n${}\r\n{cursor}\r\n*1\r\n$1\r\nk\r\n", cursor.len());
            said(Gathering::Walk { place, next }, &[(&[], &reply)])
        };
        let expected = |cursor: u64| format!("*2\r\n${}\r\n{cursor}\r\n*1\r\n$1\r\nk\r\n", cursor.to_string().len());
        assert_eq!(at(0, Some(1), "5"), expected(5 << 14));
        assert_eq!(at(1, Some(2), "0"), expected(2));
        assert_eq!((at(2, None, "0"), at(2, None, "9")), (expected(0), expected(9 << 14 | 2)));
        assert!(at(0, None, "18446744073709551615").starts_with("-ERR"));
    }
}
