//! The tour of the README, line by line, as a reader would run it.

use crate::process::{Server, run};

/// The lines of the README's console block.
fn tour() -> Vec<String> {
    let readme = include_str!("../../../../README.md");
    let block = readme.split("```console\n").nth(1).and_then(|rest| rest.split("```").next());
    block.expect("the README has a tour").lines().map(str::to_owned).collect()
}

/// The words of a command line; double quotes keep spaces together.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let outside = |(index, part): (usize, &str)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    parts.flat_map(outside).collect()
}

#[test]
fn every_command_of_the_tour_prints_what_the_readme_shows() {
    let server = Server::serve(&[]);
    let port = server.port.to_string();
    let lines = tour();
    let mut commands = 0;
    let mut rest = lines.as_slice();
    while let Some((command, after)) = rest.split_first() {
        let command = command.strip_prefix("$ zerohop cli ").expect("output of a command that is not shown");
        let shown = after.iter().take_while(|line| !line.starts_with("$ ")).count();
        let mut arguments: Vec<String> = ["cli", "-p", &port, "--no-raw"].map(str::to_owned).to_vec();
        arguments.extend(words(command));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        assert_eq!(run(&arguments).output, after[..shown].join("\n") + "\n", "{command}");
        (commands, rest) = (commands + 1, &after[shown..]);
    }
    assert!(commands > 10, "the tour was found");
}
