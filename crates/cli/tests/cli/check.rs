//! `zerohop check` on good, torn, damaged, foreign and used directories; it writes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::process::{Scratch, Server, run};

/// The logged values carry this, so that their place in a file can be found.
const MARK: &str = "find-this-value";

/// A store with values in its log, and the name of that log.
fn store(scratch: &Scratch, name: &str) -> (String, String) {
    let data = scratch.at(name);
    let server = Server::serve(&["--dir", &data]);
    for number in 0..8 {
        assert_eq!(server.ask(&["set", &format!("key{number}"), &format!("{MARK}{number}")]), "OK");
    }
    server.kill();
    let log = "00000001-000-0000000000.log".to_owned();
    assert!(Path::new(&data).join(&log).exists());
    (data, log)
}

/// Changes a byte of the logged value of a key.
fn damage(data: &str, log: &str, key: u8) {
    let path = Path::new(data).join(log);
    let mut bytes = fs::read(&path).unwrap();
    let value = format!("{MARK}{key}");
    let at = bytes.windows(value.len()).position(|window| window == value.as_bytes()).unwrap();
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
}

fn content(data: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(data).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn a_good_directory_is_described_and_left_alone() {
    let scratch = Scratch::new();
    let (data, _) = store(&scratch, "data");
    let before = content(&data);
    let text = run(&["check", &data]);
    assert_eq!((text.code, text.errors.as_str()), (0, ""));
    for expected in ["it would start", "database 0   8 keys, 0 with a time to live", "records      8"] {
        assert!(text.output.contains(expected), "{expected:?} is not in {}", text.output);
    }
    let json: serde_json::Value = serde_json::from_str(&run(&["check", &data, "--json"]).output).unwrap();
    assert_eq!(json["ok"], true);
    assert_eq!(json["databases"][0]["keys"], 8);
    assert!(content(&data) == before, "check wrote something");
}

#[test]
fn a_torn_tail_is_told_by_check_and_cut_by_the_next_start() {
    let scratch = Scratch::new();
    let (data, log) = store(&scratch, "data");
    damage(&data, &log, 7);
    let before = content(&data);
    let text = run(&["check", &data]);
    assert_eq!(text.code, 0, "{}", text.errors);
    assert!(text.output.contains(&format!("tail         {log} at offset ")), "{}", text.output);
    assert!(text.output.contains("database 0   7 keys"), "{}", text.output);
    assert!(content(&data) == before, "check wrote something");
    let server = Server::serve(&["--dir", &data]);
    assert!(server.said.contains(&format!("was cut: {data}/{log} at offset ")), "{}", server.said);
    assert_eq!(server.ask(&["get", "key6"]), format!("{MARK}6"));
    assert_eq!(server.ask(&["exists", "key7"]), "0");
}

#[test]
fn damage_in_the_middle_is_refused_with_file_and_offset() {
    let scratch = Scratch::new();
    let (data, log) = store(&scratch, "data");
    // The next start writes down where this log ends: from then on nothing of it may be missing.
    assert_eq!(Server::serve(&["--dir", &data]).stop(Signal::TERM).0, Some(0));
    damage(&data, &log, 3);
    let before = content(&data);
    let text = run(&["check", &data]);
    assert!(content(&data) == before, "check wrote something");
    assert_eq!((text.code, text.output.as_str()), (4, ""));
    assert!(text.errors.contains(&format!("{data}: {log} at offset ")), "{}", text.errors);
    let json: serde_json::Value = serde_json::from_str(&run(&["check", &data, "--json"]).output).unwrap();
    assert_eq!((&json["ok"], &json["file"]), (&false.into(), &log.as_str().into()));
    assert!(json["offset"].as_u64().is_some());
    let start = run(&["serve", "--port", "0", "--dir", &data]);
    assert_eq!(start.code, 4);
    assert!(start.errors.contains(&format!("{log} at offset ")), "{}", start.errors);
}

#[test]
fn a_directory_of_a_newer_format_is_refused() {
    let scratch = Scratch::new();
    let (data, _) = store(&scratch, "data");
    let path = Path::new(&data).join("MANIFEST");
    let mut manifest = fs::read(&path).unwrap();
    manifest.truncate(manifest.len() - 4);
    manifest[8] += 1;
    let newer = format!("has format {}, ", manifest[8]);
    let checksum = base::checksum::crc32c(&manifest);
    manifest.extend_from_slice(&checksum.to_le_bytes());
    fs::write(&path, manifest).unwrap();
    for arguments in [&["check", &data][..], &["serve", "--port", "0", "--dir", &data]] {
        let refused = run(arguments);
        assert_eq!(refused.code, 4);
        assert!(refused.errors.contains(&newer), "{}", refused.errors);
    }
}

#[test]
fn a_directory_in_use_and_one_that_is_none_are_told_apart() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    let server = Server::serve(&["--dir", &data]);
    let used = run(&["check", &data]);
    assert_eq!(used.code, 3);
    assert!(used.errors.contains(&format!("is in use by process {}", server.process_id())), "{}", used.errors);
    let absent = run(&["check", &scratch.at("absent")]);
    assert_eq!(absent.code, 1);
    assert!(absent.errors.contains("No such file"), "{}", absent.errors);
    let foreign = run(&["check", scratch.path().to_str().unwrap()]);
    assert_eq!(foreign.code, 4, "no store could start there: {}", foreign.output);
    assert!(foreign.errors.contains("has no store, but something else in it (data)"), "{}", foreign.errors);
    fs::create_dir(scratch.at("empty")).unwrap();
    let empty = run(&["check", &scratch.at("empty")]);
    assert_eq!(empty.code, 0);
    assert!(empty.output.contains("no store was ever started here"));
}
