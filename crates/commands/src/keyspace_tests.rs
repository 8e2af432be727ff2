//! Keys and their expiry, as transcripts.

use storage::Lookups;

use crate::harness::{Harness, transcript};

#[test]
fn keys_come_and_go() {
    transcript(
        "
        MSET a 1 b 2 => +OK
        EXISTS a b none a => :3
        TOUCH a none => :1
        TYPE a => +string
        TYPE none => +none
        DEL a none a => :1
        UNLINK b => :1
        RENAME none x => -ERR no such key
        RENAME none none => -ERR no such key
        SET a 1 EX 100 => +OK
        SET b 2 => +OK
        RENAME a a => +OK
        RENAMENX a a => :0
        RENAMENX a b => :0
        RENAME a b => +OK
        TTL b => :100
        GET b => \"1\"
        EXISTS a => :0
        RENAMENX b c => :1
        COPY c d => :1
        TTL d => :100
        COPY c d => :0
        COPY none e => :0
        SET d other => +OK
        COPY d c REPLACE => :1
        TTL c => :-1
        COPY c c => -ERR source and destination objects are the same
        COPY c c DB 1 => :1
        COPY c x DB 16 => -ERR DB index is out of range
        COPY c x DB a => -ERR value is not an integer or out of range
        COPY c x DB 4294967296 => -ERR value is out of range, value must between -2147483648 and 2147483647
        COPY c x DB => -ERR syntax error
        MOVE c 0 => -ERR source and destination objects are the same
        MOVE c 1 => :0
        MOVE c 2 => :1
        EXISTS c => :0
        MOVE c 2 => :0
        MOVE c 16 => -ERR DB index is out of range
        ",
    );
}

#[test]
fn expiry_is_set_and_read() {
    transcript(
        "
        TTL k => :-2
        PTTL k => :-2
        EXPIRE k 10 => :0
        SET k v => +OK
        TTL k => :-1
        EXPIRETIME k => :-1
        PERSIST k => :0
        EXPIRE k 100 => :1
        TTL k => :100
        EXPIRETIME k => :1700000100
        PEXPIRETIME k => :1700000100000
        PERSIST k => :1
        PTTL k => :-1
        EXPIRE k 100 XX => :0
        EXPIRE k 100 GT => :0
        EXPIRE k 100 LT => :1
        EXPIRE k 100 NX => :0
        EXPIRE k 100 GT => :0
        EXPIRE k 101 GT => :1
        EXPIRE k 101 LT => :0
        EXPIRE k 50 XX LT => :1
        PEXPIRE k 1501 => :1
        TTL k => :2
        PEXPIREAT k 1700000000499 => :1
        TTL k => :0
        EXPIREAT k 1700000060 => :1
        TTL k => :60
        EXPIRE k 1 NX XX => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE k 1 GT LT => -ERR GT and LT options at the same time are not compatible
        EXPIRE k 1 what => -ERR Unsupported option what
        EXPIRE k a => -ERR value is not an integer or out of range
        EXPIRE k 9223372036854775807 => -ERR invalid expire time in 'expire' command
        EXPIRE k -9223372036854775808 => -ERR invalid expire time in 'expire' command
        PEXPIRE k 9223372036854775807 => -ERR invalid expire time in 'pexpire' command
        EXPIRE k -1 => :1
        EXISTS k => :0
        ",
    );
}

#[test]
fn a_key_whose_time_is_over_is_gone() {
    let mut client = Harness::new();
    client.transcript(
        "
        SET k v PX 100 => +OK
        SET stays v => +OK
        ",
    );
    client.now_ms += 100;
    client.transcript(
        "
        GET k => nil
        EXPIRE k 10 => :0
        SETNX k new => :1
        TTL k => :-1
        DEL k stays => :2
        ",
    );
    assert_eq!(client.store.expired(), 1);
}

#[test]
fn a_cluster_has_one_database() {
    let mut client = Harness::new();
    client.several_databases = false;
    client.transcript(
        "
        SET a 1 => +OK
        MOVE a 1 => -ERR MOVE is not allowed in cluster mode
        MOVE a x => -ERR MOVE is not allowed in cluster mode
        COPY a b DB 1 => -ERR Copying to another database is not allowed in cluster mode
        COPY a b DB 99 => -ERR DB index is out of range
        COPY a b DB 0 => :1
        ",
    );
}

