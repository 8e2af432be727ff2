//! The rule machine. What valkey-server answers to the same rules is compared by `proof acl`; these are the cases that a
//! reader wants to see.
#![allow(clippy::unwrap_used)]

use base::limits::{ACL_LOG_ENTRIES_MAX, ACL_LOG_TEXT_BYTES_MAX, ACL_USER_BYTES_MAX, ACL_USERS_MAX};
use base::{CoreId, Now, Span};
use wire::registry::{Categories, Resolved, resolve};
use wire::{Arguments, Reply};

use super::*;

fn with_request<T>(request: &str, run: impl FnOnce(Arguments<'_>) -> T) -> T {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    for word in request.split(' ') {
        spans.push(Span { start: bytes.len() as u32, len: word.len() as u32 });
        bytes.extend_from_slice(word.as_bytes());
    }
    run(Arguments::new(&bytes, &spans))
}

/// `OK`, `command` or `key:PLACE`.
fn verdict(user: &User, request: &str) -> String {
    with_request(request, |arguments| {
        let Resolved::Command(spec) = resolve(arguments) else { panic!("{request} is no command") };
        match user.check(spec, arguments) {
            Ok(()) => "OK".to_owned(),
            Err(Denial { kind: DenialKind::Command, .. }) => "command".to_owned(),
            Err(Denial { kind: DenialKind::Key, argument }) => format!("key:{argument}"),
            Err(Denial { kind: DenialKind::Channel, argument }) => format!("channel:{argument}"),
        }
    })
}

fn user(rules: &str) -> User {
    let mut user = User::new(b"u");
    for rule in merge_selectors(rules.split(' ').map(str::as_bytes)).unwrap() {
        user.apply(&rule).unwrap_or_else(|error| panic!("{rules}: {error:?}"));
    }
    user
}

/// The line without its beginning that says who.
fn shown(rules: &str) -> String {
    String::from_utf8(user(rules).line()).unwrap().replace("user u ", "").replace(" sanitize-payload", "")
}

#[test]
fn rules_are_shown_as_they_hold() {
    for (rules, expected) in [
        ("on", "on resetchannels -@all"),
        ("on nopass +@all allkeys allchannels", "on nopass ~* &* +@all"),
        ("+get -get", "off resetchannels -@all -get"),
        ("+get +set +get", "off resetchannels -@all +set +get"),
        ("+client|id +client|list -client", "off resetchannels -@all -client"),
        ("+CLIENT|ID -Client|List", "off resetchannels -@all +client|id -client|list"),
        ("+@all -@write +set", "off resetchannels +@all -@write +set"),
        ("+@read +@all", "off resetchannels +@all"),
        ("+get nocommands", "off resetchannels -@all"),
        ("+select|0 +select|1 -select", "off resetchannels -@all -select"),
        ("%R~a %W~a %rw~b ~c %W~d", "off ~a ~b ~c %W~d resetchannels -@all"),
        ("~a ~* ", "off ~* resetchannels -@all"),
        ("%R~* %W~* ~b", "off %RW~* ~b resetchannels -@all"),
        ("~a resetkeys ~b", "off ~b resetchannels -@all"),
        ("&a &b &a", "off resetchannels &a &b -@all"),
        (
            "(+get ~a) ( %R~b &c +@read )",
            "off resetchannels -@all (~a resetchannels -@all +get) (%R~b resetchannels &c -@all +@read)",
        ),
        ("(+get) clearselectors", "off resetchannels -@all"),
        ("on nopass ~* +@all (+get) reset", "off resetchannels -@all"),
        (">a nopass", "off nopass resetchannels -@all"),
        (">a >b <a !3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d", "off resetchannels -@all"),
        (
            "#2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90",
            "off #2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90 resetchannels -@all",
        ),
    ] {
        assert_eq!(shown(rules), expected, "{rules}");
    }
}

#[test]
fn what_is_no_rule_changes_nothing() {
    for (rule, expected) in [
        ("bogus", RuleError::Syntax),
        ("+", RuleError::Unknown),
        ("+nosuch", RuleError::Unknown),
        ("-get|x", RuleError::Unknown),
        ("-client|", RuleError::Unknown),
        ("+client|nosuch", RuleError::Unknown),
        ("+client|", RuleError::Syntax),
        ("+get|", RuleError::Syntax),
        ("+config|get|x", RuleError::FirstArgumentOfSubcommand),
        ("+@nosuch", RuleError::Unknown),
        ("~x", RuleError::KeyAfterAll),
        ("%R~x", RuleError::KeyAfterAll),
        ("&x", RuleError::ChannelAfterAll),
        ("(%~x)", RuleError::Syntax),
        ("(%R)", RuleError::Syntax),
        ("(%RR~x)", RuleError::Syntax),
        ("(%RX~x)", RuleError::Syntax),
        ("(+get on)", RuleError::Syntax),
        ("(~a) +get)", RuleError::Syntax),
        ("<other", RuleError::NoSuchPassword),
        ("#abc", RuleError::Hash),
        ("#2BD806C97F0E00AF1A1FC3328FA763A9269723C8DB8FAC4F93AF71DB186D6E90", RuleError::Hash),
    ] {
        let mut user = user("on >secret allkeys allchannels +get");
        let before = user.clone();
        assert_eq!(user.apply(rule.as_bytes()), Err(expected), "{rule}");
        assert_eq!(user, before, "{rule}");
    }
    for spaced in ["~a b", "~a\u{b}", "&a\0", "+get|a b"] {
        assert_eq!(user("on").apply(spaced.as_bytes()), Err(RuleError::Syntax), "{spaced:?}");
    }
}

