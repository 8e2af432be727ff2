//! Running other programs: whole output, or line by line while it is shown.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;

/// Prints what somebody may read to its end or not: `| head` is no failure.
pub fn say(lines: &[String]) {
    let text = lines.join("\n") + "\n";
    drop(std::io::stdout().write_all(text.as_bytes()));
}

/// The standard output of `command`; an error names the command and quotes what it said.
pub fn output(command: &mut Command) -> Outcome<String> {
    let shown = describe(command);
    let result = command.output().map_err(|error| format!("`{shown}` did not start: {error}"))?;
    if !result.status.success() {
        return Err(format!(
            "`{shown}` failed ({}): {}",
            result.status,
            String::from_utf8_lossy(&result.stderr).trim()
        ));
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

/// Runs `command` with its output shown; whether it succeeded.
pub fn shown(command: &mut Command) -> Outcome<bool> {
    let name = describe(command);
    let status = command.status().map_err(|error| format!("`{name}` did not start: {error}"))?;
    Ok(status.success())
}

/// Runs `command`, hands each line of its standard output to `on_line` and shows those for which it returns true;
/// whether the command succeeded.
pub fn lines(command: &mut Command, mut on_line: impl FnMut(&str) -> bool) -> Outcome<bool> {
    let name = describe(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().map_err(|error| format!("`{name}` did not start: {error}"))?;
    let stdout = child.stdout.take().expect("standard output was piped above");
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(|error| format!("`{name}` printed what is no text: {error}"))?;
        if on_line(&line) {
            println!("{line}");
        }
    }
    let status = child.wait().map_err(|error| format!("`{name}` was lost: {error}"))?;
    Ok(status.success())
}

/// The path of `program`, looked for in `first` and then in PATH.
pub fn find(program: &str, first: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(first.to_path_buf())
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// `command` as one would type it.
pub fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{lines, output};
    use std::process::Command;

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let message = output(Command::new("false").arg("really")).expect_err("false fails");
        assert!(message.contains("false really"), "{message}");
    }

    #[test]
    fn lines_arrive_and_the_exit_code_is_kept() {
        let mut seen = Vec::new();
        let success = lines(Command::new("printf").arg("one\\ntwo\\n"), |line| {
            seen.push(line.to_owned());
            false
        });
        assert_eq!(success, Ok(true));
        assert_eq!(seen, ["one", "two"]);
        assert_eq!(lines(&mut Command::new("false"), |_| true), Ok(false));
    }
}
