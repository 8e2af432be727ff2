//! A manager's disk: what is durable, what only a cache has, and what a crash leaves of that.
//!
//! ```text
//!  begin ─► cache ─ complete ─► durable          kill: the next life reads the cache
//!             └─ fail: stays in the cache, reaches the disk only if its file is replaced
//! ```

use std::collections::VecDeque;

use base::rng::Rng;
use consensus::{Effect, Image};

enum Write {
    Into(usize, Vec<u8>),
    ReplaceLog(Vec<u8>),
    ReplaceSnapshot(Vec<u8>),
}

struct UnderWay {
    ordinal: u64,
    write: Write,
    /// Its sync failed: the cache has it, and takes it for stored.
    is_ghost: bool,
}

/// Two files, a log and a snapshot; both may be replaced as a whole, and the log be written into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Files {
    log: Option<Vec<u8>>,
    snapshot: Option<Vec<u8>>,
}

/// See above.
#[derive(Default)]
pub struct Disk {
    durable: Files,
    /// In the order in which they were begun.
    under_way: VecDeque<UnderWay>,
    /// What the running life read.
    read: Files,
}

impl Files {
    fn perform(&mut self, write: &Write) {
        match write {
            Write::Into(offset, bytes) => overwrite(self.log.as_mut(), *offset, bytes),
            Write::ReplaceLog(bytes) => self.log = Some(bytes.clone()),
            Write::ReplaceSnapshot(bytes) => self.snapshot = Some(bytes.clone()),
        }
    }
}

impl Disk {
    /// Begin a write; its ordinal, or `None` if the effect is none.
    pub fn begin(&mut self, effect: Effect) -> Option<u64> {
        let (ordinal, write) = match effect {
            Effect::Write { ordinal, offset, bytes } => (ordinal, Write::Into(offset as usize, bytes)),
            Effect::ReplaceLog { ordinal, bytes } => (ordinal, Write::ReplaceLog(bytes)),
            Effect::ReplaceSnapshot { ordinal, bytes } => (ordinal, Write::ReplaceSnapshot(bytes)),
            _ => return None,
        };
        self.under_way.push_back(UnderWay { ordinal, write, is_ghost: false });
        Some(ordinal)
    }

    /// Every write of this life up to `ordinal` is durable, but for what a failed sync left behind.
    pub fn complete(&mut self, ordinal: u64) {
        let mut left = VecDeque::new();
        for under_way in std::mem::take(&mut self.under_way) {
            if under_way.ordinal > ordinal || under_way.is_ghost {
                left.push_back(under_way);
                continue;
            }
            self.durable.perform(&under_way.write);
            // What was said of the file that had the name before is nobody's.
            match under_way.write {
                Write::ReplaceLog(_) => left.retain(|ghost| matches!(ghost.write, Write::ReplaceSnapshot(_))),
                Write::ReplaceSnapshot(_) => left.retain(|ghost| !matches!(ghost.write, Write::ReplaceSnapshot(_))),
                Write::Into(..) => {}
            }
        }
        self.under_way = left;
    }

    /// The sync of `ordinal` fails, and with it those behind it.
    pub fn fail(&mut self, ordinal: u64) {
        self.under_way.iter_mut().filter(|under_way| under_way.ordinal >= ordinal).for_each(|it| it.is_ghost = true);
    }

    /// The process dies; the cache stays.
    pub fn kill(&mut self) {
        // They belong to no life any more, and are synced with the next one's first writes.
        self.under_way.iter_mut().for_each(|under_way| under_way.ordinal = 0);
    }

    /// The power goes. Of the log's bytes on their way some prefix stays, of its last bytes perhaps rot; files are the old
    /// or the new ones, whatever became of the others. Returns whether bytes were left that were not whole.
    pub fn cut_power(&mut self, rng: &mut Rng) -> bool {
        let (mut begin, mut tail) = (None, Vec::new());
        for under_way in std::mem::take(&mut self.under_way) {
            match under_way.write {
                Write::Into(offset, bytes) if !under_way.is_ghost => {
                    begin.get_or_insert(offset);
                    tail.extend(bytes);
                }
                Write::ReplaceSnapshot(_) if rng.chance(1, 2) => self.durable.perform(&under_way.write),
                Write::ReplaceLog(_) if rng.chance(1, 2) => {
                    self.durable.perform(&under_way.write);
                    (begin, tail) = (None, Vec::new());
                }
                // The name stays with the old file, and what comes behind goes to the new one.
                Write::ReplaceLog(_) => break,
                Write::Into(..) | Write::ReplaceSnapshot(_) => {}
            }
        }
        let whole = tail.len();
        tail.truncate(rng.below(tail.len() as u64 + 1) as usize);
        let mut torn = tail.len() < whole && !tail.is_empty();
        if !tail.is_empty() && rng.chance(1, 3) {
            let at = tail.len() - 1 - rng.below(tail.len().min(40) as u64) as usize;
            tail[at] ^= 1 << rng.below(8);
            torn = true;
        }
        overwrite(self.durable.log.as_mut(), begin.unwrap_or(0), &tail);
        torn
    }

    /// What a start finds: the cache.
    pub fn open(&mut self) -> Image<'_> {
        self.read = self.durable.clone();
        self.under_way.iter().for_each(|under_way| self.read.perform(&under_way.write));
        Image { log: self.read.log.as_deref(), snapshot: self.read.snapshot.as_deref() }
    }
}

fn overwrite(file: Option<&mut Vec<u8>>, offset: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let file = file.expect("a log is made before it is written into");
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
}
