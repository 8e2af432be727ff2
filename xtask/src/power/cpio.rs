//! The archive that a kernel unpacks into its first root: `cpio` in the format `newc`, written without root.
//!
//! ```text
//!   070701 · 13 numbers of 8 hexadecimal digits · name · zero · up to a multiple of 4 · data · up to a multiple of 4
//! ```

use std::collections::BTreeSet;

/// A folder's mode.
const FOLDER: u32 = 0o040_755;
/// A program's mode; what is none does not suffer from it.
const FILE: u32 = 0o100_755;

/// An archive under construction.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    entries: u32,
}

impl Archive {
    /// Adds a file, and the folders it lies in.
    pub fn file(&mut self, path: &str, data: &[u8]) {
        for (end, _) in path.match_indices('/') {
            if self.folders.insert(path[..end].to_owned()) {
                self.entry(&path[..end], FOLDER, &[]);
            }
        }
        self.entry(path, FILE, data);
    }

    /// The whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.entries += 1;
        let (data_bytes, name_bytes) = (data.len() as u32, name.len() as u32 + 1);
        // Inode, mode, owner, group, links, time, size, four numbers of devices, length of the name, checksum.
        let numbers = [self.entries, mode, 0, 0, 1, 0, data_bytes, 0, 0, 0, 0, name_bytes, 0];
        let head: String = numbers.iter().map(|number| format!("{number:08x}")).collect();
        self.bytes.extend_from_slice(format!("070701{head}{name}\0").as_bytes());
        self.align();
        self.bytes.extend_from_slice(data);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn files_bring_their_folders_once_and_lie_at_multiples_of_four() {
        let mut archive = Archive::default();
        archive.file("a/b/one", b"12345");
        archive.file("a/b/two", b"");
        let bytes = archive.finish();
        let mut names = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let number = |index: usize| {
                let digits = std::str::from_utf8(&bytes[at + 6 + 8 * index..][..8]).expect("digits are text");
                usize::from_str_radix(digits, 16).expect("they are hexadecimal")
            };
            let (size, name) = (number(6), number(11));
            names.push(String::from_utf8_lossy(&bytes[at + 110..][..name - 1]).into_owned());
            at = (at + 110 + name).next_multiple_of(4);
            if size > 0 {
                assert_eq!(&bytes[at..at + size], b"12345");
            }
            at = (at + size).next_multiple_of(4);
        }
        assert_eq!(names, ["a", "a/b", "a/b/one", "a/b/two", "TRAILER!!!"]);
    }
}
