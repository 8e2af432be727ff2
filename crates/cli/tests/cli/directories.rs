//! Wrong directories (AT-28): each is refused with what is wrong and what to do, left as it is, and never an empty start.

use std::collections::BTreeSet;
use std::fs;

use crate::process::{Run, Scratch, Server, run};

/// `serve` and `up` in this directory end with `code` and say all of this.
fn refused(directory: &str, code: i32, texts: &[&str]) {
    for arguments in [&["serve", "--port", "0", "--dir", directory][..], &["up", "--port", "0", "--dir", directory]] {
        let run = run(arguments);
        assert_eq!(run.code, code, "{arguments:?}: {}", run.errors);
        for text in [texts, &[directory]].concat() {
            assert!(run.errors.contains(text), "{arguments:?}: {text:?} is not in {}", run.errors);
        }
    }
}

fn names(directory: &str) -> BTreeSet<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_file_is_no_directory() {
    let scratch = Scratch::new();
    let file = scratch.at("dump.rdb");
    fs::write(&file, "REDIS0011").unwrap();
    refused(&file, 1, &["--dir", "cannot make the data directory", "it is a file: name a directory"]);
    refused(&format!("{file}/data"), 1, &["--dir", "a part of the path is a file: name a directory"]);
    assert_eq!(fs::read(&file).unwrap(), b"REDIS0011");
    let link = scratch.at("link");
    std::os::unix::fs::symlink(scratch.at("nowhere"), &link).unwrap();
    refused(&link, 1, &["--dir", "it is a link to nothing"]);
}

#[test]
fn a_lock_whose_text_is_of_a_process_that_is_gone_names_who_has_it() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    let server = Server::serve(&["--dir", &data]);
    let gone = format!("process {}", server.process_id());
    server.kill();
    let reader = fs::File::open(scratch.path().join("data/LOCK")).unwrap();
    reader.lock_shared().unwrap();
    refused(&data, 3, &[&format!("is in use by process {} (", std::process::id()), "which only reads it: wait for it"]);
    let up = run(&["up", "--port", "0", "--dir", &data]);
    assert!(!up.errors.contains(&gone) && !up.errors.contains("kill"), "{}", up.errors);
    reader.unlock().unwrap();
    // Nobody's name is in it, and somebody writes.
    let writer = fs::File::create(scratch.path().join("data/LOCK")).unwrap();
    writer.lock().unwrap();
    let check = run(&["check", &data]);
    let named = format!("is in use by process {} (", std::process::id());
    assert!(check.code == 3 && check.errors.contains(&named), "{}", check.errors);
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let scratch = Scratch::new();
    let other = scratch.at("redis");
    fs::create_dir_all(scratch.path().join("redis/appendonlydir")).unwrap();
    fs::write(scratch.path().join("redis/dump.rdb"), "REDIS0011").unwrap();
    let before = names(&other);
    refused(&other, 4, &["has no store, but something else in it", "--dir"]);
    assert_eq!(names(&other), before, "not even a lock was put there");
    // The parent of a store is no store either.
    let data = scratch.at("parent/data");
    Server::serve(&["--dir", &data]).kill();
    refused(&scratch.at("parent"), 4, &["has no store, but something else in it (data)", "--dir"]);
}

#[test]
fn an_empty_directory_and_what_is_always_in_one_are_fine() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    fs::create_dir_all(scratch.path().join("data/lost+found")).unwrap();
    // Of a start that was broken off before it had a store, and of whoever made the directory.
    for name in ["LOCK", "MANIFEST.new", ".keep"] {
        fs::write(scratch.path().join("data").join(name), "").unwrap();
    }
    let server = Server::serve(&["--dir", &data]);
    assert!(server.said.contains("recovery: a new store"), "{}", server.said);
    assert_eq!(server.ask(&["set", "k", "v"]), "OK");
    server.kill();
    let server = Server::serve(&["--dir", &data]);
    assert_eq!(server.ask(&["get", "k"]), "v");
}

#[test]
fn a_store_without_its_manifest_is_no_new_store() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    Server::serve(&["--dir", &data]).kill();
    fs::remove_file(scratch.path().join("data/MANIFEST")).unwrap();
    let before = names(&data);
    refused(&data, 4, &["MANIFEST is missing although there are segments", "restore it from a copy"]);
    assert_eq!(names(&data), before);
}

#[test]
fn a_second_serve_on_the_same_directory_names_the_first() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    let server = Server::serve(&["--dir", &data]);
    assert_eq!(server.ask(&["set", "k", "v"]), "OK");
    let (process, stop) = (format!("process {}", server.process_id()), format!("kill {}", server.process_id()));
    refused(&data, 3, &["is in use by", &process, &stop, "--dir"]);
    assert_eq!(server.ask(&["get", "k"]), "v");
}

/// A file system of its own that nobody may write to, with a store on it.
const READ_ONLY: &str = r#"
    mount -t tmpfs tmpfs "$2" && cp -a "$3/." "$2" && mount -o remount,ro "$2" && echo "mounted" || exit 0
    exec "$1" serve --port 0 --dir "$2""#;

#[test]
fn a_directory_that_cannot_be_written_is_refused_by_name() {
    let scratch = Scratch::new();
    let (data, place) = (scratch.at("data"), scratch.at("place"));
    fs::create_dir_all(&place).unwrap();
    Server::serve(&["--dir", &data]).kill();
    let mut shell = std::process::Command::new("unshare");
    shell.args(["-rm", "sh", "-c", READ_ONLY, "sh", env!("CARGO_BIN_EXE_zerohop"), &place, &data]);
    let refused = shell.output().map(Run::from).ok().filter(|run| run.output.contains("mounted"));
    let Some(refused) = refused else {
        return eprintln!("a read-only directory was not tested: no file system can be mounted here");
    };
    assert_eq!(refused.code, 1, "{}", refused.errors);
    for text in [&place, "Read-only file system", "cannot lock the data directory"] {
        assert!(refused.errors.contains(text), "{text:?} is not in {}", refused.errors);
    }
}
