//! What a server holds at one moment.

use std::path::Path;
use std::time::Duration;
use std::{fmt, fs, io};

use crate::process::Server;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Since the load began.
    pub at: Duration,
    /// Resident memory.
    pub resident_bytes: u64,
    /// Open file descriptors.
    pub descriptors: u64,
    /// The data directory.
    pub disk_bytes: u64,
}

/// Looks at the process from outside: what it says of itself may be what is wrong.
///
/// # Errors
/// When the process or its directory is gone.
pub fn sample(server: &Server, directory: &Path, at: Duration) -> io::Result<Sample> {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", server.id()))?.count() as u64;
    let files = fs::read_dir(directory)?.flatten().filter_map(|entry| entry.metadata().ok());
    let disk_bytes = files.map(|metadata| metadata.len()).sum();
    Ok(Sample { at, resident_bytes: server.resident_bytes()?, descriptors, disk_bytes })
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
        let (resident, disk) = (mib(self.resident_bytes), mib(self.disk_bytes));
        write!(
            f,
            "{} s, {resident:.1} MiB resident, {} descriptors, {disk:.0} MiB of disk",
            self.at.as_secs(),
            self.descriptors
        )
    }
}
