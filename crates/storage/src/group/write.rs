//! Performing changes: the one place that writes records.

use base::{BLOCK_BYTES, Blocks, Slot, Version};
use types::{Change, Expiry, Kind, List};

use super::beside::Spliced;
use super::{Found, SlotGroup, number_of};
use crate::heap::HeapFull;
use crate::key::Key;
use crate::lazy_free::{Garbage, LAZY_FREE_BYTES_MIN};
use crate::recency::Recency;
use crate::record::{Form, Header};

impl SlotGroup {
    /// Perform a change on memory under `version`. The change was planned against the key's present value.
    pub fn apply(&mut self, key: &Key<'_>, change: &Change<'_>, version: Version) -> Result<(), HeapFull> {
        self.apply_to(key, self.find(key), change, version)
    }

    /// As [`SlotGroup::apply`], with what [`SlotGroup::find`] says of the key now.
    #[inline]
    pub(crate) fn apply_to(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        change: &Change<'_>,
        version: Version,
    ) -> Result<(), HeapFull> {
        debug_assert_eq!(key.group(), self.id);
        let sequences = &mut self.sequences[key.slot.in_group() as usize];
        match version > sequences.last {
            true => sequences.last = version,
            false => self.untold_changes += 1,
        }
        if let Some(found) = found
            && matches!(self.recency, Recency::Lru | Recency::Tier)
        {
            self.touch(found, 0);
        }
        match *change {
            Change::Put { kind: Kind::String, value, expiry } if value.len() > BLOCK_BYTES => {
                self.put_blocks(key, found, Blocks::of(value), expiry, version)
            }
            Change::PutBlocks { blocks, expiry, .. } => self.put_blocks(key, found, blocks.clone(), expiry, version),
            Change::Put { kind: Kind::String, value, expiry } => self.put_string(key, found, value, expiry, version),
            Change::Put { kind: Kind::List, value, expiry } => self.put_list(key, found, value, expiry, version),
            Change::Remove => {
                if let Some(found) = found {
                    self.remove(key, found, version);
                }
                Ok(())
            }
            _ => {
                let found = found.expect("a change of a present value was planned against a key that exists");
                self.apply_in_place(key, found, change, version)
            }
        }
    }

    /// Note how the key's string came about, which is no change of it.
    pub(crate) fn set_form(&mut self, key: &Key<'_>, form: Form) {
        if let Some(found) = self.find(key) {
            let header = Header { form, ..self.header(found) };
            header.encode(self.heap.bytes_mut(found.location));
        }
    }

    fn apply_in_place(
        &mut self,
        key: &Key<'_>,
        found: Found,
        change: &Change<'_>,
        version: Version,
    ) -> Result<(), HeapFull> {
        let header = self.header(found);
        match *change {
            Change::Append { bytes } if header.is_long => {
                let len = self.long.get(number_of(&self.heap.bytes(found.location)[header.value_start()..])).len();
                self.splice_blocks(key, found, (len, Spliced::Bytes(bytes)), version)
            }
            Change::Append { bytes } => self.splice(key, found, header.value_len as usize, bytes, version),
            Change::Overwrite { offset, bytes } => self.splice(key, found, offset as usize, bytes, version),
            Change::OverwriteBlocks { offset, blocks, skip, .. } => {
                self.splice_blocks(key, found, (offset as usize, Spliced::Blocks(blocks, skip)), version)
            }
            Change::Expire { at_ms } => self.set_expiry(key, found, Some(at_ms), version),
            Change::Persist => self.set_expiry(key, found, None, version),
            _ => {
                self.change_list(key, found, change, version);
                Ok(())
            }
        }
    }

    pub(super) fn put_string(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        value: &[u8],
        expiry: Expiry,
        version: Version,
    ) -> Result<(), HeapFull> {
        let old = found.map(|found| self.header(found));
        let header = Header {
            version,
            database: key.database,
            kind: Kind::String,
            form: Form::Written,
            is_long: false,
            expire_at_ms: expiry_after(old.as_ref(), expiry),
            key_len: key.bytes.len() as u16,
            value_len: value.len() as u32,
            place: self.place_for(value.len()),
        };
        self.put(key, found.zip(old), header, value)
    }

    /// Write a whole record, over the old one where it fits.
    pub(super) fn put(
        &mut self,
        key: &Key<'_>,
        old: Option<(Found, Header)>,
        header: Header,
        value: &[u8],
    ) -> Result<(), HeapFull> {
        let bytes = header.record_bytes();
        let location = match old {
            Some((found, _)) if fits(self.heap.slot_bytes(found.location), bytes) => found.location,
            _ => self.heap.allocate(bytes)?,
        };
        if let Some((found, old_header)) = old {
            self.drop_beside_of(found, &old_header);
            self.tier.tally.take(&old_header);
            self.count_expiry(&old_header, header.expire_at_ms);
            if location != found.location {
                self.heap.free(found.location);
                self.index.relocate(found.place, location);
            }
        } else {
            self.index.insert(key.position(), location, self.recency.of_new());
            let database = &mut self.databases[key.database.0 as usize];
            database.keys += 1;
            database.expiring += u64::from(header.expire_at_ms.is_some());
            self.sequences[key.slot.in_group() as usize].keys += 1;
        }
        self.tier.tally.add(&header);
        let record = self.heap.bytes_mut(location);
        header.encode(record);
        record[header.key_start()..header.key_end()].copy_from_slice(key.bytes);
        record[header.value_start()..][..value.len()].copy_from_slice(value);
        Ok(())
    }

