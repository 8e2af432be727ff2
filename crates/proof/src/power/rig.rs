//! What every campaign cuts the power of: a machine, its disk, and a folder for what it prints.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fs, io, thread};

use base::rng::Rng;

use super::disk::{BLOCK_BYTES, Disk, Lost};
use super::guest::{Forward, Guest, Machine};
use super::plan::Cut;
use crate::process::new_directory;

/// A disk. Only what was written takes room.
const DISK_BYTES: u64 = 2 << 30;
/// Between two looks at gauges and consoles.
pub const LOOK_EVERY: Duration = Duration::from_millis(5);
/// After so many looks, ten minutes at least, it must have come to what is planned. Looks, because time passes also
/// while somebody has stopped all of us.
pub const LOOKS_MAX: u64 = 120_000;
/// And for its first word.
const SILENT_LOOKS_MAX: u64 = 24_000;
/// So often a machine is started that says nothing.
const BOOTS_MAX: u32 = 3;
/// What a kernel prints when its file system is damaged, or it itself: then disk or machine would be to blame, and nothing is proved.
const DAMAGED_MACHINE: &[&str] =
    &["EXT4-fs error", "I/O error", "EXT4-fs (vda): error", "guest: no disk", "Kernel panic"];
/// Is in what is wrong and says nothing about a server: a machine that is, or a wait that was in vain.
pub const UNPROVEN: &str = "it proves nothing: ";

/// See the module.
pub struct Rig {
    machine: Machine,
    /// The bug that the servers are to carry.
    pub planted: Option<String>,
    /// Its disks, as parts of one.
    pub disk: Arc<Mutex<Disk>>,
    disks: u64,
    /// Where consoles and the disk lie.
    pub folder: PathBuf,
}

impl Rig {
    /// A machine that never had power, with so many disks and a new file system on each.
    ///
    /// # Errors
    /// When folder or disk cannot be made.
    pub fn new(machine: &Machine, planted: Option<&str>, disks: u64) -> io::Result<Rig> {
        let folder = new_directory()?;
        let disk = Disk::new(formatted(&folder.join("disk.img"), disks)?, disks)?;
        let (machine, planted) = (machine.clone(), planted.map(str::to_owned));
        Ok(Rig { machine, planted, disk: Arc::new(Mutex::new(disk)), disks, folder })
    }

    /// The disk, which nobody waits for long.
    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the machine; its power fails after so many of the disk's requests, if a number is given.
    ///
    /// # Errors
    /// Why it does not start.
    pub fn boot(
        &self,
        console: &str,
        (variables, forwards): (&[(&str, String)], &[Forward]),
        cut_after: Option<u64>,
    ) -> Result<Guest, Vec<String>> {
        for _ in 0..BOOTS_MAX {
            {
                let mut disk = self.disk();
                disk.start();
                if let Some(requests) = cut_after {
                    disk.cut_after(requests);
                }
            }
            let booted =
                Guest::boot(&self.machine, (&self.disk, self.disks), (variables, forwards), &self.folder.join(console));
            let mut guest = booted.map_err(|error| vec![format!("{UNPROVEN}the machine does not start: {error}")])?;
            if self.has_begun(&mut guest) {
                return Ok(guest);
            }
            guest.end();
        }
        Err(vec![format!("{UNPROVEN}the machine says nothing, not even that it starts")])
    }

    /// Whether a machine says anything at all, or its power has failed. One of thousands was seen that did neither for minutes and
    /// kept its processors busy: nothing of ours had begun in it.
    fn has_begun(&self, guest: &mut Guest) -> bool {
        for _ in 0..SILENT_LOOKS_MAX {
            if !guest.output().is_empty() || self.disk().is_cut() || !guest.is_well() {
                return true;
            }
            thread::sleep(LOOK_EVERY);
        }
        false
    }

