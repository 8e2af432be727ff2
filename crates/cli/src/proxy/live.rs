//! A proxy's file, read at the start and again while it runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ::proxy::{ACL_FILE_BYTES_MAX, Operator, ProxyConfig, file};

use crate::say;

/// Largest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads it.
///
/// # Errors
/// What is wrong, with the file's name.
pub fn read(path: &Path) -> Result<ProxyConfig, String> {
    let named = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let length = std::fs::metadata(path).map_err(|error| named(&error))?.len();
    if length > FILE_BYTES_MAX {
        return Err(named(&format!("{length} bytes are no configuration; at most {FILE_BYTES_MAX} are read")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    file::read(&text, &file::Named { password: &password, users: &users }).map_err(|problem| named(&problem))
}

/// The password that is alone in a file.
///
/// # Errors
/// It cannot be read.
pub fn password(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("the password in {}: {error}", path.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// What lies in a file of users.
///
/// # Errors
/// It cannot be read.
fn users(path: &Path) -> Result<Vec<u8>, String> {
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > ACL_FILE_BYTES_MAX as u64 {
        return Err(format!("{length} bytes are no file of users; at most {ACL_FILE_BYTES_MAX} are read"));
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

/// Who changes the proxy: what several signals ask for, one at a time.
pub type Shared = Arc<Mutex<Operator>>;

/// What SIGHUP does: the file is read again, and what may change does, or all stays as it was.
pub fn reader(path: &Path, operator: &Shared) -> Box<dyn FnMut() + Send> {
    let (path, operator) = (PathBuf::from(path), Arc::clone(operator));
    Box::new(move || {
        // Nobody waits here on whom the signal to stop waits.
        let Ok(mut operator) = operator.try_lock() else {
            return say::line("SIGHUP: everything stays as it was: another process is about to take over; try again");
        };
        let changed = read(&path)
            .and_then(|wanted| operator.change(wanted).map_err(|problem| format!("{}: {problem}", path.display())));
        say::line(&match changed {
            Ok(changed) if changed.is_empty() => format!("SIGHUP: {} was read again; nothing changed", path.display()),
            Ok(changed) => format!("SIGHUP: {} was read again; changed: {}", path.display(), changed.join(", ")),
            Err(problem) => format!("SIGHUP: everything stays as it was: {problem}"),
        });
    })
}
