//! File descriptors: as many as the operating system lets us have, and a word when that is too few.

use base::limits::CONNECTIONS_PER_CORE_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::NodeConfig;

/// Descriptors of one core apart from its connections: log segments, ring or epoll, doorbell, spare, with reserve.
const OTHERS_PER_CORE: u64 = 24;
/// Descriptors of the process: standard streams, directory lock, signals.
const OTHERS: u64 = 16;

/// Raises the soft limit to the hard one. A warning when fewer connections than promised fit even then.
pub fn raise_file_limit(config: &NodeConfig) -> Option<String> {
    let listeners = config.bind.len() as u64 * 2 + 1;
    let cores = u64::from(config.cores);
    let wanted = OTHERS + cores * (CONNECTIONS_PER_CORE_MAX as u64 + OTHERS_PER_CORE + listeners);
    let have = raise_to(wanted)?;
    let connections = have.saturating_sub(OTHERS + cores * (OTHERS_PER_CORE + listeners));
    // A few less make no difference that anybody could act on.
    if connections >= cores * CONNECTIONS_PER_CORE_MAX as u64 * 9 / 10 {
        return None;
    }
    Some(format!(
        "this process may open {have} files, which is enough for about {connections} connections instead of {}; raise \
         the limit with `ulimit -n {wanted}` or LimitNOFILE={wanted}",
        cores * CONNECTIONS_PER_CORE_MAX as u64
    ))
}

/// Raises the soft limit to `wanted`, or as near as the hard one allows: how many files there may be then. `None` without any limit.
pub fn raise_to(wanted: u64) -> Option<u64> {
    let Rlimit { current, maximum: hard } = getrlimit(Resource::Nofile);
    let soft = current?;
    let reachable = hard.map_or(wanted, |hard| hard.min(wanted));
    let is_raised =
        soft < reachable && setrlimit(Resource::Nofile, Rlimit { current: Some(reachable), maximum: hard }).is_ok();
    Some(if is_raised { reachable } else { soft })
}
