//! One core whose disk refuses a sync: whoever waited for it is told or closed, and reads go on.
#![allow(clippy::unwrap_used)]

use base::{Door, Entrance, Event};

use crate::Durability;
use crate::one_core::{Core, Segments, request, turn};
use crate::split_node::SplitNode;

const FAILS: &str = "0.log: disk on fire";

/// Clean keys, one of them long; then the disk takes a sync and says nothing.
fn core() -> Core {
    let mut core = Core::new(Durability::Commit, 10);
    core.tick(9, &request(&[b"SET", b"clean", b"1"]));
    core.tick(9, &request(&[b"SET", b"long", &[7; 100_000]]));
    core.come_to_rest();
    assert_eq!(core.told(9), b"+OK\r\n+OK\r\n");
    core.disk_is_slow();
    core
}

fn fail(core: &mut Core) {
    core.events.push(Event::LogFailed { reason: FAILS.into() });
    core.come_to_rest();
}

fn ask(core: &mut Core, client: u32, words: &[&[u8]]) -> String {
    core.tick(client, &request(words));
    core.come_to_rest();
    String::from_utf8_lossy(&core.told(client)).into_owned()
}

#[test]
fn who_waits_for_a_sync_that_fails_is_closed_and_what_came_before_leaves() {
    let _turn = turn();
    let mut core = core();
    // In one pipeline: answered, then held. Behind a long reply: held, too. A unit. A reader of what is not durable.
    core.tick(0, &[request(&[b"GET", b"clean"]), request(&[b"SET", b"dirty", b"2"])].concat());
    core.tick(1, &[request(&[b"GET", b"long"]), request(&[b"SET", b"other", b"2"])].concat());
    core.tick(2, &[request(&[b"MULTI"]), request(&[b"SET", b"third", b"2"]), request(&[b"EXEC"])].concat());
    core.tick(3, &request(&[b"GET", b"dirty"]));
    core.tick(4, &request(&[b"GET", b"clean"]));
    fail(&mut core);
    core.closed.sort_unstable();
    assert_eq!(core.closed, [0, 1, 2, 3]);
    assert_eq!(core.told(0), b"$1\r\n1\r\n");
    let long = core.told(1);
    assert!(long.starts_with(b"$100000\r\n") && !long.ends_with(b"+OK\r\n"));
    assert_eq!(core.told(2), b"+OK\r\n+QUEUED\r\n");
    assert_eq!((core.told(3), core.told(4)), (Vec::new(), b"$1\r\n1\r\n".to_vec()));
}

#[test]
fn reads_go_on_and_what_was_not_committed_is_an_error() {
    let _turn = turn();
    let mut core = core();
    core.tick(0, &request(&[b"SET", b"dirty", &[8; 100_000]]));
    (0..4).for_each(|_| core.tick(0, b""));
    core.tick(0, &request(&[b"DEL", b"clean"]));
    fail(&mut core);
    assert_eq!(core.closed, [0]);
    assert_eq!(ask(&mut core, 1, &[b"STRLEN", b"long"]), ":100000\r\n");
    for words in [&[b"GET".as_slice(), b"dirty"], &[b"GET", b"clean"], &[b"STRLEN", b"dirty"]] {
        let told = ask(&mut core, 1, words);
        assert!(told.starts_with("-MISCONF ") && told.contains(FAILS) && told.contains("may be gone"), "{told}");
    }
    let told = ask(&mut core, 1, &[b"MGET", b"long", b"dirty"]);
    assert!(told.starts_with("-MISCONF ") && told.ends_with("\r\n") && told.len() < 300, "{told}");
    let told = ask(&mut core, 1, &[b"SET", b"new", b"1"]);
    assert!(told.starts_with("-MISCONF ") && told.contains(FAILS), "{told}");
    assert_eq!(ask(&mut core, 1, &[b"ECHO", b"in order"]), "$8\r\nin order\r\n");
    assert_eq!(core.closed, [0], "who only reads stays");
}

#[test]
fn who_waits_for_a_key_or_for_durability_is_told() {
    let _turn = turn();
    let mut core = core();
    core.tick(0, &request(&[b"BLPOP", b"list", b"0"]));
    core.tick(1, &request(&[b"WAITAOF", b"1", b"0", b"0"]));
    core.tick(2, &request(&[b"SET", b"dirty", b"2"]));
    core.tick(3, &request(&[b"WAITAOF", b"1", b"0", b"0"]));
    core.come_to_rest();
    assert_eq!((core.told(0), core.told(3)), (Vec::new(), Vec::new()));
    fail(&mut core);
    let told = String::from_utf8(core.told(0)).unwrap();
    assert!(told.starts_with("-MISCONF ") && told.contains(FAILS), "{told}");
    assert_eq!(core.told(3), b"*2\r\n:0\r\n:0\r\n");
    assert_eq!(core.closed, [2]);
    assert_eq!(ask(&mut core, 4, &[b"WAITAOF", b"1", b"0", b"0"]), "*2\r\n:0\r\n:0\r\n", "nor is anything later");
}

