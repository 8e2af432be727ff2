//! A record in memory: one slot of the heap.
//!
//! ```text
//!  0        6    7            8       10        14          (22)
//!  version  db   kind·flags   key     value     [expire ms]  key …  [place]  value …
//!  u48      u8   u8           len u16 len u32   [u64]               [u40]
//! ```
//!
//! A place says where a run has the value; while it is cold, only there ([`crate::tiering`]).
//!
//! The value of a string is its bytes; of a long one, and of a list, the u32 number of its [`base::Blocks`] or
//! [`types::List`] in the group.

use base::{Database, Version};
use types::Kind;

use crate::tiering::{PLACE_BYTES, Place};

const KIND_MASK: u8 = 0x07;
const FLAG_PLACED: u8 = 0x08;
const FLAG_EXPIRES: u8 = 0x10;
const FLAG_RAW: u8 = 0x20;
const FLAG_COMPUTED: u8 = 0x40;
const FLAG_LONG: u8 = 0x80;
/// Bytes before the optional expiry.
pub const HEADER_BYTES: usize = 14;

/// How a string came about, which `OBJECT` tells and nothing else. Memory keeps it and the log does not: as in Redis,
/// a restart forgets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Written as a whole: an integer wherever its text is one.
    #[default]
    Written,
    /// Text that INCRBYFLOAT computed: never an integer.
    Computed,
    /// Opened to be changed in place, whether or not it then changed.
    Raw,
}

impl Form {
    fn flag(self) -> u8 {
        match self {
            Form::Written => 0,
            Form::Computed => FLAG_COMPUTED,
            Form::Raw => FLAG_RAW,
        }
    }

    fn of_flags(flags: u8) -> Form {
        // By number, because a choice of branches is made anew for every record that is read.
        const FORMS: [Form; 4] = [Form::Written, Form::Raw, Form::Computed, Form::Raw];
        FORMS[usize::from(flags / FLAG_RAW % 4)]
    }
}

/// The fields of a record apart from its key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Last write's sequence in its partition.
    pub version: Version,
    /// Numbered keyspace.
    pub database: Database,
    /// What the value is.
    pub kind: Kind,
    /// How a string came about.
    pub form: Form,
    /// A string in blocks: the value is their number.
    pub is_long: bool,
    /// Absolute Unix milliseconds.
    pub expire_at_ms: Option<u64>,
    /// Bytes of the key.
    pub key_len: u16,
    /// Bytes of the value, wherever it is.
    pub value_len: u32,
    /// Where a run has the value, if there is room to say so.
    pub place: Option<Place>,
}

impl Header {
    /// Whole record in bytes.
    pub fn record_bytes(&self) -> usize {
        self.value_start() + if self.is_cold() { 0 } else { self.value_len as usize }
    }

    /// Whether the value is not in memory.
    #[inline]
    pub fn is_cold(&self) -> bool {
        self.place.is_some_and(|place| place.is_cold)
    }

    /// As the record is after a change: no run has it.
    pub(crate) fn changed(self, version: Version) -> Header {
        debug_assert!(!self.is_cold(), "a value comes back before it is changed");
        Header { version, place: self.place.map(|_| Place::NONE), ..self }
    }

    /// Offset of the key.
    #[inline]
    pub fn key_start(&self) -> usize {
        HEADER_BYTES + if self.expire_at_ms.is_some() { 8 } else { 0 }
    }

    /// Offset behind the key.
    #[inline]
    pub fn key_end(&self) -> usize {
        self.key_start() + self.key_len as usize
    }

    /// Offset of the value.
    #[inline]
    pub fn value_start(&self) -> usize {
        self.key_end() + if self.place.is_some() { PLACE_BYTES } else { 0 }
    }

    /// Write the header over the start of `record`.
    #[inline]
    pub fn encode(&self, record: &mut [u8]) {
        let flags = if self.expire_at_ms.is_some() { FLAG_EXPIRES } else { 0 }
            | self.form.flag()
            | if self.is_long { FLAG_LONG } else { 0 }
            | if self.place.is_some() { FLAG_PLACED } else { 0 };
        let first = self.version.0 | u64::from(self.database.0) << 48 | u64::from(self.kind as u8 | flags) << 56;
        record[..8].copy_from_slice(&first.to_le_bytes());
        record[8..10].copy_from_slice(&self.key_len.to_le_bytes());
        record[10..14].copy_from_slice(&self.value_len.to_le_bytes());
        if let Some(expire_at_ms) = self.expire_at_ms {
            record[14..22].copy_from_slice(&expire_at_ms.to_le_bytes());
        }
        if let Some(place) = self.place {
            record[self.key_end()..][..PLACE_BYTES].copy_from_slice(&place.encode());
        }
    }

    /// What decides whether a reader sees the record at `record`: its version, and when it expires.
    #[inline]
    pub fn version_and_expiry(record: &[u8]) -> (Version, Option<u64>) {
        let first = record.first_chunk().expect("a record's slot holds its header");
        (Version(u64::from_le_bytes(*first) & Version::MAX.0), Header::expiry(record))
    }

