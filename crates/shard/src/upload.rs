//! Upload: long values on their way into the store, a slice per tick, so that nobody waits for one of them.
//!
//! ```text
//!  connection's core                          the key's core
//!  decode: the value comes in blocks
//!  the request is whole ── hop, or not ──►    upload    blocks go to the log, a slice per tick
//!  the connection waits                       execute   the change names them: memory shares the blocks
//!  reply ◄─────────────────────────────────   commit
//! ```
//!
//! So it is with the value of one key that goes to another one (`COPY`, `RENAME`): its request finds when it runs that the log lacks
//! the value ([`commands::Outcome::Stage`]), and runs again when that has it.
//!
//! The store sees nothing of a value before its request runs, and runs it as any other: at once, in its turn. Until then
//! no run of a slot group may take the log groups with its blocks for done ([`Uploads::begin_of_runs`]).

mod item;

use std::collections::VecDeque;

use base::planted::{Bug, is_planted};
use base::{BLOCK_BYTES, Blocks, ConnectionId, Database, LogOrdinal, Slot};
use commands::ToStage;
use session::Gate;
use storage::{StageBegin, Store};
use wire::Arguments;
use wire::registry::{CommandSpec, Family, Resolved};

use crate::connection::Stall;
use crate::exec::Exec;
use crate::fetch::Fetches;
use crate::forward::ParkedHop;
use crate::hop::Control;
use crate::owned_request::{LongValue, OwnedRequest, Stage};
use crate::route::{GroupMasks, Route, route};
use crate::shard::Shard;
use crate::unit::{UnitWork, Units};
use crate::window::{Decoded, Window};

use item::NextBlock;
pub use item::{Then, Upload};

/// Bytes of long values that go to the log in one tick: copied once into the log group and once by the kernel.
const UPLOAD_BYTES: usize = 256 << 10;
/// The same where others are beside: one block.
const UPLOAD_BYTES_IN_COMPANY: usize = BLOCK_BYTES;
/// Bytes of log that are not synced, above which no more is uploaded: a client is not to outrun the disk, because the kernel
/// would stop the core for it.
const UNSYNCED_BYTES_MAX: u64 = 16 << 20;
/// How often a value that is written to is sent again but for less than a slice.
const ROUNDS_MAX: u8 = 4;
/// Bytes of log that are not synced, above which uploads have them synced.
const UNSYNCED_BYTES_DUE: u64 = 4 << 20;

/// The requests of one core with long values.
pub(crate) struct Uploads {
    queue: VecDeque<Upload>,
    /// Values that nobody needs, which the log is to say once it takes anything.
    unneeded: Vec<(Slot, u64)>,
    slice_bytes: usize,
}

impl Default for Uploads {
    fn default() -> Self {
        Uploads { queue: VecDeque::new(), unneeded: Vec::new(), slice_bytes: UPLOAD_BYTES }
    }
}

impl Uploads {
    /// Bytes of the values.
    pub(crate) fn bytes(&self) -> usize {
        self.queue.iter().map(Upload::new_bytes).sum()
    }

    /// Whether there are any.
    pub(crate) fn are_under_way(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Other slices, for the simulator.
    pub(crate) fn set_slice_bytes(&mut self, slice_bytes: usize) {
        self.slice_bytes = slice_bytes;
    }

    /// The log group up to which a run that begins now has everything: what is sealed, but not the blocks of values whose
    /// requests, here or among those that wait behind them, have not run, or that are `arriving` from elsewhere. `None` while such blocks
    /// are older than a clear.
    pub(crate) fn begin_of_runs<'p>(
        &'p self,
        waiting: impl Iterator<Item = &'p LongValue>,
        arriving: impl Iterator<Item = &'p StageBegin>,
        store: &Store,
        sealed: LogOrdinal,
    ) -> Option<LogOrdinal> {
        if is_planted(Bug::M24RunForgetsUploads) {
            return Some(sealed);
        }
        let values = self.queue.iter().flat_map(Upload::values).chain(waiting);
        let begins = values.filter_map(|value| value.stage.map(|stage| stage.begin));
        let mut begins = begins.chain(arriving.copied());
        begins.try_fold(sealed, |begin, stage| stage.begin_of_runs(store, begin))
    }
}

/// Values of requests and units that wait behind their upload.
pub(crate) fn waiting_values<'w>(
    parked: &'w VecDeque<ParkedHop>,
    fetches: &'w Fetches,
    units: &'w Units,
) -> impl Iterator<Item = &'w LongValue> {
    let requests = parked.iter().chain(fetches.hops()).flat_map(|parked| parked.request.long());
    requests.chain(units.long())
}

