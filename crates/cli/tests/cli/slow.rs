//! SLOWLOG over the cores of a node.

use crate::process::{Server, run};

#[test]
fn what_takes_long_is_logged_once_with_its_client_whichever_core_it_ran_on() {
    let server = Server::serve(&["--cores", "2"]);
    assert_eq!(server.ask(&["config", "set", "slowlog-max-len", "1000"]), "OK");
    assert_eq!(server.ask(&["config", "set", "slowlog-log-slower-than", "0"]), "OK");
    let keys: Vec<String> = (0..32).map(|number| format!("key{number}")).collect();
    keys.iter().for_each(|key| assert_eq!(server.ask(&["set", key, "v"]), "OK"));
    // Both cores have something to do with these.
    let many: Vec<&str> = ["del"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    assert_eq!(server.ask(&many), "32");
    assert_eq!(server.ask(&["keys", "*"]), "");
    assert_eq!(server.ask(&["config", "set", "slowlog-log-slower-than", "-1"]), "OK");
    let told = server.ask(&["slowlog", "get", "-1"]);
    let lines = |wanted: &str| told.lines().filter(|line| *line == wanted).count();
    for key in &keys {
        // By its SET and by the DEL, which keeps 31 words.
        assert!((1..=2).contains(&lines(key)), "{key} in {told}");
    }
    assert_eq!((lines("set"), lines("del"), lines("keys")), (32 + 1, 1, 1), "{told}");
    let entries: usize = server.ask(&["slowlog", "len"]).parse().unwrap();
    assert_eq!(told.lines().filter(|line| line.starts_with("127.0.0.1:")).count(), entries, "{told}");
    let of_core = |core: u16| {
        let port = (server.port + 1 + core).to_string();
        run(&["cli", "-p", &port, "slowlog", "len"]).output.trim().parse::<usize>().unwrap()
    };
    let (one, other) = (of_core(0), of_core(1));
    assert!(one > 0 && other > 0, "{one} and {other}");
    assert_eq!(one + other, entries);
    assert_eq!(server.ask(&["slowlog", "reset"]), "OK");
    assert_eq!(server.ask(&["slowlog", "len"]), "0");
}
