//! I/O errors and full disks under the real binary (AT-09), and its end at the n-th system call (AT-06), on one directory after the other.
//!
//! ```text
//!   errors     one named fault under load ─► it stops, refuses, or goes on, and says so ─► kill -9 ─► a start has all
//!   calls      any one call fails, from the start to the end of the process, again and again on one directory
//!   crashes    the process dies before any one call ─► power cut: parts of what no sync covers are lost ─► a start has all
//!   full disk  a file system fills ─► refused by name, reads go on ─► room ─► writes go on without a restart
//!
//!   shim       fails system calls below the binary (C, preloaded)      book    what was acknowledged, and what is in doubt
//!   node       a process on a directory: start, ask, end, judge        disk    a small file system of our own
//!   journal    what the shim tells of all changes                      loss    what a power cut takes of them
//! ```
//!
//! No clock decides: a case waits for what the node says, and what it was asked for says what may be found.

mod book;
mod calls;
pub mod command;
mod crashes;
mod disk;
mod errors;
mod full_disk;
mod journal;
mod loss;
mod node;
mod shim;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::process::new_directory;
use node::Home;
use shim::Shim;

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Named faults, each with what has to become of it.
    Errors,
    /// Any one system call.
    Calls,
    /// The end of the process and of the power before any one system call.
    Crashes,
    /// A disk that fills and is freed; needs the right to mount (`unshare --map-root-user --mount`).
    FullDisk,
}

/// What to start and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The binary zerohop.
    pub zerohop: String,
    /// What to run.
    pub part: Part,
    /// Draws loads and calls.
    pub seed: u64,
    /// Trials of [`Part::Calls`] and [`Part::Crashes`].
    pub trials: u64,
    /// [`Part::Crashes`] at every call of a life in turn.
    pub every: bool,
    /// Where a directory stays that was judged wrong, as the last cut left it.
    pub keep: Option<PathBuf>,
    /// Only cases whose name has this in it.
    pub only: Option<String>,
    /// Only these thirds of the cases, of 0, 1 and 2: each has a third of the settings of every case, and of the directories of
    /// [`Part::Calls`] and [`Part::Crashes`]; of every call, these thirds of the calls.
    pub thirds: Vec<u64>,
}

impl Options {
    /// Whether the case with this number and name is asked for in the setting with that number.
    fn is_meant(&self, (number, name): (usize, &str), setting: usize) -> bool {
        self.has_third(number as u64 + setting as u64) && self.only.as_ref().is_none_or(|part| name.contains(part))
    }

    fn has_third(&self, number: u64) -> bool {
        self.thirds.contains(&(number % 3))
    }
}

/// How a node is started.
#[derive(Clone, Copy, Debug)]
struct Setting {
    durability: &'static str,
    backend: &'static str,
    cores: u32,
}

/// Both promises on both backends.
const SETTINGS: [Setting; 4] = [
    Setting { durability: "interval", backend: "epoll", cores: 1 },
    Setting { durability: "commit", backend: "epoll", cores: 1 },
    Setting { durability: "interval", backend: "uring", cores: 1 },
    Setting { durability: "commit", backend: "uring", cores: 1 },
];

impl std::fmt::Display for Setting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, {}, {} cores", self.durability, self.backend, self.cores)
    }
}

/// Runs a part; returns how many cases were right, and what was wrong in the others.
///
/// # Errors
/// When what it needs cannot be made.
pub fn run(options: &Options) -> io::Result<(u64, Vec<String>)> {
    let root = new_directory()?;
    let result = run_in(options, &root);
    fs::remove_dir_all(&root)?;
    result
}

fn run_in(options: &Options, root: &Path) -> io::Result<(u64, Vec<String>)> {
    let home = Home::new(&options.zerohop, root)?;
    match options.part {
        Part::Errors => errors::run(options, &home, &Shim::build(root)?),
        Part::Calls => calls::run(options, &home, &Shim::build(root)?),
        Part::Crashes => crashes::run(options, &home, &Shim::build_lossy(root)?),
        Part::FullDisk => full_disk::run(options, &home),
    }
}

/// Counts a case, and tells it.
fn tell(name: &str, result: Result<String, String>, (right, wrong): (&mut u64, &mut Vec<String>)) {
    match result {
        Ok(what) => {
            *right += 1;
            println!("{name}: {what}");
        }
        Err(problem) => {
            println!("WRONG  {name}: {problem}");
            wrong.push(format!("{name}: {problem}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, Part};

    #[test]
    fn every_case_is_in_one_third_in_each_setting_and_in_all_thirds_over_three_settings() {
        let third = |number| Options {
            zerohop: String::new(),
            part: Part::Errors,
            seed: 1,
            trials: 0,
            every: false,
            keep: None,
            only: None,
            thirds: vec![number],
        };
        let thirds = [0, 1, 2].map(third);
        for case in 0..16 {
            let in_setting = |setting| thirds.iter().filter(|third| third.is_meant((case, "any"), setting)).count();
            assert!((0..6).all(|setting| in_setting(setting) == 1), "case {case}");
            assert!(thirds.iter().all(|third| (0..3).any(|setting| third.is_meant((case, "any"), setting))));
        }
    }
}
