//! Conditions: what every number is to be read with. Durability, what of the files is in the page cache, and which bounds the
//! control group of this process sets, which those that it starts inherit.

use std::fs;
use std::path::Path;

use super::results::number;

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// A bound above this is none: the old interface writes the largest multiple of a page.
const NO_BOUND: f64 = 1e15;

/// A line for a result's notes.
pub fn line(durability: &str, cache: &str) -> String {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let bounds = bounds(&groups, |path| fs::read_to_string(Path::new(MOUNT).join(path)).ok());
    format!("durability: {durability}; cache: {cache}; control group: {bounds}")
}

/// The tightest bounds of the groups that `/proc/self/cgroup` names; `read` gives a file below the mount.
fn bounds(groups: &str, read: impl Fn(&str) -> Option<String>) -> String {
    let (mut memory, mut cores) = (f64::INFINITY, f64::INFINITY);
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        for folder in ancestors(path) {
            let file = |controller: &str, name: &str| read(&format!("{controller}{folder}{name}"));
            let of_memory = match controllers {
                "" => file("", "memory.max"),
                "memory" => file("memory/", "memory.limit_in_bytes"),
                _ => None,
            };
            let of_cores = match controllers {
                "" => file("", "cpu.max"),
                named if named.split(',').any(|name| name == "cpu") => {
                    let quota = file(&format!("{named}/"), "cpu.cfs_quota_us");
                    quota
                        .zip(file(&format!("{named}/"), "cpu.cfs_period_us"))
                        .map(|(quota, period)| quota + " " + &period)
                }
                _ => None,
            };
            memory = memory.min(of_memory.and_then(|text| text.trim().parse().ok()).unwrap_or(f64::INFINITY));
            cores = cores.min(of_cores.as_deref().and_then(share).unwrap_or(f64::INFINITY));
        }
    }
    let memory =
        if memory < NO_BOUND { format!("{} MB of memory", number(memory / 1e6)) } else { "memory unbounded".into() };
    let cores = if cores.is_finite() { format!("{} CPUs", number(cores)) } else { "CPU unbounded".into() };
    format!("{memory}, {cores}")
}

/// `/a/b` -> `a/b/`, `a/`, and nothing for the root.
fn ancestors(path: &str) -> impl Iterator<Item = String> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    (0..=names.len()).rev().map(move |count| names[..count].iter().map(|name| format!("{name}/")).collect())
}

/// `quota period`, microseconds -> CPUs.
fn share(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    let (quota, period) = (words.next()??, words.next()??);
    (quota > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::bounds;

    fn of(groups: &str, files: &[(&str, &str)]) -> String {
        bounds(groups, |path| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned()))
    }

    #[test]
    fn the_tightest_bound_of_all_groups_above_counts() {
        let files = [("a/memory.max", "512000000\n"), ("a/b/memory.max", "max\n"), ("a/b/cpu.max", "150000 100000\n")];
        assert_eq!(of("0::/a/b\n", &files), "512.0 MB of memory, 1.500 CPUs");
        assert_eq!(of("0::/\n", &files), "memory unbounded, CPU unbounded");
    }

    #[test]
    fn the_old_interface_is_read_too() {
        let groups = "4:memory:/x\n1:cpu,cpuacct:/\n0::/\n";
        let files = [
            ("memory/x/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.limit_in_bytes", "2000000000\n"),
            ("cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(of(groups, &files), "2000 MB of memory, CPU unbounded");
    }
}
