//! How a core stands when somebody asks: what it counted, and what is not answered.
//!
//! What is counted costs an addition where it happens. What is not answered is looked up here, request by request, because nobody would
//! count it up and down on the way of each for a look in a second.

use crate::classes::{Class, Order};
use crate::counts::ClassCounts;
use crate::machine::ProxyMachine;
use crate::seat::{OwedTo, Whose};
use base::CoreId;
use base::street::{Now, TickOutput};
use client::LaneCounts;
use std::collections::BTreeMap;

/// What cores, the operator and the admin port say to each other.
#[derive(Clone, Debug)]
pub enum Word {
    /// The operator changed something.
    Order(Order),
    /// Another process takes over: whoever is at rest goes there. `wait_us`: how long handshakes that nobody sees may still take.
    Leave {
        /// Microseconds.
        wait_us: u64,
    },
    /// The admin port asks how a core stands.
    Ask,
    /// It stands so.
    Standing(Box<CoreStanding>),
}

/// Requests that are not answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// How many.
    pub requests: u64,
    /// How long ago the oldest of them was taken, microseconds.
    pub oldest_us: u64,
}

impl Outstanding {
    fn add(&mut self, age_us: u64) {
        self.requests += 1;
        self.oldest_us = self.oldest_us.max(age_us);
    }
}

/// A class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassStanding {
    /// What the operator says of it.
    pub class: Class,
    /// What was counted.
    pub counts: ClassCounts,
    /// What is not answered.
    pub outstanding: Outstanding,
    /// Its callers.
    pub callers: u64,
    /// Those of them whose next request has to wait.
    pub callers_waiting: u64,
}

/// A node of the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestinationStanding {
    /// Where it is.
    pub address: String,
    /// What its lanes counted, those that are gone included.
    pub counts: LaneCounts,
    /// Replies that sent their requests elsewhere.
    pub redirects: u64,
    /// Requests that were sent again behind a lost connection.
    pub retries: u64,
    /// What is not answered.
    pub outstanding: Outstanding,
    /// Connections that requests flow on.
    pub open: u64,
    /// Lanes that nobody answered when they dialed last.
    pub down: u64,
}

/// A core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreStanding {
    /// By number; the same ones on every core.
    pub classes: Vec<ClassStanding>,
    /// Those that it asked something of.
    pub destinations: Vec<DestinationStanding>,
    /// Logins at the proxy with a wrong name or password.
    pub failed_logins: u64,
    /// Requests that the proxy refused their users, or callers that had not logged in.
    pub refused_requests: u64,
}

impl ProxyMachine {
    /// Those that asked are told how it stands after all else of the tick.
    pub(crate) fn tell(&mut self, now: Now, output: &mut TickOutput<Word>) {
        if self.asked_by.is_empty() {
            return;
        }
        let standing = self.standing(now.monotonic_us);
        let hops = std::mem::take(&mut self.asked_by).into_iter();
        output.hops.extend(hops.map(|asker: CoreId| (asker, Word::Standing(Box::new(standing.clone())))));
    }

    fn standing(&mut self, now_us: u64) -> CoreStanding {
        let of_class = |(class, counts): (&Class, &ClassCounts)| ClassStanding {
            class: class.clone(),
            counts: counts.clone(),
            outstanding: Outstanding::default(),
            callers: 0,
            callers_waiting: 0,
        };
        let mut classes: Vec<ClassStanding> = self.classes.all.iter().zip(&self.desk.counts).map(of_class).collect();
        for caller in self.desk.callers.iter().flatten() {
            let class = &mut classes[caller.class.index()];
            class.callers += 1;
            class.callers_waiting += u64::from(caller.wait.is_some());
        }
        let mut nodes: BTreeMap<usize, DestinationStanding> = BTreeMap::new();
        for counts in self.seats.counts_of_nodes() {
            let Some(node) = counts.node else { continue };
            let standing = DestinationStanding {
                address: self.routes.node(node).1.to_owned(),
                counts: counts.lanes,
                redirects: counts.redirects,
                retries: counts.retries,
                ..DestinationStanding::default()
            };
            nodes.insert(node.index(), standing);
        }
        for seat in self.seats.all() {
            let node = nodes.entry(seat.node.index()).or_default();
            node.address = seat.lane.address().to_owned();
            node.counts += seat.lane.counts();
            node.open += u64::from(seat.lane.is_open());
            node.down += u64::from(seat.lane.is_down(now_us) && !matches!(seat.whose, Whose::Idle | Whose::Aside));
            for owed in seat.lane.items() {
                let age_us = now_us.saturating_sub(owed.asked_us);
                let caller = match owed.to {
                    OwedTo::Caller { caller, .. } => caller,
                    OwedTo::Part { gather, .. } => self.desk.gathers.caller(gather),
                    // What is sent for many is nobody's, and one request to the node.
                    OwedTo::Collapsed { .. } => {
                        node.outstanding.add(age_us);
                        continue;
                    }
                    OwedTo::Begun { .. } | OwedTo::Table | OwedTo::Report | OwedTo::Label | OwedTo::Nobody => continue,
                };
                node.outstanding.add(age_us);
                let caller = self.desk.callers.get(caller.index as usize).and_then(Option::as_deref);
                if let Some(caller) = caller {
                    classes[caller.class.index()].outstanding.add(age_us);
                }
            }
        }
        let (failed_logins, refused_requests) =
            self.admission.as_ref().map_or((0, 0), |one| (one.failed_logins, one.refused_requests));
        CoreStanding { classes, destinations: nodes.into_values().collect(), failed_logins, refused_requests }
    }
}
