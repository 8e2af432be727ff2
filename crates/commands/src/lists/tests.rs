//! Lists, as transcripts.

use crate::harness::{Harness, transcript};

#[test]
fn ends() {
    transcript(
        "
        RPUSHX l a => :0
        LPUSHX l a => :0
        RPUSH l a b c => :3
        LPUSH l x y => :5
        LRANGE l 0 -1 => [\"y\", \"x\", \"a\", \"b\", \"c\"]
        RPUSHX l d => :6
        LPUSHX l z => :7
        LLEN l => :7
        LLEN none => :0
        LPUSH new 1 2 3 => :3
        LRANGE new 0 -1 => [\"3\", \"2\", \"1\"]
        LPOP l => \"z\"
        RPOP l => \"d\"
        LPOP l 2 => [\"y\", \"x\"]
        RPOP l 2 => [\"c\", \"b\"]
        LPOP l 0 => []
        LPOP l -1 => -ERR value is out of range, must be positive
        LPOP l x => -ERR value is out of range, must be positive
        LPOP l 1 2 => -ERR wrong number of arguments for 'lpop' command
        RPOP l 100 => [\"a\"]
        EXISTS l => :0
        RPOP l => nil
        RPOP l 1 => nil-array
        RPOP l 0 => nil-array
        SET s v => +OK
        LPUSH s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        RPOP s => -WRONGTYPE Operation against a key holding the wrong kind of value
        LLEN s => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET new => -WRONGTYPE Operation against a key holding the wrong kind of value
        MGET new s => [nil, \"v\"]
        SET new v GET => -WRONGTYPE Operation against a key holding the wrong kind of value
        SET new v IFEQ v => -WRONGTYPE Operation against a key holding the wrong kind of value
        DELEX new IFEQ v => -WRONGTYPE Operation against a key holding the wrong kind of value
        TYPE new => +list
        COPY new copy => :1
        RENAME copy moved => +OK
        LRANGE moved 0 -1 => [\"3\", \"2\", \"1\"]
        SET new v NX => nil
        DELEX moved => :1
        SET new v => +OK
        GET new => \"v\"
        ",
    );
}

#[test]
fn windows_and_elements() {
    transcript(
        "
        RPUSH l a b c d e => :5
        LRANGE l 1 2 => [\"b\", \"c\"]
        LRANGE l -2 -1 => [\"d\", \"e\"]
        LRANGE l 3 1 => []
        LRANGE l 9 10 => []
        LRANGE none 0 -1 => []
        LRANGE l a 1 => -ERR value is not an integer or out of range
        LINDEX l 0 => \"a\"
        LINDEX l -1 => \"e\"
        LINDEX l 5 => nil
        LINDEX l -6 => nil
        LINDEX l x => -ERR value is not an integer or out of range
        LINDEX none x => nil
        LSET l 0 A => +OK
        LSET l -1 EE => +OK
        LSET l 5 x => -ERR index out of range
        LSET l -6 x => -ERR index out of range
        LSET l x x => -ERR value is not an integer or out of range
        LSET none x x => -ERR no such key
        LINSERT l BEFORE c bb => :6
        LINSERT l after c cc => :7
        LINSERT l after none cc => :-1
        LINSERT none after none cc => :0
        LINSERT l behind c cc => -ERR syntax error
        LRANGE l 0 -1 => [\"A\", \"b\", \"bb\", \"c\", \"cc\", \"d\", \"EE\"]
        LTRIM l 1 -2 => +OK
        LRANGE l 0 -1 => [\"b\", \"bb\", \"c\", \"cc\", \"d\"]
        LTRIM l 5 1 => +OK
        EXISTS l => :0
        LTRIM l 0 1 => +OK
        LTRIM l 0 x => -ERR value is not an integer or out of range
        RPUSH l x a x b x => :5
        LREM l 0 none => :0
        LREM l -2 x => :2
        LRANGE l 0 -1 => [\"x\", \"a\", \"b\"]
        LREM l 5 x => :1
        LREM l x a => -ERR value is not an integer or out of range
        LREM l -9223372036854775808 a => :1
        LREM none 0 a => :0
        LREM l 0 a => :0
        LREM l 0 b => :1
        EXISTS l => :0
        ",
    );
}

#[test]
fn positions() {
    transcript(
        "
        RPUSH l a b c 1 2 3 c c => :8
        LPOS l c => :2
        LPOS l none => nil
        LPOS none c => nil
        LPOS none c COUNT 1 => []
        LPOS l c RANK 2 => :6
        LPOS l c RANK -1 => :7
        LPOS l c COUNT 2 => [:2, :6]
        LPOS l c COUNT 0 => [:2, :6, :7]
        LPOS l c COUNT 0 RANK 2 => [:6, :7]
        LPOS l c COUNT 0 RANK -2 => [:6, :2]
        LPOS l c COUNT 0 MAXLEN 7 => [:2, :6]
        LPOS l c MAXLEN 2 => nil
        LPOS l c COUNT 1 MAXLEN 2 => []
        LPOS l c RANK -1 MAXLEN 1 => :7
        LPOS l c RANK 0 => -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
        LPOS l c COUNT -1 => -ERR COUNT can't be negative
        LPOS l c MAXLEN -1 => -ERR MAXLEN can't be negative
        LPOS l c RANK => -ERR syntax error
        LPOS l c WHAT 1 => -ERR syntax error
        LPOS l c RANK -9223372036854775808 => :7
        LPOS l c RANK -9223372036854775808 COUNT 1 => [:7, :6, :2]
        ",
    );
}

#[test]
fn transfers() {
    transcript(
        "
        RPUSH a 1 2 3 => :3
        LMOVE a b LEFT RIGHT => \"1\"
        LMOVE a b RIGHT LEFT => \"3\"
        RPOPLPUSH a b => \"2\"
        EXISTS a => :0
        LRANGE b 0 -1 => [\"2\", \"3\", \"1\"]
        RPOPLPUSH b b => \"1\"
        LRANGE b 0 -1 => [\"1\", \"2\", \"3\"]
        LMOVE b b LEFT LEFT => \"1\"
        LRANGE b 0 -1 => [\"1\", \"2\", \"3\"]
        LMOVE b b LEFT RIGHT => \"1\"
        LRANGE b 0 -1 => [\"2\", \"3\", \"1\"]
        LMOVE none b LEFT RIGHT => nil
        LMOVE a b UP RIGHT => -ERR syntax error
        SET s v => +OK
        LMOVE b s LEFT RIGHT => -WRONGTYPE Operation against a key holding the wrong kind of value
        LMOVE s b LEFT RIGHT => -WRONGTYPE Operation against a key holding the wrong kind of value
        LMOVE none s LEFT RIGHT => nil
        LLEN b => :3
        RPUSH one x => :1
        EXPIRE one 100 => :1
        RPOPLPUSH one one => \"x\"
        TTL one => :100
        LMPOP 2 none b LEFT => [\"b\", [\"2\"]]
        LMPOP 1 b RIGHT COUNT 10 => [\"b\", [\"1\", \"3\"]]
        LMPOP 1 b RIGHT COUNT 10 => nil-array
        LMPOP 1 s RIGHT => -WRONGTYPE Operation against a key holding the wrong kind of value
        LMPOP 0 b RIGHT => -ERR numkeys should be greater than 0
        LMPOP x b RIGHT => -ERR numkeys should be greater than 0
        LMPOP 3 b RIGHT => -ERR syntax error
        LMPOP 1 b UP => -ERR syntax error
        LMPOP 1 b LEFT COUNT 0 => -ERR count should be greater than 0
        LMPOP 1 b LEFT COUNT => -ERR syntax error
        LMPOP 1 b LEFT COUNT 1 COUNT 1 => -ERR syntax error
        ",
    );
}

#[test]
fn blocking() {
    let mut client = Harness::new();
    client.transcript(
        "
        BLPOP a b 0 => blocks on a b for ever
        BRPOP a 1.5 => blocks on a for +1500
        BLMOVE a b LEFT RIGHT 0.001 => blocks on a for +1
        BRPOPLPUSH a b 1 => blocks on a for +1000
        BLMPOP 2 2 a b LEFT => blocks on a b for +2000
        RPUSH b 1 2 3 4 5 => :5
        BLPOP a b 0 => [\"b\", \"1\"]
        BRPOP a b 0 => [\"b\", \"5\"]
        BLMOVE b c LEFT RIGHT 0 => \"2\"
        BRPOPLPUSH b c 0 => \"4\"
        BLMPOP 0 2 a b LEFT COUNT 5 => [\"b\", [\"3\"]]
        LRANGE c 0 -1 => [\"4\", \"2\"]
        BLPOP a -1 => -ERR timeout is negative
        BLPOP a -0.0001 => blocks on a for ever
        BLPOP a x => -ERR timeout is not a float or out of range
        BLPOP a nan => -ERR timeout is not a float or out of range
        BLPOP a 1e30 => -ERR timeout is negative
        BLPOP a inf => -ERR timeout is negative
        BLPOP a 9223372036000000 => -ERR timeout is out of range
        BLPOP a 9223372036854775 => -ERR timeout is out of range
        BLPOP a 9223372036854776 => -ERR timeout is negative
        SET s v => +OK
        BLPOP a s 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ",
    );
    client.may_block = false;
    client.transcript(
        "
        BLPOP a b 0 => nil-array
        BLMOVE a b LEFT RIGHT 0 => nil
        BRPOPLPUSH a b 0 => nil
        BLMPOP 0 1 a LEFT => nil-array
        ",
    );
    assert_eq!(client.time_out("BLPOP a b 1"), "nil-array");
    assert_eq!(client.time_out("BLMOVE a b LEFT LEFT 1"), "nil-array");
}

#[test]
fn a_key_of_another_type_does_not_wake() {
    let mut client = Harness::new();
    client.transcript("SET a text => +OK");
    for (line, blocked) in [
        ("BLPOP a b 0", "blocks on a b for ever"),
        ("BRPOP a b 0", "blocks on a b for ever"),
        ("BLMOVE a b LEFT LEFT 0", "blocks on a for ever"),
        ("BRPOPLPUSH a b 0", "blocks on a for ever"),
        ("BLMPOP 0 2 a b LEFT", "blocks on a b for ever"),
    ] {
        assert_eq!(client.resume(line), blocked);
        assert!(client.run(line).starts_with("-WRONGTYPE"));
    }
    client.transcript("RPUSH b 1 2 3 => :3");
    assert_eq!(client.resume("BLPOP a b 0"), "[\"b\", \"1\"]");
    assert_eq!(client.resume("BLMPOP 0 2 a b RIGHT"), "[\"b\", [\"3\"]]");
    let wrong_target = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(client.resume("BRPOPLPUSH b a 0"), wrong_target);
    assert_eq!(client.resume("BRPOPLPUSH b c 0"), "\"2\"");
}
