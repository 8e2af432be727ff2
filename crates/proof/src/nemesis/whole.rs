//! Whether a cluster has healed: everybody there, every slot served and copied, nothing on its way.

use std::thread;
use std::time::{Duration, Instant};

use super::doors::{Door, Doors};

/// Nothing has changed for so long: it never will.
const STANDSTILL: Duration = Duration::from_secs(60);
/// And if it changes all the time, it is no healing either.
const WITHIN: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until the cluster is whole, or `is_given_up`; how long that took.
///
/// # Errors
/// What its nodes say instead.
pub(crate) fn await_whole(doors: &Doors, mut is_given_up: impl FnMut() -> bool) -> Result<Duration, String> {
    let (begun, mut changed, mut last) = (Instant::now(), Instant::now(), Vec::new());
    loop {
        let told: Vec<Option<String>> =
            (0..doors.len()).map(|node| doors.told(Door::of_core(node, 0), &["CLUSTER", "INFO"])).collect();
        if is_whole(&told, doors.cores) {
            return Ok(begun.elapsed());
        }
        let seen: Vec<Option<String>> = told.iter().map(|told| told.as_deref().map(what_matters)).collect();
        if seen != last {
            (last, changed) = (seen, Instant::now());
        }
        if is_given_up() || changed.elapsed() > doors.patience(STANDSTILL) || begun.elapsed() > doors.patience(WITHIN) {
            let last: Vec<String> = last.into_iter().map(|told| told.unwrap_or("no answer".to_owned())).collect();
            return Err(format!("not whole after {} s: {}", begun.elapsed().as_secs(), last.join(" | ")));
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn field<'a>(told: &'a str, name: &str) -> Option<&'a str> {
    told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}

/// What has to be, each with its value.
fn wanted(nodes: usize, cores: u16) -> [(&'static str, String); 7] {
    let instances = (nodes * usize::from(cores)).to_string();
    [
        ("cluster_state", "ok".to_owned()),
        ("cluster_known_nodes", instances),
        ("zh_nodes_up", nodes.to_string()),
        ("cluster_slots_degraded", "0".to_owned()),
        ("zh_slots_filling", "0".to_owned()),
        ("zh_slots_unserved", "0".to_owned()),
        ("zh_moves", "0".to_owned()),
    ]
}

fn is_whole(told: &[Option<String>], cores: u16) -> bool {
    let Some(told) = told.iter().map(Option::as_deref).collect::<Option<Vec<&str>>>() else { return false };
    let epoch = field(told[0], "cluster_current_epoch");
    let wanted = wanted(told.len(), cores);
    told.iter().all(|told| {
        field(told, "cluster_current_epoch") == epoch
            && wanted.iter().all(|(name, value)| field(told, name) == Some(value))
    })
}

fn what_matters(told: &str) -> String {
    let fields = wanted(0, 0).map(|(name, _)| name).into_iter().chain(["cluster_current_epoch", "cluster_size"]);
    fields.map(|name| format!("{name}:{}", field(told, name).unwrap_or("?"))).collect::<Vec<_>>().join(" ")
}
