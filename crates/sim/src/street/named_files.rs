//! Files that a machine writes, replaces and reads by name: one at a time and in order, whatever each of them takes.

use base::{Effect, Event};

use super::{Item, Street};
use crate::effects::unfinished;
use crate::node::Node;

/// How many a street takes at once.
const AT_ONCE_MAX: usize = 64;

/// Those of one core.
#[derive(Default)]
pub(crate) struct UnderWay {
    count: usize,
    /// When the last one is done, so that the next one is done later.
    until_us: u64,
}

impl<N: Node> Street<N> {
    pub(crate) fn plan_named_file(&mut self, core: u16, effect: Effect) {
        let delay_us = self.chance_us(self.weather.sync_us_max);
        let now_us = self.now_us();
        let under_way = &mut self.cores[usize::from(core)].named_files;
        if under_way.count == AT_ONCE_MAX {
            let (Effect::WriteFile { token, name, .. }
            | Effect::ReplaceFile { token, name, .. }
            | Effect::ReadFile { token, name, .. }) = effect
            else {
                unreachable!("files by name only")
            };
            let reason = format!("{name}: more than {AT_ONCE_MAX} at once");
            return self.tell(core, Event::FileFailed { token, reason });
        }
        under_way.count += 1;
        under_way.until_us = under_way.until_us.max(now_us) + delay_us;
        let delay_us = under_way.until_us - now_us;
        self.after(delay_us, Item::NamedFile { core, effect });
    }

    /// All of it at one moment; a crash inside comes at one of its durable steps.
    pub(super) fn named_file(&mut self, core: u16, effect: Effect) {
        self.cores[usize::from(core)].named_files.count -= 1;
        match effect {
            Effect::WriteFile { token, name, offset, bytes } => {
                if !self.disk.files().any(|(file, _)| file == name) {
                    let reason = format!("{name}: No such file or directory");
                    return self.tell(core, Event::FileFailed { token, reason });
                }
                if self.write_and_sync(core, &name, offset, &bytes) {
                    self.tell(core, Event::FileDurable { token });
                }
            }
            Effect::ReplaceFile { token, name, bytes } => {
                let beside = unfinished(&name);
                if self.durable_step() {
                    return;
                }
                self.disk.make_empty(&beside);
                if !self.write_and_sync(core, &beside, 0, &bytes) {
                    return;
                }
                // Renamed and not durable, a power cut leaves what one before or one after would.
                self.disk.rename_over(&beside, &name);
                if !self.durable_step() {
                    self.tell(core, Event::FileDurable { token });
                }
            }
            Effect::ReadFile { token, name, bytes_max } => {
                let content = self.disk.files().find(|(file, _)| *file == name).map(|(_, content)| content.to_vec());
                let read = match content {
                    Some(content) if content.len() as u64 > bytes_max => {
                        Err(format!("{name}: longer than {bytes_max} bytes"))
                    }
                    Some(content) => Ok(content),
                    None => Err(format!("{name}: No such file or directory")),
                };
                self.tell(core, Event::FileRead { token, read });
            }
            _ => unreachable!("files by name only"),
        }
    }

    /// Whether the node lives.
    fn write_and_sync(&mut self, core: u16, name: &str, offset: u64, bytes: &[u8]) -> bool {
        if self.durable_step() {
            return false;
        }
        self.trace.note(self.now_us(), "file", &[u64::from(core), offset], bytes);
        // Only part of it is there when the crash comes inside the write.
        let part = self.rng.below(bytes.len() as u64 + 1) as usize;
        self.disk.write(name, offset, &bytes[..part]);
        if self.durable_step() {
            return false;
        }
        self.disk.write(name, offset, bytes);
        if self.durable_step() {
            return false;
        }
        let snapshot = self.disk.begin_sync(name);
        self.disk.finish_sync(name, snapshot);
        !self.durable_step()
    }
}
