//! A small file system of our own, in memory: it fills, and it grows. Whoever mounts has the right to.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What takes the last room.
const BALLAST: &str = "ballast";

/// A mounted file system; it goes with the value.
pub(super) struct Disk {
    place: PathBuf,
}

impl Disk {
    pub fn mount(place: PathBuf, mebibytes: u64) -> io::Result<Disk> {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"]).arg(&place);
        done(&mut command)?;
        Ok(Disk { place })
    }

    /// From now on it has so much room.
    pub fn resize(&self, mebibytes: u64) -> io::Result<()> {
        done(Command::new("mount").args(["-o", &format!("remount,size={mebibytes}m")]).arg(&self.place))
    }

    /// The directory of the store.
    pub fn data(&self) -> PathBuf {
        self.place.join("data")
    }

    /// Takes all room that is left.
    pub fn fill(&self) -> io::Result<()> {
        let mut ballast = File::create(self.place.join(BALLAST))?;
        loop {
            match ballast.write_all(&[7; 4096]) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives it back.
    pub fn free(&self) -> io::Result<()> {
        fs::remove_file(self.place.join(BALLAST))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It goes with the namespace at the latest.
        drop(unmount(&self.place));
    }
}

fn unmount(place: &Path) -> io::Result<()> {
    done(Command::new("umount").arg("--lazy").arg(place))
}

fn done(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))),
    }
}
