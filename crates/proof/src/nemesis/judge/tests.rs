//! Histories that are right, and the same with one thing wrong.

use super::super::history::{Answer, Operation, What};
use super::judge;

fn operation(key: &str, what: What, answer: Answer, (begun_us, ended_us): (u64, u64)) -> Operation {
    Operation { client: 0, key: key.to_owned(), what, answer, begun_us, ended_us, node: 0 }
}

fn append(token: &str, answer: Answer, times: (u64, u64)) -> Operation {
    operation("t", What::Append { token: token.to_owned() }, answer, times)
}

fn read(value: &str, times: (u64, u64)) -> Operation {
    operation("t", What::Read, Answer::Value(value.to_owned()), times)
}

fn swap(old: &str, token: &str, answer: Answer, times: (u64, u64)) -> Operation {
    operation("t", What::Swap { old: old.to_owned(), token: token.to_owned() }, answer, times)
}

fn unknown() -> Answer {
    Answer::Unknown("no answer".to_owned())
}

fn increment(answer: Answer, times: (u64, u64)) -> Operation {
    operation("c", What::Increment, answer, times)
}

fn count(value: u64, times: (u64, u64)) -> Operation {
    operation("c", What::Count, Answer::Number(value), times)
}

fn finding(history: &[Operation]) -> String {
    judge(history).join("\n")
}

fn good() -> Vec<Operation> {
    vec![
        append("a,", Answer::Number(2), (0, 10)),
        append("b,", unknown(), (5, 30)),
        read("a,", (12, 20)),
        append("c,", Answer::Number(6), (32, 40)),
        swap("a,", "d,", Answer::Differs, (41, 50)),
        swap("a,b,c,", "e,", Answer::Swapped, (51, 60)),
        append("f,", Answer::Refused("CLUSTERDOWN".to_owned()), (52, 53)),
        read("a,b,c,e,", (90, 99)),
    ]
}

#[test]
fn a_history_of_tokens_that_one_copy_could_give_is_right() {
    assert_eq!(finding(&good()), "");
    // The one that nobody answered may come later than it was given up, or not at all.
    let without = [append("a,", Answer::Number(2), (0, 10)), append("b,", unknown(), (5, 30)), read("a,", (90, 99))];
    assert_eq!(finding(&without), "");
    let later = [append("b,", unknown(), (5, 30)), read("", (40, 50)), read("b,", (60, 70))];
    assert_eq!(finding(&later), "");
}

#[test]
fn an_acknowledged_token_that_is_not_there_is_lost() {
    let mut history = good();
    history.insert(7, append("g,", Answer::Number(10), (70, 80)));
    assert!(finding(&history).contains("lost or read too late"), "{}", finding(&history));
}

#[test]
fn a_read_that_lacks_what_was_acknowledged_before_it_began_is_too_late() {
    let mut history = good();
    history.push(read("a,b,", (42, 45)));
    assert!(finding(&history).contains("lost or read too late"), "{}", finding(&history));
    // While the other was under way it is right.
    history.last_mut().unwrap().begun_us = 39;
    assert_eq!(finding(&history), "");
}

#[test]
fn what_a_read_has_shown_stays() {
    let mut history = good();
    history.extend([read("a,b,", (13, 14)), read("a,", (15, 16))]);
    assert!(finding(&history).contains("lost or read too late"), "{}", finding(&history));
}

#[test]
fn tokens_twice_of_nobody_refused_or_in_another_order_are_found() {
    let with = |change: fn(&mut Vec<Operation>)| {
        let mut history = good();
        change(&mut history);
        finding(&history)
    };
    let last = |history: &mut Vec<Operation>, value: &str| history[7].answer = Answer::Value(value.to_owned());
    assert!(with(|h| last_is(h, "a,b,c,e,a,")).contains("in it twice"));
    assert!(with(|h| last_is(h, "a,b,c,e,x,")).contains("nobody sent"));
    assert!(with(|h| last_is(h, "a,b,c,e,f,")).contains("refused, and done"));
    assert!(with(|h| h.push(read("b,", (30, 98)))).contains("not how"));
    assert!(with(|h| h[3].answer = Answer::Number(8)).contains("another value than it says"));
    assert!(with(|h| h[5] = swap("a,b,", "e,", Answer::Swapped, (51, 60))).contains("another value than it says"));
    let mut torn = good();
    last(&mut torn, "a,b,c,e,f");
    assert!(finding(&torn).contains("nobody sent"));
}

fn last_is(history: &mut [Operation], value: &str) {
    history[7].answer = Answer::Value(value.to_owned());
}

#[test]
fn counters_are_held_against_what_was_acknowledged() {
    let with = |last: u64| {
        finding(&[
            increment(Answer::Number(1), (0, 10)),
            increment(unknown(), (5, 30)),
            increment(Answer::Number(2), (12, 20)),
            increment(Answer::Refused("CLUSTERDOWN".to_owned()), (12, 20)),
            count(last, (90, 99)),
        ])
    };
    assert_eq!((with(2), with(3)), (String::new(), String::new()));
    assert!(with(1).contains("lost or read too late"), "{}", with(1));
    assert!(with(4).contains("may have been done"), "{}", with(4));
    let twice = [increment(Answer::Number(1), (0, 10)), increment(Answer::Number(1), (20, 30))];
    assert!(finding(&twice).contains("two increments"), "{}", finding(&twice));
    let stale = [increment(Answer::Number(1), (0, 10)), count(0, (11, 20)), count(1, (30, 40))];
    assert!(finding(&stale).contains("lost or read too late"), "{}", finding(&stale));
}

fn put(token: &str, answer: Answer, times: (u64, u64)) -> Operation {
    operation("r", What::Put { token: token.to_owned() }, answer, times)
}

fn seen(value: &str, times: (u64, u64)) -> Operation {
    operation("r", What::Read, Answer::Value(value.to_owned()), times)
}

fn good_puts() -> Vec<Operation> {
    vec![
        seen("", (0, 5)),
        put("a,", Answer::Swapped, (3, 20)),
        seen("a,", (6, 10)),
        // Nobody saw it: the one that was under way at the same time replaced it.
        put("b,", Answer::Swapped, (21, 40)),
        put("c,", Answer::Swapped, (25, 45)),
        seen("c,", (38, 60)),
        put("d,", unknown(), (61, 70)),
        put("e,", Answer::Refused("CLUSTERDOWN".to_owned()), (61, 70)),
        seen("c,", (80, 85)),
        seen("d,", (90, 99)),
    ]
}

#[test]
fn a_history_of_values_that_one_copy_could_give_is_right() {
    assert_eq!(finding(&good_puts()), "");
    // What nobody answered may never come.
    assert_eq!(finding(&good_puts()[..9]), "");
}

#[test]
fn a_value_that_is_lost_read_too_late_or_of_nobody_is_found() {
    let with = |operation: Operation| {
        let mut history = good_puts();
        history.push(operation);
        finding(&history)
    };
    // Acknowledged, and what was there before is read later.
    assert!(with(put("f,", Answer::Swapped, (62, 75))).contains("lost or read too late"));
    assert!(with(seen("a,", (46, 50))).contains("lost or read too late"));
    assert!(with(seen("", (41, 50))).contains("lost or read too late"));
    // Seen, and then what it replaced.
    assert!(with(seen("d,", (71, 75))).contains("lost or read too late"));
    assert!(with(seen("e,", (71, 75))).contains("refused, and done"));
    assert!(with(seen("x,", (71, 75))).contains("nobody sent"));
    assert!(with(seen("d,", (50, 60))).contains("read before it was sent"));
}