#[test]
fn requests_are_measured_by_commands_and_keys() {
    for (rules, request, expected) in [
        ("+get ~a*", "get abc", "OK"),
        ("+get ~a*", "get b", "key:1"),
        ("+get ~a*", "set abc 1", "command"),
        ("+@all ~a*", "mget a b c", "key:2"),
        ("+@all -@dangerous ~*", "keys *", "command"),
        ("+@all", "ping", "OK"),
        ("+@all", "scan 0", "OK"),
        ("-@all", "auth x", "OK"),
        ("-@all", "ping", "command"),
        ("+select|0", "select 0", "OK"),
        ("+select|0", "select 1", "command"),
        ("+client|id", "client id", "OK"),
        ("+client|id", "client list", "command"),
        ("+client -client|list", "client list", "command"),
        ("+client -client|list", "client id", "OK"),
        ("+@all %R~a", "get a", "OK"),
        ("+@all %R~a", "set a 1", "key:1"),
        ("+@all %W~a", "set a 1", "OK"),
        ("+@all %W~a", "set a 1 get", "key:1"),
        ("+@all %W~a", "get a", "key:1"),
        ("+@all %R~a", "bitfield a get u8 0", "OK"),
        ("+@all %R~a", "bitfield a get u8 0 incrby u8 0 1", "key:1"),
        ("+@all %R~a %W~b", "copy a b", "OK"),
        ("+@all %R~a %W~b", "copy b a", "key:1"),
        ("+@all %W~a", "lpush a 1", "OK"),
        ("+@all ~a", "zh.get a", "OK"),
        ("+@all ~a", "zh.get b", "key:1"),
        ("+mget ~a", "zh.mget a b", "key:2"),
        ("+mget ~a", "zh.mget a", "OK"),
        ("+get ~a", "zh.mget a", "command"),
        ("-@all +@read ~b", "zh.get b", "OK"),
        ("-@all +@write ~b", "zh.get b", "command"),
        ("+@all -@admin", "zh.backup begin", "command"),
        ("+@all -@dangerous", "zh.cluster status", "command"),
        ("-@all +blmpop ~a ~b", "blmpop 0 2 a c left", "key:4"),
        ("(+get ~a) (+set ~b)", "get a", "OK"),
        ("(+get ~a) (+set ~b)", "set a 1", "key:1"),
        ("(+get ~a) (+set ~b)", "del a", "command"),
        ("+get ~a (+mget ~x ~y)", "mget x a y", "key:2"),
        ("+get ~a (+set ~b)", "get q", "key:1"),
    ] {
        assert_eq!(verdict(&user(rules), request), expected, "{rules}: {request}");
    }
}

#[test]
fn only_who_may_do_everything_is_not_looked_at() {
    for (rules, expected) in [
        ("+@all ~* &*", true),
        ("+@all ~* &* -ping +ping", false),
        ("+@all ~*", false),
        ("+@all &* ~a", false),
        ("+get (+@all ~* &*)", true),
        ("+@all ~* &* (+get)", true),
        ("+@all ~* &* resetkeys", false),
    ] {
        assert_eq!(user(rules).is_unbounded(), expected, "{rules}");
    }
}

#[test]
fn only_the_password_of_a_user_that_is_on_lets_anybody_in() {
    let mut users = Users::new(Some(b"master"));
    users.set(b"al", &[b"on".to_vec(), b">one".to_vec(), b">two".to_vec()]).unwrap();
    users.set(b"off", &[b">one".to_vec()]).unwrap();
    users.set(b"any", &[b"on".to_vec(), b"nopass".to_vec()]).unwrap();
    let enters = |name: &str, password: &str| users.authenticate(name.as_bytes(), password.as_bytes()).is_some();
    assert!(enters("al", "one") && enters("al", "two") && enters("any", "x") && enters("default", "master"));
    for (name, password) in
        [("al", "three"), ("al", ""), ("off", "one"), ("default", ""), ("default", "one"), ("x", "one")]
    {
        assert!(!enters(name, password), "{name} {password}");
    }
    assert_eq!(users.remove(&[b"al".to_vec(), b"default".to_vec(), b"nobody".to_vec()]), 1);
    assert!(users.get(b"al").is_none() && users.get(b"default").is_some());
    users.set_default_password(None);
    assert!(users.default_user().is_open());
}

