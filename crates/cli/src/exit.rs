//! Exit codes, the same for every subcommand; `docs/cli.md` lists them.

use std::process::ExitCode;

use server::DirectoryError;
use server::NodeError;
use server::backup::BackupError;

/// It could not be done: a port, a disk, a connection.
pub const FAILED: u8 = 1;
/// An option, a variable or a configuration file is wrong.
pub const USAGE: u8 = 2;
/// Another process uses the data directory.
pub const IN_USE: u8 = 3;
/// The data directory is damaged, or of a version this one does not read.
pub const DAMAGED: u8 = 4;

/// Says what went wrong and chooses the code.
pub fn with(code: u8, problem: &str) -> ExitCode {
    crate::say::problem(problem);
    ExitCode::from(code)
}

/// The end of a node that did not start or did not stop well.
pub fn of_node(error: &NodeError, directory: Option<&std::path::Path>) -> ExitCode {
    match error {
        NodeError::Directory(DirectoryError::Held(holder)) => {
            with(IN_USE, &held(&directory.map_or_else(String::new, |path| path.display().to_string()), holder))
        }
        NodeError::Directory(DirectoryError::Refused(text)) => with(DAMAGED, text),
        NodeError::Port(port) if port.is_taken() => {
            let owner = port.port.and_then(server::port_owner::port_owner);
            let by = owner.as_ref().map_or_else(String::new, |owner| format!(" by {owner}"));
            let fix = match owner {
                Some(owner) if owner.by_connection => {
                    "the system gives such ports to clients: choose one outside /proc/sys/net/ipv4/ip_local_port_range"
                }
                _ => "end that process, or choose another port",
            };
            with(FAILED, &format!("{error}{by}; {fix} with {}", port.option))
        }
        error => with(FAILED, &error.to_string()),
    }
}

/// The end of a backup or a restore that came to nothing.
pub fn of_backup(error: &BackupError, json: bool) -> ExitCode {
    let code = match error {
        BackupError::InUse(_) => IN_USE,
        BackupError::Failed(_) => FAILED,
        BackupError::Damaged(_) => DAMAGED,
    };
    if json {
        crate::say::line(&serde_json::json!({ "ok": false, "problem": error.to_string() }).to_string());
        return ExitCode::from(code);
    }
    with(code, &error.to_string())
}

/// What to tell whoever finds a directory in use. `holder` is the text of its lock.
pub fn held(directory: &str, holder: &str) -> String {
    let process_id = holder.strip_prefix("pid ").and_then(|rest| rest.split(',').next());
    let who = if holder.is_empty() { "a process that does not say which".to_owned() } else { format!("the {holder}") };
    let fix = process_id
        .map_or_else(|| "wait for it".to_owned(), |process_id| format!("use it, or stop it with `kill {process_id}`"));
    format!("{directory} is in use by {}: {fix}, or choose another directory with --dir", process_word(&who))
}

fn process_word(who: &str) -> String {
    who.replacen("the pid ", "process ", 1)
}
