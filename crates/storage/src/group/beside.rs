//! Values that lie beside their records: lists, and strings in blocks.

use base::{BLOCK_BYTES, Blocks, Version};
use types::{Expiry, Kind, List};

use super::write::expiry_after;
use super::{Found, SlotGroup, number_of};
use crate::heap::HeapFull;
use crate::key::Key;
use crate::lazy_free::{Garbage, LAZY_FREE_BYTES_MIN};
use crate::record::{Form, Header};

/// Bytes of the number in the record.
const NUMBER_BYTES: u32 = 4;

/// What a value is that lies beside its record.
pub(super) enum Beside {
    List(Box<List>),
    Blocks(Blocks),
}

/// What is written into a string.
pub(super) enum Spliced<'a> {
    Bytes(&'a [u8]),
    /// Behind so many of their bytes.
    Blocks(&'a Blocks, usize),
}

impl Spliced<'_> {
    /// The blocks that are not the value's any more.
    fn write_to(&self, value: &mut Blocks, offset: usize) -> Blocks {
        match *self {
            Spliced::Bytes(bytes) => {
                value.overwrite(offset, bytes);
                Blocks::default()
            }
            Spliced::Blocks(blocks, skip) => value.overwrite_with(offset, blocks, skip),
        }
    }
}

impl SlotGroup {
    pub(super) fn put_list(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        value: &[u8],
        expiry: Expiry,
        version: Version,
    ) -> Result<(), HeapFull> {
        let list = List::decode(value).expect("the encoding was checked where it entered");
        self.put_beside(key, found, Beside::List(Box::new(list)), (expiry, version))
    }

    /// Put a string in blocks; one that fits a block is an ordinary one.
    pub(super) fn put_blocks(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        blocks: Blocks,
        expiry: Expiry,
        version: Version,
    ) -> Result<(), HeapFull> {
        if blocks.len() <= BLOCK_BYTES {
            return self.put_string(key, found, &blocks.to_vec(), expiry, version);
        }
        self.put_beside(key, found, Beside::Blocks(blocks), (expiry, version))
    }

    fn put_beside(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        value: Beside,
        (expiry, version): (Expiry, Version),
    ) -> Result<(), HeapFull> {
        let old = found.map(|found| self.header(found));
        let is_long = matches!(value, Beside::Blocks(_));
        let header = Header {
            version,
            database: key.database,
            kind: if is_long { Kind::String } else { Kind::List },
            form: Form::Written,
            is_long,
            expire_at_ms: expiry_after(old.as_ref(), expiry),
            key_len: key.bytes.len() as u16,
            value_len: NUMBER_BYTES,
            place: None,
        };
        let number = match value {
            Beside::List(list) => {
                self.beside_bytes += list.heap_bytes();
                self.lists.add(list)
            }
            Beside::Blocks(blocks) => {
                self.beside_bytes += blocks.len();
                self.long.add(blocks)
            }
        };
        let put = self.put(key, found.zip(old), header, &number.to_le_bytes());
        if put.is_err() {
            self.drop_beside(&header, number);
        }
        put
    }

    /// Write at `offset` of a string that is in blocks, or becomes too long for its record.
    pub(super) fn splice_blocks(
        &mut self,
        key: &Key<'_>,
        found: Found,
        (offset, spliced): (usize, Spliced<'_>),
        version: Version,
    ) -> Result<(), HeapFull> {
        let old = self.header(found);
        let value = &self.heap.bytes(found.location)[old.value_start()..old.record_bytes()];
        let header = Header { version, form: Form::Raw, ..old };
        if !old.is_long {
            let mut blocks = Blocks::of(value);
            spliced.write_to(&mut blocks, offset);
            self.put_blocks(key, Some(found), blocks, Expiry::Keep, version)?;
            let found = self.find(key).expect("it was just put");
            let header = Header { form: Form::Raw, ..self.header(found) };
            header.encode(self.heap.bytes_mut(found.location));
            return Ok(());
        }
        let blocks = self.long.get_mut(number_of(value));
        self.beside_bytes -= blocks.len();
        let replaced = spliced.write_to(blocks, offset);
        self.beside_bytes += blocks.len();
        header.encode(self.heap.bytes_mut(found.location));
        if replaced.len() >= LAZY_FREE_BYTES_MIN {
            self.garbage.push(Garbage::Blocks(replaced));
        }
        Ok(())
    }

    /// Lets go of what lies beside a record, if anything does.
    #[inline]
    pub(super) fn drop_beside_of(&mut self, found: Found, header: &Header) {
        if header.kind == Kind::List || header.is_long {
            self.drop_beside(header, number_of(&self.heap.bytes(found.location)[header.value_start()..]));
        }
    }

    fn drop_beside(&mut self, header: &Header, number: u32) {
        let (bytes, garbage) = if header.is_long {
            let blocks = self.long.remove(number);
            (blocks.len(), Garbage::Blocks(blocks))
        } else {
            let list = self.lists.remove(number);
            (list.heap_bytes(), Garbage::List(list))
        };
        self.beside_bytes -= bytes;
        if bytes >= LAZY_FREE_BYTES_MIN {
            self.garbage.push(garbage);
        }
    }
}
