//! What becomes of a platter by itself, behind everybody's back.

use super::{Disk, PAGE_BYTES};

impl Disk {
    /// Flip one bit of a file on the platter.
    pub fn flip_bit(&mut self, name: &str, bit: u64) {
        self.damage(name, |bytes| bytes[(bit / 8) as usize] ^= 1 << (bit % 8));
    }

    /// Zero up to a page of a file on the platter.
    pub fn zero_page(&mut self, name: &str, offset: u64) {
        self.damage(name, |bytes| {
            let end = (offset as usize + PAGE_BYTES).min(bytes.len());
            bytes[offset as usize..end].fill(0);
        });
    }

    /// What was meant for a page of a file went to one of another, or of the same: where it belongs nothing was ever written.
    pub fn misdirect(&mut self, (name, offset): (&str, u64), (other, other_offset): (&str, u64)) {
        let page = |bytes: &[u8], offset: u64| offset as usize..(offset as usize + PAGE_BYTES).min(bytes.len());
        let from = &self.file_mut(name).volatile;
        let content = from[page(from, offset)].to_vec();
        self.damage(name, |bytes| {
            let range = page(bytes, offset);
            bytes[range].fill(0);
        });
        self.damage(other, |bytes| {
            let range = page(bytes, other_offset);
            let length = range.len().min(content.len());
            bytes[range][..length].copy_from_slice(&content[..length]);
        });
    }

    /// Exchange the contents of two files.
    pub fn swap(&mut self, one: &str, other: &str) {
        let file = self.file_mut(one).clone();
        let other_file = std::mem::replace(self.file_mut(other), file);
        *self.file_mut(one) = other_file;
    }

    fn damage(&mut self, name: &str, harm: impl Fn(&mut Vec<u8>)) {
        let file = self.file_mut(name);
        harm(&mut file.volatile);
        file.durable.clone_from(&file.volatile);
    }
}
