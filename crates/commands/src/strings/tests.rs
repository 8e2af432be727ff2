//! Strings and counters, as transcripts.

use crate::harness::{Harness, transcript};

#[test]
fn get_and_set() {
    transcript(
        r#"
        GET k => nil
        SET k v => +OK
        GET k => "v"
        SET k "" => +OK
        GET k => ""
        GETSET k new => ""
        GETSET other new => nil
        STRLEN k => :3
        STRLEN none => :0
        MGET k none k => ["new", nil, "new"]
        GETDEL k => "new"
        GETDEL k => nil
        SET k v BADOPTION => -ERR syntax error
        SET k v EX => -ERR syntax error
        SET k v EX 10 PX 10 => -ERR syntax error
        SET k v KEEPTTL EX 10 => -ERR syntax error
        SET k v NX XX => -ERR syntax error
        SET k v EX 0 => -ERR invalid expire time in 'set' command
        SET k v PX -1 => -ERR invalid expire time in 'set' command
        SET k v EX 9223372036854775807 => -ERR invalid expire time in 'set' command
        SET k v PX 9223372036854775807 => -ERR invalid expire time in 'set' command
        SET k v EX ten => -ERR value is not an integer or out of range
        SETEX k 0 v => -ERR invalid expire time in 'setex' command
        PSETEX k 0 v => -ERR invalid expire time in 'psetex' command
        GET k => nil
        SET k => -ERR wrong number of arguments for 'set' command
        "#,
    );
}

/// What has expired is absent, and its expiry must not come back with the value that follows.
#[test]
fn an_expired_value_leaves_no_expiry() {
    transcript(
        "
        SET k 5 EXAT 1 => +OK
        INCR k => :1
        GET k => \"1\"
        TTL k => :-1
        SET k 5 EXAT 1 => +OK
        INCRBYFLOAT k 0.5 => \"0.5\"
        TTL k => :-1
        SET k 5 EXAT 1 => +OK
        SET k v KEEPTTL => +OK
        GET k => \"v\"
        SET k 5 EXAT 1 => +OK
        MSETEX 1 k v KEEPTTL => :1
        GET k => \"v\"
        SET k 5 EXAT 1 => +OK
        SETRANGE k 1 x => :2
        TTL k => :-1
        SET k 5 EXAT 1 => +OK
        SETBIT k 0 1 => :0
        TTL k => :-1
        ",
    );
}

#[test]
fn set_options() {
    transcript(
        "
        SET k v1 XX => nil
        SET k v1 NX => +OK
        SET k v2 NX => nil
        SET k v2 nx get => \"v1\"
        GET k => \"v1\"
        SET k v2 XX GET => \"v1\"
        SET new v XX GET => nil
        SET new v NX GET => nil
        GET new => \"v\"
        SET k v EX 100 => +OK
        TTL k => :100
        SET k v KEEPTTL => +OK
        TTL k => :100
        SET k v PX 1500 EX 7 => -ERR syntax error
        SET k v EX 5 EX 7 => +OK
        TTL k => :7
        SET k v => +OK
        TTL k => :-1
        SET k v EXAT 1700000050 => +OK
        TTL k => :50
        SET k v PXAT 1700000050001 => +OK
        PTTL k => :50001
        SETEX k 9 v => +OK
        TTL k => :9
        PSETEX k 9999 v => +OK
        PTTL k => :9999
        SETNX k other => :0
        SETNX fresh v => :1
        ",
    );
}

#[test]
fn compare_and_swap() {
    let _unplanted = super::swap_tests::unplanted();
    transcript(
        "
        SET k v1 IFEQ v1 => nil
        EXISTS k => :0
        SET k v1 IFNE v1 => +OK
        SET k v2 IFEQ other => nil
        SET k v2 IFEQ v1 => +OK
        SET k v3 IFNE v2 => nil
        SET k v3 IFNE v1 => +OK
        SET k v4 IFEQ v1 GET => \"v3\"
        GET k => \"v3\"
        SET k v4 IFEQ v3 GET => \"v3\"
        GET k => \"v4\"
        SET k v IFEQ v4 NX => -ERR syntax error
        SET k v XX IFEQ v4 => -ERR syntax error
        SET k v IFEQ v4 IFNE v5 => -ERR syntax error
        SET k v IFEQ => -ERR syntax error
        SET k v5 IFEQ v4 EX 100 => +OK
        TTL k => :100
        DIGEST none => nil
        DELIFEQ k v4 => :0
        DELIFEQ k v5 => :1
        DELIFEQ k v5 => :0
        SET k v => +OK
        DELEX k IFEQ other => :0
        DELEX k IFNE v => :0
        DELEX k IFNE other => :1
        DELEX k => :0
        SET k v => +OK
        DELEX k => :1
        DELEX k IFEQ => -ERR wrong number of arguments for 'delex' command
        DELEX k NX v => -ERR syntax error
        SET k v IFDEQ xyz => -ERR must be exactly 16 hexadecimal characters
        SET empty \"\" => +OK
        DIGEST empty => \"2d06800538d394c2\"
        SET empty x IFDNE 2d06800538d394c2 => nil
        SET empty x IFDEQ 2D06800538D394C2 => +OK
        DELEX empty IFDEQ 2d06800538d394c2 => :0
        DELEX empty IFDNE 2d06800538d394c2 => :1
        SET none v IFDEQ 2d06800538d394c2 => nil
        SET none v IFDNE 2d06800538d394c2 => +OK
        ",
    );
}

