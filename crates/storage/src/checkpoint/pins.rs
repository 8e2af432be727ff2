//! Pins: while somebody copies the directory's files, what was named stays as it is.
//!
//! ```text
//!  pin    ─► the runs that count, the logs of earlier incarnations, all segments: kept, and nobody says "renewed"
//!  point  ─► of each segment the bytes up to the last group; later segments come and go as ever
//!  unpin  ─► what was withheld goes
//! ```
//!
//! Two steps, because a run has parts of units that other cores log: all runs that are copied were published before any core
//! takes its point, so the points are behind all that the runs have (`docs/internals/backup.md`).

use base::planted::{Bug, is_planted};
use base::{Effect, LogOrdinal, SegmentNumber};

use super::{Asked, Checkpoints, View};
use crate::log::format::{parse_segment_file_name, segment_file_name};
use crate::run::Cut;
use crate::run::format::run_file_name;

/// A file to be copied, and how much of it; `None` is all.
pub type PinnedFile = (String, Option<u64>);

/// How far one core's files go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorePoint {
    /// Which opening of the store.
    pub incarnation: u64,
    /// Which core.
    pub core: u16,
    /// The last log group.
    pub ordinal: LogOrdinal,
    /// Its files, but for the manifest.
    pub files: Vec<PinnedFile>,
}

#[derive(Default)]
struct Pin {
    /// Runs, and files of earlier incarnations.
    files: Vec<PinnedFile>,
    /// The last segment that is pinned; `None` until the point is taken: all.
    last_segment: Option<SegmentNumber>,
    /// Files that nobody else needs any more.
    withheld: Vec<String>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Pins {
    pin: Option<Pin>,
}

impl Pin {
    fn holds(&self, name: &str) -> bool {
        let is_pinned = |segment| self.last_segment.is_none_or(|last| segment <= last);
        // Earlier incarnations are in the list; what is removed of this one is this log's.
        self.files.iter().any(|(pinned, _)| pinned == name)
            || parse_segment_file_name(name).is_some_and(|(_, _, segment)| is_pinned(segment))
    }
}

impl Pins {
    /// Asks for the removal of files, but for those that are pinned.
    pub(super) fn remove(&mut self, mut names: Vec<String>, effects: &mut Vec<Effect>) {
        if let Some(pin) = self.pin.as_mut().filter(|_| !is_planted(Bug::M27PinsIgnored)) {
            let withheld: Vec<String> = names.extract_if(.., |name| pin.holds(name)).collect();
            pin.withheld.extend(withheld);
        }
        if !names.is_empty() {
            effects.push(Effect::RemoveFiles { names });
        }
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pin.is_some()
    }
}

impl Checkpoints {
    /// The files of now stay as they are.
    pub fn pin(&mut self, view: &mut View<'_>) {
        view.log.pin();
        let runs = self.runs.iter().filter(|run| run.cut != Cut::default());
        let runs = runs.map(|run| (run_file_name(run.group, run.cut), Some(run.bytes)));
        let earlier = self.earlier.files().iter().map(|name| (name.clone(), None));
        self.pins.pin = Some(Pin { files: runs.chain(earlier).collect(), ..Pin::default() });
    }

    /// Names what [`Checkpoints::pin`] keeps, up to the last group; nothing is unsealed.
    pub fn point(&mut self, view: &mut View<'_>) -> CorePoint {
        let (incarnation, core) = (self.identity.incarnation, self.identity.core);
        let segments = view.log.pin_point();
        let pin = self.pins.pin.get_or_insert_default();
        pin.last_segment = segments.last().map(|(segment, _)| *segment);
        let name = |segment| segment_file_name(incarnation, core, segment);
        let segments = segments.iter().map(|&(segment, bytes)| (name(segment), Some(bytes)));
        let files = pin.files.iter().cloned().chain(segments).collect();
        CorePoint { incarnation, core, ordinal: view.log.sealed(), files }
    }

    /// Nobody copies any more.
    pub fn unpin(&mut self, view: &mut View<'_>) -> Asked {
        let Some(pin) = self.pins.pin.take() else { return Asked::Nothing };
        view.log.unpin();
        self.pins.remove(pin.withheld, view.effects);
        self.renewal().unwrap_or(Asked::Nothing)
    }

    /// Files that only the pin keeps.
    pub fn withheld(&self) -> usize {
        self.pins.pin.as_ref().map_or(0, |pin| pin.withheld.len())
    }
}