impl Shard {
    /// A whole request of which some arguments are in blocks; their spans are empty.
    pub(crate) fn run_long(&mut self, index: u32, arguments: Arguments<'_>, long: Vec<(usize, Blocks)>) {
        if let Resolved::Command(spec) = wire::registry::resolve(arguments)
            && long.iter().all(|(number, _)| commands::takes_long(spec.id, arguments, *number))
            && self.may_take_blocks(index, spec, arguments)
        {
            return self.start_upload(index, spec, arguments, long);
        }
        self.run_in_one_piece(index, arguments, &long);
        self.store.let_go(long.into_iter().map(|(_, blocks)| blocks));
    }

    /// Whether its keys are of several cores.
    fn is_spread(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) -> bool {
        let Some(asking) = self.asking(index, spec) else { return false };
        let place = (self.core, &*self.table, &self.store);
        matches!(route(spec, arguments, None, asking, place, &mut self.route_scratch), Route::Spread)
    }

    /// What waits for something else first is run as if it had come at once, but for what is queued.
    fn may_take_blocks(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) -> bool {
        let Some(connection) = self.connections.at(index) else { return false };
        let (is_known, is_queued) = (connection.session.is_authenticated(), connection.session.is_in_transaction());
        is_known && (is_queued || self.paused_until.is_none() && !self.is_spread(index, spec, arguments))
    }

    /// Any other command takes its arguments in one piece.
    fn run_in_one_piece(&mut self, index: u32, arguments: Arguments<'_>, long: &[(usize, Blocks)]) {
        let mut window = Window::default();
        let mut bytes = Vec::with_capacity(long.iter().map(|(_, blocks)| blocks.len()).sum());
        for (number, argument) in arguments.iter().enumerate() {
            let start = bytes.len();
            match long.iter().find(|(long, _)| *long == number) {
                Some((_, blocks)) => blocks.all().for_each(|piece| bytes.extend_from_slice(piece)),
                None => bytes.extend_from_slice(argument),
            }
            window.spans.push(base::Span { start: start as u32, len: (bytes.len() - start) as u32 });
        }
        let resolved = wire::registry::resolve(Arguments::new(&bytes, &window.spans));
        window.push(index, Decoded::Request(resolved), None, 0..bytes.len(), 0);
        let outer = std::mem::replace(&mut self.window, window);
        self.run_window(&bytes);
        self.window = outer;
    }

    fn start_upload(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        long: Vec<(usize, Blocks)>,
    ) {
        debug_assert!(spec.family == Family::Data, "values are data");
        let Some(connection) = self.connections.at(index) else { return };
        let gate = connection.session.gate(Resolved::Command(spec), arguments, &mut connection.output);
        let protocol = connection.session.protocol();
        self.list_for_flush(index);
        match gate {
            Gate::Run(_) => {}
            Gate::Queue(_) => {
                self.queue(index, spec, arguments, long);
                return self.note_rejected_at(index, spec);
            }
            Gate::Refused => return self.store.let_go(long.into_iter().map(|(_, blocks)| blocks)),
            Gate::Denied(_, denial, context) => {
                self.on_denied(index, spec, arguments, (denial, context));
                self.note_rejected_at(index, spec);
                return self.store.let_go(long.into_iter().map(|(_, blocks)| blocks));
            }
        }
        let Some(asking) = self.asking(index, spec) else { return };
        let place = (self.core, &*self.table, &self.store);
        let place = route(spec, arguments, None, asking, place, &mut self.route_scratch);
        let reach = self.reach(index);
        if self.refuse(index, spec, &place) || self.refuse_foreign(index, spec, arguments, reach) {
            self.note_rejected_at(index, spec);
            return self.store.let_go(long.into_iter().map(|(_, blocks)| blocks));
        }
        self.note_written(index, spec, arguments, None);
        let owner = if let Route::Hop(core) = place { core } else { self.core };
        let Some(connection) = self.connections.at(index) else { return };
        let ticket = connection.output.reserve().as_u64();
        connection.stall = Stall::Upload(ticket);
        let origin = connection.origin(self.core, ticket);
        let upload = Upload::brought(origin, OwnedRequest::new(spec, arguments), long, (asking.database, protocol));
        match owner == self.core {
            true => self.on_upload(upload),
            false => self.outbox[usize::from(owner.0)].controls.push(Control::Upload(Box::new(upload))),
        }
    }

