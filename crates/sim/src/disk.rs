//! The dream disk of one node: a directory whose files have a volatile and a durable side.
//!
//! ```text
//!  write ──► volatile (page cache) ── sync ──► durable (platter)
//!               │ kill -9: stays               │ power cut: this and a random part of the dirty sectors
//! ```
//!
//! Sectors of 512 bytes are the unit that survives or not; which of the dirty ones survive a power cut, and so in what
//! order they were torn, is chance. A failed sync drops dirty sectors as Linux does: they stay readable and are never
//! written again (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).

mod rot;

use std::collections::{BTreeMap, BTreeSet};

use base::rng::Rng;

/// What survives or not as a whole, bytes.
pub const SECTOR_BYTES: usize = 512;
/// What is harmed at once where more than a bit is, bytes.
pub const PAGE_BYTES: usize = 4096;

/// How a node ends without wanting to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKind {
    /// `kill -9`: what was handed to the operating system survives.
    Kill,
    /// Only what was synced survives for sure.
    PowerCut,
}

/// A crash came during an operation of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashedInRecovery;

#[derive(Clone, Default)]
struct File {
    volatile: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
    entry_durable: bool,
    /// The name that a power cut may give back: the renaming is not durable.
    old_name: Option<String>,
}

/// Dirty sectors of a file at the moment a sync began.
pub struct SyncSnapshot(Vec<(usize, Vec<u8>)>);

/// See the module.
#[derive(Clone, Default)]
pub struct Disk {
    files: BTreeMap<String, File>,
    /// Files whose removal is not durable: a power cut may bring them back.
    removed: BTreeMap<String, File>,
    /// Operations of recovery before it is cut short; counted down.
    recovery_steps_left: Option<u64>,
}

fn sector(bytes: &[u8], number: usize) -> &[u8] {
    let start = (number * SECTOR_BYTES).min(bytes.len());
    &bytes[start..(start + SECTOR_BYTES).min(bytes.len())]
}

fn store_sector(bytes: &mut Vec<u8>, number: usize, content: &[u8]) {
    let start = number * SECTOR_BYTES;
    if bytes.len() < start + content.len() {
        bytes.resize(start + content.len(), 0);
    }
    bytes[start..start + content.len()].copy_from_slice(content);
}

impl File {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.volatile.len() < offset + bytes.len() {
            self.volatile.resize(offset + bytes.len(), 0);
        }
        self.volatile[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.dirty.extend(offset / SECTOR_BYTES..(offset + bytes.len()).div_ceil(SECTOR_BYTES));
    }

    fn make_durable(&mut self) {
        self.durable.clone_from(&self.volatile);
        self.dirty.clear();
        self.entry_durable = true;
    }

    fn cut_power(&mut self, rng: &mut Rng) {
        // Sometimes all dirty sectors make it, sometimes none, mostly a random part in no order.
        let survivors_of_8 = [0, 1, 4, 7, 8][rng.below(5) as usize];
        for number in std::mem::take(&mut self.dirty) {
            if rng.chance(survivors_of_8, 8) {
                let content = sector(&self.volatile, number).to_vec();
                store_sector(&mut self.durable, number, &content);
            }
        }
        self.volatile.clone_from(&self.durable);
    }
}

impl Disk {
    /// Begin to make a file; its directory entry is not durable until [`Disk::finish_create`].
    pub fn begin_create(&mut self, name: &str, header: &[u8], bytes: u64) {
        let mut file = File::default();
        file.write(0, &vec![0; bytes as usize]);
        file.write(0, header);
        self.files.insert(name.to_owned(), file);
    }

    /// The file and its directory entry are durable.
    pub fn finish_create(&mut self, name: &str) {
        self.file_mut(name).make_durable();
    }

    /// A directory with these files, all of it durable.
    pub fn of(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Disk {
        let mut disk = Disk::default();
        for (name, bytes) in files {
            disk.begin_create(&name, &bytes, bytes.len() as u64);
            disk.finish_create(&name);
        }
        disk
    }

    /// Make a file longer, with zeros; a power cut may undo that.
    pub fn extend(&mut self, name: &str, bytes: u64) {
        let file = self.file_mut(name);
        file.volatile.resize(file.volatile.len().max(bytes as usize), 0);
    }

    /// Write to the volatile side.
    pub fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) {
        self.file_mut(name).write(offset as usize, bytes);
    }

    /// A sync begins: it will cover what is dirty now.
    pub fn begin_sync(&self, name: &str) -> SyncSnapshot {
        let file = &self.files[name];
        SyncSnapshot(file.dirty.iter().map(|&number| (number, sector(&file.volatile, number).to_vec())).collect())
    }

    /// The sync is complete.
    pub fn finish_sync(&mut self, name: &str, snapshot: SyncSnapshot) {
        let file = self.file_mut(name);
        for (number, content) in snapshot.0 {
            store_sector(&mut file.durable, number, &content);
            if sector(&file.volatile, number) == content {
                file.dirty.remove(&number);
            }
        }
    }

