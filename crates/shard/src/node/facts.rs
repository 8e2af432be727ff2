//! What node commands are told: who the node is, and what each core counted. Plain values, so that a core can send its
//! own to another and an answer is a pure function of them.

use super::config::Config;
use super::statistics::{Counters, Gauges, KeyspaceFacts, Statistics};
use base::limits::DATABASE_COUNT;
use base::{CoreId, Door, InstanceName, Now};
use placement::{AddressBook, ClusterView, NodeTable};
use replica::{FollowStanding, LeadStanding};
use session::acl::{User, Users};

use crate::member::migrations::Migration;

/// What does not change while the node runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeIdentity {
    /// 40 hexadecimal digits, new at every start; also the replication id.
    pub run_id: String,
    /// Process id.
    pub process_id: u32,
    /// Port of the standalone personality; 0 without one.
    pub port: u16,
    /// Path of the Unix socket; empty without one.
    pub unix_socket: String,
    /// Path of the file of users; empty without one.
    pub acl_file: String,
    /// Path of the program.
    pub executable: String,
    /// Where the data is; empty when it is kept in memory only.
    pub directory: String,
    /// Operating system, release and machine.
    pub operating_system: String,
    /// What moves the bytes: `io_uring`, `epoll` or `sim`.
    pub io_driver: String,
    /// `memory`, `interval` or `commit`.
    pub durability: String,
    /// Cores, and so instances.
    pub cores: u16,
    /// When the node was up.
    pub started: Now,
}

impl NodeIdentity {
    /// The name of the file of users in its directory; empty without one.
    pub fn acl_file_name(&self) -> String {
        self.acl_file.rsplit_once('/').map_or(self.acl_file.as_str(), |(_, name)| name).to_owned()
    }
}

/// What only the operating system knows; sampled by the street.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessFacts {
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Of it: heap and stacks.
    pub resident_private_bytes: u64,
    /// Of it: the program's own text and constants.
    pub resident_file_bytes: u64,
    /// Of it: shared with the kernel or other processes.
    pub resident_shared_bytes: u64,
    /// The most it ever was, bytes.
    pub resident_bytes_max: u64,
    /// Memory of the machine, bytes.
    pub machine_bytes: u64,
    /// Time in the kernel, microseconds.
    pub cpu_system_us: u64,
    /// Time in the program, microseconds.
    pub cpu_user_us: u64,
}

/// What one core knows of itself.
#[derive(Clone, Debug, Default)]
pub struct CoreFacts {
    /// What it counted since start or CONFIG RESETSTAT.
    pub statistics: Statistics,
    /// How things stand.
    pub gauges: Gauges,
    /// Its keys, by database.
    pub keyspace: [KeyspaceFacts; DATABASE_COUNT as usize],
    /// Moves to and from it in a cluster, the newest first.
    pub migrations: Vec<Migration>,
}

/// What an instance of a cluster of several nodes knows of it.
#[derive(Clone, Copy, Debug)]
pub struct ClusterFacts<'a> {
    /// Which instance answers.
    pub me: InstanceName,
    /// Who serves what; `None`: no table has come yet.
    pub view: Option<&'a ClusterView>,
    /// Whether the node may answer requests for keys.
    pub has_lease: bool,
    /// Its links.
    pub links: &'a LinkFacts,
}

/// How the links of an instance stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFacts {
    /// The last log group that there is.
    pub offset: u64,
    /// To those that hold copies of what it serves.
    pub followers: Vec<LeadStanding>,
    /// From those whose copies it holds.
    pub firsts: Vec<FollowStanding>,
}

/// All that an answer may depend on, apart from the request.
#[derive(Clone, Copy)]
pub struct NodeFacts<'a> {
    /// The tick's clock reading.
    pub now: Now,
    /// How the asking connection came in.
    pub door: Door,
    /// The core that answers.
    pub core: CoreId,
    /// Our address as the asking connection sees it; its host stands in where none is announced.
    pub local: &'a str,
    /// Added to every port that the asking connection is told.
    pub port_shift: i32,
    /// Who the node is.
    pub identity: &'a NodeIdentity,
    /// The operating system's view, for whoever needs it: files are read for that.
    pub process: &'a dyn Fn() -> ProcessFacts,
    /// Settings.
    pub config: &'a Config,
    /// Who may do what.
    pub users: &'a Users,
    /// Who asks.
    pub user: &'a User,
    /// Who owns what on this node.
    pub table: &'a NodeTable,
    /// The cluster that the node is part of; `None`: it is on its own.
    pub cluster: Option<ClusterFacts<'a>>,
    /// Of every core when [`super::plan`] said so, otherwise of this one or none.
    pub cores: &'a [CoreFacts],
}

impl NodeFacts<'_> {
    /// Counters of all given cores.
    pub(super) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.cores.iter().for_each(|core| sum.add(&core.statistics.counters));
        sum
    }

    /// Gauges of all given cores.
    pub(super) fn gauges(&self) -> Gauges {
        let mut sum = Gauges::default();
        self.cores.iter().for_each(|core| sum.add(&core.gauges));
        sum
    }

    /// Slots of which there is one whole copy, so that the next failure loses them; of a node on its own that is no news.
    pub(super) fn slots_degraded(&self) -> u16 {
        let view = self.cluster.and_then(|cluster| cluster.view);
        view.map_or(0, |view| view.slots().filter(|(_, chain)| view.is_degraded(chain)).count() as u16)
    }

    /// How far the log is: of a node on its own bytes, in a cluster log groups, because that is what followers are compared by.
    pub(super) fn offset(&self) -> u64 {
        self.cluster.map_or_else(|| self.counters().log_bytes, |cluster| cluster.links.offset)
    }

    /// Who has which slots, as far as this instance knows.
    ///
    /// # Panics
    /// When the table has no such core.
    pub(super) fn book(&self) -> AddressBook {
        let book = match self.cluster {
            None => AddressBook::of_node(self.table, self.core),
            Some(ClusterFacts { view: None, .. }) => AddressBook::without_slots(self.table, self.core),
            Some(ClusterFacts { view: Some(view), me, .. }) => {
                let mine = self.table.instance(self.core).expect("the table has an instance for every core");
                AddressBook::of_cluster(view, me, &mine.endpoint)
            }
        };
        book.with_ports_shifted(self.port_shift)
    }

    /// Version of the table that decides who serves what; 0 before one has come.
    pub(super) fn table_version(&self) -> u64 {
        match self.cluster {
            None => self.table.epoch().0,
            Some(cluster) => cluster.view.map_or(0, ClusterView::version),
        }
    }

    /// Host of our address as the asking connection sees it; loopback on a Unix socket.
    pub(super) fn local_host(&self) -> &str {
        match self.local.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                host.trim_start_matches('[').trim_end_matches(']')
            }
            _ => "127.0.0.1",
        }
    }

    /// Seconds since the node was up.
    pub(super) fn uptime_s(&self) -> u64 {
        self.now.monotonic_us.saturating_sub(self.identity.started.monotonic_us) / 1_000_000
    }

    /// Whether acknowledged writes are in a log.
    pub(super) fn keeps_log(&self) -> bool {
        self.identity.durability != "memory"
    }
}
