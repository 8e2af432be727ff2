//! The commands about a connection, reply by reply.

use crate::rig::{PASSWORD, Rig};
use base::{ConnectionId, Door, Now};
use session::{ClientFilter, ConnectionOutcome, Opening, Session};
use wire::Protocol;

#[test]
fn hello_switches_the_protocol_and_describes_the_server() {
    let mut rig = Rig::standalone();
    assert!(rig.say("HELLO").starts_with("*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.4\r\n"));
    let greeting = rig.say("HELLO 3 SETNAME me");
    assert_eq!(
        greeting,
        "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.4\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:42\r\n\
         $4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
    );
    assert_eq!((rig.session.protocol(), rig.session.name()), (Protocol::Resp3, &b"me"[..]));
    assert!(Rig::new(Door::Cluster, None).say("HELLO 3").contains("$7\r\ncluster\r\n"));
}

#[test]
fn hello_refuses_and_then_changes_nothing() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("HELLO 4"), "-NOPROTO unsupported protocol version\r\n");
    assert_eq!(rig.say("HELLO x"), "-ERR Protocol version is not an integer or out of range\r\n");
    assert_eq!(rig.say("HELLO 3 AUTH x"), "-ERR Syntax error in HELLO option 'AUTH'\r\n");
    assert!(rig.say("HELLO 3 AUTH other x").starts_with("-WRONGPASS "));
    assert!(rig.say("HELLO 3 SETNAME \n").starts_with("-ERR Client names cannot contain spaces"));
    assert_eq!(rig.session.protocol(), Protocol::Resp2);
}

#[test]
fn a_password_keeps_everything_else_out() {
    let mut rig = Rig::new(Door::Standalone, Some(PASSWORD));
    assert_eq!(rig.say("GET k"), "-NOAUTH Authentication required.\r\n");
    assert!(rig.say("NOSUCH").starts_with("-ERR unknown command"));
    assert!(rig.say("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    assert!(rig.say("AUTH wrong").starts_with("-WRONGPASS "));
    assert!(rig.say("AUTH a b c").starts_with("-ERR syntax error"));
    rig.send(&[b"AUTH", PASSWORD]);
    assert_eq!(rig.received(), "+OK\r\n");
    assert_eq!(rig.say("GET k"), "+RUN get\r\n");
    assert_eq!(rig.say("RESET"), "+RESET\r\n");
    assert_eq!(rig.say("PING"), "-NOAUTH Authentication required.\r\n");
    let aborted = "-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n";
    assert_eq!(rig.say("EXEC"), aborted);
    rig.send(&[b"HELLO", b"3", b"AUTH", b"default", PASSWORD]);
    assert!(rig.received().starts_with("%7\r\n"));
    assert!(rig.session.is_authenticated());
}

#[test]
fn auth_without_a_password_set() {
    let mut rig = Rig::standalone();
    assert!(rig.say("AUTH x").starts_with("-ERR AUTH <password> called without any password configured"));
    assert_eq!(rig.say("AUTH default x"), "+OK\r\n");
    assert!(rig.say("AUTH other x").starts_with("-WRONGPASS "));
}

#[test]
fn ping_and_echo() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("PING"), "+PONG\r\n");
    assert_eq!(rig.say("PING hi"), "$2\r\nhi\r\n");
    assert_eq!(rig.say("PING a b"), "-ERR wrong number of arguments for 'ping' command\r\n");
    assert_eq!(rig.say("ECHO hi"), "$2\r\nhi\r\n");
}

#[test]
fn select_knows_its_door() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("SELECT 15"), "+OK\r\n");
    assert_eq!(rig.session.database().0, 15);
    assert_eq!(rig.say("SELECT 16"), "-ERR DB index is out of range\r\n");
    assert_eq!(rig.say("SELECT -1"), "-ERR DB index is out of range\r\n");
    assert_eq!(rig.say("SELECT x"), "-ERR value is not an integer or out of range\r\n");
    assert!(rig.say("SELECT 2147483648").starts_with("-ERR value is out of range, value must between"));
    let mut cluster = Rig::new(Door::Cluster, None);
    assert_eq!(cluster.say("SELECT 0"), "+OK\r\n");
    assert_eq!(cluster.say("SELECT 1"), "-ERR SELECT is not allowed in cluster mode\r\n");
}

#[test]
fn cluster_commands_need_the_cluster_door() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("READONLY"), "-ERR This instance has cluster support disabled\r\n");
    let mut cluster = Rig::new(Door::Cluster, None);
    assert_eq!(cluster.say("ASKING"), "+OK\r\n");
    assert_eq!(cluster.say("READONLY"), "+OK\r\n");
    assert!(cluster.session.is_read_only());
    assert_eq!(cluster.say("READWRITE"), "+OK\r\n");
    assert!(!cluster.session.is_read_only());
}