    /// Read the header at the start of `record`.
    #[inline]
    pub fn decode(record: &[u8]) -> Header {
        let head: &[u8; HEADER_BYTES] = record.first_chunk().expect("a record's slot holds its header");
        let first = u64::from_le_bytes(head[..8].try_into().expect("eight bytes"));
        let flags = (first >> 56) as u8;
        let header = Header {
            version: Version(first & Version::MAX.0),
            database: Database((first >> 48) as u8),
            kind: Kind::from_u8(flags & KIND_MASK).expect("only this module writes records, with known kinds"),
            form: Form::of_flags(flags),
            is_long: flags & FLAG_LONG != 0,
            expire_at_ms: Header::expiry(record),
            key_len: u16::from_le_bytes([head[8], head[9]]),
            value_len: u32::from_le_bytes([head[10], head[11], head[12], head[13]]),
            place: None,
        };
        if flags & FLAG_PLACED == 0 {
            return header;
        }
        let place = record[header.key_end()..].first_chunk().expect("a record's slot holds its place");
        Header { place: Some(Place::decode(*place)), ..header }
    }

    /// The database of the record at `record`.
    #[inline]
    pub fn database(record: &[u8]) -> Database {
        Database(record[6])
    }

    /// When the record at `record` expires, absolute Unix milliseconds.
    #[inline]
    pub fn expiry(record: &[u8]) -> Option<u64> {
        (record[7] & FLAG_EXPIRES != 0)
            .then(|| u64::from_le_bytes(record[14..22].try_into().expect("an expiring record has the field")))
    }

    /// Whether the record at `record` belongs to this name in this database.
    #[inline]
    pub fn matches(record: &[u8], database: Database, key: &[u8]) -> bool {
        let key_len = u16::from_le_bytes([record[8], record[9]]) as usize;
        let start = HEADER_BYTES + if record[7] & FLAG_EXPIRES != 0 { 8 } else { 0 };
        record[6] == database.0 && key_len == key.len() && &record[start..start + key_len] == key
    }
}

/// A string whose bytes follow its key, which most records are, borrowed from its slot. Read apart from [`Header::decode`], which has to
/// look at what only others have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain<'a> {
    /// Last write's sequence in its partition.
    pub version: Version,
    /// Numbered keyspace.
    pub database: Database,
    /// How it came about.
    pub form: Form,
    /// Absolute Unix milliseconds.
    pub expire_at_ms: Option<u64>,
    /// The key's name.
    pub key: &'a [u8],
    /// The string.
    pub value: &'a [u8],
}

impl Plain<'_> {
    /// The record at `record`, if it is one: neither long nor with room for a place.
    #[inline]
    pub fn of(record: &[u8]) -> Option<Plain<'_>> {
        let (head, rest) = record.split_first_chunk::<HEADER_BYTES>().expect("a record's slot holds its header");
        let flags = head[7];
        if flags & (KIND_MASK | FLAG_LONG | FLAG_PLACED) != Kind::String as u8 {
            return None;
        }
        let first = u64::from_le_bytes(*head.first_chunk().expect("eight bytes of a header"));
        let key_bytes = u16::from_le_bytes([head[8], head[9]]) as usize;
        let value_bytes = u32::from_le_bytes([head[10], head[11], head[12], head[13]]) as usize;
        let expire_at_ms = Header::expiry(record);
        let content = if expire_at_ms.is_some() { &rest[8..] } else { rest };
        let (key, value) = content[..key_bytes + value_bytes].split_at(key_bytes);
        let (version, database) = (Version(first & Version::MAX.0), Database(head[6]));
        Some(Plain { version, database, form: Form::of_flags(flags), expire_at_ms, key, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_a_string_in_its_slot_and_nothing_else() {
        let plain = Header {
            version: Version(1),
            database: Database(0),
            kind: Kind::String,
            form: Form::Written,
            is_long: false,
            expire_at_ms: None,
            key_len: 1,
            value_len: 4,
            place: None,
        };
        let is_plain = |header: Header| {
            let mut record = vec![0u8; header.record_bytes()];
            header.encode(&mut record);
            assert_eq!(Header::decode(&record), header);
            let plain = Plain::of(&record);
            if let Some(plain) = plain {
                let Header { version, database, form, expire_at_ms, .. } = header;
                let (key, value) = record[header.key_start()..].split_at(1);
                assert_eq!(plain, Plain { version, database, form, expire_at_ms, key, value });
            }
            plain.is_some()
        };
        for form in [Form::Written, Form::Computed, Form::Raw] {
            assert!(is_plain(Header { form, ..plain }));
            assert!(is_plain(Header { form, expire_at_ms: Some(9), ..plain }));
        }
        assert!(!is_plain(Header { kind: Kind::List, ..plain }));
        assert!(!is_plain(Header { is_long: true, ..plain }));
        assert!(!is_plain(Header { place: Some(Place::NONE), ..plain }));
        assert!(!is_plain(Header { place: Some(Place { offset: 8, second: false, is_cold: true }), ..plain }));
    }

    #[test]
    fn header_round_trips() {
        let forms = [Form::Written, Form::Computed, Form::Raw];
        for (expire_at_ms, form) in [None, Some(0), Some(u64::MAX)].into_iter().zip(forms) {
            let header = Header {
                version: Version::MAX,
                database: Database(15),
                kind: Kind::List,
                form,
                is_long: expire_at_ms.is_none(),
                expire_at_ms,
                key_len: 3,
                value_len: 4,
                place: (form == Form::Raw).then_some(Place { offset: 1 << 37, second: true, is_cold: true }),
            };
            let mut record = vec![0u8; header.record_bytes()];
            header.encode(&mut record);
            let start = header.key_start();
            record[start..start + 3].copy_from_slice(b"abc");
            assert_eq!(Header::decode(&record), header);
            assert_eq!(Header::version_and_expiry(&record), (header.version, expire_at_ms));
            assert!(Header::matches(&record, Database(15), b"abc"));
            assert!(!Header::matches(&record, Database(14), b"abc"));
            assert!(!Header::matches(&record, Database(15), b"ab"));
        }
    }
}