    /// The log gets what came with a transaction whose keys are all of this core.
    pub(crate) fn upload_for_exec(&mut self, index: u32, masks: GroupMasks, mut exec: Exec) {
        let Some(connection) = self.connections.at(index) else { return };
        connection.stall = Stall::Unit;
        let values = exec.take_long();
        let then = Then::Exec { connection: connection.id, masks, exec: Box::new(exec) };
        self.on_upload(Upload::queued(values, then));
    }

    /// It has all that it gets.
    fn go_on(&mut self, upload: Upload) {
        match upload.finish() {
            Then::Request(parked) => self.run_or_park(parked),
            Then::Exec { connection, masks, exec } => self.run_exec(connection, masks, exec),
        }
    }

    fn run_exec(&mut self, id: ConnectionId, masks: GroupMasks, exec: Box<Exec>) {
        match self.connections.get_mut(id).is_some() {
            true => self.start_unit(id.index, masks, UnitWork::Exec(exec)),
            false => self.end_work(UnitWork::Exec(exec)),
        }
    }

    /// A request of one of this core's connections wants the log to have a value first that a key has.
    pub(crate) fn stage_for(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        first: ToStage,
    ) {
        // What it saw it tells nobody before it runs again.
        self.store.take_saw_uncommitted();
        let Some(connection) = self.connections.at(index) else { return };
        let shown = (connection.session.database(), connection.session.protocol());
        let ticket = connection.output.reserve().as_u64();
        connection.stall = Stall::Upload(ticket);
        let origin = connection.origin(self.core, ticket);
        let parked = ParkedHop::new(OwnedRequest::new(spec, arguments), origin, shown);
        self.on_upload(Upload::kept(parked, first, None));
    }

    /// The same of a request that came from another core, or asked before; to be run at once if it is back.
    ///
    /// What is written to the value while it is on its way makes less and less to be sent again: the rest goes as it runs.
    pub(crate) fn stage_parked(&mut self, mut parked: ParkedHop, first: ToStage) -> Option<ParkedHop> {
        self.store.take_saw_uncommitted();
        let before = parked.request.take_long();
        let mut upload = Upload::kept(parked, first, before.last());
        let goes_on = upload.values().iter().any(|value| value.stage.is_some());
        // It may be the last one that has them.
        match goes_on {
            true => self.store.let_go(before.into_iter().map(|value| value.blocks)),
            false => self.let_go(before),
        }
        let rounds = upload.values().first().map_or(0, |value| value.rounds);
        let is_rest = rounds > 0 && (upload.missing_bytes() <= UPLOAD_BYTES || rounds > ROUNDS_MAX);
        if !is_rest || self.takes_no_blocks(&upload) {
            self.on_upload(upload);
            return None;
        }
        while upload.is_missed() {
            self.log_block(&mut upload);
        }
        match upload.finish() {
            Then::Request(parked) => Some(parked),
            Then::Exec { .. } => unreachable!("it was made of a request"),
        }
    }

    /// Nobody needs these any more.
    pub(crate) fn let_go(&mut self, values: Vec<LongValue>) {
        let stages = values.iter().filter_map(|value| Some((value.slot, value.stage?.number)));
        self.uploads.unneeded.extend(stages);
        self.end_unneeded();
        self.store.let_go(values.into_iter().map(|value| value.blocks));
    }

    fn end_unneeded(&mut self) {
        if !self.uploads.unneeded.is_empty() && self.write_refusal().is_none() {
            let unneeded = std::mem::take(&mut self.uploads.unneeded);
            unneeded.into_iter().for_each(|(slot, stage)| self.store.end_stage(slot, stage));
        }
    }

    /// A request with a long value for this core is whole.
    pub(crate) fn on_upload(&mut self, upload: Upload) {
        self.uploads.queue.push_back(upload);
    }