#[test]
fn several_at_once() {
    transcript(
        "
        MSET a 1 b 2 a 3 => +OK
        MGET a b => [\"3\", \"2\"]
        MSET a 1 b => -ERR wrong number of arguments for 'mset' command
        MSETNX a 1 c 2 => :0
        EXISTS c => :0
        MSETNX c 1 d 2 => :1
        MSETNX c 1 d => -ERR wrong number of arguments for 'msetnx' command
        MSETEX 2 a 1 b 2 EX 100 => :1
        TTL b => :100
        MSETEX 1 a 2 KEEPTTL => :1
        TTL a => :100
        MSETEX 2 a 1 z 2 XX => :0
        MSETEX 2 y 1 z 2 NX => :1
        MSETEX 2 y 1 x 2 NX => :0
        MSETEX 0 a 1 => -ERR invalid numkeys value
        MSETEX 2 a 1 b => -ERR wrong number of key-value pairs
        MSETEX 1 a 1 NX XX => -ERR syntax error
        MSETEX 1 a 1 EX 0 => -ERR invalid expire time in 'msetex' command
        ",
    );
}

#[test]
fn counters() {
    transcript(
        "
        INCR n => :1
        INCRBY n 41 => :42
        DECR n => :41
        DECRBY n 50 => :-9
        GET n => \"-9\"
        DECRBY n -9223372036854775808 => -ERR decrement would overflow
        SET n 9223372036854775807 => +OK
        INCR n => -ERR increment or decrement would overflow
        INCRBY n 1.5 => -ERR value is not an integer or out of range
        SET n \" 1\" => +OK
        INCR n => -ERR value is not an integer or out of range
        SET n 1 EX 100 => +OK
        INCR n => :2
        TTL n => :100
        ",
    );
}

#[test]
fn parts_of_strings() {
    transcript(
        "
        APPEND k Hello => :5
        APPEND k \" World\" => :11
        GETRANGE k 0 4 => \"Hello\"
        GETRANGE k -5 -1 => \"World\"
        GETRANGE k 0 -100 => \"H\"
        GETRANGE k -1 -5 => \"\"
        GETRANGE k 5 4 => \"\"
        GETRANGE k 20 30 => \"\"
        GETRANGE none 0 -1 => \"\"
        SUBSTR k 0 0 => \"H\"
        GETRANGE k a 1 => -ERR value is not an integer or out of range
        SETRANGE k 6 Redis => :11
        GET k => \"Hello Redis\"
        SETRANGE new 3 x => :4
        GET new => \"\\x00\\x00\\x00x\"
        SETRANGE none 3 \"\" => :0
        EXISTS none => :0
        SETRANGE k 3 \"\" => :11
        SETRANGE k -1 x => -ERR offset is out of range
        SETRANGE k 536870911 xx => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE k 9223372036854775807 xx => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        ",
    );
}

#[test]
fn getex_changes_the_expiry() {
    transcript(
        "
        GETEX k EX 0 => nil
        SET k v => +OK
        GETEX k => \"v\"
        GETEX k EX 100 => \"v\"
        TTL k => :100
        GETEX k PERSIST => \"v\"
        TTL k => :-1
        GETEX k KEEPTTL => -ERR syntax error
        GETEX k EX 10 PERSIST => -ERR syntax error
        GETEX k EX 0 => -ERR invalid expire time in 'getex' command
        GETEX k PXAT 1 => \"v\"
        EXISTS k => :0
        ",
    );
}

#[test]
fn counters_with_a_fraction() {
    transcript(
        r#"
        INCRBYFLOAT f 0.1 => "0.1"
        INCRBYFLOAT f 0.2 => "0.3"
        INCRBYFLOAT f -0.3 => "0"
        SET f 5.0e3 EX 100 => +OK
        INCRBYFLOAT f 2.0e2 => "5200"
        TTL f => :100
        INCRBYFLOAT f x => -ERR value is not a valid float
        INCRBYFLOAT f " 1" => -ERR value is not a valid float
        INCRBYFLOAT f nan => -ERR value is not a valid float
        INCRBYFLOAT f inf => -ERR increment would produce NaN or Infinity
        GET f => "5200"
        SET f abc => +OK
        INCRBYFLOAT f 1 => -ERR value is not a valid float
        "#,
    );
}

#[test]
fn common_subsequences() {
    let text = r#"
        MSET a ohmytext b mynewtext => +OK
        LCS a b => "mytext"
        LCS a b LEN => :6
        LCS a b IDX => ["matches", [[[4, 7], [5, 8]], [[2, 3], [0, 1]]], "len", :6]
        LCS a b IDX MINMATCHLEN 4 => ["matches", [[[4, 7], [5, 8]]], "len", :6]
        LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN => ["matches", [[[4, 7], [5, 8], 4]], "len", :6]
        LCS a b IDX MINMATCHLEN -1 => ["matches", [[[4, 7], [5, 8]], [[2, 3], [0, 1]]], "len", :6]
        LCS a none => ""
        LCS a none LEN => :0
        LCS a b LEN IDX => -ERR If you want both the length and indexes, please just use IDX.
        LCS a b WHAT => -ERR syntax error
        LCS a b MINMATCHLEN => -ERR syntax error
        RPUSH l x => :1
        LCS a l => -ERR The specified keys must contain string values
        "#;
    // Integers are shown with their colon.
    let text =
        text.replace("[[4, 7], [5, 8]", "[[:4, :7], [:5, :8]").replace("[[2, 3], [0, 1]]", "[[:2, :3], [:0, :1]]");
    transcript(&text.replace(", 4]", ", :4]"));
}

#[test]
fn encodings() {
    transcript(
        r#"
        SET n 12345 => +OK
        OBJECT ENCODING n => "int"
        SET n 01 => +OK
        OBJECT ENCODING n => "embstr"
        SET n 12345678901234567890123456789012345678901234 => +OK
        OBJECT ENCODING n => "embstr"
        SET n 123456789012345678901234567890123456789012345 => +OK
        OBJECT ENCODING n => "raw"
        SET n 9223372036854775808 => +OK
        OBJECT ENCODING n => "embstr"
        APPEND fresh 1 => :1
        OBJECT ENCODING fresh => "int"
        APPEND fresh 1 => :2
        OBJECT ENCODING fresh => "raw"
        INCR fresh => :12
        OBJECT ENCODING fresh => "int"
        SETRANGE range 0 1 => :1
        OBJECT ENCODING range => "raw"
        COPY range copy => :1
        OBJECT ENCODING copy => "raw"
        SETBIT bit 1 1 => :0
        OBJECT ENCODING bit => "raw"
        BITOP OR dest fresh => :2
        OBJECT ENCODING dest => "raw"
        RPUSH l a => :1
        SET same a => +OK
        SETBIT same 1 1 => :1
        OBJECT ENCODING same => "raw"
        SET same 1 => +OK
        BITFIELD same SET u8 0 49 => [:49]
        OBJECT ENCODING same => "raw"
        SET same 1 => +OK
        BITFIELD same OVERFLOW FAIL INCRBY u1 0 2 => [nil]
        OBJECT ENCODING same => "raw"
        SET same 1 => +OK
        BITFIELD same GET u8 0 => [:49]
        SETRANGE same 0 "" => :1
        OBJECT ENCODING same => "int"
        INCRBYFLOAT same 9 => "10"
        OBJECT ENCODING same => "embstr"
        OBJECT REFCOUNT same => :1
        EXPIRE same 100 => :1
        RENAME same moved => +OK
        OBJECT ENCODING moved => "embstr"
        INCR moved => :11
        OBJECT ENCODING moved => "int"
        OBJECT ENCODING l => "quicklist"
        OBJECT ENCODING none => nil
        OBJECT REFCOUNT fresh => :2147483647
        OBJECT REFCOUNT l => :1
        OBJECT REFCOUNT none => nil
        OBJECT IDLETIME l => :0
        OBJECT IDLETIME none => nil
        OBJECT FREQ none => nil
        "#,
    );
}

#[test]
fn resp3_has_one_null_and_maps() {
    let mut client = Harness::new();
    client.protocol = wire::Protocol::Resp3;
    client.transcript(
        r#"
        GET k => _
        SET k v XX => _
        MGET k => [_]
        LPOP k => _
        LPOP k 1 => _
        LMPOP 1 k LEFT => _
        ZH.GET k => _
        OBJECT ENCODING k => _
        BITFIELD k OVERFLOW FAIL INCRBY u1 0 2 => [_]
        SET a x => +OK
        SET b x => +OK
        LCS a b IDX => {"matches": [[[:0, :0], [:0, :0]]], "len": :1}
        INCRBYFLOAT f 1.5 => "1.5"
        "#,
    );
    client.may_block = false;
    client.transcript("BLPOP none 0 => _");
    assert_eq!(client.time_out("BLPOP none 1"), "_");
}
