//! What is asked of a store of several processes, whoever made it.

use std::time::{Duration, Instant};

use super::client::connect;
use super::standing::Standing;
use crate::load::control::{Reply, ask};

const WHOLE_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ports on which the nodes of a store listen for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePorts {
    /// For what they agree on, or tell each other of who is there and has what.
    pub table: Vec<u16>,
    /// For keys, where that is apart.
    pub keys: Vec<u16>,
}

/// Processes that are one store.
pub trait Store {
    /// Its name with its version.
    fn name(&self) -> String;
    /// Its processes and their parts, in a few words.
    fn shape(&self) -> &'static str;
    /// Where its nodes listen for cluster clients.
    fn ports(&self) -> Vec<u16>;
    /// Kills the node that listens on `port` with SIGKILL; when that was done.
    ///
    /// # Errors
    /// When it does not run.
    fn kill(&mut self, port: u16) -> Result<Instant, String>;
    /// Starts it again where it was, with what it left.
    ///
    /// # Errors
    /// When there is no process.
    fn start_again(&mut self, port: u16) -> Result<(), String>;
    /// When every node says that all slots are served and have their copies: the version of what they agree on.
    fn whole(&self) -> Option<u64>;
    /// Where its nodes listen for each other.
    fn node_ports(&self) -> NodePorts;
    /// What it tells of its inside; most stores tell nothing.
    fn standing(&self) -> Option<Standing> {
        None
    }
}

/// Waits until every slot has its copies and all nodes agree.
///
/// # Errors
/// When that takes too long.
pub fn await_whole(store: &dyn Store) -> Result<(), String> {
    let begun = Instant::now();
    while store.whole().is_none() {
        if begun.elapsed() > WHOLE_WITHIN {
            return Err(format!("{} is not whole within {WHOLE_WITHIN:?}", store.name()));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// What the node on `port` answers to `words`, if it is text.
pub fn told(port: u16, words: &[&str]) -> Option<String> {
    match ask(&mut connect(port).ok()?, words) {
        Ok(Reply::Text(text)) => Some(text),
        _ => None,
    }
}

/// The value of `name:value` in lines of INFO or CLUSTER INFO.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}

/// The epoch that the node on `port` knows, if it says that the state is ok, with `known` nodes of which `serving` serve slots.
pub fn epoch_if_ok(port: u16, known: usize, serving: usize) -> Option<(u64, String)> {
    let text = told(port, &["CLUSTER", "INFO"])?;
    let is = |name: &str, wanted: &str| field(&text, name) == Some(wanted);
    let (known, serving) = (known.to_string(), serving.to_string());
    let is_ok = is("cluster_state", "ok") && is("cluster_known_nodes", &known) && is("cluster_size", &serving);
    let epoch = field(&text, "cluster_current_epoch")?.parse().ok()?;
    is_ok.then_some((epoch, text))
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "cluster_state:ok\r\ncluster_slots_ok:5\r\n";
        assert_eq!((field(text, "cluster_state"), field(text, "cluster_slots_ok")), (Some("ok"), Some("5")));
        assert_eq!((field(text, "cluster_slots"), field(text, "state")), (None, None));
    }
}
