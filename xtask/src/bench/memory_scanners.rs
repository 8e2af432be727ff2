//! Threads of the kernel that scan the machine's memory whatever a server does: they stand in for nobody's request, and belong to no
//! process that a benchmark could leave out. One was seen to run up to 4 ms at a time, interrupted by real-time threads only.

use std::fs;
use std::process::{Command, Stdio};

/// Names begin with one of these: monitoring of accesses, merging of equal pages, huge pages, compaction.
const NAMES: &[&str] = &["kdamond", "ksmd", "khugepaged", "kcompactd"];

/// Those that were moved, until it is dropped: then they may run where they might before.
pub struct KeptOff(Vec<Scanner>);

struct Scanner {
    thread: String,
    name: String,
    cpus: String,
}

impl KeptOff {
    /// Has those that may move run on `elsewhere` only. Without the right to nothing happens.
    pub fn to(elsewhere: &str) -> KeptOff {
        let scanners = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| Scanner::read(&entry));
        KeptOff(scanners.filter(|scanner| may_run(&scanner.thread, elsewhere)).collect())
    }

    /// Their names.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|scanner| scanner.name.as_str()).collect()
    }
}

impl Drop for KeptOff {
    fn drop(&mut self) {
        self.0.iter().for_each(|scanner| {
            may_run(&scanner.thread, &scanner.cpus);
        });
    }
}

impl Scanner {
    /// The parent of every thread of the kernel is process 2 (`kthreadd`).
    fn read(entry: &fs::DirEntry) -> Option<Scanner> {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let (name, cpus) = (field("Name:")?, field("Cpus_allowed_list:")?);
        let is_scanner = field("PPid:")? == "2" && NAMES.iter().any(|scanner| name.starts_with(scanner));
        let thread = entry.file_name().into_string().ok()?;
        is_scanner.then(|| Scanner { thread, name: name.to_owned(), cpus: cpus.to_owned() })
    }
}

fn may_run(thread: &str, cpus: &str) -> bool {
    let mut command = Command::new("taskset");
    command.args(["-cp", cpus, thread]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
