//! Foreign: a request for slots that are not served here, and where its client is sent.
//!
//! ```text
//!                       this core first of the slot?   this node?
//!  port P+1+i              here        no: MOVED
//!  port P                  here        ─── hop ───►   no: MOVED     several cores at once: CROSSSLOT; MULTI: MOVED
//!  hopped                  here        no: MOVED, the table has changed on the way
//! ```
//!
//! In a cluster no core lends another one its slot groups: what a core serves may go to another node at any moment.

use base::{Door, Slot};
use placement::Endpoint;
use replica::Links;
use wire::registry::{CommandSpec, key_positions};
use wire::{Arguments, Reply, error};

use crate::connection::Stall;
use crate::route::Hint;
use crate::run::place_of;
use crate::shard::Shard;

/// Why a request is not served here.
pub(crate) enum Foreign {
    /// Another instance serves the slot.
    Moved(Slot, Endpoint),
    /// Nobody is known to, or this node may not answer.
    Down,
}

impl Foreign {
    /// Writes the error to a client that knows this node as `local_host`, and ports shifted by `port_shift`.
    pub(crate) fn write(&self, reply: &mut Reply<'_>, (local_host, port_shift): (&str, i32)) {
        match self {
            Foreign::Moved(slot, endpoint) => {
                let host = endpoint.host_or(local_host);
                error::moved(reply, *slot, host, endpoint.port_shifted(port_shift));
            }
            Foreign::Down => reply.error("CLUSTERDOWN", "The cluster is down"),
        }
    }
}

/// Whose slots a request may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those of this core.
    Core,
    /// Those of any core of this node: it hops.
    Node,
}

impl Reach {
    fn has(self, slot: Slot, links: &Links) -> bool {
        let is_of_node =
            || links.view().and_then(|view| view.first(slot)).is_some_and(|first| first.node == links.me().node);
        links.serves(slot) || (self == Reach::Node && is_of_node())
    }
}

impl Shard {
    /// Whether this is one of several cores of a node in a cluster.
    #[inline]
    pub(crate) fn is_split_member(&self) -> bool {
        self.membership.is_some() && self.outbox.len() > 1
    }

    /// How far a request of this connection reaches.
    pub(crate) fn reach(&mut self, index: u32) -> Reach {
        match self.is_split_member() && self.door(index) == Door::Standalone {
            true => Reach::Node,
            false => Reach::Core,
        }
    }

    /// Writes the error of a request that does not reach its slots from here; true if there is one.
    pub(crate) fn refuse_foreign(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        reach: Reach,
    ) -> bool {
        let Some(foreign) = self.foreign(spec, arguments, None, reach) else { return false };
        self.write_foreign(index, &foreign)
    }

    pub(crate) fn write_foreign(&mut self, index: u32, foreign: &Foreign) -> bool {
        let Some(connection) = self.connections.at(index) else { return true };
        let mut reply = connection.output.reply(connection.session.protocol());
        foreign.write(&mut reply, place_of(&connection.session));
        true
    }

    /// As [`Shard::refuse_foreign`] of a request that may hop, be answered from a copy, or wait for a table.
    #[inline]
    pub(crate) fn refuse_unless_copy(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        hint: Option<Hint>,
    ) -> bool {
        let reach = self.reach(index);
        let Some(foreign) = self.foreign(spec, arguments, hint, reach) else { return false };
        let may_read = matches!(foreign, Foreign::Moved(..)) && self.reads_copy(index, spec, arguments);
        if may_read {
            return false;
        }
        match foreign {
            Foreign::Moved(slot, _) if self.is_expected(slot, reach) => {
                self.stall_and_repeat(index, spec, arguments, Stall::Parked);
                true
            }
            foreign => self.write_foreign(index, &foreign),
        }
    }

    /// Why a request is not served here, if it is not.
    pub(crate) fn foreign(
        &self,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        hint: Option<Hint>,
        reach: Reach,
    ) -> Option<Foreign> {
        self.membership.as_deref()?;
        match self.has_lease() {
            true => self.foreign_place(spec, arguments, hint, reach),
            false => Some(Foreign::Down),
        }
    }

    /// Who serves a request that is not served here.
    pub(crate) fn foreign_place(
        &self,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        hint: Option<Hint>,
        reach: Reach,
    ) -> Option<Foreign> {
        let links = &self.membership.as_deref()?.links;
        let slot = foreign_slot(spec, arguments, hint, |slot| reach.has(slot, links))?;
        let endpoint = links.view().and_then(|view| Some(view.endpoint(view.first(slot)?)));
        Some(endpoint.map_or(Foreign::Down, |endpoint| Foreign::Moved(slot, endpoint)))
    }
}

/// The first slot among those of a request's keys that is not within reach.
fn foreign_slot(
    spec: &'static CommandSpec,
    arguments: Arguments<'_>,
    hint: Option<Hint>,
    has: impl Fn(Slot) -> bool,
) -> Option<Slot> {
    if let Some(Hint { slot, .. }) = hint {
        return Some(slot).filter(|slot| !has(*slot));
    }
    let mut positions = Vec::new();
    if key_positions(spec, arguments, &mut positions).is_err() {
        // It gets its own error, and touches nothing.
        return None;
    }
    let mut names = positions.iter().filter_map(|position| arguments.get(position.index));
    names.find_map(|name| Some(placement::slot_of(name)).filter(|slot| !has(*slot)))
}
