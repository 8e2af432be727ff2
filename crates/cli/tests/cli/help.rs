//! Help and `docs/cli.md` agree, option by option.

use std::collections::BTreeSet;
use std::path::Path;

use crate::process::run;

/// `--words` in a text, except those of examples: the first of a table row or of a line of help.
fn long_options(text: &str, is_definition: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut options = BTreeSet::new();
    for line in text.lines().filter(|line| is_definition(line.trim_start())) {
        let start = line.find("--").expect("definitions name an option");
        let name: String = line[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        options.insert(name);
    }
    options
}

#[test]
fn every_option_is_on_the_page_and_nothing_else() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    for subcommand in
        ["up", "serve", "join", "cli", "check", "backup", "restore", "bench", "proxy", "top", "demo failover"]
    {
        let words: Vec<&str> = subcommand.split(' ').chain(["--help"]).collect();
        let help = run(&words).output;
        let in_help = long_options(&help, |line| {
            line.starts_with("--") || (line.starts_with('-') && line.get(2..6) == Some(", --"))
        });
        let heading = format!("## zerohop {subcommand}\n");
        let section = page.split(&heading).nth(1).unwrap_or_else(|| panic!("no section {heading:?}"));
        let section = section.split("\n## ").next().unwrap();
        let on_page = long_options(section, |line| line.starts_with("| `--"));
        assert!(in_help.len() > 1, "{help}");
        assert_eq!(in_help, on_page, "zerohop {subcommand}: help and docs/cli.md differ");
    }
}

#[test]
fn help_names_every_subcommand_and_version_is_told() {
    let help = run(&["--help"]).output;
    for subcommand in
        ["up", "serve", "join", "cli", "check", "backup", "restore", "bench", "proxy", "top", "demo", "version"]
    {
        assert!(help.lines().any(|line| line.trim_start().starts_with(&format!("{subcommand} "))), "{help}");
    }
    assert_eq!(run(&["help"]).output, help);
    assert_eq!(run(&["help", "check"]).output, run(&["check", "--help"]).output);
    assert!(run(&["version"]).output.starts_with("zerohop 0."));
    assert_eq!(run(&["version"]).output, run(&["--version"]).output);
}
