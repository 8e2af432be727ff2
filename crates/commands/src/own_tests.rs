//! Zerohop's own commands, as transcripts.

use crate::harness::Harness;

#[test]
fn get_shows_the_version() {
    Harness::new().transcript(
        "
        ZH.GET k => nil-array
        SET k v => +OK
        ZH.GET k => [\"v\", :1]
        APPEND k w => :2
        ZH.GET k => [\"vw\", :2]
        RPUSH l a => :1
        ZH.GET l => -WRONGTYPE Operation against a key holding the wrong kind of value
        ",
    );
}

#[test]
fn wait_answers_or_blocks() {
    let mut client = Harness::new();
    client.transcript(
        "
        ZH.WAIT k ABSENT 0 => [:1, :0]
        ZH.WAIT k EXISTS 0 => blocks on k for ever
        ZH.WAIT k EQ v 250 => blocks on k for +250
        ZH.WAIT k NE v 0 => [:1, :0]
        SET k v => +OK
        ZH.WAIT k EXISTS 0 => [:1, :1]
        ZH.WAIT k EQ v 0 => [:1, :1]
        ZH.WAIT k NE v 0 => blocks on k for ever
        ZH.WAIT k VERSION 1 0 => [:1, :1]
        ZH.WAIT k VERSION 2 0 => blocks on k for ever
        ZH.WAIT k ABSENT 0 => blocks on k for ever
        ZH.WAIT k EQ v => -ERR syntax error
        ZH.WAIT k EQ v 0 0 => -ERR syntax error
        ZH.WAIT k EXISTS v 0 => -ERR syntax error
        ZH.WAIT k LIKE v 0 => -ERR syntax error
        ZH.WAIT k EQ v -1 => -ERR timeout is negative
        ZH.WAIT k EQ v 1.5 => -ERR timeout is not an integer or out of range
        ZH.WAIT k VERSION x 0 => -ERR version is not an integer or out of range
        RPUSH l a => :1
        ZH.WAIT l EQ v 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZH.WAIT l EXISTS 0 => [:1, :1]
        ",
    );
    client.may_block = false;
    client.transcript("ZH.WAIT k EQ other 0 => [:0, :1]");
    assert_eq!(client.time_out("ZH.WAIT k EQ other 100"), "[:0, :1]");
}