#[test]
fn a_file_makes_the_same_users_again_or_is_refused_by_its_line() {
    let mut users = Users::new(Some(b"x"));
    for rules in ["on >a +@all -@write +client|id ~a* %R~b &c (+get ~z) ( %W~y +set )", "nopass", "on +select|0"] {
        let rules = merge_selectors(rules.split(' ').map(str::as_bytes)).unwrap();
        users.set(format!("user{}", users.iter().len()).as_bytes(), &rules).unwrap();
    }
    let file = users.to_file();
    assert_eq!(Users::from_file(&file, None), Ok(users));
    let padded = b"\r\n  user  al   on \t +get\r\n\r\n";
    assert_eq!(Users::from_file(padded, None).unwrap().iter().len(), 2);
    assert!(Users::from_file(b"user al on", None).unwrap().default_user().is_open());
    assert!(!Users::from_file(b"user al on", Some(b"x")).unwrap().default_user().is_open());
    assert!(!Users::from_file(b"user default on >y +@all", None).unwrap().default_user().is_open());
    for (content, line, reason) in [
        ("user a on\nuser", 2, "a line is"),
        ("user a on\n\nusr b on", 3, "begins with the word"),
        ("user a on\nuser a off", 2, "twice"),
        ("user a on +nosuch", 1, "'+nosuch': Unknown command"),
        ("user a on (+get", 1, "parenthesis"),
        ("user a on #12", 1, "'#12'"),
        ("user a on <hidden", 1, "'<'"),
    ] {
        let (found, text) = Users::from_file(content.as_bytes(), None).unwrap_err();
        assert!(found == line && text.contains(reason) && !text.contains("hidden"), "{content}: {found}: {text}");
    }
}

#[test]
fn users_and_rules_have_bounds() {
    let mut users = Users::default();
    let long = [b"~".as_slice(), &vec![b'x'; ACL_USER_BYTES_MAX]].concat();
    assert!(users.set(b"al", &[long]).is_err() && users.get(b"al").is_none());
    let file: String = (0..ACL_USERS_MAX).map(|number| format!("user u{number} on\n")).collect();
    // `default` is one of them.
    assert_eq!(Users::from_file(file.as_bytes(), None).unwrap_err().0, ACL_USERS_MAX);
    assert!(users.set(b"a b", &[]).is_err() && users.set(b"a\0", &[]).is_err());
}

#[test]
fn the_same_refusal_is_counted_for_a_minute() {
    let entry = |object: &str, at_ms: u64| LogEntry {
        reason: Reason::Command,
        context: Context::Toplevel,
        object: object.into(),
        user: b"al".to_vec(),
        client: Vec::new(),
        created_ms: at_ms,
        updated_ms: at_ms,
        count: 1,
        id: 0,
    };
    let mut log = AclLog::default();
    for (object, at_ms) in [("get", 0), ("set", 1), ("get", 60_000), ("get", 120_001)] {
        log.note(entry(object, at_ms), CoreId(3));
    }
    let seen: Vec<_> = log.entries().map(|entry| (entry.count, entry.created_ms, entry.id)).collect();
    assert_eq!(seen, [(1, 120_001, 131), (2, 0, 3), (1, 1, 67)]);
    let mut out = Vec::new();
    let now = Now { monotonic_us: 0, unix_ms: 121_251 };
    log.entries().next().unwrap().write(now, &mut Reply::new(&mut out, wire::Protocol::Resp2));
    assert!(out.windows(4).any(|bytes| bytes == b"1.25"), "{}", out.escape_ascii());
    (0..2 * ACL_LOG_ENTRIES_MAX).for_each(|number| log.note(entry(&number.to_string(), 200_000), CoreId(0)));
    assert_eq!(log.entries().count(), ACL_LOG_ENTRIES_MAX);
    log.note(entry(&"x".repeat(2 * ACL_LOG_TEXT_BYTES_MAX), 200_000), CoreId(0));
    assert_eq!(log.entries().next().unwrap().object.len(), ACL_LOG_TEXT_BYTES_MAX);
}

#[test]
fn a_password_has_the_bits_that_were_asked_for_and_comes_once() {
    let passwords: Vec<_> = (0..3).map(|number| password_from(&[7; 32], number, 256)).collect();
    assert!(passwords.iter().all(|password| password.len() == 64 && password.iter().all(u8::is_ascii_hexdigit)));
    assert!(passwords[0] != passwords[1] && passwords[1] != passwords[2]);
    assert_ne!(password_from(&[8; 32], 0, 256), passwords[0]);
    assert_eq!([1, 4, 5, 4096].map(|bits| password_from(&[7; 32], 0, bits).len()), [1, 1, 2, 1024]);
}

