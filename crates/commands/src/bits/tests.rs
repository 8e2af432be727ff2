//! Bits, as transcripts.

use crate::harness::{Harness, transcript};

#[test]
fn single_bits() {
    transcript(
        r#"
        SETBIT b 7 1 => :0
        SETBIT b 7 1 => :1
        GETBIT b 7 => :1
        GETBIT b 100 => :0
        GETBIT none 0 => :0
        GET b => "\x01"
        SETBIT b 17 1 => :0
        GET b => "\x01\x00@"
        SETBIT b 7 0 => :1
        SETBIT b -1 1 => -ERR bit offset is not an integer or out of range
        SETBIT b x 1 => -ERR bit offset is not an integer or out of range
        SETBIT b 4294967296 1 => -ERR bit offset is not an integer or out of range
        SETBIT b 0 2 => -ERR bit is not an integer or out of range
        SETBIT b 0 x => -ERR bit is not an integer or out of range
        GETBIT b -1 => -ERR bit offset is not an integer or out of range
        RPUSH l a => :1
        SETBIT l 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        GETBIT l 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn counting_and_finding() {
    transcript(
        r#"
        SET k foobar => +OK
        BITCOUNT k => :26
        BITCOUNT k 0 0 => :4
        BITCOUNT k 1 1 => :6
        BITCOUNT k 1 1 BYTE => :6
        BITCOUNT k 5 30 BIT => :17
        BITCOUNT k -2 -1 => :7
        BITCOUNT k 5 2 => :0
        BITCOUNT k -1 -5 => :0
        BITCOUNT k 0 -100 => :4
        BITCOUNT k 0 => -ERR syntax error
        BITCOUNT k 0 1 WORD => -ERR syntax error
        BITCOUNT k a 1 => -ERR value is not an integer or out of range
        BITCOUNT none 0 => :0
        SET p "\xff\xf0\x00" => +OK
        BITPOS p 0 => :12
        BITPOS p 1 => :0
        BITPOS p 1 2 => :-1
        BITPOS p 0 0 0 => :-1
        BITPOS p 0 2 => :16
        BITPOS p 1 9 10 BIT => :9
        BITPOS p 0 8 11 BIT => :-1
        BITPOS p 0 -1 -1 => :16
        BITPOS p 2 => -ERR The bit argument must be 1 or 0.
        BITPOS p x => -ERR value is not an integer or out of range
        BITPOS p 0 0 0 WORD => -ERR syntax error
        BITPOS p 0 0 0 BIT x => -ERR syntax error
        SET ones "\xff\xff" => +OK
        BITPOS ones 0 => :16
        BITPOS ones 0 0 -1 => :-1
        BITPOS ones 0 1 => :16
        BITPOS ones 0 5 => :-1
        BITPOS none 0 => :0
        BITPOS none 1 => :-1
        SET empty "" => +OK
        BITPOS empty 0 => :-1
        BITPOS empty 1 => :-1
        BITCOUNT empty => :0
        "#,
    );
}

#[test]
fn combining() {
    transcript(
        r#"
        SET a "\xf0\x0f\xff" => +OK
        SET b "\xff\x00" EX 100 => +OK
        BITOP AND d a b => :3
        GET d => "\xf0\x00\x00"
        BITOP OR d a b none => :3
        GET d => "\xff\x0f\xff"
        BITOP xor d a b => :3
        GET d => "\x0f\x0f\xff"
        BITOP NOT b a => :3
        GET b => "\x0f\xf0\x00"
        TTL b => :-1
        BITOP AND d none none => :0
        EXISTS d => :0
        BITOP NOT d a b => -ERR BITOP NOT must be called with a single source key.
        BITOP NAND d a b => -ERR syntax error
        RPUSH l a => :1
        BITOP AND d a l => -WRONGTYPE Operation against a key holding the wrong kind of value
        BITOP AND l a a => :3
        GET l => "\xf0\x0f\xff"
        "#,
    );
}

#[test]
fn fields() {
    transcript(
        r#"
        BITFIELD k => []
        EXISTS k => :0
        BITFIELD k GET u8 0 => [:0]
        EXISTS k => :0
        BITFIELD k INCRBY i5 100 1 GET u4 0 => [:1, :0]
        STRLEN k => :14
        BITFIELD f SET u8 0 255 GET i8 0 INCRBY u8 0 1 => [:0, :-1, :0]
        BITFIELD f SET u8 #1 65 GET u8 8 => [:0, :65]
        GET f => "\x00A"
        BITFIELD f OVERFLOW SAT INCRBY u2 0 100 INCRBY u2 0 -100 => [:3, :0]
        BITFIELD f OVERFLOW FAIL INCRBY u2 0 100 OVERFLOW WRAP INCRBY u2 0 5 => [nil, :1]
        BITFIELD f SET i8 0 -128 OVERFLOW SAT INCRBY i8 0 -1 OVERFLOW WRAP INCRBY i8 0 -1 => [:64, :-128, :127]
        BITFIELD f OVERFLOW SAT SET u8 0 -1 GET u8 0 => [:127, :255]
        BITFIELD f SET u8 0 257 GET u8 0 => [:255, :1]
        BITFIELD f OVERFLOW SAT SET i16 64 -9223372036854775807 GET i16 64 => [:0, :32767]
        BITFIELD f OVERFLOW SAT SET i16 64 -9223372036854743041 GET i16 64 => [:32767, :32767]
        BITFIELD f OVERFLOW SAT SET i16 64 -9223372036854743040 GET i16 64 => [:32767, :-32768]
        BITFIELD f OVERFLOW SAT SET i64 64 -9223372036854775808 GET i64 64 => [:-9223372036854775808, :-9223372036854775808]
        BITFIELD f SET i64 64 0 => [:-9223372036854775808]
        BITFIELD f SET i64 3 -9223372036854775808 INCRBY i64 3 -1 => [:722827740192964608, :9223372036854775807]
        BITFIELD f SET u63 0 9223372036854775807 GET u63 0 => [:576460752303423487, :9223372036854775807]
        BITFIELD f GET u64 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD f GET i65 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD f GET x8 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD f GET u8 -1 => -ERR bit offset is not an integer or out of range
        BITFIELD f GET u8 #x => -ERR bit offset is not an integer or out of range
        BITFIELD f OVERFLOW MAYBE => -ERR Invalid OVERFLOW type specified
        BITFIELD f SET u8 0 x => -ERR value is not an integer or out of range
        BITFIELD f GET u8 => -ERR syntax error
        BITFIELD f PUT u8 0 => -ERR syntax error
        BITFIELD_RO f GET u8 0 => [:255]
        BITFIELD_RO f SET u8 0 1 => -ERR BITFIELD_RO only supports the GET subcommand
        RPUSH l a => :1
        BITFIELD l GET u8 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn what_changes_nothing_is_no_write() {
    let mut client = Harness::new();
    client.transcript("SETBIT b 7 1 => :0");
    let version = client.run("ZH.GET b");
    client.transcript(
        "
        SETBIT b 7 1 => :1
        SETBIT b 0 0 => :0
        BITFIELD b SET u8 0 1 INCRBY u8 0 0 => [:1, :1]
        SETRANGE b 0 \"\" => :1
        ",
    );
    assert_eq!(client.run("ZH.GET b"), version);
    client.transcript("SETBIT b 8 0 => :0");
    assert_ne!(client.run("ZH.GET b"), version, "growing is a write");
}