    /// The stage: the next slice, and the requests whose values are complete.
    pub(crate) fn upload(&mut self) {
        if self.stopping {
            // The node ends: its clients see their connections end, and the last runs need not mind what never runs.
            self.uploads.queue.clear();
            self.units.forget_long();
            return self.parked_hops.retain(|parked| parked.request.long().is_empty());
        }
        self.end_unneeded();
        if self.uploads.queue.is_empty() {
            return;
        }
        let company_bytes = if self.has_company() { UPLOAD_BYTES_IN_COMPANY } else { usize::MAX };
        let slice_bytes = self.uploads.slice_bytes.min(company_bytes);
        let (mut moved, mut held) = (0, 0);
        while let Some(mut upload) = self.uploads.queue.pop_front() {
            if !upload.is_half_laid() && self.takes_no_blocks(&upload) {
                self.uploads.unneeded.extend(upload.give_up_log());
                self.end_unneeded();
            }
            if !upload.is_missed() && !self.lays_out(&mut upload) {
                // It is not on its way any more, or it would need room twice.
                self.update_memory();
                self.go_on(upload);
                continue;
            }
            if upload.is_missed() && self.outruns_followers(&mut upload) {
                self.uploads.queue.push_back(upload);
                held += 1;
                if held >= self.uploads.queue.len() {
                    return;
                }
                continue;
            }
            held = 0;
            let waits_for_disk = upload.is_missed() && self.outruns_disk_with_long();
            if moved >= slice_bytes || waits_for_disk || moved > 0 && self.is_late() {
                return self.uploads.queue.push_front(upload);
            }
            // In turns, so that a long value does not wait for a longer one.
            self.put_off.note();
            moved += if upload.is_missed() { self.log_block(&mut upload) } else { upload.lay_block() };
            self.uploads.queue.push_back(upload);
        }
    }

    /// Where the log takes nothing the request will be refused; should it run all the same, it brings its bytes along.
    fn takes_no_blocks(&self, upload: &Upload) -> bool {
        self.log.is_none() || self.write_refusal().is_some() || !self.could_hold(upload.new_bytes())
    }

    fn lays_out(&self, upload: &mut Upload) -> bool {
        upload.lays_out(|request, database| self.skip_of(request, database))
    }

    /// How many bytes into a block of what it is written into a request's long value will lie, as things are.
    fn skip_of(&self, request: &OwnedRequest, database: Database) -> usize {
        commands::skip_of_long(request.spec, request.arguments(), &self.store, (database, self.now.unix_ms))
    }

    /// A sync, the next segment, or a run has to come first; it ends with a tick.
    fn outruns_disk_with_long(&self) -> bool {
        self.pace.holds_uploads || self.is_ahead_of_disk()
    }

    /// Much is on the way to a copy of it; what comes from there ends with a tick.
    fn outruns_followers(&self, upload: &mut Upload) -> bool {
        let links = self.membership.as_deref().map(|membership| &membership.links);
        links.zip(upload.next_value()).is_some_and(|(links, value)| links.hold_long(value.slot))
    }

    fn is_ahead_of_disk(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.unsynced_bytes() > UNSYNCED_BYTES_MAX || log.awaits_segment_with_long())
    }

    /// The next block goes to the log; its bytes.
    fn log_block(&mut self, upload: &mut Upload) -> usize {
        let skip = upload.begins_alone().map_or(0, |(request, database)| self.skip_of(request, database));
        let Some(value) = upload.next_value() else { return 0 };
        let slot = value.slot;
        if value.stage.is_none() {
            // A replay begins with the group of the first block: a clear that came before it must not be in the same one.
            self.seal_group();
        }
        let next = self.log.as_ref().map(storage::log::LogWriter::next_ordinal);
        let clears = self.store.group(slot.group()).map(storage::SlotGroup::clears);
        let Some(first) = next else { return self.uploads.slice_bytes };
        let begin = StageBegin { first, group: slot.group(), clears };
        let begun = || Stage { number: self.store.begin_stage(), bytes: 0, begin };
        let number = value.stage.get_or_insert_with(begun).number;
        if let Some(membership) = self.membership.as_deref_mut().filter(|_| skip > 0) {
            membership.links.align(slot, number, skip as u32);
        }
        let Some(buffer) = self.store.log_mut() else { return self.uploads.slice_bytes };
        let Some(NextBlock { offset, bytes, is_again }) = upload.next_block() else { return 0 };
        match is_again {
            true => buffer.append_block_again(slot, (number, offset), &bytes),
            false => buffer.append_block(slot, (number, offset), &bytes),
        }
        bytes.len()
    }

    /// Whether long values on their way need a sync to go on.
    pub(crate) fn uploads_want_sync(&self) -> bool {
        let unsynced_bytes = self.log.as_ref().map_or(0, storage::log::LogWriter::unsynced_bytes);
        !self.uploads.queue.is_empty() && unsynced_bytes > UNSYNCED_BYTES_DUE
    }
}

#[cfg(test)]
mod tests;
