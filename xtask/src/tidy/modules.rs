//! Rules: no file that nobody compiles, and one integration-test binary per crate.

use std::collections::BTreeMap;

use super::{Finding, House, RustFile};
use crate::rust_source::word_positions;

/// Every file below a `src` is declared by its parent module.
pub fn check_declared(house: &House) -> Vec<Finding> {
    let files = house.rust_files();
    let undeclared = |file: &&RustFile| match parents(&file.file.path) {
        Some((parents, name)) => {
            !files.iter().any(|parent| parents.contains(&parent.file.path) && declares(parent, &name))
        }
        None => false,
    };
    let message = "no module declares this file, so nobody compiles it: add its `mod`, or delete it";
    files.iter().filter(undeclared).map(|file| file.finding(1, message)).collect()
}

/// The files that may declare the module at `path`, and its name; `None` for roots of crates.
fn parents(path: &str) -> Option<(Vec<String>, String)> {
    let (_, below) = path.split_once("src/")?;
    let stem = below.strip_suffix(".rs")?;
    let module = stem.strip_suffix("/mod").unwrap_or(stem);
    let is_root = matches!(stem, "lib" | "main") || (stem.starts_with("bin/") && !stem["bin/".len()..].contains('/'));
    if is_root {
        return None;
    }
    let source = &path[..path.len() - below.len()];
    let (folder, name) = module.rsplit_once('/').unwrap_or(("", module));
    let parents = match folder {
        "" => vec![format!("{source}lib.rs"), format!("{source}main.rs")],
        _ => vec![
            format!("{source}{folder}.rs"),
            format!("{source}{folder}/mod.rs"),
            format!("{source}{folder}/main.rs"),
        ],
    };
    Some((parents, name.to_owned()))
}

fn declares(file: &RustFile, name: &str) -> bool {
    let code = &file.source.code;
    word_positions(code, "mod").iter().any(|at| {
        let rest = code[at + 3..].trim_start();
        rest.strip_prefix(name).is_some_and(|after| after.trim_start().starts_with([';', '{']))
    })
}

/// `tests/` of a crate holds one binary: linking one is cheaper than linking many, and helpers are shared.
pub fn check_test_binaries(house: &House) -> Vec<Finding> {
    let mut binaries: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for file in house.files.iter().filter(|file| file.path.starts_with("crates/") && file.path.ends_with(".rs")) {
        let parts: Vec<&str> = file.path.split('/').collect();
        let is_binary = matches!(parts[..], [_, _, "tests", _] | [_, _, "tests", _, "main.rs"]);
        if is_binary {
            binaries.entry(parts[1].to_owned()).or_default().push(&file.path);
        }
    }
    let message = "a second test binary: make it a module of the first, `tests/<name>/main.rs`";
    let extra = binaries.into_values().flat_map(|paths| paths.into_iter().skip(1));
    extra.map(|path| Finding { path: path.to_owned(), line: 1, message: message.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::{House, check_declared, check_test_binaries};

    #[test]
    fn a_file_that_no_module_declares_is_caught() {
        let house = House::of(&[
            ("crates/a/src/lib.rs", "mod one;\npub mod two;\n// mod three;\nmod four { mod five; }\n"),
            ("crates/a/src/one.rs", ""),
            ("crates/a/src/two/mod.rs", "pub(crate) mod deep;\n"),
            ("crates/a/src/two/deep.rs", ""),
            ("crates/a/src/three.rs", ""),
            ("crates/a/src/one/deep.rs", ""),
            ("crates/a/src/bin/tool.rs", ""),
            ("crates/a/tests/all/main.rs", ""),
        ]);
        let paths: Vec<String> = check_declared(&house).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["crates/a/src/three.rs", "crates/a/src/one/deep.rs"]);
    }

    #[test]
    fn a_second_test_binary_is_caught() {
        let house = House::of(&[
            ("crates/a/tests/all/main.rs", ""),
            ("crates/a/tests/all/part.rs", ""),
            ("crates/a/tests/more.rs", ""),
            ("crates/b/tests/all.rs", ""),
        ]);
        let paths: Vec<String> = check_test_binaries(&house).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["crates/a/tests/more.rs"]);
    }
}
