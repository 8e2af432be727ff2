//! For the tests and examples of this crate; no part of what it offers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory of its own, removed in the end.
pub struct Scratch(PathBuf);

impl Scratch {
    /// One that nobody else has.
    pub fn new(name: &str) -> Scratch {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("zerohop-embedded-{name}-{}-{number}", std::process::id())))
    }

    /// Where it is, or will be.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}