    fn remove(&mut self, key: &Key<'_>, found: Found, version: Version) {
        self.remove_at(found, key.database, key.slot, version);
        self.removals.note(key.hash);
    }

    pub(super) fn remove_at(&mut self, found: Found, database: base::Database, slot: Slot, version: Version) {
        let header = self.header(found);
        self.drop_beside_of(found, &header);
        self.tier.tally.take(&header);
        self.index.remove(found.place);
        self.heap.free(found.location);
        let database = &mut self.databases[database.0 as usize];
        database.keys -= 1;
        database.expiring -= u64::from(header.expire_at_ms.is_some());
        let sequences = &mut self.sequences[slot.in_group() as usize];
        sequences.keys -= 1;
        // What a run knows of already may be replayed in front of it.
        sequences.removed = sequences.removed.max(version);
    }

    /// Write `bytes` at `offset` of a string, growing it with zeros.
    fn splice(
        &mut self,
        key: &Key<'_>,
        found: Found,
        offset: usize,
        bytes: &[u8],
        version: Version,
    ) -> Result<(), HeapFull> {
        let old = self.header(found);
        let mut header = old.changed(version);
        let old_len = header.value_len as usize;
        let new_len = old_len.max(offset + bytes.len());
        if header.is_long || new_len > BLOCK_BYTES {
            return self.splice_blocks(key, found, (offset, Spliced::Bytes(bytes)), version);
        }
        if header.place.is_none() && self.place_for(new_len).is_some() {
            return self.splice_into_place(key, found, (offset, bytes), version);
        }
        header.form = Form::Raw;
        header.value_len = new_len as u32;
        let mut location = found.location;
        if self.heap.slot_bytes(location) < header.record_bytes() {
            // A quarter of slack, so that a value built by many appends is copied a logarithmic number of times.
            location = self.heap.allocate(header.record_bytes() + new_len / 4)?;
            let keep = header.value_start() + old_len;
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.extend_from_slice(&self.heap.bytes(found.location)[..keep]);
            self.heap.bytes_mut(location)[..keep].copy_from_slice(&scratch);
            scratch.clear();
            scratch.shrink_to(base::limits::LOG_PIECE_BYTES_MAX);
            self.scratch = scratch;
            self.heap.free(found.location);
            self.index.relocate(found.place, location);
        }
        debug_assert_eq!(key.bytes.len(), header.key_len as usize);
        self.tier.tally.take(&old);
        self.tier.tally.add(&header);
        let record = self.heap.bytes_mut(location);
        header.encode(record);
        let value = &mut record[header.value_start()..];
        if offset > old_len {
            value[old_len..offset].fill(0);
        }
        value[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// The string becomes long enough to go cold: its record gets room for a place.
    fn splice_into_place(
        &mut self,
        key: &Key<'_>,
        found: Found,
        (offset, bytes): (usize, &[u8]),
        version: Version,
    ) -> Result<(), HeapFull> {
        let old = self.header(found);
        let mut value = self.heap.bytes(found.location)[old.value_start()..old.record_bytes()].to_vec();
        value.resize(value.len().max(offset + bytes.len()), 0);
        value[offset..offset + bytes.len()].copy_from_slice(bytes);
        let (place, value_len) = (self.place_for(value.len()), value.len() as u32);
        let header = Header { version, form: Form::Raw, value_len, place, ..old };
        self.put(key, Some((found, old)), header, &value)
    }

    fn set_expiry(
        &mut self,
        key: &Key<'_>,
        found: Found,
        expire_at_ms: Option<u64>,
        version: Version,
    ) -> Result<(), HeapFull> {
        let old = self.header(found);
        let header = Header { expire_at_ms, ..old.changed(version) };
        if old.expire_at_ms.is_some() == expire_at_ms.is_some() {
            self.tier.tally.take(&old);
            self.tier.tally.add(&header);
            header.encode(self.heap.bytes_mut(found.location));
            return Ok(());
        }
        // The field comes or goes, so key and value move; a list's number moves with them.
        let old_bytes = self.heap.bytes(found.location);
        let content = old_bytes[old.key_start()..old.record_bytes()].to_vec();
        let location = if fits(self.heap.slot_bytes(found.location), header.record_bytes()) {
            found.location
        } else {
            let location = self.heap.allocate(header.record_bytes())?;
            self.heap.free(found.location);
            self.index.relocate(found.place, location);
            location
        };
        debug_assert_eq!(key.bytes, &content[..key.bytes.len()]);
        self.count_expiry(&old, expire_at_ms);
        self.tier.tally.take(&old);
        self.tier.tally.add(&header);
        let record = self.heap.bytes_mut(location);
        record[header.key_start()..header.record_bytes()].copy_from_slice(&content);
        // Last: what came along says where the value was before this change.
        header.encode(record);
        Ok(())
    }

    fn change_list(&mut self, key: &Key<'_>, found: Found, change: &Change<'_>, version: Version) {
        let header = self.header(found);
        let bytes = self.heap.bytes(found.location);
        let list = self.lists.get_mut(number_of(&bytes[header.value_start()..]));
        self.beside_bytes -= list.heap_bytes();
        let mut cut = List::new();
        match *change {
            Change::ListPush { end, elements } => elements.iter().for_each(|element| list.push(end, element)),
            Change::ListPop { end, count } => cut = list.cut_end(end, usize::try_from(count).unwrap_or(usize::MAX)),
            Change::ListSet { index, element } => list.set(index as usize, element),
            Change::ListInsert { index, element } => list.insert(index as usize, element),
            Change::ListRemove { count, element } => {
                list.remove_equal(count, element, &mut cut);
            }
            Change::ListTrim { start, length } => list.trim(start as usize, length as usize, &mut cut),
            _ => unreachable!("the caller sends list changes only"),
        }
        self.beside_bytes += list.heap_bytes();
        if cut.heap_bytes() >= LAZY_FREE_BYTES_MIN {
            self.garbage.push(Garbage::List(Box::new(cut)));
        }
        if list.is_empty() {
            self.remove(key, found, version);
        } else {
            Header { version, ..header }.encode(self.heap.bytes_mut(found.location));
        }
    }

    fn count_expiry(&mut self, old: &Header, now: Option<u64>) {
        let expiring = &mut self.databases[old.database.0 as usize].expiring;
        *expiring = *expiring + u64::from(now.is_some()) - u64::from(old.expire_at_ms.is_some());
    }
}

/// Whether a record of `bytes` should stay in a slot of `slot_bytes`: it has room and wastes at most half.
fn fits(slot_bytes: usize, bytes: usize) -> bool {
    bytes <= slot_bytes && (slot_bytes <= 64 || bytes * 2 >= slot_bytes)
}

pub(super) fn expiry_after(old: Option<&Header>, expiry: Expiry) -> Option<u64> {
    match expiry {
        Expiry::Keep => old.and_then(|header| header.expire_at_ms),
        Expiry::Clear => None,
        Expiry::At(at_ms) => Some(at_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{CoreId, Database};

    #[test]
    fn what_a_full_heap_refuses_leaves_nothing_behind() {
        let slot = Slot::wrapping(3);
        let mut group = SlotGroup::new(slot.group(), CoreId(0));
        group.heap.fill();
        let key = Key::new(b"key", Database(0), slot, 0);
        let mut encoding = Vec::new();
        let mut list = types::List::new();
        list.push(types::End::Tail, b"element");
        list.encode(&mut encoding);
        for value in [&encoding[..], b"string", &[b's'; BLOCK_BYTES + 1]] {
            let kind = if value[0] == b's' { Kind::String } else { Kind::List };
            let change = Change::Put { kind, value, expiry: Expiry::Clear };
            assert_eq!(group.apply(&key, &change, Version(1)), Err(HeapFull));
            assert!(group.find(&key).is_none());
            let beside = (group.beside_bytes, group.lists.count(), group.long.count());
            assert_eq!(beside, (0, 0, 0), "{kind:?}");
            assert_eq!(group.database(Database(0)).keys, 0);
        }
    }

    #[test]
    fn what_goes_of_a_long_list_is_given_back_later_and_counts_until_then() {
        let slot = Slot::wrapping(3);
        let key = Key::new(b"key", Database(0), slot, 0);
        let elements: Vec<&[u8]> = vec![&[7; 100]; 20_000];
        let changes = [
            Change::ListTrim { start: 19_000, length: 10 },
            Change::ListPop { end: types::End::Head, count: 19_990 },
            Change::ListPop { end: types::End::Tail, count: 20_000 },
            Change::ListRemove { count: -19_990, element: &[7; 100] },
            Change::ListRemove { count: 0, element: &[7; 100] },
        ];
        for change in changes {
            let mut group = SlotGroup::new(slot.group(), CoreId(0));
            let mut list = List::new();
            list.push(types::End::Tail, elements[0]);
            let mut encoding = Vec::new();
            list.encode(&mut encoding);
            let put = Change::Put { kind: Kind::List, value: &encoding, expiry: Expiry::Clear };
            let push = Change::ListPush { end: types::End::Tail, elements: &elements[1..] };
            group.apply(&key, &put, Version(1)).expect("there is room");
            group.apply(&key, &push, Version(2)).expect("there is room");
            let before = group.heap_bytes();
            group.apply(&key, &change, Version(3)).expect("it needs none");
            let garbage: usize = group.take_garbage().map(|garbage| garbage.bytes()).sum();
            let gone = before - group.heap_bytes();
            // What went of a span lies in another one.
            assert!(gone > 2_000_000 && gone.abs_diff(garbage) < 10_000, "{change:?}: {garbage} of {gone}");
        }
    }
}
