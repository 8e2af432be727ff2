//! Runs on the disk: written in slices, published, read. Each of it may fail, and a crash may come at each durable step.

use base::planted::{Bug, is_planted};
use base::street::Event;

use super::{Item, Street};
use crate::disk::SyncSnapshot;
use crate::effects::unfinished;
use crate::faults::Fault;
use crate::node::Node;

/// One of so many writes of runs fails.
const RUN_WRITES_PER_FAILURE: u64 = 100;
/// One of so many reads of runs fails, and one brings a wrong bit.
const RUN_READS_PER_FAILURE: u64 = 100;
/// One of so many steps of publications fails, in worlds where any does.
const PUBLICATION_STEPS_PER_FAILURE: u64 = 20;

impl<N: Node> Street<N> {
    pub(crate) fn write_run(&mut self, core: u16, name: &str, (offset, bytes): (u64, Vec<u8>), recycle: Option<&str>) {
        if self.durable_step() {
            return;
        }
        self.trace.note(self.now_us(), "run", &[u64::from(core), offset], name.as_bytes());
        let name = unfinished(name);
        match recycle {
            None if offset > 0 => {}
            None => self.disk.make_empty(&name),
            Some(old) => {
                self.trace.note(self.now_us(), "recycle run", &[u64::from(core)], old.as_bytes());
                self.disk.remove(&name);
                self.disk.rename(old, &name);
                if self.durable_step() {
                    return;
                }
            }
        }
        // Only part of it is there when the crash comes inside the write, or when the write fails.
        let part = self.rng.below(bytes.len() as u64 + 1) as usize;
        self.disk.write(&name, offset, &bytes[..part]);
        if self.durable_step() {
            return;
        }
        let delay_us = self.chance_us(self.weather.write_us_max);
        if self.rng.chance(1, RUN_WRITES_PER_FAILURE) {
            self.faults.fired(Fault::RunFails);
            self.disk.remove(&name);
            let reason = format!("{name}: No space left on device");
            return self.after(delay_us, Item::RunDone { core, event: Event::RunFailed { reason } });
        }
        self.disk.write(&name, offset, &bytes);
        self.after(delay_us, Item::RunDone { core, event: Event::RunWritten { buffer: bytes } });
    }

    /// The disk answers in any order; now and then it fails, or hands over a bit that is not what was written.
    pub(crate) fn read_run(&mut self, core: u16, token: u64, name: &str, (offset, bytes): (u64, u64)) {
        let file = self.disk.files().find(|(file, _)| *file == name);
        let stretch = file.and_then(|(_, content)| content.get(offset as usize..(offset + bytes) as usize));
        let mut read =
            stretch.map(<[u8]>::to_vec).ok_or_else(|| format!("{name} at offset {offset}: nothing is there"));
        self.trace.note(self.now_us(), "read", &[u64::from(core), offset, bytes], name.as_bytes());
        match self.rng.below(RUN_READS_PER_FAILURE) {
            _ if !self.reads_fail => {}
            0 => {
                self.faults.fired(Fault::ReadFails);
                read = Err(format!("{name} at offset {offset}: Input/output error"));
            }
            1 => {
                self.faults.fired(Fault::ReadLies);
                let bit = self.rng.below(8 * bytes);
                if let Ok(content) = &mut read {
                    content[(bit / 8) as usize] ^= 1 << (bit % 8);
                }
            }
            _ => {}
        }
        let delay_us = self.chance_us(self.weather.sync_us_max);
        self.after(delay_us, Item::RunDone { core, event: Event::RunRead { token, read } });
    }

    pub(crate) fn publish_runs(&mut self, core: u16, names: Vec<String>) {
        let snapshots = names.iter().map(|name| self.disk.begin_sync(&unfinished(name))).collect();
        let delay_us = self.chance_us(self.weather.sync_us_max);
        self.after(delay_us, Item::RunsSynced { core, names, snapshots });
    }

    pub(crate) fn runs_synced(&mut self, core: u16, names: &[String], snapshots: Vec<SyncSnapshot>) {
        for (name, snapshot) in names.iter().zip(snapshots) {
            if self.durable_step() || self.fails_publication(core, names) {
                return;
            }
            self.disk.finish_sync(&unfinished(name), snapshot);
        }
        for name in names {
            if self.durable_step() || self.fails_publication(core, names) {
                return;
            }
            self.trace.note(self.now_us(), "published", &[u64::from(core)], name.as_bytes());
            self.disk.rename(&unfinished(name), name);
        }
        if self.durable_step() || self.fails_publication(core, names) {
            return;
        }
        if !is_planted(Bug::M9NoDirectorySync) {
            self.disk.sync_directory();
        }
        if !self.durable_step() {
            self.tell(core, Event::RunsPublished);
        }
    }

    /// Whether the system refuses the next step. Then nothing is left of these runs, whichever names they have by now; a power cut
    /// may bring back what has its own, and that is whole.
    fn fails_publication(&mut self, core: u16, names: &[String]) -> bool {
        if !self.publications_fail || !self.rng.chance(1, PUBLICATION_STEPS_PER_FAILURE) {
            return false;
        }
        self.faults.fired(Fault::PublicationFails);
        for name in names {
            self.disk.remove(&unfinished(name));
            self.disk.remove(name);
        }
        let reason = names.first().map_or_else(String::new, |name| format!("{name}: Input/output error"));
        self.tell(core, Event::RunFailed { reason });
        true
    }
}
