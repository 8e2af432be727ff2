//! What operators do to a store of several processes while clients write: empty a node, move slots, take a node out.

use std::time::Instant;

use rustix::process::Signal;

use crate::cluster::Three;
use crate::process::{PATIENCE, run};

/// What `zerohop cluster` says; it waits until the work is done.
fn operate(three: &Three, number: usize, words: &[&str]) -> (i32, String) {
    let port = three.node(number).port.to_string();
    let run = run(&[&["cluster"], words, &["-p", &port]].concat());
    (run.code, format!("{}{}", run.output, run.errors))
}

/// The columns `serves` and `copies` of a node's line.
fn load(status: &str, node: &str) -> (u32, u32) {
    let line = status.lines().find(|line| line.starts_with(&format!("{node} "))).expect(status);
    let columns: Vec<&str> = line.split_whitespace().collect();
    (columns[4].parse().expect(line), columns[5].parse().expect(line))
}

/// The number that the cluster gave to the node that was started last: nobody knows who joined first.
fn number_of(three: &Three, place: usize) -> String {
    let address = format!("127.0.0.1:{}", three.node(place).port);
    let (_, status) = operate(three, 0, &["status"]);
    let line = status.lines().find(|line| line.contains(&address)).expect(&status);
    line.split_whitespace().next().expect(line).to_owned()
}

/// Everything that was written is there, whoever serves it now; and is written again.
fn go_on(three: &Three, round: &mut u32) {
    if *round > 0 {
        three.expect(&round.to_string());
    }
    *round += 1;
    three.write(&round.to_string());
}

#[test]
fn a_node_is_emptied_used_again_and_taken_out_while_clients_write() {
    let mut three = Three::new();
    three.await_whole();
    let mut round = 0;
    go_on(&three, &mut round);
    let last = number_of(&three, 2);
    let done = |told: (i32, String)| assert_eq!(told.0, 0, "{}", told.1);

    done(operate(&three, 0, &["move", "0-99", "300", "--to", &last]));
    go_on(&three, &mut round);
    let (_, status) = operate(&three, 1, &["status", "--ranges"]);
    assert!(status.contains(&format!("{last}.0 ─")), "{status}");

    done(operate(&three, 1, &["drain", &last]));
    let (_, status) = operate(&three, 1, &["status"]);
    assert_eq!(load(&status, &last), (0, 0), "{status}");
    go_on(&three, &mut round);

    done(operate(&three, 0, &["keep", &last]));
    done(operate(&three, 0, &["rebalance"]));
    let (_, status) = operate(&three, 0, &["status"]);
    let (serves, copies) = load(&status, &last);
    assert!(serves > 4000 && copies > 2000, "{status}");
    assert!(status.contains("everything is as it should be"), "{status}");
    go_on(&three, &mut round);

    done(operate(&three, 0, &["remove", &last]));
    let (code, said) = three.take(2).ended();
    assert!(code == Some(1) && said.contains("was removed from its cluster"), "{code:?}: {said}");
    go_on(&three, &mut round);
    three.expect(&round.to_string());
    for number in 0..2 {
        assert_eq!(three.take(number).stop(Signal::TERM).0, Some(0));
    }
}

/// Asks for the status until `is_so`, which says what is waited for.
fn await_status(three: &Three, words: &[&str], is_so: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let (_, status) = operate(three, 0, &[&["status"], words].concat());
        if is_so(&status) {
            return status;
        }
        assert!(begun.elapsed() < PATIENCE, "{status}");
    }
}

#[test]
fn status_names_who_has_no_room() {
    let three = Three::new();
    three.await_whole();
    three.write("1");
    let whole = await_status(&three, &["--json"], |json| json.matches(r#""answers":1"#).count() == 3);
    assert_eq!(whole.matches(r#""has-room":1"#).count(), 3, "{whole}");

    let last = number_of(&three, 2);
    let limit = |bytes: &str| {
        let port = three.node(2).port.to_string();
        let set = run(&["cli", "-p", &port, "config", "set", "maxmemory", bytes]);
        assert_eq!(set.code, 0, "{}", set.output);
    };
    let no_room = format!("node {last} has no room");
    limit("1000");
    let status = await_status(&three, &[], |status| status.contains(&no_room));
    assert!(status.contains(" of 1000 B"), "{status}");
    limit("0");
    await_status(&three, &[], |status| !status.contains(&no_room));
}

#[test]
fn what_cannot_be_done_is_refused_with_what_to_do() {
    let three = Three::new();
    three.await_whole();
    let refused = |words: &[&str]| {
        let (code, told) = operate(&three, 0, words);
        assert_eq!(code, 1, "{told}");
        told
    };
    assert!(refused(&["drain", "9"]).contains("there is no node '9'"));
    assert!(refused(&["move", "5-4", "--to", "2"]).contains("start slot number 5 is greater"));
    assert!(refused(&["configure"]).contains("give --lease-ms or --chain-length"));
    assert!(refused(&["configure", "--chain-length", "7"]).contains("1 to 5 members"));
    let (code, json) = operate(&three, 0, &["status", "--json"]);
    assert!(code == 0 && json.starts_with('{') && json.contains("\"chain-length\":2"), "{json}");
    let (_, told) = operate(&three, 0, &["drain", "1"]);
    assert!(told.contains("has nothing any more"), "{told}");
    assert!(refused(&["drain", "2"]).contains("places for copies"), "two copies need two nodes");
}

/// Whoever says so, and however often, nobody is taken out for it; who is gone goes as ever.
#[test]
fn who_is_said_not_to_answer_is_looked_at_and_stays() {
    let mut three = Three::new();
    three.await_whole();
    for asked in 0..3 {
        for place in 0..3 {
            let name = format!("127.0.0.1:{}", three.node(place).port);
            let (code, told) = operate(&three, asked, &["suspect", &name]);
            assert!(code == 0 && told.contains("is up, and so are its cores (1): nothing is done"), "{told}");
        }
    }
    let (code, told) = operate(&three, 0, &["suspect", "9"]);
    assert!(code == 1 && told.contains("Unknown node 9"), "{told}");
    go_on(&three, &mut 0);
    let last = number_of(&three, 2);
    three.take(2).kill();
    let begun = std::time::Instant::now();
    loop {
        let (code, told) = operate(&three, 0, &["suspect", &last]);
        if code == 0 && told.contains("others take over what it served") {
            break;
        }
        assert!(begun.elapsed() < crate::process::PATIENCE, "{told}");
    }
    three.expect("1");
}
