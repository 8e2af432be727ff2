//! A memory cgroup of version 1 or 2: everything that a program takes counts in it, the page cache behind its files included.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Outcome;

const NAME: &str = "zerohop-bench";
/// A group is busy for a moment after its last process.
const GONE_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The two kinds of hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A hierarchy of the memory controller alone.
    One,
    /// The one hierarchy of all controllers.
    Two,
}

/// A group below the one that this process is in; gone when this is dropped, if nobody is in it any more.
#[derive(Debug)]
pub struct MemoryGroup {
    folder: PathBuf,
    kind: Kind,
}

/// What a group says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readings {
    /// Bytes that count in it now.
    pub used_bytes: u64,
    /// How often it was at its limit and something had to go, page cache first of all.
    pub reclaims: u64,
    /// Processes that the system killed because nothing could go.
    pub kills: u64,
}

impl MemoryGroup {
    /// A group called `name` with this limit and no swap.
    ///
    /// # Errors
    /// Where none can be made, with the reason: no memory controller, or no permission.
    pub fn new(name: &str, limit_bytes: u64) -> Outcome<MemoryGroup> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let (kind, folders) = parents(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
            .ok_or("this machine shows no cgroup hierarchy with memory")?;
        let parent = match kind {
            Kind::One => folders.first(),
            // Only a group that hands the controller on may have groups that limit memory.
            Kind::Two => folders.iter().find(|folder| {
                let handed_on = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
                handed_on.split_whitespace().any(|controller| controller == "memory")
            }),
        };
        let parent = parent.ok_or("no cgroup above this process hands the memory controller on")?;
        remove_left_over(parent);
        let folder = parent.join(format!("{NAME}-{}-{name}", std::process::id()));
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        fs::create_dir(&folder).map_err(failed)?;
        let group = MemoryGroup { folder: folder.clone(), kind };
        let (limit, swap, most_swap) = match kind {
            Kind::One => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", limit_bytes),
            Kind::Two => ("memory.max", "memory.swap.max", 0),
        };
        fs::write(folder.join(limit), limit_bytes.to_string()).map_err(failed)?;
        // A kernel that accounts no swap has no such file.
        if folder.join(swap).exists() {
            fs::write(folder.join(swap), most_swap.to_string()).map_err(failed)?;
        }
        Ok(group)
    }

    /// The words that start `words` inside; the process id stays what it would be.
    pub fn around(&self, words: &[String]) -> Vec<String> {
        let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        let folder = self.folder.display().to_string();
        [String::from("sh"), String::from("-c"), script.to_owned(), folder].into_iter().chain(words.to_vec()).collect()
    }

    /// What it says now.
    pub fn readings(&self) -> Outcome<Readings> {
        let read = |name: &str| {
            let path = self.folder.join(name);
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let readings = match self.kind {
            Kind::One => {
                // With equal limits it is the one of memory and swap that is met first.
                let failures = ["memory.failcnt", "memory.memsw.failcnt"].map(|name| read(name).unwrap_or_default());
                let [usage, control] = ["memory.usage_in_bytes", "memory.oom_control"].map(read);
                readings_of_one(&usage?, &failures, &control?)
            }
            Kind::Two => readings_of_two(&read("memory.current")?, &read("memory.events")?),
        };
        readings.ok_or_else(|| format!("{} is not understood", self.folder.display()))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let began = Instant::now();
        while let Err(error) = fs::remove_dir(&self.folder) {
            if began.elapsed() > GONE_WITHIN {
                return eprintln!("{} stays: {error}", self.folder.display());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Removes groups of chores that were killed. One with a process in it, or whose chore runs, stays.
fn remove_left_over(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(NAME)?.strip_prefix('-')?.split('-').next());
        let is_left = pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists());
        if is_left && let Err(error) = fs::remove_dir(entry.path()) {
            eprintln!("{} stays: {error}", entry.path().display());
        }
    }
}

/// The folders of the group that `cgroup` (`/proc/self/cgroup`) names and of those above it, innermost first, where `mountinfo`
/// (`/proc/self/mountinfo`) has them. A memory hierarchy of version 1 comes before version 2: where both are mounted, that one has
/// the controller.
fn parents(cgroup: &str, mountinfo: &str) -> Option<(Kind, Vec<PathBuf>)> {
    let groups = cgroup.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        Some((controllers, path))
    });
    let has_memory = |list: &str| list.split(',').any(|word| word == "memory");
    for (kind, file_system) in [(Kind::One, "cgroup"), (Kind::Two, "cgroup2")] {
        let is_ours = |controllers: &str| match kind {
            Kind::One => has_memory(controllers),
            Kind::Two => controllers.is_empty(),
        };
        let Some((_, path)) = groups.clone().find(|(controllers, _)| is_ours(controllers)) else { continue };
        let mount = mountinfo.lines().find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut before = before.split(' ').skip(3);
            let (root, point) = (before.next()?, before.next()?);
            let mut after = after.split(' ');
            let is_it = after.next()? == file_system && (kind == Kind::Two || has_memory(after.nth(1)?));
            is_it.then_some((root, point))
        });
        let Some((root, point)) = mount else { continue };
        // In a container the hierarchy may be mounted from the container's own group on.
        let within = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        let folders = within.ancestors().map(|part| Path::new(point).join(part)).collect();
        return Some((kind, folders));
    }
    None
}

