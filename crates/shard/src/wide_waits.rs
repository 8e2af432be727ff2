//! Wide waits: blocking commands over keys of several cores, at their home (`docs/internals/blocking.md`).
//!
//! ```text
//!                 nothing found                        Ready
//!   first run ───────────────────► armed ──────────────────────────► running ──► served: over
//!   (a unit)                         ▲ ▲                               │
//!                                    │ └───────── nothing found ◄──────┘
//!                                    └ timeout, UNBLOCK, closed: over
//! ```

use std::collections::{BTreeMap, BTreeSet};

use base::{ConnectionId, CoreId};
use commands::{Block, May, Outcome, Unit};
use session::EncodedReply;
use wire::registry::CommandSpec;
use wire::{Arguments, error};

use crate::connection::Stall;
use crate::hop::{Control, WaitId};
use crate::owned_request::OwnedRequest;
use crate::route::GroupMasks;
use crate::shard::Shard;
use crate::unit::UnitWork;
use crate::waiters::Target;

/// A request that waits for keys of several cores.
struct WideWait {
    connection: ConnectionId,
    request: OwnedRequest,
    /// The groups of all its keys.
    masks: GroupMasks,
    /// Cores with a key that it waits for.
    owners: Vec<CoreId>,
    deadline_us: Option<u64>,
    /// A unit is on its way to look at the keys.
    running: bool,
    /// Its deadline passed meanwhile.
    overdue: bool,
}

/// Those of this core's connections.
#[derive(Default)]
pub struct WideWaits {
    count_ever: u64,
    all: BTreeMap<WaitId, WideWait>,
    deadlines: BTreeSet<(u64, WaitId)>,
}

impl WideWaits {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The next deadline.
    pub fn next_deadline_us(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline_us, _)| *deadline_us)
    }
}

impl Shard {
    /// The first run found nothing: from now on the owners of the keys tell when there is something. All groups are here
    /// still, and this news reaches the owners before them. The reply, if it may not wait.
    pub(crate) fn begin_wide_wait(
        &mut self,
        id: ConnectionId,
        request: &OwnedRequest,
        block: Block,
        masks: &[(CoreId, u64)],
    ) -> Option<EncodedReply> {
        let is_full = self.waiters.len() + self.wide_waits.len() >= base::limits::WAITERS_MAX;
        let deadline_us = self.deadline_us(&block);
        let refusal = self.write_refusal().filter(|_| self.has_log_failed());
        let connection = self.connections.get_mut(id)?;
        let (mut reply, protocol) = (EncodedReply::default(), connection.session.protocol());
        if let Some(text) = refusal {
            reply.encoder(protocol).error("MISCONF", &text);
            return Some(reply);
        }
        if is_full {
            reply.encoder(protocol).error("BUSY", "too many blocked clients on this core");
            return Some(reply);
        }
        self.wide_waits.count_ever += 1;
        let wait = WaitId::new(self.core, self.wide_waits.count_ever);
        connection.stall = Stall::WideWait(wait);
        let database = connection.session.database();
        let mut names_by_core: BTreeMap<CoreId, Vec<Vec<u8>>> = BTreeMap::new();
        for name in block.keys {
            names_by_core.entry(self.table.owner(placement::slot_of(&name))).or_default().push(name);
        }
        let owners = names_by_core.keys().copied().collect();
        for (core, names) in names_by_core {
            if core == self.core {
                self.on_interest(wait, database, names);
            } else {
                self.outbox[usize::from(core.0)].controls.push(Control::Interest { wait, database, names });
            }
        }
        self.wide_waits.deadlines.extend(deadline_us.map(|deadline_us| (deadline_us, wait)));
        let (request, masks) = (request.clone(), masks.to_vec());
        let wide = WideWait { connection: id, request, masks, owners, deadline_us, running: false, overdue: false };
        self.wide_waits.all.insert(wait, wide);
        None
    }

    /// An owner has something. If a unit is on its way already, it will see that.
    pub(crate) fn on_ready(&mut self, wait: WaitId, name: Vec<u8>) {
        if self.stopping {
            return;
        }
        let Some(wide) = self.wide_waits.all.get_mut(&wait).filter(|wide| !wide.running) else { return };
        wide.running = true;
        let (connection, masks) = (wide.connection, wide.masks.clone());
        self.start_unit_for_wait(connection, masks, UnitWork::Serve { wait, name });
    }

