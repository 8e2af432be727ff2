//! What a cluster has goes into files and from there into another one of another size.

use std::fs;

use rustix::process::Signal;

use crate::cluster::Three;
use crate::process::{Run, Scratch, Server, run};

fn operate(port: u16, words: &[&str]) -> Run {
    run(&[&["cluster"], words, &["-p", &port.to_string()]].concat())
}

/// The content that a save or a load names.
fn content(run: &Run) -> String {
    assert_eq!(run.code, 0, "{}{}", run.output, run.errors);
    run.output.split_once("content ").expect(&run.output).1.trim_end()[..32].to_owned()
}

/// The one part that has a key, and where its bytes are.
fn part_with(directory: &str, key: &str) -> (std::path::PathBuf, usize) {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let find = |path: &std::path::PathBuf| {
        fs::read(path).unwrap().windows(key.len()).position(|bytes| bytes == key.as_bytes())
    };
    paths.filter(|path| !path.ends_with("SAVE")).find_map(|path| find(&path).map(|at| (path, at))).expect(key)
}

#[test]
fn what_three_nodes_have_is_loaded_into_one_and_compared() {
    let (mut three, scratch) = (Three::new(), Scratch::new());
    three.await_whole();
    three.write("1");
    for words in [
        &["SET", "lasts", "an hour", "EX", "3600"][..],
        &["SET", "goes", "soon", "EX", "5"],
        &["RPUSH", "list", "a", "", "b"],
    ] {
        assert!(!three.ask(words).contains("ERR"), "{words:?}");
    }
    let saved = scratch.at("saved");
    let first = operate(three.node(1).port, &["save", &saved]);
    let told = content(&first);
    assert!(first.output.contains("saved 103 keys of 3 nodes"), "{}", first.output);
    let again = operate(three.node(0).port, &["save", &saved]);
    assert!(again.code == 1 && again.errors.contains("is not empty"), "{}", again.errors);
    let full = operate(three.node(0).port, &["load", &saved]);
    assert!(
        full.code == 1 && full.errors.contains("has 103 keys: a save is loaded into an empty one"),
        "{}",
        full.errors
    );
    for number in 0..3 {
        three.take(number).stop(Signal::TERM);
    }

    let alone = Server::serve(&["--dir", &scratch.at("alone"), "--cores", "2"]);
    let loaded = operate(alone.port, &["load", &saved]);
    let lasting = content(&loaded);
    assert!(
        loaded.output.contains("loaded 102 keys into 2 nodes") && loaded.output.contains("; 1 expire soon"),
        "{}",
        loaded.output
    );
    assert_eq!(alone.ask(&["LRANGE", "list", "0", "-1"]), "a\n\nb");
    assert_eq!(alone.ask(&["GET", "lasts"]), "an hour");
    alone.ask(&["DEL", "goes"]);
    let copied = scratch.at("copied");
    assert_eq!(content(&operate(alone.port, &["save", &copied])), lasting, "without the key that was to expire soon");
    assert_ne!(told, lasting);

    damaged(&alone, &copied);
    assert_eq!(alone.stop(Signal::TERM).0, Some(0));
}

/// What is not whole is named, and nothing of it is loaded.
fn damaged(node: &Server, directory: &str) {
    assert_eq!(node.ask(&["FLUSHALL"]), "OK");
    let refused = |word: &str| {
        let run = operate(node.port, &["load", directory]);
        assert!(run.code == 1 && run.errors.contains(word), "{word}: {}", run.errors);
        assert_eq!(node.ask(&["DBSIZE"]), "0");
    };
    let (path, at) = part_with(directory, "lasts");
    let sound = fs::read(&path).unwrap();
    let mut changed = sound.clone();
    changed[at + 7] ^= 1;
    fs::write(&path, &changed).unwrap();
    refused("it is damaged somewhere before byte");
    fs::write(&path, &sound[..at]).unwrap();
    refused("it ends in the middle, behind byte");
    fs::write(&path, &sound).unwrap();
    let manifest = format!("{directory}/SAVE");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("part-000", "part-001")).unwrap();
    refused("its digest is another");
    fs::remove_file(&manifest).unwrap();
    refused("is no save, or one that ended early");
    fs::write(&manifest, text).unwrap();
    content(&operate(node.port, &["load", directory]));
}
