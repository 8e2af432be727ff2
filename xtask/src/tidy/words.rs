//! Rule: words that do not land, each with what to write instead.

use super::{Finding, House, RustFile};

/// Where a word is forbidden.
#[derive(Clone, Copy)]
enum Where {
    /// Outside tests.
    Production,
    /// In tests and in the harness that runs them.
    Tests,
    /// Everywhere.
    Everywhere,
}

/// (word, where, what to write instead); looked for in code, never in comments or strings.
const FORBIDDEN: &[(&str, Where, &str)] = &[
    (
        ".unwrap()",
        Where::Production,
        "use `expect` with the invariant that makes failure impossible, or return an error",
    ),
    ("let _ =", Where::Production, "handle the result, count it, or `expect` the reason it cannot fail"),
    ("dbg!(", Where::Everywhere, "remove it, or return the value and assert it in a test"),
    ("todo!(", Where::Everywhere, "do not land what is missing; write `TODO(topic): reason` where a note is enough"),
    ("unimplemented!(", Where::Everywhere, "answer with a named error"),
    ("#[ignore", Where::Everywhere, "make the test run, give it a suite with a shard, or delete it"),
    ("thread::sleep", Where::Tests, "wait for the event itself (a line, a reply, a closed pipe), not for time"),
    ("sleep(Duration", Where::Tests, "wait for the event itself (a line, a reply, a closed pipe), not for time"),
];

/// The mark for debt that may not land, spelled so that this file is clean.
const DEBT: &str = concat!("FIX", "ME");

pub fn check(house: &House) -> Vec<Finding> {
    house.rust_files().iter().flat_map(check_file).collect()
}

fn check_file(file: &RustFile) -> Vec<Finding> {
    let is_harness = file.file.path.starts_with("xtask/src/suites/");
    let mut findings = Vec::new();
    for (number, line, is_test) in file.lines() {
        for (word, place, instead) in FORBIDDEN {
            let applies = match place {
                Where::Production => !is_test,
                Where::Tests => is_test || is_harness,
                Where::Everywhere => true,
            };
            if applies && line.contains(word) {
                findings.push(file.finding(number, format!("`{word}`: {instead}")));
                break;
            }
        }
    }
    for (index, _) in file.file.text.lines().enumerate().filter(|(_, line)| line.contains(DEBT)) {
        findings.push(file.finding(index + 1, format!("{DEBT} does not land: mend it or write `TODO(topic): reason`")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{DEBT, House, check};

    fn lines_caught(path: &str, text: &str) -> Vec<usize> {
        check(&House::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn each_word_is_caught_where_it_is_forbidden() {
        let text = "fn a() { b.unwrap(); }\nfn c() { let _ = d(); }\nfn e() { dbg!(1); }\nfn f() { todo!() }\n\
                    fn g() { unimplemented!() }\n#[cfg(test)]\nmod tests {\n#[ignore]\nfn h() { x.unwrap() }\n\
                    fn i() { std::thread::sleep(d) }\n}\n";
        assert_eq!(lines_caught("src/a.rs", text), [1, 2, 3, 4, 5, 8, 10]);
    }

    #[test]
    fn sleeping_is_forbidden_in_the_harness_too() {
        assert_eq!(lines_caught("xtask/src/suites/a.rs", "fn a() { sleep(Duration::ZERO) }\n"), [1]);
        assert!(lines_caught("crates/io/src/a.rs", "fn a() { sleep(Duration::ZERO) }\n").is_empty());
    }

    #[test]
    fn debt_marks_are_caught_in_comments() {
        assert_eq!(lines_caught("a.rs", &format!("// fine\n// {DEBT}: later\n")), [2]);
    }

    #[test]
    fn strings_and_comments_are_not_code() {
        assert!(lines_caught("a.rs", "// b.unwrap()\nconst A: &str = \"let _ = dbg!(1)\";\n").is_empty());
    }
}
