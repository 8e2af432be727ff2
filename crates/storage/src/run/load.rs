//! From runs to groups, at start: the newest run of every slot group, whole or not at all.

use base::planted::{Bug, is_planted};
use base::{LogOrdinal, SLOT_GROUP_COUNT, SlotGroupId, Version};

use super::format::{Cut, RUN_HEADER_BYTES, RunEnd, RunHeader, parse_run_file_name, run_file_name};
use crate::log::format::{GroupHeader, HeaderError, group_stride, not_read, tag};
use crate::log::record::{RECORD_BYTES_MIN, RecordForm};
use crate::log::replay::{
    ApplyReplayed, Damage, DecodedChange, Files, Replayed, StagedValue, Stages, Step, each_record,
};

/// How much of a log group a slot group's run has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All of it.
    Whole,
    /// What came before the walk passed its keys.
    Perhaps,
    /// Nothing.
    None,
}

/// Where the runs of all slot groups stand.
#[derive(Clone, Debug, Default)]
pub struct Cuts {
    loaded: Vec<Option<LoadedRun>>,
}

/// A run that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedRun {
    /// Where it stands.
    pub cut: Cut,
    /// The core whose log goes on from there.
    pub core: u16,
    /// The last log group that it may have something of.
    pub end: LogOrdinal,
    /// Bytes of it; its file may have more.
    pub bytes: u64,
    /// Keys in it.
    pub keys: u64,
    /// Last version of every slot.
    versions: Vec<Version>,
}

/// Where a run has a value that may be read alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedPlace {
    /// Which run.
    pub cut: Cut,
    /// What is in front of its records.
    pub form: RecordForm,
    /// Of the record in its file.
    pub offset: u64,
}

impl Cuts {
    /// The run of a group.
    pub fn run(&self, group: SlotGroupId) -> Option<&LoadedRun> {
        self.loaded.get(usize::from(group.number()))?.as_ref()
    }

    /// Where a group's run stands.
    pub fn cut(&self, group: SlotGroupId) -> Cut {
        self.run(group).map_or(Cut::default(), |run| run.cut)
    }

    /// The cuts of all groups, as the next manifest lists them.
    pub fn all(&self) -> Vec<Cut> {
        SlotGroupId::all().map(|group| self.cut(group)).collect()
    }

    /// How much a group's run has of the log group with this ordinal, in its owner's log of this incarnation.
    pub(crate) fn coverage(&self, group: SlotGroupId, (incarnation, ordinal): (u64, LogOrdinal)) -> Coverage {
        match self.run(group) {
            Some(run) if (incarnation, ordinal) <= (run.cut.incarnation, run.cut.begin) => Coverage::Whole,
            Some(run) if incarnation == run.cut.incarnation && ordinal <= run.end => Coverage::Perhaps,
            _ => Coverage::None,
        }
    }

    /// The slot groups whose runs have that log group already: bit i is group i.
    pub(crate) fn groups_that_cover(&self, place: (u64, LogOrdinal)) -> u64 {
        let covers = |group: &SlotGroupId| self.coverage(*group, place) == Coverage::Whole;
        SlotGroupId::all().filter(covers).fold(0, |mask, group| mask | 1 << group.number())
    }

    /// The last group of a core's log that some run has something of.
    pub(crate) fn published(&self, chain: (u64, u16)) -> u64 {
        let of_chain = |run: &&LoadedRun| (run.cut.incarnation, run.core) == chain;
        self.loaded.iter().flatten().filter(of_chain).map(|run| run.end.0).max().unwrap_or_default()
    }

    /// Whether a run has a change that gave `slot` this version.
    pub(crate) fn has_version(&self, slot: base::Slot, version: Version) -> bool {
        self.run(slot.group()).is_some_and(|run| run.versions[usize::from(slot.in_group())] >= version)
    }
}

/// What loading the runs found.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedRuns {
    /// Where they stand.
    pub cuts: Cuts,
    /// Runs that newer ones replace, and unfinished ones: nobody needs them.
    pub stale: Vec<String>,
    /// Keys loaded.
    pub keys: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Load the newest run of every slot group that has one. `at_least` is what the manifest knows to be there, by group, and