/// What redis-server 7.0.15 counts for each of these, after `SET k v`, `RPUSH l a b c` and `SET n 5`.
#[test]
fn lookups_count_where_a_command_answers_with_them() {
    let expected = [
        ("GET k", 1, 0),
        ("GET none", 0, 1),
        ("MGET k none k", 2, 1),
        ("STRLEN k", 1, 0),
        ("STRLEN none", 0, 1),
        ("EXISTS k none k", 2, 1),
        ("TYPE k", 1, 0),
        ("TYPE none", 0, 1),
        ("TTL k", 1, 0),
        ("TTL none", 0, 1),
        ("OBJECT ENCODING k", 1, 0),
        ("OBJECT ENCODING none", 0, 1),
        ("GETRANGE k 0 0", 1, 0),
        ("LLEN l", 1, 0),
        ("LRANGE l 0 -1", 1, 0),
        ("LINDEX l 0", 1, 0),
        ("LPOS l a", 1, 0),
        ("BITCOUNT k", 1, 0),
        ("BITPOS k 1", 1, 0),
        ("GETBIT k 1", 1, 0),
        ("GETBIT none 1", 0, 1),
        ("TOUCH k none", 1, 1),
        ("LCS k n", 2, 0),
        ("EXPIRETIME k", 1, 0),
        ("GETSET k v", 1, 0),
        ("GETEX k", 1, 0),
        ("GETEX none", 0, 1),
        ("SET k v", 0, 0),
        ("SETNX k v", 0, 0),
        ("INCR n", 0, 0),
        ("APPEND k x", 0, 0),
        ("LPUSH l a", 0, 0),
        ("RPOP l", 0, 0),
        ("EXPIRE k 100", 0, 0),
        ("PERSIST k", 0, 0),
        ("SETRANGE k 0 a", 0, 0),
        ("GETDEL k3", 1, 0),
        ("GETDEL none", 0, 1),
        ("DEL d", 0, 0),
    ];
    let mut harness = Harness::new();
    for words in ["SET k v", "RPUSH l a b c", "SET n 5", "SET k3 v"] {
        harness.call(&words.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    }
    for (words, found, missed) in expected {
        harness.store.reset_counters();
        harness.call(&words.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        assert_eq!(harness.store.lookups(), Lookups { found, missed }, "{words}");
    }
}

#[test]
fn a_pop_that_waited_looks_nothing_up() {
    let mut harness = Harness::new();
    harness.run("BLPOP l 0");
    harness.run("RPUSH l a");
    assert_eq!(harness.resume("BLPOP l 0"), r#"["l", "a"]"#);
    assert_eq!(harness.store.lookups(), Lookups::default());
}

/// Payloads of redis-server 7.0.15, as it prints them; the words are those of its errors.
#[test]
fn values_come_from_dumps_of_other_stores() {
    let mut harness = Harness::new();
    let payload = b"\x00\x05hello\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a";
    let list = b"\x12\x01\x02\x0f\x0f\x00\x00\x00\x03\x00\x81a\x02\x01\x01\xde\xd4\x02\xff\x0b\x00\xe9\xdb\x9d\x3b\xd4\xa4\x0b\x00";
    let mut restore = |words: &[&[u8]]| harness.reply(&[&[&b"RESTORE"[..]], words].concat());
    assert_eq!(restore(&[b"k", b"0", payload]), "+OK");
    assert_eq!(restore(&[b"k", b"x", b""]), "-BUSYKEY Target key name already exists.");
    assert_eq!(restore(&[b"k", b"x", b"", b"REPLACE"]), "-ERR value is not an integer or out of range");
    assert_eq!(restore(&[b"k", b"-1", b"", b"REPLACE"]), "-ERR Invalid TTL value, must be >= 0");
    assert_eq!(restore(&[b"k", b"0", b"x", b"REPLACE"]), "-ERR DUMP payload version or checksum are wrong");
    assert_eq!(restore(&[b"k", b"0", &payload[1..], b"REPLACE"]), "-ERR Bad data format");
    for (option, error) in [
        (&b"IDLETIME"[..], "-ERR syntax error"),
        (b"IDLETIME -1", "-ERR Invalid IDLETIME value, must be >= 0"),
        (b"IDLETIME x", "-ERR value is not an integer or out of range"),
        (b"FREQ 256", "-ERR Invalid FREQ value, must be >= 0 and <= 255"),
        (b"FREQ 1 IDLETIME 1", "-ERR syntax error"),
        (b"KEEP", "-ERR syntax error"),
    ] {
        let words: Vec<&[u8]> = option.split(|byte| *byte == b' ').collect();
        assert_eq!(restore(&[&[&b"k"[..], b"0", payload], &words[..]].concat()), error);
    }
    assert_eq!(restore(&[b"l", b"5000", list, b"IDLETIME", b"3"]), "+OK");
    assert_eq!(restore(&[b"m", b"1700000009000", payload, b"ABSTTL", b"FREQ", b"3"]), "+OK");
    assert_eq!(restore(&[b"gone", b"1600000000000", payload, b"ABSTTL"]), "+OK");
    assert_eq!(restore(&[b"far", b"9223372036854775807", payload]), "+OK");
    for (words, reply) in [
        ("GET k", "\"hello\""),
        ("TTL k", ":-1"),
        ("LRANGE l 0 -1", "[\"a\", \"1\", \"-300\"]"),
        ("PTTL l", ":5000"),
        ("PTTL m", ":9000"),
        ("EXISTS gone far", ":0"),
        ("DUMP gone", "nil"),
    ] {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        assert_eq!(harness.reply(&words), reply, "{words:?}");
    }
    assert_eq!(harness.reply(&[b"RESTORE", b"k", b"1600000000000", payload, b"ABSTTL", b"REPLACE"]), "+OK");
    assert_eq!(harness.reply(&[b"EXISTS", b"k"]), ":0", "what is over replaces what was there");
}
