//! MULTI, EXEC, DISCARD, WATCH as a connection sees them.

use crate::rig::Rig;
use base::limits;
use session::ConnectionOutcome;

#[test]
fn queued_requests_come_back_in_order() {
    let mut rig = Rig::standalone();
    rig.watch("w");
    assert_eq!(rig.say("MULTI"), "+OK\r\n");
    assert!(rig.session.is_in_transaction() && rig.session.is_watching());
    assert_eq!(rig.say("SET k v"), "+QUEUED\r\n");
    assert_eq!(rig.say("CLIENT GETNAME"), "+QUEUED\r\n");
    assert_eq!(rig.say("EXEC"), "");
    let transaction = rig.transaction();
    let queued: Vec<String> =
        transaction.commands().map(|command| format!("{} {:?}", command.spec.full_name, command.arguments)).collect();
    assert_eq!(queued, [r#"set ["SET", "k", "v"]"#, r#"client|getname ["CLIENT", "GETNAME"]"#]);
    assert_eq!((transaction.len(), transaction.watched()[0].key.as_slice()), (2, &b"w"[..]));
    assert!(!rig.session.is_in_transaction() && !rig.session.is_watching());
    assert_eq!(rig.say("GET k"), "+RUN get\r\n");
}

#[test]
fn a_refused_request_aborts_exec() {
    for refused in ["NOSUCH", "GET", "CLIENT NOSUCH"] {
        let mut rig = Rig::standalone();
        rig.say("MULTI");
        assert!(rig.say(refused).starts_with("-ERR "));
        assert_eq!(rig.say("SET k v"), "+QUEUED\r\n");
        assert_eq!(rig.say("EXEC"), "-EXECABORT Transaction discarded because of previous errors.\r\n");
        assert_eq!(rig.say("EXEC"), "-ERR EXEC without MULTI\r\n");
    }
}

#[test]
fn a_request_the_shard_refuses_aborts_exec() {
    let mut rig = Rig::standalone();
    rig.say("MULTI");
    rig.session.spoil();
    assert!(rig.say("EXEC").starts_with("-EXECABORT"));
    rig.session.spoil();
    rig.say("MULTI");
    rig.say("EXEC");
    assert!(rig.transaction().is_empty());
}

#[test]
fn nested_multi_and_watch_inside_are_errors_that_do_not_abort() {
    let mut rig = Rig::standalone();
    rig.say("MULTI");
    assert_eq!(rig.say("MULTI"), "-ERR MULTI calls can not be nested\r\n");
    assert_eq!(rig.say("WATCH k"), "-ERR WATCH inside MULTI is not allowed\r\n");
    rig.say("EXEC");
    assert!(rig.transaction().is_empty());
}

#[test]
fn discard_forgets_queue_and_watches() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("DISCARD"), "-ERR DISCARD without MULTI\r\n");
    rig.watch("w");
    rig.say("MULTI");
    rig.say("SET k v");
    assert_eq!(rig.say("DISCARD"), "+OK\r\n");
    assert!(!rig.session.is_in_transaction() && !rig.session.is_watching());
}

#[test]
fn exec_with_arguments_forgets_watches_inside_and_outside() {
    let mut rig = Rig::standalone();
    for is_inside in [true, false] {
        rig.watch("w");
        if is_inside {
            rig.say("MULTI");
        }
        assert!(rig.say("EXEC now").starts_with("-EXECABORT "));
        assert!(!rig.session.is_in_transaction() && !rig.session.is_watching(), "inside: {is_inside}");
    }
}

#[test]
fn watch_is_for_the_shard_and_bounded() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("WATCH a b"), "");
    assert!(matches!(rig.outcome, ConnectionOutcome::Watch));
    for _ in 0..limits::WATCHED_KEYS_MAX {
        rig.watch("w");
    }
    assert_eq!(rig.say("WATCH a"), "-ERR too many keys are watched by this connection\r\n");
    assert_eq!(rig.say("UNWATCH"), "+OK\r\n");
    rig.say("WATCH a");
    assert!(matches!(rig.outcome, ConnectionOutcome::Watch));
}

/// A queued CLIENT REPLY ON changes nothing yet.
#[test]
fn what_is_queued_is_not_answered_sooner() {
    let mut rig = Rig::standalone();
    rig.say("CLIENT REPLY OFF");
    for request in ["MULTI", "CLIENT REPLY ON", "PING", "EXEC"] {
        assert_eq!(rig.say(request), "", "{request}");
    }
    assert!(!rig.session.is_answered());
    assert_eq!(rig.transaction().len(), 2);
}

#[test]
fn a_transaction_has_an_end() {
    let mut rig = Rig::standalone();
    rig.say("MULTI");
    for _ in 0..limits::TRANSACTION_COMMANDS_MAX {
        rig.send(&[b"PING"]);
    }
    rig.received();
    assert_eq!(rig.say("PING"), "-ERR transaction is too large\r\n");
    assert!(rig.say("EXEC").starts_with("-EXECABORT"));
}

/// Mostly zeros that take no memory.
fn long(bytes: usize) -> Vec<(usize, base::Blocks)> {
    let mut blocks = base::Blocks::default();
    blocks.overwrite(bytes - 1, b"x");
    vec![(2, blocks)]
}

#[test]
fn long_arguments_are_bounded_and_come_back_with_their_request() {
    let mut rig = Rig::standalone();
    rig.say("MULTI");
    let most = limits::TRANSACTION_LONG_BYTES_MAX;
    rig.send(&[b"PING"]);
    rig.send_long(&[b"SET", b"a", b""], long(most - 100_000));
    rig.send_long(&[b"SET", b"b", b""], long(100_000));
    assert_eq!(rig.received(), "+QUEUED\r\n".repeat(3));
    assert_eq!(rig.say("EXEC"), "");
    let mut transaction = rig.transaction();
    assert!(transaction.bytes() > most);
    let got = transaction.take_long();
    let got: Vec<_> = got.iter().map(|long| (long.command, long.argument, long.blocks.len())).collect();
    assert_eq!(got, [(1, 2, most - 100_000), (2, 2, 100_000)]);
    assert_eq!(transaction.command(2).map(|command| command.arguments.get(1)), Some(Some(b"b".as_slice())));
    rig.say("MULTI");
    rig.send_long(&[b"SET", b"a", b""], long(most));
    rig.received();
    rig.send_long(&[b"SET", b"b", b""], long(1));
    assert_eq!(rig.received(), "-ERR transaction is too large\r\n");
    assert!(rig.say("EXEC").starts_with("-EXECABORT"));
    assert_eq!(rig.session.take_discarded().map(|blocks| blocks.len()).collect::<Vec<_>>(), [most]);
}

#[test]
fn quit_and_reset_end_a_transaction_at_once() {
    let mut rig = Rig::standalone();
    rig.say("MULTI");
    assert_eq!(rig.say("RESET"), "+RESET\r\n");
    assert!(!rig.session.is_in_transaction());
    rig.say("MULTI");
    assert_eq!(rig.say("QUIT"), "+OK\r\n");
    assert!(matches!(rig.outcome, ConnectionOutcome::Close) && rig.session.is_closing());
}