fn readings_of_one(usage: &str, failures: &[String], control: &str) -> Option<Readings> {
    Some(Readings {
        used_bytes: usage.trim().parse().ok()?,
        reclaims: failures.iter().filter_map(|count| count.trim().parse::<u64>().ok()).sum(),
        kills: field(control, "oom_kill")?,
    })
}

fn readings_of_two(current: &str, events: &str) -> Option<Readings> {
    Some(Readings {
        used_bytes: current.trim().parse().ok()?,
        reclaims: field(events, "max")?,
        kills: field(events, "oom_kill")?,
    })
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{Kind, Readings, parents, readings_of_one, readings_of_two};
    use std::path::PathBuf;

    const MOUNT_ONE: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory";
    const MOUNT_OTHER: &str = "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset";
    const MOUNT_TWO: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";

    fn folders(words: &[&str]) -> Vec<PathBuf> {
        words.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn version_one_is_below_the_mount_of_memory() {
        let mounts = [MOUNT_OTHER, MOUNT_TWO, MOUNT_ONE].join("\n");
        let found = parents("5:devices:/\n4:memory:/jobs/a:b\n0::/else\n", &mounts);
        let expected = ["/sys/fs/cgroup/memory/jobs/a:b", "/sys/fs/cgroup/memory/jobs", "/sys/fs/cgroup/memory/"]
            .map(PathBuf::from);
        assert_eq!(found, Some((Kind::One, expected.to_vec())));
    }

    #[test]
    fn version_two_is_one_hierarchy() {
        let mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,memory_recursiveprot";
        let found = parents("0::/user.slice/session-1.scope\n", mount);
        let expected = ["/sys/fs/cgroup/user.slice/session-1.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/"];
        assert_eq!(found, Some((Kind::Two, folders(&expected))));
    }

    #[test]
    fn a_container_sees_its_own_part() {
        let mount = "35 31 0:32 /docker/7f /sys/fs/cgroup/memory ro - cgroup cgroup rw,hugetlb,memory";
        let found = parents("4:hugetlb,memory:/docker/7f/build\n", mount);
        assert_eq!(found, Some((Kind::One, folders(&["/sys/fs/cgroup/memory/build", "/sys/fs/cgroup/memory/"]))));
    }

    #[test]
    fn without_memory_there_is_none() {
        assert_eq!(parents("3:cpuset:/\n", MOUNT_OTHER), None);
        assert_eq!(parents("4:memory:/\n", MOUNT_OTHER), None);
    }

    #[test]
    fn a_kill_is_told_from_a_reclaim() {
        let failures = ["17\n".to_owned(), "4\n".to_owned()];
        let one = readings_of_one("4096\n", &failures, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
        assert_eq!(one, Some(Readings { used_bytes: 4096, reclaims: 21, kills: 2 }));
        let two = readings_of_two("8192\n", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 1\noom_group_kill 0\n");
        assert_eq!(two, Some(Readings { used_bytes: 8192, reclaims: 9, kills: 1 }));
        assert_eq!(readings_of_one("4096\n", &failures, "under_oom 0\n"), None);
    }
}
