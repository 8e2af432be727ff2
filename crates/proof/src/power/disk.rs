//! A disk with a volatile cache, as hardware has it: a write is durable once a flush that came after it is answered. A power
//! cut takes of the others what it likes, block by block and in any order.
//!
//! ```text
//!   file      what the last cut left, and since the start was judged also what was flushed
//!   flushed   durable too, kept apart until the start is judged: the file is the evidence until then
//!   pending   written, not flushed: [block 7] [block 9] [block 7] …  a cut keeps any of them, in this order
//! ```
//!
//! It may have parts of equal size, each a disk of its own to the machine: a flush is of one part, and a cut of all of them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use base::rng::Rng;

/// What a disk writes wholly or not at all.
pub const BLOCK_BYTES: usize = 4096;

type Block = Box<[u8]>;

/// What a cut takes of what was written and not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All of it: the cache was lost.
    All,
    /// Nothing: the cache reached the medium by itself.
    Nothing,
    /// All that came behind some write: the cache was written in order.
    Tail,
    /// Each block by chance, so many of eight: in any order, requests torn.
    Blocks(u64),
}

/// What a cut did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Blocks written and not flushed.
    pub unflushed: u64,
    /// Of these, lost.
    pub lost: u64,
}

/// What a machine takes for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it begins.
    pub first_byte: u64,
    /// Its size.
    pub bytes: u64,
}

impl Part {
    fn has(self, block: u64) -> bool {
        (self.first_byte..self.first_byte + self.bytes).contains(&(block * BLOCK_BYTES as u64))
    }
}

/// The disk of one machine.
pub struct Disk {
    file: File,
    bytes_of_part: u64,
    flushed: BTreeMap<u64, Block>,
    pending: Vec<(u64, Block)>,
    /// Of each pending block, the last write's place.
    latest: HashMap<u64, usize>,
    /// The power fails at so many writes and flushes from now.
    until_cut: Option<u64>,
    is_cut: bool,
}

impl Disk {
    /// A disk of so many parts whose durable blocks are in `file`.
    ///
    /// # Errors
    /// When its size cannot be read.
    pub fn new(file: File, parts: u64) -> io::Result<Disk> {
        let bytes_of_part = file.metadata()?.len() / parts;
        let (flushed, pending, latest) = (BTreeMap::new(), Vec::new(), HashMap::new());
        Ok(Disk { file, bytes_of_part, flushed, pending, latest, until_cut: None, is_cut: false })
    }

    /// The part of this number, from 0.
    pub fn part(&self, number: u64) -> Part {
        Part { first_byte: number * self.bytes_of_part, bytes: self.bytes_of_part }
    }

    /// The power comes back.
    pub fn start(&mut self) {
        (self.until_cut, self.is_cut) = (None, false);
    }

    /// The power fails while the disk is asked the next write or flush but `count`.
    pub fn cut_after(&mut self, count: u64) {
        self.until_cut = Some(count);
    }

    /// The power fails now: from here on nothing is answered.
    pub fn cut_now(&mut self) {
        self.is_cut = true;
    }

    /// Whether the power has failed.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The blocks from `offset` on, as they were last written.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read(&self, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut data = vec![0; bytes];
        self.file.read_exact_at(&mut data, offset)?;
        for (number, part) in blocks_of(offset).zip(data.chunks_mut(BLOCK_BYTES)) {
            let pending = self.latest.get(&number).map(|at| &self.pending[*at].1);
            if let Some(block) = pending.or_else(|| self.flushed.get(&number)) {
                part.copy_from_slice(block);
            }
        }
        Ok(data)
    }

    /// Takes whole blocks into the cache; false if the power fails meanwhile, and then some of them may be there.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> bool {
        for (number, part) in blocks_of(offset).zip(data.chunks(BLOCK_BYTES)) {
            self.latest.insert(number, self.pending.len());
            self.pending.push((number, part.into()));
        }
        self.survives()
    }

    /// Makes durable what was written to a part so far; false if the power fails before.
    pub fn flush(&mut self, part: Part) -> bool {
        let survives = self.survives();
        if survives {
            let (flushed, kept): (Vec<_>, Vec<_>) = self.pending.drain(..).partition(|(number, _)| part.has(*number));
            self.flushed.extend(flushed);
            self.latest = kept.iter().zip(0..).map(|((number, _), place)| (*number, place)).collect();
            self.pending = kept;
        }
        survives
    }

    fn survives(&mut self) -> bool {
        if let Some(left) = &mut self.until_cut {
            self.is_cut |= *left == 0;
            *left = left.saturating_sub(1);
        }
        !self.is_cut
    }

    /// What the cut leaves of the cache.
    pub fn lose(&mut self, loss: Loss, rng: &mut Rng) -> Lost {
        let unflushed = self.pending.len() as u64;
        let first_lost = rng.below(unflushed + 1);
        let mut lost = 0;
        for (place, (number, block)) in (0..).zip(self.pending.drain(..)) {
            let is_lost = match loss {
                Loss::All => true,
                Loss::Nothing => false,
                Loss::Tail => place >= first_lost,
                Loss::Blocks(eighths) => rng.chance(eighths, 8),
            };
            lost += u64::from(is_lost);
            if !is_lost {
                self.flushed.insert(number, block);
            }
        }
        self.latest.clear();
        Lost { unflushed, lost }
    }

    /// Brings what is durable into the file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn settle(&mut self) -> io::Result<()> {
        while let Some((number, block)) = self.flushed.pop_first() {
            self.file.write_all_at(&block, number * BLOCK_BYTES as u64)?;
        }
        Ok(())
    }
}

