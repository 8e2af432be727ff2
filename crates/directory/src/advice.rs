//! What to do about a directory that cannot be used, for the words of an error.

use std::io::{Error, ErrorKind};
use std::path::Path;

/// The operating system's words, and behind them what helps where that is known.
pub(crate) fn with_advice(path: &Path, error: &Error) -> String {
    let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    let advice = match error.kind() {
        ErrorKind::AlreadyExists if is_link => {
            "it is a link to nothing: make what it points to, or name another directory"
        }
        ErrorKind::AlreadyExists => "it is a file: name a directory",
        ErrorKind::NotADirectory => "a part of the path is a file: name a directory",
        ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only: name a directory on another one",
        ErrorKind::PermissionDenied => "give it to this user, or name another directory",
        ErrorKind::StorageFull => "make room on that file system, or name a directory on another one",
        _ => return error.to_string(),
    };
    format!("{error}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_stands_behind_the_system_s_words() {
        let told = |kind: ErrorKind| with_advice(Path::new("/"), &kind.into());
        assert_eq!(told(ErrorKind::TimedOut), Error::from(ErrorKind::TimedOut).to_string());
        assert!(told(ErrorKind::ReadOnlyFilesystem).ends_with("mounted read-only: name a directory on another one"));
    }
}
