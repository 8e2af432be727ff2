//! The shim that fails system calls below the binary: built here, told here when to fail which.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is preloaded.
const SOURCE: &str = include_str!("shim.c");
/// Its control block: nine numbers of 32 bits.
const CONTROL_NUMBERS: usize = 9;
const FIRED: u64 = 7;
const SEEN: u64 = 8;

/// Calls, as bits.
pub(super) mod call {
    pub const WRITE: u32 = 1;
    pub const SYNC: u32 = 2;
    pub const RENAME: u32 = 4;
    pub const ALL: u32 = 63;
}

/// Files of a data directory, as bits.
pub(super) mod file {
    pub const LOG: u32 = 1;
    pub const NEW_LOG: u32 = 2;
    pub const NEW_RUN: u32 = 4;
    pub const RUN: u32 = 8;
    pub const ALL: u32 = 127;
}

/// "Input/output error"
pub(super) const EIO: u32 = 5;
/// "No space left on device"
pub(super) const ENOSPC: u32 = 28;
/// Half of what is to be written is.
pub(super) const SHORT: u32 = 0;

/// Which calls fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub calls: u32,
    pub files: u32,
    /// The first that fails, from 1, and how many do; 0: all that follow.
    pub nth: u32,
    pub times: u32,
    /// With which number, or [`SHORT`].
    pub error: u32,
    /// The first one is short, the next ones fail.
    pub first_is_short: bool,
}

/// See the module.
pub(super) struct Shim {
    library: PathBuf,
    control_path: PathBuf,
    losses: PathBuf,
    control: File,
}

impl Shim {
    /// Builds it with the compiler that links Rust programs.
    pub fn build(root: &Path) -> io::Result<Shim> {
        let (source, library) = (root.join("shim.c"), root.join("shim.so"));
        fs::write(&source, SOURCE)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(&source);
        let status = compiler.args(["-ldl", "-lpthread"]).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("cc shim.c: {status}")));
        }
        let control_path = root.join("control");
        let control = OpenOptions::new().read(true).write(true).create_new(true).open(&control_path)?;
        control.set_len(4 * CONTROL_NUMBERS as u64)?;
        Ok(Shim { library, control_path, losses: root.join("losses"), control })
    }

    /// The environment of a process whose calls on `data` it sees.
    pub fn variables(&self, data: &Path) -> Vec<(&'static str, OsString)> {
        vec![
            ("LD_PRELOAD", self.library.clone().into()),
            ("FAULTS_CONTROL", self.control_path.clone().into()),
            ("FAULTS_DIRECTORY", data.into()),
            ("FAULTS_LOSSES", self.losses.clone().into()),
        ]
    }

    /// From now on.
    pub fn arm(&self, rule: &Rule) -> io::Result<()> {
        let Rule { calls, files, nth, times, error, first_is_short } = *rule;
        let numbers = [0, calls, files, nth, times, error, u32::from(first_is_short), 0, 0];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number: &u32| number.to_ne_bytes()).collect();
        self.control.write_all_at(&bytes, 0)?;
        self.control.write_all_at(&1u32.to_ne_bytes(), 0)
    }

    pub fn disarm(&self) -> io::Result<()> {
        self.control.write_all_at(&0u32.to_ne_bytes(), 0)
    }

    /// Calls that failed since it was armed.
    pub fn fired(&self) -> io::Result<u32> {
        self.number(FIRED)
    }

    /// Calls that it was asked about since then.
    pub fn seen(&self) -> io::Result<u32> {
        self.number(SEEN)
    }

    fn number(&self, place: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.control.read_exact_at(&mut bytes, 4 * place)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// The process is gone. If it promised that failed syncs lose nothing, what they lost goes now, as if the kernel had dropped
    /// those pages. Returns how many writes that were.
    pub fn lose_if(&self, promised: bool) -> io::Result<usize> {
        let losses = fs::read(&self.losses).unwrap_or_default();
        if self.losses.exists() {
            fs::remove_file(&self.losses)?;
        }
        let losses = if promised { losses } else { Vec::new() };
        let (mut rest, mut count) = (&losses[..], 0);
        while !rest.is_empty() {
            // Newest first, so that of a place written twice the oldest content is what stays.
            let mut number = [0; 4];
            rest.read_exact(&mut number)?;
            let path = String::from_utf8_lossy(&take(&mut rest, u32::from_ne_bytes(number).into())?).into_owned();
            let (mut offset, mut bytes) = ([0; 8], [0; 8]);
            rest.read_exact(&mut offset)?;
            rest.read_exact(&mut bytes)?;
            let old = take(&mut rest, u64::from_ne_bytes(bytes))?;
            OpenOptions::new().write(true).open(path)?.write_all_at(&old, u64::from_ne_bytes(offset))?;
            count += 1;
        }
        Ok(count)
    }
}

fn take(rest: &mut &[u8], count: u64) -> io::Result<Vec<u8>> {
    let mut taken = Vec::new();
    rest.take(count).read_to_end(&mut taken)?;
    if taken.len() as u64 == count { Ok(taken) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
