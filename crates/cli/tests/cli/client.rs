//! `zerohop cli` as a command, as a filter and as a cluster client.

use crate::process::{Server, run, run_with_input};

#[test]
fn one_command_prints_its_reply_and_tells_an_error_by_its_exit_code() {
    let server = Server::serve(&[]);
    let port = server.port.to_string();
    assert_eq!(server.ask(&["set", "greeting", "hello world"]), "OK");
    assert_eq!(server.ask(&["get", "greeting"]), "hello world");
    assert_eq!(server.ask(&["rpush", "list", "a", "b"]), "2");
    assert_eq!(server.ask(&["lrange", "list", "0", "-1"]), "a\nb");
    let wrong = run(&["cli", "-p", &port, "incr", "greeting"]);
    assert_eq!((wrong.code, wrong.output.as_str()), (1, "ERR value is not an integer or out of range\n"));
    assert_eq!(run(&["cli", "-p", &port, "--json", "lrange", "list", "0", "-1"]).output, "[\"a\",\"b\"]\n");
    assert_eq!(run(&["cli", "-p", &port, "-n", "3", "exists", "greeting"]).output, "0\n");
    let hello: serde_json::Value = serde_json::from_str(&run(&["cli", "-p", &port, "--json", "hello"]).output).unwrap();
    assert_eq!(hello["proto"], 3);
}

#[test]
fn lines_of_standard_input_are_commands() {
    let server = Server::serve(&[]);
    let port = server.port.to_string();
    let lines = "set k \"two words\\n\"\n\nget k\nappend k 'x'\nget nokey\n";
    let run = run_with_input(&["cli", "-p", &port], lines);
    assert_eq!((run.code, run.output.as_str()), (0, "OK\ntwo words\n11\n\n"));
    let failing = run_with_input(&["cli", "-p", &port], "nosuch\nping\n");
    assert_eq!(failing.code, 1);
    assert!(failing.output.ends_with("PONG\n"), "{}", failing.output);
    let unbalanced = run_with_input(&["cli", "-p", &port], "get \"k\n");
    assert_eq!(unbalanced.code, 1);
    assert!(unbalanced.errors.contains("not balanced"), "{}", unbalanced.errors);
}

#[test]
fn standard_input_is_the_last_argument_if_asked_for() {
    let server = Server::serve(&[]);
    let port = server.port.to_string();
    let bytes = "two\nlines, \"quotes\" and 'more'\n";
    assert_eq!(run_with_input(&["cli", "-p", &port, "-x", "set", "k"], bytes).output, "OK\n");
    assert_eq!(server.ask(&["strlen", "k"]), bytes.len().to_string());
    assert_eq!(run(&["cli", "-p", &port, "get", "k"]).output, bytes);
    let nothing = run_with_input(&["cli", "-p", &port, "-x"], "set k v");
    assert_eq!((nothing.code, nothing.errors.contains("zerohop cli -x set KEY")), (2, true));
}

#[test]
fn a_command_is_sent_as_often_as_asked_for() {
    let server = Server::serve(&[]);
    let port = server.port.to_string();
    assert_eq!(run(&["cli", "-p", &port, "-r", "3", "-i", "0.001", "incr", "n"]).output, "1\n2\n3\n");
    let failing = run(&["cli", "-p", &port, "-r", "2", "lpush", "n", "x"]);
    assert_eq!((failing.code, failing.output.lines().count()), (1, 2));
    assert_eq!(run(&["cli", "-p", &port, "-r", "0", "ping"]).code, 2);
    assert_eq!(run(&["cli", "-p", &port, "-i", "-1", "ping"]).code, 2);
}

#[test]
fn an_option_that_there_is_not_is_no_command() {
    let unknown = run(&["cli", "-p", "1", "-z", "set", "k"]);
    assert_eq!((unknown.code, unknown.output.as_str()), (2, ""));
    assert!(unknown.errors.contains("no option -z") && unknown.errors.contains("--help"), "{}", unknown.errors);
}

#[test]
fn a_server_that_was_told_to_stop_and_does_is_no_failure() {
    let server = Server::serve(&[]);
    let port = server.port.to_string();
    let stopped = run(&["cli", "-p", &port, "shutdown"]);
    assert_eq!((stopped.code, stopped.errors.as_str()), (0, ""));
    assert_eq!(server.ended().0, Some(0));
}

#[test]
fn redirects_are_followed_when_asked_for() {
    let server = Server::serve(&["--cores", "2"]);
    let ports = [server.port + 1, server.port + 2].map(|port| port.to_string());
    assert_eq!(server.ask(&["set", "k", "v"]), "OK");
    let direct = ports.each_ref().map(|port| run(&["cli", "-p", port, "get", "k"]).output);
    assert_eq!(direct.iter().filter(|output| *output == "v\n").count(), 1, "{direct:?}");
    assert_eq!(direct.iter().filter(|output| output.starts_with("MOVED ")).count(), 1, "{direct:?}");
    for port in &ports {
        assert_eq!(run(&["cli", "-c", "-p", port, "get", "k"]).output, "v\n");
    }
}

#[test]
fn nobody_there_is_said_with_the_fix() {
    let unused = ports::PortBlock::take().unwrap();
    let refused = run(&["cli", "-p", &unused.first().to_string(), "ping"]);
    assert_eq!(refused.code, 1);
    assert!(refused.errors.contains("zerohop up"), "{}", refused.errors);
}