    /// Waits until its servers serve (true) or the power has failed (false).
    ///
    /// # Errors
    /// What it prints instead.
    pub fn until(&self, guest: &mut Guest, serve: impl Fn(&str) -> bool) -> Result<bool, String> {
        for _ in 0..LOOKS_MAX {
            if self.disk().is_cut() {
                return Ok(false);
            }
            if serve(&guest.output()) {
                return Ok(true);
            }
            if !guest.is_well() {
                let output = guest.output();
                well(&output).map_err(|problems| problems.join(", "))?;
                return Err(format!("it does not say that it is ready: {output}"));
            }
            thread::sleep(LOOK_EVERY);
        }
        Err(format!("{UNPROVEN}after minutes it does not say that it is ready: {}", guest.output()))
    }

    /// Takes from the disk what a cut takes.
    ///
    /// # Errors
    /// Those of the disk's file.
    pub fn after_cut(&self, cut: Cut) -> Result<Lost, Vec<String>> {
        let lost = self.disk().lose(cut.loss, &mut Rng::new(cut.seed));
        self.settle()?;
        Ok(lost)
    }

    /// What is durable goes into the disk's file: what was there is evidence no more.
    ///
    /// # Errors
    /// Those of that file.
    pub fn settle(&self) -> Result<(), Vec<String>> {
        self.disk().settle().map_err(|error| vec![format!("the disk: {error}")])
    }
}

/// Whether the guest's kernel found fault with nothing.
///
/// # Errors
/// What it complains of.
pub fn well(output: &str) -> Result<(), Vec<String>> {
    let met = DAMAGED_MACHINE.iter().find(|words| output.contains(**words));
    met.map_or(Ok(()), |words| Err(vec![format!("{UNPROVEN}the guest says `{words}`: {output}")]))
}

/// Whether a problem says something about the server: one that has to lose what it promised is not caught by another.
pub fn is_of_server(problem: &str) -> bool {
    !problem.contains(UNPROVEN) && well(problem).is_ok()
}

/// New disks with an ext4 file system on each, one behind the other in a file.
fn formatted(path: &Path, disks: u64) -> io::Result<fs::File> {
    let file = fs::File::options().read(true).write(true).create_new(true).open(path)?;
    file.set_len(disks * DISK_BYTES)?;
    (0..disks).try_for_each(|disk| format(path, disk * DISK_BYTES))?;
    Ok(file)
}

/// Makes one of [`DISK_BYTES`] from there on.
fn format(path: &Path, first_byte: u64) -> io::Result<()> {
    let mut tools = std::env::var_os("PATH").unwrap_or_default();
    // Where Debian has tools of file systems, which the path of a user may lack.
    tools.push(OsString::from(":/usr/sbin:/sbin"));
    let made = Command::new("mke2fs")
        .env("PATH", tools)
        .args(["-q", "-F", "-t", "ext4", "-b", &BLOCK_BYTES.to_string(), "-E"])
        .arg(format!("lazy_itable_init=0,lazy_journal_init=0,offset={first_byte}"))
        .arg(path)
        .arg((DISK_BYTES / BLOCK_BYTES as u64).to_string())
        .status()
        .map_err(|error| io::Error::other(format!("mke2fs, of the Debian package e2fsprogs: {error}")))?;
    if made.success() { Ok(()) } else { Err(io::Error::other(format!("mke2fs: {made}"))) }
}

#[cfg(test)]
mod tests {
    use super::{is_of_server, well};

    #[test]
    fn a_machine_that_is_wrong_says_nothing_about_its_server() {
        let panic = "[    0.020000] Kernel panic - not syncing: IO-APIC + timer doesn't work!\r\n";
        let problems = well(panic).expect_err("it is wrong");
        assert_eq!((problems.len(), is_of_server(&format!("the start: {}", problems[0]))), (1, false));
        assert_eq!(well("node 0: ready on 127.0.0.1:7000\r\n"), Ok(()));
        assert!(is_of_server("c:1: lost or read too late") && !is_of_server(&format!("under load: {panic}")));
    }
}