fn blocks_of(offset: u64) -> impl Iterator<Item = u64> {
    offset / BLOCK_BYTES as u64..
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{BLOCK_BYTES, Disk, Loss, Lost, Rng};
    use crate::process::new_directory;

    fn disk() -> Disk {
        let path = new_directory().unwrap().join("disk");
        std::fs::write(&path, vec![0; 8 * BLOCK_BYTES]).unwrap();
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        Disk::new(file, 1).unwrap()
    }

    fn block(fill: u8) -> Vec<u8> {
        vec![fill; BLOCK_BYTES]
    }

    /// The first byte of each block.
    fn shown(disk: &Disk) -> Vec<u8> {
        disk.read(0, 8 * BLOCK_BYTES).unwrap().chunks(BLOCK_BYTES).map(|block| block[0]).collect()
    }

    #[test]
    fn what_was_flushed_stays_and_what_was_not_is_lost() {
        let mut disk = disk();
        assert!(disk.write(0, &[block(1), block(2)].concat()) && disk.flush(disk.part(0)));
        assert!(disk.write(BLOCK_BYTES as u64, &[block(3), block(4)].concat()));
        assert_eq!(shown(&disk), [1, 3, 4, 0, 0, 0, 0, 0]);
        let lost = disk.lose(Loss::All, &mut Rng::new(1));
        assert_eq!((shown(&disk), lost), (vec![1, 2, 0, 0, 0, 0, 0, 0], Lost { unflushed: 2, lost: 2 }));
        disk.settle().unwrap();
        assert_eq!(shown(&disk), [1, 2, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_flush_of_one_part_leaves_others_as_they_are() {
        let mut disk = Disk::new(disk().file, 2).unwrap();
        let [first, second] = [0, 1].map(|number| disk.part(number));
        assert_eq!((first.bytes, second.first_byte), (4 * BLOCK_BYTES as u64, 4 * BLOCK_BYTES as u64));
        // The blocks on both sides of the border, the second part's twice.
        assert!(disk.write(3 * BLOCK_BYTES as u64, &[block(1), block(2)].concat()));
        assert!(disk.write(4 * BLOCK_BYTES as u64, &block(3)) && disk.flush(first));
        assert_eq!(shown(&disk), [0, 0, 0, 1, 3, 0, 0, 0]);
        assert_eq!(disk.lose(Loss::All, &mut Rng::new(1)), Lost { unflushed: 2, lost: 2 });
        assert_eq!(shown(&disk), [0, 0, 0, 1, 0, 0, 0, 0]);
        assert!(disk.write(4 * BLOCK_BYTES as u64, &block(4)) && disk.flush(second));
        assert_eq!(disk.lose(Loss::All, &mut Rng::new(1)), Lost::default());
        assert_eq!(shown(&disk), [0, 0, 0, 1, 4, 0, 0, 0]);
    }

    #[test]
    fn a_cut_keeps_any_of_the_blocks_or_a_head_of_the_writes() {
        let (mut blocks, mut heads) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        for seed in 0..500 {
            for (loss, met) in [(Loss::Blocks(4), &mut blocks), (Loss::Tail, &mut heads)] {
                let mut disk = disk();
                // Written twice: the older one may be what stays.
                assert!([1, 2, 3].iter().all(|fill| disk.write(0, &block(*fill))));
                assert!(disk.write(BLOCK_BYTES as u64, &block(4)));
                disk.lose(loss, &mut Rng::new(seed));
                met.insert(shown(&disk)[..2].to_vec());
            }
        }
        let all: Vec<Vec<u8>> = (0..4).flat_map(|first| [vec![first, 0], vec![first, 4]]).collect();
        assert_eq!(blocks.into_iter().collect::<Vec<_>>(), all);
        assert_eq!(heads.into_iter().collect::<Vec<_>>(), [[0, 0], [1, 0], [2, 0], [3, 0], [3, 4]]);
    }

    #[test]
    fn the_power_fails_at_the_planned_request_and_comes_back() {
        let mut disk = disk();
        disk.cut_after(2);
        assert!(disk.write(0, &block(1)) && disk.flush(disk.part(0)));
        assert!(!disk.flush(disk.part(0)) && disk.is_cut() && !disk.write(0, &block(2)));
        disk.lose(Loss::All, &mut Rng::new(1));
        disk.start();
        assert!(!disk.is_cut() && disk.write(0, &block(3)));
    }
}