/// What a user with these rules is told of a request for a command that the registry does not have.
fn other(rules: &str, full_name: &str, categories: &str, keys: Option<&[(usize, Access)]>, words: &str) -> String {
    let line = format!("user u on nopass {rules}");
    let users = Users::from_file_naming(line.as_bytes(), None, Naming::Any).unwrap();
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    wire::request::encode(words.split(' ').map(str::as_bytes).collect::<Vec<_>>(), &mut bytes);
    wire::parse(&bytes, 0, &mut spans, &wire::ParseLimits::AUTHENTICATED);
    let named = categories.split(' ').filter_map(|name| Categories::named(name.as_bytes()));
    let keys = keys.map(|keys| keys.iter().map(|&(index, needed)| OtherKey { index, needed }).collect::<Vec<_>>());
    let channels: Vec<usize> = if categories == "pubsub" { (1..spans.len()).collect() } else { Vec::new() };
    let other = Other {
        full_name,
        categories: named.fold(Categories::EMPTY, Categories::union),
        keys: keys.as_deref(),
        channels: &channels,
        are_patterns: full_name == "psubscribe",
    };
    match users.get(b"u").unwrap().check_other(&other, wire::Arguments::new(&bytes, &spans)) {
        Ok(()) => "ok".to_owned(),
        Err(denial) => format!("{:?} {}", denial.kind, denial.argument),
    }
}

#[test]
fn commands_of_other_stores_are_decided_by_the_rules_in_their_order() {
    let hset = |rules| other(rules, "hset", "write hash", Some(&[(1, Access::ALL)]), "HSET k f v");
    for (rules, result) in [
        ("~* +@all", "ok"),
        ("~* +@all -@hash", "Command 0"),
        ("~* +@all -hset", "Command 0"),
        ("~* +@all -hset +@write", "ok"),
        ("~* +@write -@hash", "Command 0"),
        ("~* -@all +hset", "ok"),
        ("~* +hget", "Command 0"),
        ("+@all", "Key 1"),
        ("%R~* +@all", "Key 1"),
        ("~x +@all (~k +hset)", "ok"),
        ("~x +@all (~k +hget)", "Key 1"),
    ] {
        assert_eq!(hset(rules), result, "{rules}");
    }
    let create = |rules| other(rules, "xgroup|create", "stream write", Some(&[]), "XGROUP CREATE k g 0");
    for (rules, result) in [
        ("+xgroup", "ok"),
        ("+xgroup|create", "ok"),
        ("+xgroup|destroy", "Command 0"),
        ("+xgroup -xgroup|create", "Command 0"),
    ] {
        assert_eq!(create(rules), result, "{rules}");
    }
    let nobody_knows = |rules| other(rules, "sort", "write", None, "SORT k BY x");
    assert_eq!([nobody_knows("~k +@all"), nobody_knows("allkeys +sort")], ["Key 0", "ok"]);
    let subscribe = |rules, words| other(rules, "subscribe", "pubsub", Some(&[]), words);
    assert_eq!(subscribe("&a* +@all", "SUBSCRIBE a1 a2"), "ok");
    assert_eq!(subscribe("&a* +@all", "SUBSCRIBE a1 b"), "Channel 2");
    assert_eq!(subscribe("resetchannels +@all", "SUBSCRIBE a"), "Channel 1");
    let patterns = |rules, words| other(rules, "psubscribe", "pubsub", Some(&[]), words);
    assert_eq!([patterns("&a* +@all", "PSUBSCRIBE a*"), patterns("&a* +@all", "PSUBSCRIBE a1*")], ["ok", "Channel 1"]);
}

#[test]
fn a_rule_names_a_command_that_some_store_has_and_the_nodes_own_file_only_its_own() {
    for (name, is_known) in
        [("hset", true), ("HSET", true), ("json.get", true), ("client|capa", true), ("xgroup|create", true)]
            .into_iter()
            .chain([("hste", false), ("json", false), (".", false), ("client|trackin", false), ("get|a|b", false)])
    {
        let line = format!("user u +{name}");
        assert_eq!(Users::from_file_naming(line.as_bytes(), None, Naming::Any).is_ok(), is_known, "{name}");
        assert!(Users::from_file(line.as_bytes(), None).is_err(), "{name}");
    }
    let line = "user u on nopass sanitize-payload ~* resetchannels -@all +hset -@hash";
    let users = Users::from_file_naming(line.as_bytes(), None, Naming::Any).unwrap();
    assert_eq!(users.get(b"u").unwrap().line(), line.as_bytes(), "it is shown as it was given");
}
