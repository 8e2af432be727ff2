//! `cargo x fixture`: the directory by which a new format of data is known for ever (`docs/format-versions.md`).

use std::process::ExitCode;

use crate::{Outcome, process, workspace};

/// The test that makes it, and that no other bytes are written later.
const TEST: &str = "fixture::the_same_history_makes_the_same_bytes";
/// What tells the test to make it.
const MAKE: (&str, &str) = ("ZEROHOP_MAKE_FIXTURE", "1");

/// Makes the fixture of the format that this tree writes; one that is there stays as it is, and the chore fails.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    if let Some(word) = arguments.first() {
        return Err(format!("`{word}` means nothing here: the format is the one that this tree writes"));
    }
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--quiet", "--package", "zerohop", "--test", "zerohop", "--", "--exact", TEST]);
    let made = process::shown(cargo.env(MAKE.0, MAKE.1))?;
    if made {
        println!("made in crates/zerohop/tests/fixtures; read its contents.txt before you commit it");
    }
    Ok(if made { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
