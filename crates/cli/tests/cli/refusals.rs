//! Wrong options, variables and files: the answer names key, value, origin and fix, and the exit code is 2.

use crate::process::{Scratch, run, zerohop};

fn refused(arguments: &[&str], texts: &[&str]) {
    let run = run(arguments);
    assert_eq!(run.code, 2, "{arguments:?}: {}", run.errors);
    for text in texts {
        assert!(run.errors.contains(text), "{arguments:?}: {text:?} is not in {}", run.errors);
    }
}

#[test]
fn wrong_options_are_refused_with_the_fix() {
    refused(&["serve", "--cores", "0"], &["--cores 0", "from 1 to 64"]);
    refused(&["up", "--cores", "100"], &["--cores 100", "from 1 to 64"]);
    refused(&["serve", "--port", "redis"], &["--port redis", "from 0 to 65534"]);
    refused(&["serve", "--port", "65530", "--cores", "64"], &["65594", "lower port"]);
    refused(&["serve", "--prot", "1"], &["--prot", "--port"]);
    refused(&["serve", "--durability", "always"], &["--durability always", "memory, interval or commit"]);
    refused(&["serve", "--durability", "commit"], &["--dir"]);
    refused(&["serve", "--io", "kqueue"], &["--io kqueue", "auto, uring or epoll"]);
    refused(&["serve", "--bind", "localhots"], &["localhots", "127.0.0.1"]);
    refused(&["serve", "--bind", "0.0.0.0"], &["--requirepass-file", "--protected-mode no"]);
    refused(&["serve", "--requirepass-file", "/nonexistent/password"], &["/nonexistent/password", "No such file"]);
    refused(&["up", "--ephemeral", "--dir", "d"], &["--ephemeral", "--dir"]);
    refused(&["strat"], &["start", "up"].map(|_| "strat"));
}

#[test]
fn wrong_files_and_variables_are_refused_with_their_name() {
    let scratch = Scratch::new();
    let file = scratch.at("zerohop.toml");
    refused(&["serve", "--config", &file], &[&file, "No such file"]);
    std::fs::write(&file, "port = \n").unwrap();
    refused(&["serve", "--config", &file], &[&file, "line 1"]);
    std::fs::write(&file, "durabilty = \"commit\"\n").unwrap();
    refused(&["serve", "--config", &file], &[&file, "durabilty", "did you mean `durability`"]);
    std::fs::write(&file, "cores = 1.5\n").unwrap();
    refused(&["serve", "--config", &file], &[&file, "cores = 1.5", "a whole number"]);
    std::fs::write(&file, "cores = 65\n").unwrap();
    refused(&["serve", "--config", &file], &["cores = 65", "from 1 to 64"]);
    let output = zerohop(&["serve"]).env("ZEROHOP_PORT", "none").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("ZEROHOP_PORT=none (environment)"));
}

#[test]
fn the_printed_configuration_names_what_won() {
    let scratch = Scratch::new();
    let file = scratch.at("zerohop.toml");
    std::fs::write(&file, "port = 7001\ncores = 3\nio = \"epoll\"\n").unwrap();
    let mut command = zerohop(&["serve", "--config", &file, "--port", "7003", "--print-config"]);
    let output = command.env("ZEROHOP_PORT", "7002").env("ZEROHOP_CORES", "2").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    for expected in ["port = 7003 # --port", "cores = 2 # ZEROHOP_CORES", &format!("io = \"epoll\" # {file}")] {
        assert!(lines.iter().any(|line| line == expected), "{expected:?} is not in {text}");
    }
}

#[test]
fn a_directory_that_cannot_be_made_or_written_is_named() {
    let scratch = Scratch::new();
    let file = scratch.at("file");
    std::fs::write(&file, "").unwrap();
    let below = scratch.at("file/data");
    let run = run(&["serve", "--port", "0", "--dir", &below]);
    assert_eq!(run.code, 1);
    assert!(run.errors.contains(&below), "{}", run.errors);
}
