//! The shim that fails system calls below the binary, or has it die at one: built here, told here when to fail which.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use base::rng::Rng;

use super::loss::{self, Lost};

/// What is preloaded.
const SOURCES: [(&str, &str); 3] =
    [("shim.c", include_str!("shim.c")), ("lossy.c", include_str!("lossy.c")), ("lossy.h", include_str!("lossy.h"))];
/// Its control block: twelve numbers of 32 bits.
const CONTROL_NUMBERS: usize = 12;
const FIRED: u64 = 7;
const SEEN: u64 = 8;
const LAST_CALL: u64 = 9;
const LAST_FILE: u64 = 10;

/// What bits of calls and of files mean.
const CALL_WORDS: [&str; 6] = ["write", "sync", "rename", "open", "truncation", "removal"];
const FILE_WORDS: [&str; 7] =
    ["a log", "a new log", "a new run", "a run", "the manifest", "the directory", "another file"];

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
/// The process dies instead.
pub(super) const DIE: u32 = u32::MAX;

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
    /// Where changes are told of, and where files lie that lost a name, if a power cut is to be played.
    journal: Option<(PathBuf, PathBuf)>,
}

impl Shim {
    /// Builds it with the compiler that links Rust programs.
    pub fn build(root: &Path) -> io::Result<Shim> {
        let library = root.join("shim.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library);
        for (name, source) in SOURCES {
            fs::write(root.join(name), source)?;
            if name.ends_with(".c") {
                compiler.arg(root.join(name));
            }
        }
        let status = compiler.args(["-ldl", "-lpthread"]).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("cc shim.c lossy.c: {status}")));
        }
        let control_path = root.join("control");
        let control = OpenOptions::new().read(true).write(true).create_new(true).open(&control_path)?;
        control.set_len(4 * CONTROL_NUMBERS as u64)?;
        Ok(Shim { library, control_path, losses: root.join("losses"), control, journal: None })
    }

    /// The same, of a disk that may lose whatever no sync covers.
    pub fn build_lossy(root: &Path) -> io::Result<Shim> {
        let stash = root.join("stash");
        fs::create_dir(&stash)?;
        Ok(Shim { journal: Some((root.join("journal"), stash)), ..Shim::build(root)? })
    }

    /// The environment of a process whose calls on `data` it sees.
    pub fn variables(&self, data: &Path) -> Vec<(&'static str, OsString)> {
        let mut variables = vec![
            ("LD_PRELOAD", self.library.clone().into()),
            ("FAULTS_CONTROL", self.control_path.clone().into()),
            ("FAULTS_DIRECTORY", data.into()),
            ("FAULTS_LOSSES", self.losses.clone().into()),
        ];
        if let Some((journal, stash)) = &self.journal {
            variables.push(("FAULTS_JOURNAL", journal.into()));
            variables.push(("FAULTS_STASH", stash.into()));
        }
        variables
    }

    /// What an earlier life told of, which nobody cut, is forgotten.
    pub fn forget(&self) -> io::Result<()> {
        let Some((journal, stash)) = &self.journal else { return Ok(()) };
        if journal.exists() {
            fs::remove_file(journal)?;
        }
        fs::remove_dir_all(stash)?;
        fs::create_dir(stash)
    }

    /// The process is gone, and so is the power: of what no sync covered parts are lost.
    pub fn cut(&self, data: &Path, rng: &mut Rng) -> io::Result<Lost> {
        let Some((journal, stash)) = &self.journal else { return Ok(Lost::default()) };
        let lost = loss::cut(data, (journal, stash), rng)?;
        self.forget()?;
        Ok(lost)
    }

    /// From now on.
    pub fn arm(&self, rule: &Rule) -> io::Result<()> {
        self.arm_behind(rule, 0)
    }

    /// The same; who is to die does so many calls of any kind behind the one that is meant.
    pub fn arm_behind(&self, rule: &Rule, behind: u32) -> io::Result<()> {
        let Rule { calls, files, nth, times, error, first_is_short } = *rule;
        let numbers = [0, calls, files, nth, times, error, u32::from(first_is_short), 0, 0, 0, 0, behind];
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

    /// Which call fired last.
    pub fn last(&self) -> io::Result<String> {
        let word =
            |words: &[&'static str], bit: u32| words.get(bit.trailing_zeros() as usize).copied().unwrap_or("none");
        let (call, file) = (self.number(LAST_CALL)?, self.number(LAST_FILE)?);
        Ok(format!("{} of {}", word(&CALL_WORDS, call), word(&FILE_WORDS, file)))
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

pub(super) fn take(rest: &mut &[u8], count: u64) -> io::Result<Vec<u8>> {
    let mut taken = Vec::new();
    rest.take(count).read_to_end(&mut taken)?;
    if taken.len() as u64 == count { Ok(taken) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
