//! Exit codes, the same for every subcommand; `docs/cli.md` lists them.

use std::path::Path;
use std::process::ExitCode;

use server::backup::BackupError;
use server::lock_owner::lock_owners;
use server::{DirectoryError, LOCK_FILE_NAME, NodeError};

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
pub fn of_node(error: &NodeError, directory: Option<&Path>) -> ExitCode {
    match error {
        NodeError::Directory(DirectoryError::Held(holder)) => {
            with(IN_USE, &held(&directory.map_or_else(String::new, |path| path.display().to_string()), holder))
        }
        NodeError::Directory(DirectoryError::Refused(text)) => with(DAMAGED, text),
        NodeError::Directory(DirectoryError::Io(text)) => {
            let given = directory.map_or_else(String::new, |path| format!("--dir {}: ", path.display()));
            with(FAILED, &format!("{given}{text}"))
        }
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

/// What to tell whoever finds a directory in use. `holder` is the text of its lock, which a process that only reads leaves as it was.
pub fn held(directory: &str, holder: &str) -> String {
    let (who, fix) = holder_and_fix(directory, holder);
    format!("{directory} is in use by {who}: {fix}, or choose another directory with --dir")
}

/// Who holds the lock of a directory, and what to do about it.
pub fn holder_and_fix(directory: &str, holder: &str) -> (String, String) {
    let wait = || "wait for it".to_owned();
    let owners = lock_owners(&Path::new(directory).join(LOCK_FILE_NAME));
    let number =
        holder.strip_prefix("pid ").and_then(|rest| rest.split(|letter: char| !letter.is_ascii_digit()).next());
    let told = number.and_then(|number| number.parse::<u32>().ok());
    match (told, owners.first()) {
        (Some(told), Some(owner)) if owners.iter().all(|owner| owner.process_id != told) => {
            (format!("process {} ({}), which only reads it", owner.process_id, owner.name), wait())
        }
        (Some(told), _) => (holder.replacen("pid ", "process ", 1), format!("use it, or stop it with `kill {told}`")),
        (None, Some(owner)) => (format!("process {} ({})", owner.process_id, owner.name), wait()),
        (None, None) if holder.is_empty() => ("a process that does not say which".to_owned(), wait()),
        (None, None) => (holder.to_owned(), wait()),
    }
}