#[test]
fn client_names_and_library() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("CLIENT GETNAME"), "$-1\r\n");
    assert_eq!(rig.say("CLIENT SETNAME worker"), "+OK\r\n");
    assert_eq!(rig.say("CLIENT GETNAME"), "$6\r\nworker\r\n");
    assert_eq!(rig.say("CLIENT SETINFO LIB-NAME lettuce"), "+OK\r\n");
    assert_eq!(rig.say("CLIENT SETINFO lib-ver 6.8"), "+OK\r\n");
    assert_eq!(rig.say("CLIENT SETINFO color red"), "-ERR Unrecognized option 'color'\r\n");
    rig.send(&[b"CLIENT", b"SETINFO", b"lib-name", b"a b"]);
    assert_eq!(rig.received(), "-ERR lib-name cannot contain spaces, newlines or special characters.\r\n");
    rig.send(&[b"CLIENT", b"SETNAME", &[b'n'; 2000]]);
    assert!(rig.received().starts_with("-ERR Client names cannot be longer"));
    assert_eq!(rig.say("CLIENT ID"), ":42\r\n");
    let info = rig.say("CLIENT INFO");
    assert!(
        info.contains("id=42 addr=127.0.0.1:50000 laddr=127.0.0.1:6379 fd=8 name=worker age=5 idle=5 flags=N db=0")
    );
    assert!(info.ends_with("cmd=client|info user=default redir=-1 resp=2 lib-name=lettuce lib-ver=6.8\n\r\n"));
}

#[test]
fn client_switches_and_tracking() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("CLIENT NO-EVICT on"), "+OK\r\n");
    assert_eq!(rig.say("CLIENT NO-TOUCH ON"), "+OK\r\n");
    assert!(rig.say("CLIENT INFO").contains(" flags=eT "));
    assert_eq!(rig.say("CLIENT NO-TOUCH maybe"), "-ERR syntax error\r\n");
    assert_eq!(rig.say("CLIENT TRACKING OFF"), "+OK\r\n");
    assert!(rig.say("CLIENT TRACKING ON").starts_with("-ERR client side caching is not supported"));
    assert_eq!(rig.say("CLIENT GETREDIR"), ":-1\r\n");
    assert!(rig.say("CLIENT CACHING YES").starts_with("-ERR CLIENT CACHING can be called only when"));
    assert_eq!(rig.say("CLIENT TRACKING OFF NOLOOP PREFIX p"), "+OK\r\n");
    assert_eq!(rig.say("CLIENT TRACKING OFF PREFIX"), "-ERR syntax error\r\n");
    assert!(rig.say("CLIENT TRACKINGINFO").starts_with("*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n"));
    assert!(rig.say("CLIENT MAINT_NOTIFICATIONS ON").starts_with("-ERR unknown subcommand 'MAINT_NOTIFICATIONS'"));
    assert!(rig.say("CLIENT HELP").contains("+CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"));
}

#[test]
fn client_reply_off_on_and_skip() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("CLIENT REPLY SKIP"), "");
    assert_eq!(rig.say("PING"), "");
    assert_eq!(rig.say("PING"), "+PONG\r\n");
    assert_eq!(rig.say("CLIENT REPLY OFF"), "");
    assert_eq!(rig.say("PING"), "");
    assert_eq!(rig.say("NOSUCH"), "");
    assert_eq!(rig.say("CLIENT REPLY SKIP"), "");
    assert_eq!(rig.say("PING"), "");
    assert_eq!(rig.say("CLIENT REPLY ON"), "+OK\r\n");
    assert_eq!(rig.say("PING"), "+PONG\r\n");
    assert_eq!(rig.say("CLIENT REPLY what"), "-ERR syntax error\r\n");
    assert_eq!(rig.say("CLIENT REPLY SKIP"), "");
    assert_eq!(rig.say("CLIENT REPLY ON"), "+OK\r\n");
    assert_eq!(rig.say("PING"), "+PONG\r\n");
}

#[test]
fn reset_is_heard_after_off_and_skipped_after_skip() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("CLIENT REPLY OFF"), "");
    assert_eq!(rig.say("RESET"), "+RESET\r\n");
    assert_eq!(rig.say("PING"), "+PONG\r\n");
    assert_eq!(rig.say("CLIENT REPLY SKIP"), "");
    assert_eq!(rig.say("RESET"), "");
    assert_eq!(rig.say("PING"), "+PONG\r\n");
}