    /// All groups of the wait are here: take an element, of the key that was told of if it still has one. The reply, if
    /// there was one and the wait is not over.
    pub(crate) fn serve_wide_wait(&mut self, wait: WaitId, name: &[u8]) -> Option<EncodedReply> {
        let wide = self.wide_waits.all.get(&wait)?;
        let (id, request) = (wide.connection, wide.request.clone());
        let connection = self.connections.get_mut(id)?;
        let (protocol, database) = (connection.session.protocol(), connection.session.database());
        let mut reply = EncodedReply::default();
        let told = |spec: &'static CommandSpec, arguments: Arguments<'_>, unit: &mut Unit<'_>| {
            commands::resume_on(spec, arguments, name, unit)
        };
        let begun = self.start_timing(request.spec);
        let mut outcome = self.run_into(told, &request, database, May::BLOCK, reply.encoder(protocol));
        if outcome != Outcome::Done {
            outcome = self.run_into(commands::resume, &request, database, May::BLOCK, reply.encoder(protocol));
        }
        if outcome == Outcome::Done {
            self.stop_timing(begun, Some(Target::Local(id)), request.spec, request.arguments());
            self.end_wide_wait(wait);
            let connection = self.connections.get_mut(id)?;
            connection.stall = Stall::Unit;
            return Some(reply);
        }
        self.rearm(wait);
        None
    }

    fn rearm(&mut self, wait: WaitId) {
        let Some(wide) = self.wide_waits.all.get_mut(&wait) else { return };
        wide.running = false;
        if wide.overdue {
            return self.time_out_wide_wait(wait);
        }
        for owner in wide.owners.clone() {
            if owner == self.core {
                self.end_claim(wait);
            } else {
                self.outbox[usize::from(owner.0)].controls.push(Control::Rearm { wait });
            }
        }
    }

    /// The wait is over, and every owner hears of it; its connection, which still has to be answered.
    fn end_wide_wait(&mut self, wait: WaitId) -> Option<(ConnectionId, OwnedRequest)> {
        let wide = self.wide_waits.all.remove(&wait)?;
        if let Some(deadline_us) = wide.deadline_us {
            self.wide_waits.deadlines.remove(&(deadline_us, wait));
        }
        for owner in wide.owners {
            if owner == self.core {
                self.end_interest(wait);
            } else {
                self.outbox[usize::from(owner.0)].controls.push(Control::Forget { wait });
            }
        }
        Some((wide.connection, wide.request))
    }

    /// Ends the waits whose deadline has come; a unit under way may still bring its wait something.
    pub(crate) fn end_overdue_wide_waits(&mut self) {
        let now_us = self.now.monotonic_us;
        while self.wide_waits.next_deadline_us().is_some_and(|deadline_us| deadline_us <= now_us) {
            let (_, wait) = self.wide_waits.deadlines.pop_first().expect("just seen");
            match self.wide_waits.all.get_mut(&wait) {
                Some(wide) if wide.running => wide.overdue = true,
                _ => self.time_out_wide_wait(wait),
            }
        }
    }

    fn time_out_wide_wait(&mut self, wait: WaitId) {
        let Some((id, request)) = self.end_wide_wait(wait) else { return };
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (protocol, database) = (connection.session.protocol(), connection.session.database());
        let mut bytes = Vec::new();
        self.write_timeout(&request, database, protocol, &mut bytes);
        self.deliver(Target::Local(id), bytes.into(), None);
    }

    /// CLIENT UNBLOCK.
    pub(crate) fn unblock_wide_wait(&mut self, wait: WaitId, with_error: bool) {
        if !with_error {
            return self.time_out_wide_wait(wait);
        }
        if let Some((id, _)) = self.end_wide_wait(wait) {
            self.answer(Target::Local(id), |reply| error::UNBLOCKED.write(reply));
        }
    }

    /// All of them get this error: no key changes any more.
    pub(crate) fn end_wide_waits(&mut self, text: &str) {
        for wait in self.wide_waits.all.keys().copied().collect::<Vec<WaitId>>() {
            if let Some((id, _)) = self.end_wide_wait(wait) {
                self.answer(Target::Local(id), |reply| reply.error("MISCONF", text));
            }
        }
    }

    /// The connection that waited is gone.
    pub(crate) fn forget_wide_wait(&mut self, wait: WaitId) {
        self.end_wide_wait(wait);
    }
}