#[test]
fn a_transaction_that_was_queued_before_and_writes_is_refused_as_a_whole() {
    let _turn = turn();
    let mut core = core();
    let (reads, writes) =
        ([&[b"GET".as_slice(), b"clean"], &[b"STRLEN".as_slice(), b"long"]], [b"DEL".as_slice(), b"clean"]);
    for (client, last) in [(0, None), (1, Some(&writes[..]))] {
        assert_eq!(ask(&mut core, client, &[b"MULTI"]), "+OK\r\n");
        for words in reads.into_iter().map(|words| &words[..]).chain(last) {
            assert_eq!(ask(&mut core, client, words), "+QUEUED\r\n");
        }
    }
    fail(&mut core);
    assert_eq!(ask(&mut core, 0, &[b"EXEC"]), "*2\r\n$1\r\n1\r\n:100000\r\n");
    let told = ask(&mut core, 1, &[b"EXEC"]);
    assert!(
        told.starts_with("-EXECABORT Transaction discarded because of: MISCONF ") && told.contains(FAILS),
        "{told}"
    );
    assert_eq!(told.matches('\n').count(), 1, "{told}");
    // What is queued now is refused now.
    assert_eq!(ask(&mut core, 1, &[b"MULTI"]), "+OK\r\n");
    assert!(ask(&mut core, 1, &writes).starts_with("-MISCONF "));
    assert!(ask(&mut core, 1, &[b"EXEC"]).starts_with("-EXECABORT "));
}

#[test]
fn who_would_wait_after_the_failure_is_told_once_whatever_it_saw() {
    let _turn = turn();
    let mut core = core();
    core.tick(0, &request(&[b"SET", b"dirty", b"2"]));
    fail(&mut core);
    // It looks at what was not committed, and has no reply that would show that.
    for words in [&[b"ZH.WAIT".as_slice(), b"dirty", b"NE", b"2", b"0"], &[b"ZH.WAIT", b"clean", b"NE", b"1", b"0"]] {
        let told = ask(&mut core, 1, words);
        assert_eq!(told.matches('\n').count(), 1, "{told}");
        assert!(told.starts_with("-MISCONF writes are refused "), "{told}");
        assert_eq!(ask(&mut core, 1, &[b"STRLEN", b"long"]), ":100000\r\n", "the next one did not see it");
    }
}

#[test]
fn what_waits_for_room_is_not_written_behind_a_sync_that_failed_and_readers_stay() {
    let _turn = turn();
    for is_together in [false, true] {
        let mut core = Core::with(Durability::Commit, 4, |shard| shard.set_segment_bytes(4096));
        core.tick(2, &request(&[b"SET", b"short", b"1"]));
        core.come_to_rest();
        core.segments_are(Segments::Late);
        core.tick(0, &request(&[b"SET", b"dirty", &[7; 20_000]]));
        core.come_to_rest();
        let log = core.shard.log.as_ref().unwrap();
        let written = log.written();
        assert!(log.has_waiting());
        if is_together {
            core.segments_are(Segments::Quick);
        }
        fail(&mut core);
        core.segments_are(Segments::Quick);
        core.come_to_rest();
        let log = core.shard.log.as_ref().unwrap();
        assert_eq!((log.written(), log.has_waiting()), (written, false), "together: {is_together}");
        assert!(!core.shard.stopping && core.closed == [0], "together: {is_together}");
        assert_eq!(ask(&mut core, 1, &[b"GET", b"short"]), "$1\r\n1\r\n");
    }
}

#[test]
fn a_core_whose_log_failed_logs_nothing_and_sleeps() {
    let _turn = turn();
    for durability in [Durability::Commit, Durability::Interval] {
        let mut core = Core::new(durability, 4);
        core.tick(0, &request(&[b"SET", b"short", b"1", b"PX", b"4000"]));
        core.come_to_rest();
        core.disk_is_slow();
        core.tick(0, &request(&[b"SET", b"dirty", b"1"]));
        core.pass_us(2_000_000);
        core.tick(1, b"");
        fail(&mut core);
        let position = core.shard.log.as_ref().unwrap().position();
        for _ in 0..3 {
            core.pass_us(5_000_000);
            assert_eq!(ask(&mut core, 2, &[b"GET", b"short"]), "$-1\r\n", "{durability:?}");
            assert!(!core.more && !core.is_overdue, "{durability:?}: it ticks without end");
        }
        assert_eq!(core.shard.log.as_ref().unwrap().position(), position, "{durability:?}");
    }
}

#[test]
fn who_asked_in_the_tick_that_hears_of_another_cores_failure_is_refused() {
    let _turn = turn();
    for durability in [Durability::Interval, Durability::Commit] {
        let mut node = SplitNode::alone(2, durability);
        node.connect(1, Door::Standalone, Entrance::default());
        let away = |key: &&String| node.owner(key.as_bytes()).0 == 1;
        let key = (0..).map(|number| format!("key:{number}")).find(|key| away(&key)).unwrap();
        // Two ticks of core 0, one of core 1: it has the request before the news.
        node.send(1, &request(&[b"SET", key.as_bytes(), b"1"]));
        node.fail_log(FAILS);
        node.rest();
        let told = node.told(1);
        assert!(told.starts_with("-MISCONF ") && told.contains(FAILS), "{durability:?}: {told}");
    }
}
