//! A bound on what a process may take: a memory control group of its own, below the one that this process is in; where none can
//! be made, a bound on its address space, which refuses memory instead of killing.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// The kernel writes pages back before it takes a bound below what is in use; it is asked so often.
const TRIES_MAX: u32 = 200;
const PAUSE: Duration = Duration::from_millis(20);

/// A control group with one process.
struct Group {
    folder: PathBuf,
    bound: &'static str,
    events: &'static str,
}

/// See the module.
pub struct Confinement {
    process: u32,
    group: Option<Group>,
}

impl Confinement {
    /// Confines the process, without a bound as yet. What it took before stays with the group that it was in, so it is
    /// confined right behind its start.
    pub fn new(process: u32) -> Confinement {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = groups.lines().filter_map(candidate).find(|group| group.take(process).is_ok());
        Confinement { process, group }
    }

    /// What holds the process, in words.
    pub fn in_words(&self) -> &'static str {
        match self.group {
            Some(_) => "in a control group",
            None => "by a bound on its address space: no control group can be made here",
        }
    }

    /// From now on it may take `bytes`; `resident_bytes` are what it takes.
    ///
    /// # Errors
    /// When the kernel refuses the bound.
    pub fn limit(&self, bytes: u64, resident_bytes: u64) -> io::Result<()> {
        let Some(group) = &self.group else { return self.limit_address_space(bytes - resident_bytes) };
        let mut result = Ok(());
        for _ in 0..TRIES_MAX {
            result = fs::write(group.folder.join(group.bound), bytes.to_string());
            if result.is_ok() {
                break;
            }
            thread::sleep(PAUSE);
        }
        result
    }

    fn limit_address_space(&self, more_bytes: u64) -> io::Result<()> {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.process))?;
        let pages: u64 = statm.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let bytes = pages * rustix::param::page_size() as u64 + more_bytes;
        let process = i32::try_from(self.process).ok().and_then(Pid::from_raw);
        prlimit(process, Resource::As, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
        Ok(())
    }

    /// How often the kernel killed somebody in the group for want of memory.
    pub fn kills(&self) -> u64 {
        let Some(group) = &self.group else { return 0 };
        kills(&fs::read_to_string(group.folder.join(group.events)).unwrap_or_default())
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        // Its process is gone by now. An empty group that stays costs nothing, so a failure is not worth a verdict.
        if let Some(group) = &self.group
            && let Err(error) = fs::remove_dir(&group.folder)
        {
            eprintln!("a control group stays behind: {error}");
        }
    }
}

impl Group {
    fn take(&self, process: u32) -> io::Result<()> {
        fs::create_dir(&self.folder)?;
        let mut result = fs::metadata(self.folder.join(self.bound)).map(drop);
        if result.is_ok() {
            result = fs::write(self.folder.join("cgroup.procs"), process.to_string());
        }
        if result.is_err() {
            fs::remove_dir(&self.folder)?;
        }
        result
    }
}

/// A group below the one of a line of `/proc/self/cgroup`, if that line is about memory.
fn candidate(line: &str) -> Option<Group> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
    let name = format!("zerohop-proof-{}", std::process::id());
    match controllers {
        "" => Some(Group {
            folder: PathBuf::from(MOUNT).join(path).join(name),
            bound: "memory.max",
            events: "memory.events",
        }),
        "memory" => Some(Group {
            folder: PathBuf::from(MOUNT).join("memory").join(path).join(name),
            bound: "memory.limit_in_bytes",
            events: "memory.oom_control",
        }),
        _ => None,
    }
}

/// The line `oom_kill N`.
fn kills(text: &str) -> u64 {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{candidate, kills};

    #[test]
    fn groups_lie_below_the_one_that_this_process_is_in() {
        let folder = |line: &str| candidate(line).map(|group| group.folder.display().to_string());
        let new = folder("0::/a/b").expect("the unified hierarchy");
        assert!(new.starts_with("/sys/fs/cgroup/a/b/zerohop-proof-"), "{new}");
        let old = folder("4:memory:/c").expect("memory's own hierarchy");
        assert!(old.starts_with("/sys/fs/cgroup/memory/c/zerohop-proof-"), "{old}");
        assert_eq!(folder("3:cpuset:/"), None);
    }

    #[test]
    fn kills_are_counted() {
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), 2);
        assert_eq!(kills("low 0\noom 4\noom_kill 3\noom_group_kill 0\n"), 3);
        assert_eq!(kills(""), 0);
    }
}
