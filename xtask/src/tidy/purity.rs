//! Rule: rings 0–3 see no clock, file, socket, thread or OS randomness. Clippy knows the functions (`clippy.toml`); this
//! rule keeps the lint in force and names the modules and words that never belong there.

use super::edges::crate_table;
use super::{Finding, House};
use crate::rust_source::word_positions;

/// (word, what to do instead) in code of pure crates outside tests.
const STREET_WORDS: &[(&str, &str)] = &[
    ("std::fs", "ask for reads and writes with effects"),
    ("std::thread", "cores are given, threads belong to io"),
    ("std::env", "take configuration as an argument"),
    ("std::process::Command", "leave processes to ring 5"),
    ("std::time::Instant", "take the tick's `Now` as an argument"),
    ("std::time::SystemTime", "take the tick's `Now` as an argument"),
    ("RandomState", "hash with a fixed or a given seed"),
    ("async", "describe the wait as an effect and its end as an event"),
    ("await", "describe the wait as an effect and its end as an event"),
];

pub fn check(house: &House) -> Vec<Finding> {
    let pure: Vec<String> = crate_table(house).into_iter().filter(|row| row.is_pure()).map(|row| row.name).collect();
    let mut findings = Vec::new();
    for name in &pure {
        let own = format!("crates/{name}/clippy.toml");
        if house.text(&own).is_some() {
            let message = "a pure crate obeys the clippy.toml of the root: delete this file".to_owned();
            findings.push(Finding { path: own, line: 1, message });
        }
    }
    for file in house.rust_files() {
        let is_pure = pure.iter().any(|name| file.file.path.starts_with(&format!("crates/{name}/src/")));
        for (number, line, _) in file.lines().filter(|(_, _, test)| is_pure && !test) {
            if line.contains("clippy::disallowed_") {
                findings.push(file.finding(number, "purity has no exception: move what needs the street to io"));
            }
            for (word, instead) in STREET_WORDS.iter().filter(|(word, _)| !word_positions(line, word).is_empty()) {
                findings.push(file.finding(number, format!("`{word}` in a pure ring: {instead}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{House, check};

    const PAGE: &str = "| ring | crate | owns | may import | third party |\n|---|---|---|---|---|\n\
                        | 1 | `wire` | bytes | – | – |\n| 4 | `io` | street | – | – |\n";

    fn caught(path: &str, text: &str) -> Vec<usize> {
        check(&House::of(&[("ARCHITECTURE.md", PAGE), (path, text)])).into_iter().map(|f| f.line).collect()
    }

    #[test]
    fn street_words_are_caught_in_pure_rings_only() {
        let text =
            "use std::fs::File;\nasync fn a() {}\n#[cfg(test)]\nmod tests { use std::thread; }\nlet not_async = 1;\n";
        assert_eq!(caught("crates/wire/src/a.rs", text), [1, 2]);
        assert!(caught("crates/io/src/a.rs", text).is_empty());
    }

    #[test]
    fn the_lint_cannot_be_switched_off_in_pure_rings() {
        assert_eq!(caught("crates/wire/src/a.rs", "#![allow(clippy::disallowed_methods)]\n"), [1]);
        assert_eq!(caught("crates/wire/clippy.toml", ""), [1]);
        assert!(caught("crates/io/clippy.toml", "").is_empty());
    }

    /// Plants one violation of each kind in a crate of its own and lets Clippy judge it by the root's `clippy.toml`.
    #[test]
    fn clippy_refuses_the_street_by_the_root_configuration() {
        let planted = [
            "std::time::Instant::now()",
            "std::time::SystemTime::now()",
            "std::thread::spawn(|| ())",
            "std::thread::sleep(std::time::Duration::ZERO)",
            "std::fs::read(\"x\")",
            "std::fs::File::open(\"x\")",
            "std::net::TcpListener::bind(\"x\")",
            "std::collections::HashMap::<u8, u8>::new()",
            "std::collections::HashSet::<u8>::with_capacity(1)",
            "std::env::var(\"x\")",
        ];
        let bodies = planted.iter().enumerate().map(|(i, body)| format!("pub fn f{i}() {{\n    drop({body});\n}}\n"));
        let folder = std::env::temp_dir().join(format!("zerohop-purity-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("src")).expect("a temporary folder can be made");
        let manifest = "[package]\nname = \"planted\"\nedition = \"2024\"\n[workspace]\n[lib]\npath = \"src/lib.rs\"\n";
        let rules = crate::workspace::root().join("clippy.toml");
        std::fs::copy(rules, folder.join("clippy.toml")).expect("the root has a clippy.toml");
        std::fs::write(folder.join("Cargo.toml"), manifest).expect("the temporary folder is ours");
        std::fs::write(folder.join("src/lib.rs"), bodies.collect::<String>()).expect("the temporary folder is ours");
        let mut clippy = crate::workspace::cargo();
        clippy.current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target"));
        let result = clippy.args(["clippy", "--offline", "--quiet", "--", "-D", "warnings"]).output();
        std::fs::remove_dir_all(&folder).expect("the temporary folder is ours");
        let said = String::from_utf8_lossy(&result.expect("cargo clippy starts").stderr).into_owned();
        for (index, body) in planted.iter().enumerate() {
            let place = format!("src/lib.rs:{}:", 3 * index + 2);
            assert!(said.contains(&place), "clippy let `{body}` pass:\n{said}");
        }
    }
}
