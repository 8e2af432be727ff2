//! A group's values between memory and its runs.

use base::{BLOCK_BYTES, Version};
use types::Kind;

use super::SlotGroup;
use crate::heap::Location;
use crate::index::{Candidate, Place as IndexPlace};
use crate::key::Key;
use crate::log::record::RecordForm;
use crate::recency::Worth;
use crate::record::Header;
use crate::run::Cut;
use crate::run::format::run_file_name;
use crate::tiering::cold::{run_record_bytes, value_of};
use crate::tiering::{COLD_VALUE_BYTES_MIN, ColdValue, NotIt, Note, OFFSET_MAX, Place, Tally};

/// What the hand thinks of a value that is not here: its record is not looked at, which costs a line of memory each.
const COLD: Worth = Worth(0);
/// One choice in so many looks at all records: values that were here before anybody measured are worth nothing, too.
const LOOKS_AT_ALL: u64 = 16;
/// Steps of the hand that one choice takes at most.
const HAND_STEPS_MAX: usize = 8;

/// See the module.
#[derive(Default)]
pub(crate) struct Tier {
    /// Records get room for a place.
    pub is_on: bool,
    pub tally: Tally,
    /// The runs that places mean; the one that does not count any more, or does not yet, has none.
    runs: [(Cut, RecordForm); 2],
    /// Which of them counts.
    second: bool,
}

impl Tier {
    /// Of the same group without a key.
    pub(super) fn emptied(&self) -> Tier {
        Tier { is_on: self.is_on, tally: Tally::default(), runs: self.runs, second: self.second }
    }
}

impl SlotGroup {
    /// Room for a place in a string's record of that length, if it may ever go cold.
    pub(super) fn place_for(&self, value_len: usize) -> Option<Place> {
        let may_go_cold = self.tier.is_on && (COLD_VALUE_BYTES_MIN..=BLOCK_BYTES).contains(&value_len);
        may_go_cold.then_some(Place::NONE)
    }

    /// The run with this cut counts from now on; places in the one before mean that one still.
    pub(crate) fn begin_run_change(&mut self, cut: Cut) {
        self.tier.second = !self.tier.second;
        assert_eq!(self.tier.tally.in_run[usize::from(self.tier.second)], 0, "nothing means the run before the last");
        self.tier.runs[usize::from(self.tier.second)] = (cut, RecordForm::Short);
    }

    /// No place means the run before any more.
    pub(crate) fn end_run_change(&mut self) {
        let before = usize::from(!self.tier.second);
        assert_eq!(self.tier.tally.in_run[before], 0, "a walk notes every value that has a place");
        self.tier.runs[before] = Default::default();
    }

    /// At start: the run that is being loaded.
    pub(crate) fn set_loaded_run(&mut self, cut: Cut, form: RecordForm) {
        self.tier.runs[usize::from(self.tier.second)] = (cut, form);
    }

    /// The run that counts has what is noted, unless its key changed since.
    pub(crate) fn note_place(&mut self, note: Note) {
        if note.offset > OFFSET_MAX {
            return;
        }
        let Some((_, location)) = self.find_version(note.position, note.version) else { return };
        let before = Header::decode(self.heap.bytes(location));
        let Some(place) = before.place else { return };
        let place = Place { offset: note.offset, second: self.tier.second, is_cold: place.is_cold };
        self.set_place(location, &before, place);
    }

    fn set_place(&mut self, location: Location, before: &Header, place: Place) {
        let after = Header { place: Some(place), ..*before };
        self.tier.tally.take(before);
        self.tier.tally.add(&after);
        after.encode(self.heap.bytes_mut(location));
    }

    fn find_version(&self, position: u32, version: Version) -> Option<(IndexPlace, Location)> {
        let heap = &self.heap;
        self.index.find(position, |location| Header::decode(heap.bytes(location)).version == version)
    }

    /// What has to be read to have the key's value; `None` where it is here, or there is none.
    pub fn cold_value(&self, key: &Key<'_>) -> Option<ColdValue> {
        let found = self.find(key)?;
        self.cold_value_at(key.position(), found.location)
    }

    pub(crate) fn cold_value_at(&self, position: u32, location: Location) -> Option<ColdValue> {
        let header = Header::decode(self.heap.bytes(location));
        let place = header.place.filter(|place| place.is_cold)?;
        let (cut, form) = self.tier.runs[usize::from(place.second)];
        Some(ColdValue {
            group: self.id,
            position,
            version: header.version,
            file: run_file_name(self.id, cut),
            offset: place.offset,
            bytes: run_record_bytes(form, &header),
            form,
        })
    }

