//! What EXEC does of commands about the node and its clients.

use crate::Durability;
use crate::one_core::{Core, request, turn};

/// What a client is told of these requests.
fn say(core: &mut Core, lines: &[&str]) -> String {
    let words = |line: &str| request(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    core.replies.clear();
    core.tick(0, &lines.iter().flat_map(|line| words(line)).collect::<Vec<_>>());
    String::from_utf8(core.replies.remove(&0).unwrap_or_default()).expect("text")
}

/// What a client is told of EXEC of these commands, one word after the other.
fn exec(core: &mut Core, lines: &[&str]) -> String {
    let told = say(core, &[&["MULTI"], lines, &["EXEC"]].concat());
    let queued = format!("+OK\r\n{}", "+QUEUED\r\n".repeat(lines.len()));
    told.strip_prefix(&queued).expect("all were queued").to_owned()
}

#[test]
fn a_setting_that_is_said_to_be_set_is() {
    let _turn = turn();
    let mut core = Core::new(Durability::Memory, 1);
    let told = exec(&mut core, &["CONFIG SET maxmemory 12345678", "CONFIG GET maxmemory"]);
    assert_eq!(told, "*2\r\n+OK\r\n*2\r\n$9\r\nmaxmemory\r\n$8\r\n12345678\r\n");
    assert_eq!(core.shard.node.config.integer("maxmemory"), 12_345_678);
    // One that is refused changes nothing, and neither does one that needs all cores to know before it is answered.
    let told = exec(&mut core, &["CONFIG SET maxmemory 1 requirepass x", "CONFIG SET maxmemory abc"]);
    assert!(told.starts_with("*2\r\n-ERR 'config|set' is not possible inside MULTI\r\n-ERR "), "{told}");
    assert_eq!(core.shard.node.config.integer("maxmemory"), 12_345_678);
}

#[test]
fn counts_that_are_said_to_be_forgotten_are() {
    let _turn = turn();
    let mut core = Core::new(Durability::Memory, 1);
    core.tick(0, &request(&[b"GET", b"none"]));
    assert_eq!(exec(&mut core, &["CONFIG RESETSTAT"]), "*1\r\n+OK\r\n");
    assert_eq!(core.shard.facts().statistics.counters.keyspace_misses, 0);
}

#[test]
fn clients_that_are_said_to_be_paused_are() {
    let _turn = turn();
    let mut core = Core::new(Durability::Memory, 2);
    assert_eq!(exec(&mut core, &["CLIENT PAUSE 100000 WRITE"]), "*1\r\n+OK\r\n");
    core.tick(1, &request(&[b"SET", b"k", b"v"]));
    assert!(!core.replies.contains_key(&1));
    core.tick(0, &request(&[b"CLIENT", b"UNPAUSE"]));
    core.tick(0, b"");
    assert_eq!(core.replies[&1], b"+OK\r\n");
}

#[test]
fn what_other_cores_have_to_answer_is_refused() {
    let _turn = turn();
    let mut core = Core::new(Durability::Memory, 1);
    for command in ["CLIENT LIST", "CLIENT KILL ID 99", "CLIENT UNBLOCK 99", "ACL SETUSER al on", "ACL DELUSER al"] {
        let told = exec(&mut core, &[command]);
        assert!(told.starts_with("*1\r\n-ERR '") && told.ends_with(" is not possible inside MULTI\r\n"), "{told}");
    }
}

/// Every line is what redis-server 7.0.15 sends. Only the replies are dropped, not their place in the array.
#[test]
fn client_reply_takes_effect_within_exec() {
    let _turn = turn();
    let mut core = Core::new(Durability::Memory, 1);
    for (requests, told) in [
        ("MULTI;CLIENT REPLY OFF;EXEC;PING", "+OK +QUEUED *1"),
        ("RESET;MULTI;PING;CLIENT REPLY OFF;PING;EXEC;PING", "+RESET +OK +QUEUED +QUEUED +QUEUED *3 +PONG"),
        ("MULTI;CLIENT REPLY ON;PING;EXEC;PING", "+OK +PONG +PONG"),
        ("MULTI;CLIENT REPLY SKIP;PING;EXEC;PING;PING", "+OK +QUEUED +QUEUED *2 +PONG +PONG"),
        ("MULTI;CLIENT REPLY SKIP;CLIENT REPLY ON;EXEC;PING;PING", "+OK +QUEUED +QUEUED *2 +OK +PONG"),
        ("MULTI;CLIENT REPLY OFF;CLIENT REPLY ON;PING;EXEC;PING", "+OK +QUEUED +QUEUED +QUEUED *3 +OK +PONG +PONG"),
    ] {
        let requests: Vec<&str> = requests.split(';').collect();
        assert_eq!(say(&mut core, &requests), told.replace(' ', "\r\n") + "\r\n", "{requests:?}");
    }
}

#[test]
fn client_info_within_exec_is_in_a_transaction() {
    let _turn = turn();
    let mut core = Core::new(Durability::Memory, 1);
    let told = exec(&mut core, &["CLIENT NO-EVICT ON", "CLIENT INFO", "PING"]);
    assert!(told.contains(" flags=xe ") && told.contains(" multi=3 watch=0 "), "{told}");
    assert!(say(&mut core, &["CLIENT INFO"]).contains(" flags=e "));
}