    /// The sync failed: its sectors stay readable and are lost for the disk.
    pub fn fail_sync(&mut self, name: &str, snapshot: &SyncSnapshot) {
        let file = self.file_mut(name);
        snapshot.0.iter().for_each(|(number, _)| {
            file.dirty.remove(number);
        });
    }

    /// What a crash leaves; how many files have the name again that they had before.
    pub fn crash(&mut self, kind: CrashKind, rng: &mut Rng) -> u64 {
        self.recovery_steps_left = None;
        if kind == CrashKind::Kill {
            return 0;
        }
        self.files.retain(|_, file| file.entry_durable || rng.chance(1, 2));
        let undone = self.undo_names(rng);
        for file in self.files.values_mut() {
            file.cut_power(rng);
            file.entry_durable = true;
        }
        undone
    }

    /// What happened to names and is not durable happened or not.
    fn undo_names(&mut self, rng: &mut Rng) -> u64 {
        for (name, file) in std::mem::take(&mut self.removed) {
            if file.entry_durable && rng.chance(1, 2) {
                self.files.entry(name).or_insert(file);
            }
        }
        let renamed = self.files.iter().filter_map(|(name, file)| Some((name.clone(), file.old_name.clone()?)));
        let mut undone = 0;
        for (name, old_name) in renamed.collect::<Vec<_>>() {
            if rng.chance(1, 2) {
                undone += 1;
                let file = self.files.remove(&name).expect("just seen");
                self.files.insert(old_name, file);
            }
        }
        self.files.values_mut().for_each(|file| file.old_name = None);
        undone
    }

    /// Cut a file that nobody needs yet: what a power cut leaves of it does not matter.
    pub fn cut(&mut self, name: &str, bytes: u64) {
        let file = self.file_mut(name);
        file.volatile.truncate(bytes as usize);
        file.durable.truncate(bytes as usize);
        file.dirty.split_off(&(bytes as usize).div_ceil(SECTOR_BYTES));
    }

    /// Make an empty file, or empty one that is there.
    pub fn make_empty(&mut self, name: &str) {
        self.files.insert(name.to_owned(), File::default());
    }

    /// Give a file another name.
    pub fn rename(&mut self, from: &str, to: &str) {
        let mut file = self.files.remove(from).expect("a machine renames only what it wrote");
        file.old_name.get_or_insert_with(|| from.to_owned());
        assert!(self.files.insert(to.to_owned(), file).is_none(), "nothing is replaced by another file of its name");
    }

    /// Give a file the name of another one, which is gone with that, and make it durable.
    pub fn rename_over(&mut self, from: &str, to: &str) {
        let file = self.files.remove(from).expect("a machine renames only what it wrote");
        self.files.insert(to.to_owned(), file);
        self.sync_directory();
    }

    /// Remove a file, if it is there.
    pub fn remove(&mut self, name: &str) {
        if let Some(file) = self.files.remove(name) {
            self.removed.insert(name.to_owned(), file);
        }
    }

    /// Make what happened to names durable.
    pub fn sync_directory(&mut self) {
        self.removed.clear();
        for file in self.files.values_mut() {
            (file.entry_durable, file.old_name) = (true, None);
        }
    }

    /// Remove a file that nobody needs. For recovery.
    ///
    /// # Errors
    /// The crash that was planned for this recovery.
    pub fn remove_stale(&mut self, name: &str) -> Result<(), CrashedInRecovery> {
        self.recovery_step()?;
        self.remove(name);
        Ok(())
    }