    /// What was read of a cold value, `None` if it is not cold any more: another read, or a change, was first.
    ///
    /// # Errors
    /// When it is not this value.
    pub(crate) fn verify<'a>(&self, cold: &ColdValue, record: &'a [u8]) -> Option<Result<&'a [u8], NotIt>> {
        let (_, location) = self.find_version(cold.position, cold.version)?;
        let header = self.cold_header(location)?;
        let name = &self.heap.bytes(location)[header.key_start()..header.key_end()];
        let slot = self.id.slot((cold.position >> 24) as u8);
        let value = value_of((record, cold.form), (name, header.database, slot), (header.version, header.expire_at_ms));
        Some(value.and_then(|value| if value.len() == header.value_len as usize { Ok(value) } else { Err(NotIt) }))
    }

    /// Whether a value of this position is clean.
    pub(crate) fn is_clean_at(&self, position: u32) -> bool {
        self.index.find(position, |location| is_clean(self.heap.bytes(location))).is_some()
    }

    /// The cold value of the same key and version, wherever it is now.
    pub(crate) fn cold_again(&self, cold: &ColdValue) -> Option<ColdValue> {
        let (_, location) = self.find_version(cold.position, cold.version)?;
        self.cold_value_at(cold.position, location)
    }

    fn cold_header(&self, location: Location) -> Option<Header> {
        Some(Header::decode(self.heap.bytes(location))).filter(Header::is_cold)
    }

    /// A verified value is in memory again, and clean; nothing happens where it came already.
    ///
    /// # Errors
    /// What is wrong, for the client.
    pub(crate) fn warm(&mut self, cold: &ColdValue, record: &[u8]) -> Result<(), &'static str> {
        let value = match self.verify(cold, record) {
            None => return Ok(()),
            Some(Ok(value)) => value,
            Some(Err(NotIt)) => return Err("what stands there is not the key's value"),
        };
        let Some((place, location)) = self.find_version(cold.position, cold.version) else { return Ok(()) };
        let before = Header::decode(self.heap.bytes(location));
        let hot = before.place.map(|place| Place { is_cold: false, ..place });
        let after = Header { place: hot, ..before };
        self.move_record((place, location), (&before, &after), value).map_err(|_| "the slot group is full")?;
        self.index.set_worth(place, self.recency.of_new());
        Ok(())
    }

    /// Writes a record anew in a slot of its size.
    fn move_record(
        &mut self,
        (place, from): (IndexPlace, Location),
        (before, after): (&Header, &Header),
        value: &[u8],
    ) -> Result<(), crate::heap::HeapFull> {
        let to = self.heap.allocate(after.record_bytes())?;
        let mut name = std::mem::take(&mut self.scratch);
        name.extend_from_slice(&self.heap.bytes(from)[before.key_start()..before.key_end()]);
        let record = self.heap.bytes_mut(to);
        after.encode(record);
        record[after.key_start()..after.key_end()].copy_from_slice(&name);
        record[after.value_start()..][..value.len()].copy_from_slice(value);
        name.clear();
        self.scratch = name;
        self.heap.free(from);
        self.index.relocate(place, to);
        self.tier.tally.take(before);
        self.tier.tally.add(after);
        Ok(())
    }

    /// Moves the hand on and drops the least used clean value of those that it passed and that `may_go` allows, by position.
    pub(crate) fn cool_step(&mut self, random: u64, passed: &mut Vec<Candidate>, may_go: impl Fn(u32) -> bool) -> bool {
        passed.clear();
        let looks_at_all = random.is_multiple_of(LOOKS_AT_ALL);
        for _ in 0..HAND_STEPS_MAX {
            let next = self.index.pass(self.hand, self.recency, random, passed);
            self.hand = next.unwrap_or(0);
            let heap = &self.heap;
            passed.retain(|candidate| {
                let is_here = looks_at_all || candidate.worth != COLD;
                is_here && is_clean(heap.bytes(candidate.location)) && may_go(candidate.position)
            });
            if !passed.is_empty() {
                break;
            }
        }
        if passed.is_empty() {
            return false;
        }
        let start = (random >> 32) as usize % passed.len();
        let in_turn = passed[start..].iter().chain(&passed[..start]);
        let Some(chosen) = in_turn.min_by_key(|candidate| candidate.worth).copied() else { return false };
        self.cool(chosen.position, chosen.location)
    }

    /// Drops a clean value; a key that has just been loaded may go at once.
    pub(crate) fn cool(&mut self, position: u32, location: Location) -> bool {
        let Some((place, _)) = self.index.find(position, |found| found == location) else { return false };
        let before = Header::decode(self.heap.bytes(location));
        let cold = before.place.map(|place| Place { is_cold: true, ..place });
        let after = Header { place: cold, ..before };
        let went = self.move_record((place, location), (&before, &after), &[]).is_ok();
        if went {
            self.index.set_worth(place, COLD);
        }
        went
    }

    /// A key was loaded from the run that counts, where `offset` is.
    pub(crate) fn note_loaded(&mut self, key: &Key<'_>, version: Version, offset: u64) {
        self.note_place(Note { position: key.position(), version, offset });
    }
}

fn is_clean(record: &[u8]) -> bool {
    let header = Header::decode(record);
    debug_assert!(header.place.is_none() || header.kind == Kind::String && !header.is_long);
    header.place.is_some_and(|place| !place.is_cold && place.offset > 0)
}
