//! One node with keys becomes three where it is: `cluster create`, and `join` by the line that its nodes print.

use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use ports::PortBlock;
use rustix::process::Signal;

use crate::cluster::Three;
use crate::process::{PATIENCE, Scratch, Server, run};

/// The line that `cluster add` prints for these options.
fn line_of(arguments: &[&str]) -> String {
    let begun = Instant::now();
    let added = loop {
        // A founder agrees with itself first, and writes that down.
        let added = run(&[&["cluster", "add"], arguments].concat());
        if added.code == 0 {
            break added;
        }
        assert!(begun.elapsed() < PATIENCE, "{}", added.errors);
    };
    let line = added.output.lines().find(|line| !line.starts_with('#'));
    line.expect(&added.output).to_owned()
}

/// A value that is kept and sent in pieces.
fn long() -> String {
    "0123456789abcdef".repeat(20_000)
}

#[test]
fn one_node_with_keys_grows_to_three_where_it_is() {
    let scratch = Scratch::new();
    let directory = scratch.at("0");
    let told = ["--dir", &directory, "--cores", "2", "--machine", "m0"];
    let alone = Server::serve(&told);
    let port = alone.port.to_string();
    for key in 0..200 {
        assert_eq!(alone.ask(&["set", &format!("key:{key}"), &format!("value {key}")]), "OK");
    }
    assert_eq!(alone.ask(&["rpush", "list", "a", "b", "c"]), "3");
    assert_eq!(alone.ask(&["set", "expires", "later", "EX", "100000"]), "OK");
    assert_eq!(alone.ask(&["set", "long", &long()[..100_000]]), "OK");
    assert_eq!(alone.ask(&["-n", "3", "set", "elsewhere", "in database 3"]), "OK");
    let in_use = run(&["cluster", "create", "--dir", &directory]);
    assert!(in_use.code == 3 && in_use.errors.contains(&alone.process_id().to_string()), "{}", in_use.errors);
    let (code, block) = alone.stop_for_another(Signal::TERM);
    assert_eq!(code, Some(0));

    let unfounded = run(&["cluster", "add", "--dir", &directory]);
    assert!(unfounded.code == 1 && unfounded.errors.contains("zerohop cluster create"), "{}", unfounded.errors);
    let made = run(&["cluster", "create", "--dir", &directory]);
    assert!(made.code == 0 && made.output.contains("zerohop serve --dir"), "{}{}", made.output, made.errors);
    let secret = std::fs::metadata(scratch.path().join("0/cluster")).unwrap();
    assert_eq!(secret.mode() & 0o077, 0, "the token is its owner's");
    let unstarted = run(&["cluster", "add", "--dir", &directory]);
    assert!(
        unstarted.code == 1 && unstarted.errors.contains("has not founded its cluster yet"),
        "{}",
        unstarted.errors
    );
    let again = run(&["cluster", "create", "--dir", &directory]);
    assert!(again.code == 1 && again.errors.contains("a cluster already"), "{}", again.errors);

    // The same line as before: its directory knows what it is.
    let first = Server::serve_on(block, &told);
    let line = line_of(&["-p", &port]);
    assert_eq!(line, line_of(&["--dir", &directory]));
    assert!(first.said.contains(&format!("others join with: {line}\n")), "{}", first.said);
    let joined = [1, 2].map(|number| {
        let (directory, machine) = (scratch.at(&number.to_string()), format!("m{number}"));
        let told = ["--dir", &directory, "--machine", &machine];
        Server::join_on(PortBlock::take().unwrap(), &line, &told)
    });
    let [second, third] = joined;
    let mut three = Three::of_nodes(scratch, [2, 1, 1], [first, second, third]);
    three.await_whole();
    three.kill(0);
    for key in 0..200 {
        assert_eq!(three.ask(&["get", &format!("key:{key}")]), format!("value {key}"));
    }
    assert_eq!(three.ask(&["lrange", "list", "0", "-1"]), "a\nb\nc");
    assert_eq!(three.ask(&["get", "long"]), long()[..100_000]);
    assert!(three.ask(&["ttl", "expires"]).parse::<u32>().unwrap() > 90_000);
    assert_eq!(three.ask(&["exists", "elsewhere"]), "0");
    // Cluster ports have one database; port P of the node that serves the key has the others.
    let of_node = |number: usize| {
        let port = three.node(number).port.to_string();
        run(&["cli", "-p", &port, "-n", "3", "get", "elsewhere"]).output
    };
    let told = [of_node(1), of_node(2)];
    assert!(told.iter().any(|told| told == "in database 3\n"), "{told:?}");
}

/// The line alone starts it again as the node that it is, where the others know it.
#[test]
fn who_has_joined_keeps_its_port() {
    let scratch = Scratch::new();
    let first = Server::serve(&["--dir", &scratch.at("0"), "--machine", "m0", "--cluster", "new"]);
    let line = line_of(&["--dir", &scratch.at("0")]);
    let directory = scratch.at("1");
    let second = Server::join_on(PortBlock::take().unwrap(), &line, &["--dir", &directory, "--machine", "m1"]);
    let port = second.port;
    // It serves its ports before it is let in, and names a node that is in meanwhile.
    let (begun, own) = (Instant::now(), format!("zerohop join 127.0.0.1:{port} "));
    while !line_of(&["--dir", &directory]).starts_with(&own) {
        assert!(begun.elapsed() < PATIENCE, "{own} is never said");
    }
    let (code, block) = second.stop_for_another(Signal::TERM);
    assert_eq!(code, Some(0));
    let words: Vec<&str> = line.split(' ').skip(1).chain(["--dir", &directory]).collect();
    let second = Server::start_within(block, &words);
    assert_eq!(second.port, port);
    let status = run(&["cluster", "status", "-p", &first.port.to_string()]).output;
    let nodes = status.lines().filter(|line| line.contains("127.0.0.1:")).count();
    assert_eq!(nodes, 2, "{status}");
}

#[test]
fn who_cannot_join_hears_why() {
    let scratch = Scratch::new();
    let token = "0123456789abcdef0123456789abcdef";
    let directory = scratch.at("0");
    let refused = |arguments: &[&str]| {
        let run = run(&[&["join"], arguments, &["--dir", &directory]].concat());
        assert_ne!(run.code, 0);
        run.errors
    };
    let said = refused(&["127.0.0.1:1", "--port", "0"]);
    assert!(said.contains("needs the `token`"), "{said}");
    let said = refused(&["nonsense", "--token", token]);
    assert!(said.contains("no host:port"), "{said}");
    // It would be another node than it says to those that it does not reach there.
    let said = refused(&["192.0.2.1:6379", "--token", token, "--bind", "127.0.0.1", "--port", "0"]);
    assert!(said.contains("do not reach this one at 127.0.0.1"), "{said}");
    let said = run(&["cluster", "add", "--dir", &scratch.at("nobody")]).errors;
    assert!(said.contains("is no node of a cluster"), "{said}");
}
