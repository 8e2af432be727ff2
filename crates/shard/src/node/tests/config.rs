//! CONFIG: what is told, what is taken, and what is refused.

use super::*;

#[test]
fn config_get_knows_globs_and_names_each_setting_once() {
    let mut node = Node::new();
    assert_eq!(node.value("CONFIG GET save"), Value::Array(vec![bulk("save"), bulk("")]));
    let Value::Array(found) = node.value("CONFIG GET maxmemory* MAXMEMORY") else { panic!("no array") };
    assert_eq!(found.len(), 2 * 4, "{found:?}");
    assert_eq!(node.value("CONFIG GET Save save"), Value::Array(vec![bulk("Save"), bulk("")]));
    assert_eq!(node.value("CONFIG GET Sav? SAVE"), Value::Array(vec![bulk("save"), bulk("")]));
    assert_eq!(node.value("CONFIG GET nonsense"), Value::Array(vec![]));
    node.protocol = Protocol::Resp3;
    assert_eq!(node.value("CONFIG GET hz"), Value::Map(vec![(bulk("hz"), bulk("10"))]));
    node.door = Door::Cluster;
    assert_eq!(node.value("CONFIG GET cluster-enabled"), Value::Map(vec![(bulk("cluster-enabled"), bulk("yes"))]));
}

#[test]
fn config_set_is_all_or_nothing() {
    let mut node = Node::new();
    // The reply comes when all cores ask for the password.
    assert_eq!(node.say("CONFIG SET maxmemory 100mb requirepass secret timeout 30"), "");
    let NodeOutcome::ConfigChanged(changes) = &node.outcome else { panic!("{:?}", node.outcome) };
    assert_eq!(changes.iter().find_map(ConfigChange::password), Some(Some(b"secret".to_vec())));
    assert_eq!(node.config.memory_bytes_max(), Some(100 << 20));
    assert_eq!((node.config.password(), node.config.idle_timeout_s()), (Some(&b"secret"[..]), Some(30)));
    assert_eq!(node.say("CONFIG SET hash-max-ziplist-entries 5"), "+OK\r\n");
    assert_eq!(node.config.value("hash-max-listpack-entries"), b"5");
    assert_eq!(node.send(&[b"CONFIG", b"SET", b"save", b"900 1  300 10"]), b"+OK\r\n");
    assert_eq!(node.config.value("save"), b"900 1 300 10");
    for (request, error) in [
        ("CONFIG SET timeout 1 nonsense 2", "Unknown option or number of arguments for CONFIG SET - 'nonsense'"),
        ("CONFIG SET timeout 1 hz", "wrong number of arguments for 'config|set' command"),
        ("CONFIG SET timeout 1 hz 0", "argument must be between 1 and 500 inclusive"),
        ("CONFIG SET timeout 1 timeout 2", "'timeout') - duplicate parameter"),
        ("CONFIG SET timeout 1 port 2", "'port') - can't set immutable config"),
        ("CONFIG SET timeout x", "argument couldn't be parsed into an integer"),
        ("CONFIG SET maxmemory x", "argument must be a memory value"),
        ("CONFIG SET activedefrag 1", "argument must be 'yes' or 'no'"),
        ("CONFIG SET maxmemory-policy x", "argument(s) must be one of the following: volatile-lru, "),
        ("CONFIG SET save 1", "Invalid save parameters"),
    ] {
        let reply = node.say(request);
        assert!(reply.starts_with("-ERR ") && reply.contains(error), "{request}: {reply}");
        assert_eq!(node.config.idle_timeout_s(), Some(30), "{request}");
    }
}

#[test]
fn config_has_its_other_verbs() {
    let mut node = Node::new();
    assert_eq!(node.say("CONFIG RESETSTAT"), "+OK\r\n");
    assert_eq!(node.outcome, NodeOutcome::ResetStatistics);
    assert!(node.say("CONFIG REWRITE").starts_with("-ERR The server is running without a config file"));
    assert!(node.config.preset("port", b"7000").is_ok());
    assert_eq!(node.config.integer("port"), 7000);
    assert!(node.config.preset("port", b"x").unwrap_err().starts_with("port: "));
    assert!(node.config.preset("nonsense", b"x").is_err());
}
