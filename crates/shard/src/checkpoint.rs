//! The stage `checkpoint`: hands the storage's machine of checkpoints ([`storage::checkpoint`]) what it needs of the shard, and
//! does what it asks for and only the shard can do: questions to other cores, and the next tick at once.
//!
//! ```text
//!   tick, events ──► View of store, log, clock, units, uploads ──► machine ──► Asked ──► gather · hop · put_off
//! ```

use base::{CoreId, LogOrdinal};
use storage::Store;
use storage::checkpoint::{Asked, Checkpoints, Life, View};
use storage::log::Recovery;
use storage::maintenance::{Class, Notice};

use crate::gather::Question;
use crate::hop::Control;
use crate::shard::Shard;
use crate::upload::waiting_values;

impl Shard {
    /// What a start found on the disk, before the first tick.
    pub fn set_recovered(&mut self, recovery: &Recovery) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.set_recovered(recovery, &self.store);
        }
    }

    /// More runs than there need be, they and long values in smaller slices, for the simulator.
    pub fn set_run_bounds(&mut self, stride_bytes_max: u64, slice_bytes: usize) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.set_bounds(stride_bytes_max, slice_bytes);
        }
        self.uploads.set_slice_bytes(slice_bytes);
    }

    /// The log is quiet sooner, for the simulator.
    pub fn set_log_quiet_us(&mut self, quiet_us: u64) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.set_quiet_us(quiet_us);
        }
    }

    /// The stage: goes on with the run under way, or begins the next one.
    pub(crate) fn checkpoint(&mut self) {
        let Some(log) = &self.log else { return };
        if self.stopping && log.failure().is_none() {
            self.stop.begin(self.now.monotonic_us);
            self.note_busy_disk();
            if self.runs_are_idle() && self.come_to_rest() {
                return;
            }
        }
        self.with_checkpoints(Checkpoints::step);
        // Somebody waits for a run that the next tick begins.
        if (self.pace.holds_writers || self.pace.holds_uploads) && !self.stopping && self.runs_are_idle() {
            self.with_checkpoints(|checkpoints, view| {
                match !checkpoints.awaits_permit() && checkpoints.has_due_run(view) {
                    true => Asked::StepAgain,
                    false => Asked::Nothing,
                }
            });
        }
    }

    /// Lets the machine act, and does what it asks for.
    pub(crate) fn with_checkpoints(&mut self, act: impl FnOnce(&mut Checkpoints, &mut View<'_>) -> Asked) {
        let life = self.life();
        let (uploads, parked, fetches) = (&self.uploads, &self.parked_hops, &self.fetches);
        // What comes from elsewhere will not come any more once the node ends.
        let (units, membership) = (&self.units, self.membership.as_deref().filter(|_| !self.stopping));
        let begin = |store: &Store, sealed: LogOrdinal| {
            let arriving = membership.iter().flat_map(|membership| membership.links.begins_of_arriving());
            uploads.begin_of_runs(waiting_values(parked, fetches, units), arriving, store, sealed)
        };
        let long_bytes_max = self.run_bytes_in_company();
        let Some((checkpoints, log)) = self.checkpoints.as_mut().zip(self.log.as_mut()) else { return };
        let mut view = View {
            store: &mut self.store,
            log,
            effects: &mut self.effects,
            now: self.now,
            life,
            work: self.scheduler.granted(Class::Checkpoint),
            long_bytes_max,
            first_pending: self.units.first_pending(),
            begin: &begin,
        };
        let asked = act(checkpoints, &mut view);
        if checkpoints.has_notices() {
            let notices = checkpoints.take_notices();
            notices.into_iter().for_each(|notice| self.tell_permits(notice));
        }
        self.heed(asked);
    }

    fn tell_permits(&mut self, notice: Notice) {
        match self.core.0 {
            0 => self.on_notice(CoreId(0), notice),
            _ => self.outbox[0].controls.push(Control::Maintenance(notice)),
        }
    }

    /// Core 0 keeps the permits of the node: whoever may begin a run now is told.
    pub(crate) fn on_notice(&mut self, from: CoreId, notice: Notice) {
        self.permits.note(from.0, notice);
        while let Some(core) = self.permits.grant() {
            match core {
                0 => self.on_permit(),
                _ => self.outbox[usize::from(core)].controls.push(Control::MayRun),
            }
        }
    }

    /// This core may begin a run.
    pub(crate) fn on_permit(&mut self) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.on_permit();
        }
        self.put_off.note();
    }

    pub(crate) fn heed(&mut self, asked: Asked) {
        match asked {
            Asked::Nothing => {}
            Asked::StepAgain => self.put_off.note(),
            Asked::Durability(run) => {
                let number = self.gathers.open_for_run(run, self.outbox.len());
                self.ask_all(number, &Question::Durable);
                // This core's own sync is the next tick's business, and nothing else may come to bring that about.
                self.put_off.note();
            }
            Asked::Renewal => {
                self.put_off.note();
                match self.core.0 {
                    0 => self.on_renewed(),
                    _ => self.outbox[0].controls.push(Control::Renewed),
                }
            }
        }
    }

    fn life(&self) -> Life {
        match self.stopping {
            false => Life::Serving,
            true if self.all_rest() => Life::Resting,
            true => Life::Stopping,
        }
    }

    /// Whether no run is under way.
    pub(crate) fn runs_are_idle(&self) -> bool {
        self.checkpoints.as_ref().is_none_or(Checkpoints::is_idle)
    }

    /// A slice, or the end, of a run is written.
    pub(crate) fn on_run_written(&mut self, buffer: Vec<u8>) {
        match &mut self.checkpoints {
            Some(checkpoints) => checkpoints.on_run_written(buffer),
            None => unreachable!("without a log no run was ever asked for"),
        }
    }

    /// Another core, or this one, needs no earlier incarnation any more.
    pub(crate) fn on_renewed(&mut self) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.on_renewed(self.outbox.len(), &mut self.effects);
        }
    }
}

#[cfg(test)]
mod tests;
