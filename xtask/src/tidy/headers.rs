//! Rule: every Rust file begins with a `//!` line that says what it owns.

use super::{Finding, House};

pub fn check(house: &House) -> Vec<Finding> {
    let is_told = |text: &str| text.lines().next().is_some_and(|line| line.starts_with("//! ") && line.len() > 8);
    house
        .rust_files()
        .iter()
        .filter(|file| !is_told(&file.file.text))
        .map(|file| file.finding(1, "begin the file with a `//!` line that says what it owns"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{House, check};

    #[test]
    fn a_file_without_a_header_is_caught() {
        let house = House::of(&[("a.rs", "//! Owns the a of things.\n"), ("b.rs", "use std::fmt;\n"), ("c.rs", "")]);
        let paths: Vec<String> = check(&house).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["b.rs", "c.rs"]);
    }
}