    /// Names and bytes as a starting process reads them, in order of name.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(name, file)| (name.as_str(), &file.volatile[..]))
    }

    /// Cut the next recovery short after so many operations on the directory.
    pub fn crash_recovery_after(&mut self, operations: u64) {
        self.recovery_steps_left = Some(operations);
    }

    /// A crash that recovery did not reach will not come later.
    pub fn forget_recovery_crash(&mut self) {
        self.recovery_steps_left = None;
    }

    /// Cut the file and make that durable. For recovery.
    ///
    /// # Errors
    /// The crash that was planned for this recovery.
    pub fn truncate(&mut self, name: &str, bytes: u64) -> Result<(), CrashedInRecovery> {
        self.recovery_step()?;
        let file = self.file_mut(name);
        file.volatile.truncate(bytes as usize);
        file.make_durable();
        Ok(())
    }

    /// Give back what lies behind the file's first bytes, on the platter too. For recovery.
    ///
    /// # Errors
    /// The crash that was planned for this recovery.
    pub fn trim(&mut self, name: &str, bytes: u64) -> Result<(), CrashedInRecovery> {
        self.recovery_step()?;
        self.cut(name, bytes);
        Ok(())
    }

    /// Write bytes of the file again as they are. For recovery.
    ///
    /// # Errors
    /// The crash that was planned for this recovery.
    pub fn rewrite(&mut self, name: &str, from: u64, to: u64) -> Result<(), CrashedInRecovery> {
        self.recovery_step()?;
        let file = self.file_mut(name);
        let bytes = file.volatile[from as usize..to as usize].to_vec();
        file.write(from as usize, &bytes);
        Ok(())
    }

    /// Make what is dirty of the file, and its entry, durable: what a failed sync dropped is not. For recovery.
    ///
    /// # Errors
    /// The crash that was planned for this recovery.
    pub fn sync(&mut self, name: &str) -> Result<(), CrashedInRecovery> {
        self.recovery_step()?;
        let snapshot = self.begin_sync(name);
        self.finish_sync(name, snapshot);
        self.file_mut(name).entry_durable = true;
        Ok(())
    }

    /// Replace a whole file atomically and durably. For recovery.
    ///
    /// # Errors
    /// The crash that was planned for this recovery; the file is then the old one.
    pub fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), CrashedInRecovery> {
        self.recovery_step()?;
        let mut file = File::default();
        file.write(0, bytes);
        file.make_durable();
        self.files.insert(name.to_owned(), file);
        self.sync_directory();
        Ok(())
    }

    /// Make a file and its directory entry durable. For recovery.
    ///
    /// # Errors
    /// The crash that was planned for this recovery; the file is then there in part, or not.
    pub fn create(&mut self, name: &str, header: &[u8], bytes: u64) -> Result<(), CrashedInRecovery> {
        self.begin_create(name, header, bytes);
        self.recovery_step()?;
        self.finish_create(name);
        Ok(())
    }

    fn recovery_step(&mut self) -> Result<(), CrashedInRecovery> {
        match &mut self.recovery_steps_left {
            Some(0) => Err(CrashedInRecovery),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn file_mut(&mut self, name: &str) -> &mut File {
        self.files.get_mut(name).expect("a machine touches only files that it created")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn disk() -> Disk {
        let mut disk = Disk::default();
        disk.begin_create("a", b"head", 4096);
        disk.finish_create("a");
        disk.write("a", 512, &[1; 2048]);
        disk
    }

    fn content(disk: &Disk) -> Vec<u8> {
        disk.files().next().map(|(_, bytes)| bytes.to_vec()).unwrap_or_default()
    }

    #[test]
    fn kill_keeps_and_power_cut_tears() {
        let mut killed = disk();
        killed.crash(CrashKind::Kill, &mut Rng::new(1));
        assert_eq!(&content(&killed)[512..2560], &[1; 2048]);
        let torn = (0..50).filter(|&seed| {
            let mut cut = disk();
            cut.crash(CrashKind::PowerCut, &mut Rng::new(seed));
            let kept = (1..5).filter(|&number| sector(&content(&cut), number)[0] == 1).count();
            kept > 0 && kept < 4
        });
        assert!(torn.count() > 5, "a power cut tears");
    }

    #[test]
    fn synced_survives_and_failed_sync_is_lost() {
        let mut synced = disk();
        let snapshot = synced.begin_sync("a");
        synced.write("a", 2560, &[2; 512]);
        synced.finish_sync("a", snapshot);
        for seed in 0..20 {
            let mut cut = synced.clone();
            cut.crash(CrashKind::PowerCut, &mut Rng::new(seed));
            assert_eq!(&content(&cut)[512..2560], &[1; 2048]);
        }
        let mut failed = disk();
        let snapshot = failed.begin_sync("a");
        failed.fail_sync("a", &snapshot);
        failed.crash(CrashKind::PowerCut, &mut Rng::new(3));
        assert_eq!(&content(&failed)[512..2560], &[0; 2048]);
    }

    #[test]
    fn only_what_is_written_again_survives_a_failed_sync() {
        let mut failed = disk();
        let snapshot = failed.begin_sync("a");
        failed.fail_sync("a", &snapshot);
        failed.crash(CrashKind::Kill, &mut Rng::new(1));
        assert_eq!(&content(&failed)[512..2560], &[1; 2048], "it stays readable");
        let mut trusting = failed.clone();
        trusting.sync("a").unwrap();
        trusting.crash(CrashKind::PowerCut, &mut Rng::new(1));
        assert_eq!(&content(&trusting)[512..2560], &[0; 2048], "the sync had nothing to do");
        failed.rewrite("a", 512, 2560).unwrap();
        failed.sync("a").unwrap();
        failed.crash(CrashKind::PowerCut, &mut Rng::new(1));
        assert_eq!(&content(&failed)[512..2560], &[1; 2048]);
    }

    #[test]
    fn unfinished_file_may_disappear() {
        let gone = (0..40).filter(|&seed| {
            let mut cut = Disk::default();
            cut.begin_create("a", b"head", 512);
            cut.crash(CrashKind::PowerCut, &mut Rng::new(seed));
            cut.files().count() == 0
        });
        assert!((5..35).contains(&gone.count()));
    }
}
