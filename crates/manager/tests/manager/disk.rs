//! A node's data directory: what is durable, what only a cache has, and what a crash leaves of that.
//!
//! ```text
//!  begin ─► under way, one after the other ─► cache ─► durable       kill: what was begun stays in the cache
//!                                                                    power: the first of them may be half done
//! ```

use std::collections::{BTreeMap, VecDeque};

use base::Effect;
use base::rng::Rng;

enum Write {
    Into(usize, Vec<u8>),
    Replace(Vec<u8>),
}

struct UnderWay {
    token: u64,
    name: String,
    write: Write,
}

#[derive(Default)]
struct File {
    durable: Option<Vec<u8>>,
    cache: Option<Vec<u8>>,
}

/// See above.
#[derive(Default)]
pub struct Disk {
    files: BTreeMap<String, File>,
    /// In the order in which they were asked for.
    under_way: VecDeque<UnderWay>,
}

impl Disk {
    /// Begin a write.
    pub fn begin(&mut self, effect: Effect) {
        let (token, name, write) = match effect {
            Effect::WriteFile { token, name, offset, bytes } => (token, name, Write::Into(offset as usize, bytes)),
            Effect::ReplaceFile { token, name, bytes } => (token, name, Write::Replace(bytes)),
            other => panic!("no write: {other:?}"),
        };
        self.under_way.push_back(UnderWay { token, name, write });
    }

    /// The oldest write is durable: its token.
    pub fn complete(&mut self) -> u64 {
        let UnderWay { token, name, write } = self.under_way.pop_front().expect("one was begun");
        let file = self.files.entry(name).or_default();
        perform(&mut file.cache, &write, None);
        file.durable = file.cache.clone();
        token
    }

    /// The oldest write fails; any part of it may be there, now or after a power cut.
    pub fn fail(&mut self, rng: &mut Rng) -> u64 {
        let UnderWay { token, name, write } = self.under_way.pop_front().expect("one was begun");
        let file = self.files.entry(name).or_default();
        perform(&mut file.cache, &write, Some(rng));
        if rng.chance(1, 2) {
            perform(&mut file.durable, &write, Some(rng));
        }
        token
    }

    /// The process dies. Of what it asked for some of the oldest is done, and in the cache.
    pub fn kill(&mut self, rng: &mut Rng) {
        let done = rng.below(self.under_way.len() as u64 + 1) as usize;
        for UnderWay { name, write, .. } in self.under_way.drain(..).take(done) {
            perform(&mut self.files.entry(name).or_default().cache, &write, None);
        }
    }

    /// The power goes, in the middle of the oldest write; those behind it were not begun. Whether bytes were left that were
    /// not whole.
    pub fn cut_power(&mut self, rng: &mut Rng) -> bool {
        let mut is_torn = false;
        if let Some(UnderWay { name, write, .. }) = self.under_way.drain(..).next() {
            is_torn = perform(&mut self.files.entry(name).or_default().durable, &write, Some(rng));
        }
        self.files.values_mut().for_each(|file| file.cache = file.durable.clone());
        is_torn
    }

    /// What a start reads.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.files.get(name)?.cache.clone()
    }
}

/// Does a write; with `rng` any part of bytes, or the old file or the new one. Whether bytes were cut short.
fn perform(content: &mut Option<Vec<u8>>, write: &Write, rng: Option<&mut Rng>) -> bool {
    match write {
        Write::Replace(bytes) => {
            if rng.is_none_or(|rng| rng.chance(1, 2)) {
                *content = Some(bytes.clone());
            }
            false
        }
        Write::Into(offset, bytes) => {
            let length = rng.map_or(bytes.len(), |rng| rng.below(bytes.len() as u64 + 1) as usize);
            // After a power cut the file may be gone that a process made and wrote into.
            if let Some(content) = content
                && length > 0
            {
                let end = offset + length;
                content.resize(content.len().max(end), 0);
                content[*offset..end].copy_from_slice(&bytes[..length]);
            }
            length > 0 && length < bytes.len()
        }
    }
}
