//! `ZH.MGET` on a cluster's port: the values of what is served here, whatever slots it is of, and where to ask for the rest.
//!
//! ```text
//!  ZH.MGET a b c ─► a, c here │ b elsewhere ─► [value of a, MOVED of b, value of c]
//! ```
//!
//! One reply a node for a client that asks for many keys: the proxy. Who may `MGET` may ask so.

use base::Slot;
use base::limits::KEY_BYTES_MAX;
use commands::Refused;
use wire::registry::CommandSpec;
use wire::{Arguments, Reply};

use crate::connection::Stall;
use crate::foreign::{Foreign, Reach};
use crate::route::Route;
use crate::run::place_of;
use crate::shard::Shard;

/// Where a slot is served.
enum Place {
    Here,
    /// Here, in a moment.
    Soon,
    Elsewhere(Foreign),
}

impl Shard {
    /// Runs such a request as soon as nothing of it is on its way here.
    pub(crate) fn run_several_slots(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) {
        if !self.has_lease() {
            self.write_foreign(index, &Foreign::Down);
            return;
        }
        let Some(connection) = self.connections.at(index) else { return };
        let (host, port_shift) = place_of(&connection.session);
        let (host, protocol) = (host.to_owned(), connection.session.protocol());
        let mut refused = Vec::new();
        for (argument, name) in arguments.iter().enumerate().skip(1) {
            if name.len() > KEY_BYTES_MAX {
                self.refuse(index, spec, &Route::KeyTooLong);
                return;
            }
            match self.place_of_slot(placement::slot_of(name)) {
                Place::Here => {}
                Place::Soon => return self.stall_and_repeat(index, spec, arguments, Stall::Parked),
                Place::Elsewhere(foreign) => {
                    let mut error = Vec::new();
                    foreign.write(&mut Reply::new(&mut error, protocol), (&host, port_shift));
                    refused.push(Refused { argument, error });
                }
            }
        }
        let waits = self.awaits_hand_over(index, spec, arguments)
            || (self.store.tiers() && self.awaits_values(index, spec, None, arguments));
        if !waits {
            self.run_refusing(index, spec, (None, &refused), arguments);
        }
    }

    fn place_of_slot(&self, slot: Slot) -> Place {
        let links = self.membership.as_deref().map(|membership| &membership.links);
        if let Some(links) = links.filter(|links| !links.serves(slot)) {
            let endpoint = links.view().and_then(|view| Some(view.endpoint(view.first(slot)?)));
            return match endpoint {
                Some(_) if self.is_expected(slot, Reach::Core) => Place::Soon,
                Some(endpoint) => Place::Elsewhere(Foreign::Moved(slot, endpoint)),
                None => Place::Elsewhere(Foreign::Down),
            };
        }
        match self.table.owner(slot) == self.core {
            true if self.store.group(slot.group()).is_some() => Place::Here,
            true => Place::Soon,
            false => Place::Elsewhere(Foreign::Moved(slot, self.table.moved(slot).clone())),
        }
    }
}

#[cfg(test)]
mod tests;