/// `incarnation` the one that wrote it.
///
/// # Errors
/// Damage, or what `apply` refused, with file and offset.
pub(crate) fn load_runs(
    (store_id, incarnation, at_least): (&[u8; 16], u64, &[Cut]),
    names: &[String],
    files: &mut Files<'_, '_>,
    apply: &mut ApplyReplayed<'_>,
) -> Result<LoadedRuns, Damage> {
    let mut newest = vec![Cut::default(); usize::from(SLOT_GROUP_COUNT)];
    let mut found = LoadedRuns::default();
    let runs = || names.iter().filter_map(|name| Some((name, parse_run_file_name(name)?)));
    for (_, (group, cut)) in runs() {
        let newest = &mut newest[usize::from(group.number())];
        *newest = (*newest).max(cut);
    }
    found.stale.extend(names.iter().filter(|name| super::format::is_unfinished_run(name)).cloned());
    let replaced = runs().filter(|(_, (group, cut))| *cut < newest[usize::from(group.number())]);
    found.stale.extend(replaced.map(|(name, _)| name.clone()));
    for group in SlotGroupId::all() {
        let number = usize::from(group.number());
        let (cut, known) = (newest[number], at_least.get(number).copied().unwrap_or_default());
        if cut < known {
            let reason = "the manifest knows this run, but the file is missing; restore it from a copy";
            return Err(Damage::new(&run_file_name(group, known), 0, reason));
        }
        if cut.incarnation > incarnation {
            // The next log of that incarnation would be taken for one that the run has already.
            let reason = "the manifest does not know this run; the manifest may be from an older copy";
            return Err(Damage::new(&run_file_name(group, cut), 0, reason));
        }
        let run = if cut == Cut::default() { None } else { Some(load(*store_id, group, cut, files, apply)?) };
        if let Some(run) = &run {
            found.keys += run.keys;
            found.bytes += run.bytes;
        }
        found.cuts.loaded.push(run);
    }
    Ok(found)
}

fn load(
    store_id: [u8; 16],
    group: SlotGroupId,
    cut: Cut,
    files: &mut Files<'_, '_>,
    apply: &mut ApplyReplayed<'_>,
) -> Result<LoadedRun, Damage> {
    let name = run_file_name(group, cut);
    let file = files.read(&name)?;
    let header = RunHeader::decode(file).map_err(|error| Damage::new(&name, 0, refusal(error)))?;
    if (RunHeader { core: 0, ..header }) != (RunHeader { store_id, group, core: 0, cut }) {
        return Err(Damage::new(&name, 0, "the run belongs to another store or place"));
    }
    let identity = header.identity();
    let keys = about_keys(file, identity);
    apply(Replayed::Run { group, keys }).map_err(|reason| Damage::new(&name, 0, reason))?;
    let (mut offset, mut ordinal, mut keys, mut end) = (RUN_HEADER_BYTES, 0, 0, None);
    let mut stages = Stages::default();
    while end.is_none() && offset < file.len() {
        let open = if is_planted(Bug::M8ChecksumIgnored) { GroupHeader::parse } else { GroupHeader::open };
        let opened = open(&file[offset..], identity).filter(|(group, _)| group.ordinal.0 == ordinal + 1);
        let Some((head, records)) = opened else {
            let reason = "the run is damaged, and it is the only copy of what it holds; restore this file from a copy";
            return Err(Damage::new(&name, offset as u64, reason));
        };
        each_record((&name, offset), (&head, records), &mut |step| {
            // Keys come in the index's order: what the next ones need is here.
            let Step::Record(record, body) = step else { return Ok(()) };
            if record.tag == tag::RUN_END {
                end = Some(RunEnd::decode(body).ok_or("the run's end is malformed")?);
                return Ok(());
            }
            if record.tag == tag::BLOCK {
                return stages.add(record);
            }
            let (mut elements, mut value) = (Vec::new(), StagedValue::default());
            let DecodedChange { slot, database, change } =
                DecodedChange::of(record, body, &mut elements, (&mut stages, &mut value))?;
            if slot.group() != group {
                return Err("a key of another slot group".into());
            }
            keys += 1;
            let offset = (offset + record.at) as u64;
            let place = record.is_sealed.then_some(LoadedPlace { cut, form: head.form, offset });
            apply(Replayed::Loaded { slot, database, key: record.key, version: record.version, change, place })
        })?;
        ordinal += 1;
        offset += group_stride(head.record_bytes as usize);
    }
    let Some(end) = end.filter(|end| end.keys == keys) else {
        return Err(Damage::new(&name, offset as u64, "the run has no end, or not all its keys; restore this file"));
    };
    apply(Replayed::Versions { group, versions: &end.versions }).map_err(|reason| Damage::new(&name, 0, reason))?;
    let versions = end.versions.iter().map(|(last, _)| *last).collect();
    Ok(LoadedRun { cut, core: header.core, end: end.end, bytes: offset as u64, keys, versions })
}

/// What the heads of the groups say of their number, believed only as far as so many records have room in the file: the end
/// of the run says it too late.
fn about_keys(file: &[u8], identity: u64) -> usize {
    let (mut offset, mut records) = (RUN_HEADER_BYTES, 0);
    while let Some((head, _)) = GroupHeader::parse(file.get(offset..).unwrap_or_default(), identity) {
        records += head.records as usize;
        offset += group_stride(head.record_bytes as usize);
    }
    records.min(file.len() / RECORD_BYTES_MIN)
}

fn refusal(error: HeaderError) -> String {
    match error {
        HeaderError::Format(format) => format!("the run {}", not_read(format)),
        HeaderError::Truncated | HeaderError::Damaged => "the run's header is damaged; restore this file".into(),
    }
}
