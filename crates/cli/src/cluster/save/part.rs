//! A part of a save: entries of one node, with a digest at the end. docs/internals/save.md has the bytes.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

const MAGIC: &[u8; 8] = b"ZHSAVE01";
/// Stands where the next key's length would: keys are shorter.
const END: u32 = u32::MAX;

/// One key and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Vec<u8>,
    /// Unix milliseconds; 0: never.
    pub expires_at_ms: u64,
    /// As DUMP gave it.
    pub payload: Vec<u8>,
}

impl Entry {
    fn head(&self) -> Option<[u8; 16]> {
        let mut head = [0; 16];
        head[..4].copy_from_slice(&u32::try_from(self.key.len()).ok().filter(|bytes| *bytes != END)?.to_le_bytes());
        head[4..8].copy_from_slice(&u32::try_from(self.payload.len()).ok()?.to_le_bytes());
        head[8..].copy_from_slice(&self.expires_at_ms.to_le_bytes());
        Some(head)
    }
}

/// What entries add up to, in whatever order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub keys: u64,
    pub sum: u128,
}

impl Content {
    /// One more.
    pub fn add(&mut self, entry: &Entry) {
        let head = entry.head().unwrap_or_default();
        let mut digest = Xxh3::new();
        [&head[..], &entry.key, &entry.payload].into_iter().for_each(|bytes| digest.update(bytes));
        (self.keys, self.sum) = (self.keys + 1, self.sum.wrapping_add(digest.digest128()));
    }

    /// Those of several parts.
    pub fn join(&mut self, other: Content) {
        (self.keys, self.sum) = (self.keys + other.keys, self.sum.wrapping_add(other.sum));
    }
}

/// Writes a part.
pub struct Writer {
    file: BufWriter<File>,
    digest: Xxh3,
    pub content: Content,
    pub bytes: u64,
}

impl Writer {
    /// A new file.
    ///
    /// # Errors
    /// As the disk has it.
    pub fn create(path: &Path) -> io::Result<Writer> {
        let file = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
        let mut writer = Writer { file, digest: Xxh3::new(), content: Content::default(), bytes: 0 };
        writer.put(MAGIC)?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// One entry.
    ///
    /// # Errors
    /// As the disk has it; and when it is longer than a part can hold.
    pub fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let head = entry.head().ok_or_else(|| io::Error::other("a key or a value is longer than 4 GiB"))?;
        self.put(&head)?;
        self.put(&entry.key)?;
        self.put(&entry.payload)?;
        self.content.add(entry);
        Ok(())
    }

    /// Ends it, and syncs; its digest.
    ///
    /// # Errors
    /// As the disk has it.
    pub fn finish(mut self) -> io::Result<(Content, u64, u128)> {
        self.put(&END.to_le_bytes())?;
        self.put(&self.content.keys.to_le_bytes())?;
        let digest = self.digest.digest128();
        self.file.write_all(&digest.to_le_bytes())?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok((self.content, self.bytes + 16, digest))
    }
}

/// Reads a part; damage is an error that says where.
pub struct Reader {
    file: BufReader<File>,
    digest: Xxh3,
    offset: u64,
    entries: u64,
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    /// As the disk has it; and when it is no part.
    pub fn open(path: &Path) -> io::Result<Reader> {
        let file = BufReader::with_capacity(1 << 20, File::open(path)?);
        let mut reader = Reader { file, digest: Xxh3::new(), offset: 0, entries: 0 };
        match reader.take::<8>()? == *MAGIC {
            true => Ok(reader),
            false => Err(io::Error::other("it is no part of a save")),
        }
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let offset = self.offset;
        self.file.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other(format!("it ends in the middle, behind byte {offset}")),
            _ => error,
        })?;
        self.digest.update(bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// So many bytes, of which no more is reserved than there are.
    fn bytes(&mut self, count: u32) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut left = count as usize;
        while left > 0 {
            let (from, step) = (bytes.len(), left.min(1 << 20));
            bytes.resize(from + step, 0);
            self.fill(&mut bytes[from..])?;
            left -= step;
        }
        Ok(bytes)
    }

    /// The next entry; `None` behind the last, once the digest was right.
    ///
    /// # Errors
    /// As the disk has it; and what is damaged, with the offset.
    pub fn next(&mut self) -> io::Result<Option<Entry>> {
        let key_bytes = u32::from_le_bytes(self.take()?);
        if key_bytes == END {
            return self.end().map(|()| None);
        }
        let payload_bytes = u32::from_le_bytes(self.take()?);
        let expires_at_ms = u64::from_le_bytes(self.take()?);
        let (key, payload) = (self.bytes(key_bytes)?, self.bytes(payload_bytes)?);
        self.entries += 1;
        Ok(Some(Entry { key, expires_at_ms, payload }))
    }

    fn end(&mut self) -> io::Result<()> {
        let entries = u64::from_le_bytes(self.take()?);
        let digest = self.digest.digest128();
        let offset = self.offset;
        let is_sound = u128::from_le_bytes(self.take()?) == digest && entries == self.entries;
        let has_more = self.file.read(&mut [0])? > 0;
        match is_sound && !has_more {
            true => Ok(()),
            false => Err(io::Error::other(format!("it is damaged somewhere before byte {offset}"))),
        }
    }
}

/// 32 hex digits.
pub fn hexadecimal(digest: u128) -> String {
    format!("{digest:032x}")
}

/// Of a text.
pub fn digest_of(text: &str) -> String {
    hexadecimal(xxh3_128(text.as_bytes()))
}

#[cfg(test)]
mod tests;