#[test]
fn client_list_filters() {
    let mut rig = Rig::standalone();
    rig.say("CLIENT LIST ID 1 2");
    assert!(matches!(&rig.outcome, ConnectionOutcome::ListClients(filter) if filter.ids == [1, 2]));
    assert_eq!(rig.say("CLIENT LIST ID x"), "-ERR Invalid client ID\r\n");
    assert_eq!(rig.say("CLIENT LIST TYPE x"), "-ERR Unknown client type 'x'\r\n");
    assert_eq!(rig.say("CLIENT LIST what"), "-ERR syntax error\r\n");
    rig.say("CLIENT LIST TYPE normal");
    let ConnectionOutcome::ListClients(filter) = &rig.outcome else { panic!("{:?}", rig.outcome) };
    assert!(filter.matches(&rig.session, rig.now));
    rig.say("CLIENT LIST TYPE pubsub");
    let ConnectionOutcome::ListClients(filter) = &rig.outcome else { panic!("{:?}", rig.outcome) };
    assert!(!filter.matches(&rig.session, rig.now));
}

#[test]
fn client_kill_filters() {
    let mut rig = Rig::standalone();
    let filter = |rig: &Rig| match &rig.outcome {
        ConnectionOutcome::KillClients { filter, by_address } => (filter.clone(), *by_address),
        other => panic!("{other:?}"),
    };
    rig.say("CLIENT KILL 127.0.0.1:50000");
    let (by_address, old_form) = filter(&rig);
    assert!(old_form && by_address.matches(&rig.session, rig.now));
    rig.say("CLIENT KILL ID 42");
    assert!(!filter(&rig).0.matches(&rig.session, rig.now), "by default a client does not kill itself");
    rig.say("CLIENT KILL ID 42 SKIPME no ADDR 127.0.0.1:50000 LADDR 127.0.0.1:6379 USER default TYPE normal MAXAGE 5");
    assert!(filter(&rig).0.matches(&rig.session, rig.now));
    rig.say("CLIENT KILL SKIPME no MAXAGE 6");
    assert!(!filter(&rig).0.matches(&rig.session, rig.now));
    for (request, error) in [
        ("CLIENT KILL ID 0", "-ERR client-id should be greater than 0\r\n"),
        ("CLIENT KILL USER nobody", "-ERR No such user 'nobody'\r\n"),
        ("CLIENT KILL TYPE x", "-ERR Unknown client type 'x'\r\n"),
        ("CLIENT KILL ID 1 ADDR", "-ERR syntax error\r\n"),
        ("CLIENT KILL COLOR red", "-ERR syntax error\r\n"),
    ] {
        assert_eq!(rig.say(request), error);
    }
}

#[test]
fn pause_and_unblock_are_for_the_shard() {
    let mut rig = Rig::standalone();
    assert_eq!(rig.say("CLIENT PAUSE 100 WRITE"), "+OK\r\n");
    assert!(matches!(rig.outcome, ConnectionOutcome::Pause { timeout_ms: 100, writes_only: true }));
    assert_eq!(rig.say("CLIENT PAUSE -1"), "-ERR timeout is negative\r\n");
    assert_eq!(rig.say("CLIENT PAUSE x"), "-ERR timeout is not an integer or out of range\r\n");
    assert_eq!(rig.say("CLIENT PAUSE 1 some"), "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n");
    assert_eq!(rig.say("CLIENT UNPAUSE"), "+OK\r\n");
    assert!(matches!(rig.outcome, ConnectionOutcome::Unpause));
    rig.say("CLIENT UNBLOCK 7 ERROR");
    assert!(matches!(rig.outcome, ConnectionOutcome::Unblock { client_id: 7, with_error: true }));
    assert_eq!(rig.say("CLIENT UNBLOCK 7 soon"), "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n");
    assert_eq!(rig.say("CLIENT UNBLOCK x"), "-ERR value is not an integer or out of range\r\n");
}

#[test]
fn reset_keeps_only_the_identity() {
    let mut rig = Rig::standalone();
    rig.say("HELLO 3 SETNAME me");
    rig.say("SELECT 3");
    rig.say("CLIENT NO-EVICT on");
    assert_eq!(rig.say("RESET"), "+RESET\r\n");
    assert_eq!((rig.session.protocol(), rig.session.database().0), (Protocol::Resp2, 0));
    assert!(rig.session.name().is_empty());
    assert!(rig.say("CLIENT INFO").contains(" flags=N "));
}

#[test]
fn an_empty_filter_means_everyone() {
    let session = Session::new(Opening {
        connection: ConnectionId { index: 0, generation: 0 },
        client_id: 1,
        door: Door::Standalone,
        port_shift: 0,
        peer: "/run/zerohop.sock".into(),
        local: "/run/zerohop.sock".into(),
        now: Now::default(),
        user: session::acl::Users::default().default_user().clone(),
    });
    assert!(ClientFilter::default().matches(&session, Now::default()));
}
