//! `zerohop bench`: how it ends, and what it says then.

use std::fs;

use crate::process::{Run, Scratch, Server, run, zerohop};

/// Refused before anything is dialled, with all of these texts.
fn refused(words: &[&str], texts: &[&str]) {
    let run = run(&[&["bench"], words].concat());
    assert_eq!(run.code, 2, "{words:?}: {}", run.errors);
    for text in texts {
        assert!(run.errors.contains(text), "{words:?}: {text:?} is not in {}", run.errors);
    }
}

#[test]
fn a_wrong_option_ends_with_2_and_names_its_value_and_what_is_allowed() {
    refused(&["--ratio", "1"], &["--ratio 1", "9:1"]);
    refused(&["--ratio", "0:0"], &["--ratio 0:0", "above 0"]);
    refused(&["--rate", "0"], &["--rate 0", "above 0"]);
    refused(&["--theta", "1", "--distribution", "zipf"], &["--theta 1", "above 0 and below 1"]);
    refused(&["-c", "0"], &["--connections 0", "at least 1"]);
    refused(&["-P", "0"], &["--pipeline 0", "at least 1"]);
    refused(&["--threads", "0"], &["--threads 0", "at least 1"]);
    refused(&["--threads", "3", "-c", "2"], &["--threads 3", "2 --connections"]);
    refused(&["-n", "0"], &["--requests 0", "at least 1"]);
    refused(&["-d", "0"], &["--duration 0", "more than 0"]);
    refused(&["-d", "inf"], &["--duration inf", "seconds up to 1000000000"]);
    refused(&["--warm-up", "1e10"], &["--warm-up 10000000000", "seconds up to 1000000000"]);
    refused(&["--command", " "], &["--command", "words of a command"]);
}

#[test]
fn keys_and_values_that_cannot_be_end_with_2() {
    refused(&["--keys", "0"], &["--keys 0", "at least 1"]);
    refused(&["--key-bytes", "1"], &["--key-bytes 1", "10 to 65535", "1000000 keys"]);
    refused(&["--key-bytes", "70000"], &["--key-bytes 70000", "10 to 65535"]);
    refused(&["--value-bytes", "9-3"], &["--value-bytes 9-3", "536870912", "LOW-HIGH"]);
    refused(&["--value-bytes", "536870913"], &["--value-bytes 536870913", "536870912"]);
}

#[test]
fn what_is_not_there_ends_with_2() {
    refused(&["--target", "foo"], &["--target foo", "HOST:PORT"]);
    refused(&["--target", "foo:"], &["--target foo:", "HOST:PORT"]);
    refused(&["--target", ":6379"], &["--target :6379", "HOST:PORT"]);
    refused(&["--unixsocket", "s", "--cluster"], &["--unixsocket s", "--target"]);
    refused(&["--password-env", "NOPE"], &["--password-env NOPE", "no such variable"]);
    refused(&["--pin", "0,1000000"], &["--pin 1000000", "no such CPU"]);
    // No number of a process is that large.
    refused(&["--server-pid", "4294967295"], &["--server-pid 4294967295", "no such process"]);
    refused(&["--beside-pid", "4294967295"], &["--beside-pid 4294967295", "no such process"]);
}

/// A short run against this server, with these words besides.
fn bench(server: &Server, words: &[&str]) -> Run {
    let target = format!("127.0.0.1:{}", server.port);
    let process = server.process_id().to_string();
    let common = ["bench", "--target", &target, "--server-pid", &process, "-c", "2", "--keys", "10", "--warm-up", "0"];
    run(&[&common, words].concat())
}

#[test]
fn a_run_ends_with_0_and_one_whose_replies_were_errors_with_1() {
    let server = Server::serve(&[]);
    let done = bench(&server, &["-n", "10", "--preload"]);
    assert_eq!((done.code, done.errors.as_str()), (0, ""));
    assert!(done.output.contains("requests    10 in "), "{}", done.output);
    for format in [&[][..], &["--json"]] {
        let failed = bench(&server, &[&["-n", "10", "--command", "NOSUCH __key__"], format].concat());
        assert_eq!(failed.code, 1, "{}", failed.output);
        let text = "bench: 10 of 10 replies were errors, first: ERR unknown command";
        assert!(failed.errors.starts_with(text), "{}", failed.errors);
        let told =
            if format.is_empty() { "ERRORS      10 of 10, first: ERR" } else { "\"errors\":10,\"errors_outside\":0," };
        assert!(failed.output.contains(told), "{}", failed.output);
    }
}

#[test]
fn a_server_that_wants_a_password_is_told_one_by_a_variable() {
    let scratch = Scratch::new();
    let file = scratch.at("password");
    fs::write(&file, "geheim").unwrap();
    let server = Server::serve(&["--requirepass-file", &file]);
    let failed = bench(&server, &["-n", "10"]);
    assert_eq!((failed.code, failed.output.as_str()), (1, ""));
    assert!(failed.errors.contains("--password-env") && failed.errors.contains("NOAUTH"), "{}", failed.errors);
    let target = format!("127.0.0.1:{}", server.port);
    let words = ["bench", "--target", &target, "-c", "2", "-n", "10", "--password-env", "PASSWORD"];
    let done: Run = zerohop(&words).env("PASSWORD", "geheim").output().unwrap().into();
    assert_eq!((done.code, done.errors.as_str()), (0, ""));
}
