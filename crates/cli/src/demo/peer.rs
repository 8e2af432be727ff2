//! The server that is shown beside ours: named, or found where programs are.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// In this order.
const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];

/// What to do where there is none.
pub const ADVICE: &str = "no valkey-server or redis-server was found, so only Zerohop is shown: `apt-get install valkey-server` \
                          brings one, --peer PATH names one";

/// The first program of that kind in `folders`, as PATH writes them.
pub fn find(folders: &std::ffi::OsStr) -> Option<PathBuf> {
    PROGRAMS
        .iter()
        .find_map(|name| std::env::split_paths(folders).map(|folder| folder.join(name)).find(|at| is_program(at)))
}

/// Whether it is a file that may be executed.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn valkey_is_preferred_wherever_it_is_and_what_cannot_run_is_passed_over() {
        let folder = std::env::temp_dir().join(format!("zerohop-peer-{}", std::process::id()));
        let (first, second) = (folder.join("first"), folder.join("second"));
        let add = |at: &Path, mode: u32| {
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            std::fs::write(at, "").unwrap();
            std::fs::set_permissions(at, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        add(&first.join("redis-server"), 0o755);
        add(&first.join("valkey-server"), 0o644);
        let folders = std::env::join_paths([&first, &second]).unwrap();
        assert_eq!(find(&folders), Some(first.join("redis-server")));
        add(&second.join("valkey-server"), 0o755);
        assert_eq!(find(&folders), Some(second.join("valkey-server")));
        assert_eq!(find(std::ffi::OsStr::new("")), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
