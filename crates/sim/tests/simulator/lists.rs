//! The judge of lists: it sees what is lost or doubled, and lets moves without an answer explain what they can.

use sim::checker::{Base, list};
use sim::history::{Action, Answer, Operation};
use wire::reply_parse::Value;

fn history(steps: Vec<(Action, Answer)>) -> Vec<Operation> {
    let operation = |(at, (action, answer)): (usize, (Action, Answer))| {
        let invoked = 2 * at as u64 + 1;
        let returned = if answer == Answer::None { u64::MAX } else { invoked + 1 };
        Operation { client: 0, action, invoked, returned, invoked_us: invoked, returned_us: returned, answer }
    };
    steps.into_iter().enumerate().map(operation).collect()
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn push(key: &str, token: &str) -> (Action, Answer) {
    (Action::Push { key: key.into(), token: token.into() }, Answer::Reply(Value::Integer(1)))
}

fn pop(keys: &[&str], found: &str) -> (Action, Answer) {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let reply = Value::Array(vec![bulk(&keys[0]), bulk(found)]);
    (Action::BlockingPop { keys, timeout_ms: 1 }, Answer::Reply(reply))
}

fn shift(source: &str, destination: &str, answer: Answer) -> (Action, Answer) {
    let (source, destination) = (source.into(), destination.into());
    (Action::BlockingMove { source, destination, timeout_ms: 1 }, answer)
}

fn range(key: &str, items: &[&str]) -> (Action, Answer) {
    let items = items.iter().map(|item| bulk(item)).collect();
    (Action::Range { key: key.into() }, Answer::Reply(Value::Array(items)))
}

fn judge(steps: Vec<(Action, Answer)>) -> Result<(), String> {
    list::check(&history(steps), &Base::default())
}

#[test]
fn an_element_is_neither_lost_nor_doubled() {
    assert!(judge(vec![push("l0", "a"), push("l0", "b"), pop(&["l0", "l1"], "a"), range("l0", &["b"])]).is_ok());
    let lost = judge(vec![push("l0", "a"), push("l0", "b"), pop(&["l0"], "a"), range("l0", &[])]);
    assert!(lost.is_err_and(|words| words.contains("missing")));
    let twice = judge(vec![push("l0", "a"), pop(&["l0", "l1"], "a"), pop(&["l0"], "a")]);
    assert!(twice.is_err_and(|words| words.contains("popped twice")));
    let both = judge(vec![push("l0", "a"), pop(&["l0"], "a"), pop(&["l1"], "a")]);
    assert!(both.is_err_and(|words| words.contains("never pushed")));
    let moved = vec![push("l0", "a"), shift("l0", "l1", Answer::Reply(bulk("a")))];
    let stays = judge([moved.clone(), vec![range("l0", &["a"]), range("l1", &["a"])]].concat());
    assert!(stays.is_err_and(|words| words.contains("though popped")));
    assert!(judge([moved, vec![range("l0", &[]), range("l1", &["a"])]].concat()).is_ok());
}

#[test]
fn moves_without_an_answer_explain_what_they_can_and_no_more() {
    let lost = |source, to| shift(source, to, Answer::None);
    let found =
        |steps: Vec<(Action, Answer)>| judge([vec![push("l0", "a")], steps, vec![range("l2", &["a"])]].concat());
    assert!(found(vec![lost("l0", "l2")]).is_ok());
    assert!(found(vec![lost("l0", "l1"), lost("l1", "l2")]).is_ok());
    // It was seen to leave l0 for l1, so it came from there, though a move from l0 is unanswered too.
    let seen = shift("l0", "l1", Answer::Reply(bulk("a")));
    assert!(found(vec![seen.clone(), lost("l0", "l2"), lost("l1", "l2")]).is_ok());
    assert!(found(vec![seen, lost("l0", "l2")]).is_err());
    assert!(found(vec![lost("l1", "l2")]).is_err());
    assert!(found(vec![pop(&["l0"], "a"), lost("l0", "l2")]).is_err());
}

#[test]
fn a_move_that_only_one_element_can_have_taken_is_left_for_it() {
    let moves = vec![shift("l0", "l1", Answer::None), shift("l0", "l2", Answer::None), shift("l1", "l2", Answer::None)];
    let found = |moves: Vec<(Action, Answer)>, items: &[&str]| {
        judge([vec![push("l0", "a"), push("l1", "b")], moves, vec![range("l2", items)]].concat())
    };
    // `a` came straight from l0, though it might have come over l1: `b` can only have come from there.
    assert!(found(moves.clone(), &["a", "b"]).is_ok());
    assert!(found(moves.clone(), &["b", "a"]).is_ok());
    assert!(found(vec![moves[0].clone(), moves[2].clone()], &["a", "b"]).is_err());
}
