//! The example of the documentation does what it says.

use std::process::Command;

use zerohop::testing::Scratch;

#[test]
fn hello_counts_its_greetings() {
    // Built beside the tests, like every example.
    let test = std::env::current_exe().unwrap();
    let hello = test.ancestors().nth(2).unwrap().join("examples/hello");
    let scratch = Scratch::new("hello");
    for times in 1..=3 {
        let output = Command::new(&hello).arg(scratch.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let shown = format!("{} was greeted {times} times\n", scratch.path().display());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), shown);
    }
}
