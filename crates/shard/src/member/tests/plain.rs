//! Plain clients of a node in a cluster.

use super::copies::chain_of;

/// Of two slots each, the changes of one reply could reach the followers of one slot only.
#[test]
fn what_writes_keeps_to_one_slot_where_others_have_copies() {
    let _turn = crate::one_core::turn();
    let mut town = chain_of(2);
    let client = town.plain_client(0);
    assert_eq!(town.say(0, client, &["SET a 1", "SET b 2", "RPUSH {a}l x"]), "+OK\r\n+OK\r\n:1\r\n");
    for request in ["MSET a 3 b 4", "RENAME a b", "DEL a b", "BITOP AND a b c", "LMOVE {a}l {b}l LEFT LEFT"] {
        let told = town.say(0, client, &[request]);
        assert!(told.starts_with("-CROSSSLOT "), "{request}: {told}");
    }
    let told = town.say(0, client, &["MULTI", "SET a 5", "GET b", "EXEC"]);
    assert!(told.starts_with("+OK\r\n+QUEUED\r\n+QUEUED\r\n-CROSSSLOT "), "{told}");
    assert_eq!(town.say(0, client, &["MSET a 6 {a}b 7"]), "+OK\r\n");
    let values = "*2\r\n$1\r\n6\r\n$1\r\n2\r\n";
    assert_eq!(town.say(0, client, &["MGET a b"]), values, "what only reads takes what is there");
    let told = town.say(0, client, &["MULTI", "GET a", "GET b", "EXEC"]);
    assert_eq!(told, format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n{values}"));
}

#[test]
fn a_cluster_without_copies_takes_any_keys_of_a_core_together() {
    let _turn = crate::one_core::turn();
    let mut town = chain_of(1);
    town.chain_length = 1;
    town.tell_chain(4, &[0], 1);
    let client = town.plain_client(0);
    assert_eq!(town.say(0, client, &["MSET a 1 b 2", "RENAME a b", "GET b"]), "+OK\r\n+OK\r\n$1\r\n1\r\n");
    let told = town.say(0, client, &["MULTI", "SET a 5", "GET b", "EXEC"]);
    assert_eq!(told, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$1\r\n1\r\n");
}
