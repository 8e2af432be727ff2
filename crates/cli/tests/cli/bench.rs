//! `zerohop bench`: how it ends, and what it says then.

use std::fs;

use crate::process::{Run, Scratch, Server, run, zerohop};

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
