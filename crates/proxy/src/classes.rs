//! Classes: by when callers want their replies, as the operator says it for listeners and users.
//!
//! ```text
//!  ZH.QOS of the connection ─ none ─► class of the user it logged in as ─ none ─► class of the listener ─ none ─► default
//! ```

use crate::caller::Caller;
use crate::machine::ProxyMachine;
use base::street::TickInput;
use client::Qos;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who is in which class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Callers of whom nothing else is said.
    pub default: Qos,
    /// Those that come through a listener, by its number.
    pub of_listeners: Vec<Option<Qos>>,
    /// Those that logged in by this name. Who gave a password alone is `default`.
    pub of_users: BTreeMap<Vec<u8>, Qos>,
}

impl Classes {
    /// All callers are in this one.
    pub fn all(default: Qos) -> Classes {
        Classes { default, of_listeners: Vec::new(), of_users: BTreeMap::new() }
    }

    fn of(&self, caller: &Caller) -> Qos {
        let login = caller.identity.login.as_ref();
        let user = login.map(|(user, _)| user.as_deref().unwrap_or(b"default"));
        let of_user = user.and_then(|user| self.of_users.get(user));
        let of_listener = || self.of_listeners.get(usize::from(caller.listener))?.as_ref();
        *of_user.or_else(of_listener).unwrap_or(&self.default)
    }
}

/// What may change while a proxy runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changeable {
    /// Who is in which class.
    pub classes: Classes,
    /// Connections of one core to the store.
    pub connections_max: usize,
    /// Beginnings of keys whose writes are collapsed.
    pub collapse: Vec<Vec<u8>>,
}

/// What a core is told from outside.
pub type Order = Arc<Changeable>;

impl ProxyMachine {
    /// Takes what the operator changed. Callers notice with their next request.
    #[inline]
    pub(crate) fn take_orders(&mut self, input: &mut TickInput<'_, Order>) {
        for (_, order) in input.hops.drain(..) {
            self.seats.bound(order.connections_max);
            self.collapses.set_prefixes(&order.collapse);
            self.classes = order.classes.clone();
            self.classes_version += 1;
        }
    }

    /// Gives a caller the class that it is in by now, unless it named one. Whether it has to wait for its replies first: requests of
    /// another class may take another connection, and would overtake those on their way.
    #[inline]
    pub(crate) fn is_of_old_class(&mut self, caller: &mut Caller) -> bool {
        if caller.classes_version == self.classes_version {
            return false;
        }
        let qos = self.classes.of(caller);
        let is_other = qos != caller.qos && !caller.named_class;
        // Whether a request may pass those that are collapsed is told by the prefixes that held for them.
        if (is_other || caller.has_collapsed) && caller.order.owed() > 0 {
            return true;
        }
        caller.classes_version = self.classes_version;
        if is_other {
            self.leave_group(caller);
            caller.qos = qos;
        }
        false
    }
}
