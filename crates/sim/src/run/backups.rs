//! Backups while clients work: pins are taken and given back, files are copied in between, in any order, and the copy,
//! started on any number of cores, holds what was acknowledged before.
//!
//! ```text
//!  timer ─► BEGIN ─► files, lengths ─► timer: one file ─► … ─► timer: END ─► OK ─► a world of its own: start, audit, judge
//!             crash, refusal, broken connection: it was none
//! ```

use std::collections::VecDeque;

use base::Door;
use base::rng::Rng;
use storage::log::format::room_bytes;
use wire::reply_parse::{Value, parse_reply};

use super::{BACKUP, Phase, Run};
use crate::checker::Base;
use crate::checker::loss::{self, Loss};
use crate::disk::Disk;
use crate::history::{Answer, Operation, answer, encode, requests};
use crate::network::Socket;
use crate::node::Node;
use crate::street::{Happening, Street};
use crate::trace::Trace;
use crate::workload;

/// Longest pause between two steps, microseconds.
const PAUSE_US_MAX: u64 = 20_000;

/// A file's name, and how much of it counts; `None` is all.
type Named = (String, Option<usize>);

/// What was named and not copied yet, with the bytes that count, and what was copied.
#[derive(Default)]
struct Copy {
    id: i64,
    files: Vec<Named>,
    copied: Vec<(String, Vec<u8>)>,
    /// A file that was not there, or not long enough: a fault if `END` says that all was well.
    missing: Option<String>,
    /// Operations that were invoked before the files were named.
    operations: usize,
    ends: bool,
}

struct Backup {
    socket: Socket,
    boot: u32,
    begun_us: u64,
    span_start: usize,
    buffer: Vec<u8>,
    copy: Option<Copy>,
}

/// See the module.
pub(super) struct Backups {
    rng: Rng,
    backup: Option<Backup>,
    judged: u64,
}

impl Backups {
    pub(super) fn new(seed: u64) -> Backups {
        Backups { rng: Rng::new(seed ^ 0xBAC2_0CC0_11EC), backup: None, judged: 0 }
    }

    pub(super) fn judged(&self) -> u64 {
        self.judged
    }
}

impl<N: Node> Run<N> {
    pub(super) fn is_of_backup(&self, socket: Socket) -> bool {
        self.backups.backup.as_ref().is_some_and(|backup| backup.socket == socket)
    }

    pub(super) fn backup_turn(&mut self) {
        let pause_us = 1 + self.backups.rng.below(PAUSE_US_MAX);
        self.street.timer(pause_us, BACKUP);
        let is_working = self.phase == Phase::Working && self.street.is_up();
        let (boot, span_start) = (self.street.boot, self.span_start);
        let goes_on = |backup: &Backup| is_working && backup.boot == boot && backup.span_start == span_start;
        self.backups.backup = self.backups.backup.take().filter(goes_on);
        match &mut self.backups.backup {
            _ if !is_working => {}
            None => self.begin_backup(),
            Some(backup) => {
                let Some(copy) = backup.copy.as_mut().filter(|copy| !copy.ends) else { return };
                let count = copy.files.len() as u64;
                if count > 0 {
                    let (name, bytes) = copy.files.swap_remove(self.backups.rng.below(count) as usize);
                    let found = self.street.disk.files().find(|(file, _)| *file == name).map(|(_, found)| found);
                    match found.and_then(|found| found.get(..bytes.unwrap_or(found.len()))) {
                        Some(found) => copy.copied.push((name, found.to_vec())),
                        None => copy.missing = Some(name),
                    }
                    return;
                }
                copy.ends = true;
                let (socket, id) = (backup.socket, copy.id.to_string());
                self.ask_backup(socket, &[b"END", id.as_bytes()]);
            }
        }
    }

    fn begin_backup(&mut self) {
        let core = self.backups.rng.below(u64::from(self.street.core_count())) as u16;
        let socket = self.street.connect(core, Door::Standalone, 1);
        self.backups.backup = Some(Backup {
            socket,
            boot: self.street.boot,
            begun_us: self.street.now_us(),
            span_start: self.span_start,
            buffer: Vec::new(),
            copy: None,
        });
        // Sometimes nobody renews a lease that is too short.
        let lease: &[u8] = if self.backups.rng.chance(1, 4) { b"1000" } else { b"3600000" };
        self.ask_backup(socket, &[b"BEGIN", lease]);
    }

    fn ask_backup(&mut self, socket: Socket, words: &[&[u8]]) {
        let request: Vec<Vec<u8>> = [&b"ZH.BACKUP"[..]].iter().chain(words).map(|word| word.to_vec()).collect();
        let mut bytes = Vec::new();
        encode(&request, &mut bytes);
        self.street.write(socket, &bytes);
    }

    pub(super) fn backup_received(&mut self, bytes: &[u8]) {
        let Some(mut backup) = self.backups.backup.take() else { return };
        backup.buffer.extend_from_slice(bytes);
        let reply = match parse_reply(&backup.buffer) {
            Ok(None) => return self.backups.backup = Some(backup),
            Ok(Some((reply, taken))) => {
                backup.buffer.drain(..taken);
                reply
            }
            Err(error) => return self.violate(format!("a backup was answered nonsense: {error}")),
        };
        match (reply, backup.copy.take()) {
            (Value::Array(fields), None) => match named(&fields) {
                Some((id, files)) => {
                    backup.copy = Some(Copy { id, files, operations: self.operations.len(), ..Copy::default() });
                    self.backups.backup = Some(backup);
                }
                None => self.violate(format!("a backup was answered {fields:?}")),
            },
            (Value::Simple(_), Some(copy)) => {
                self.street.reset(backup.socket);
                if self.phase == Phase::Working && backup.span_start == self.span_start {
                    self.judge_backup(backup.begun_us, copy);
                }
            }
            // A lease that ended, a log that failed, a full disk.
            (Value::Error(_), _) => self.street.reset(backup.socket),
            (reply, _) => self.violate(format!("a backup was answered {reply:?}")),
        }
    }

    fn judge_backup(&mut self, begun_us: u64, copy: Copy) {
        if let Some(name) = copy.missing {
            return self.violate(format!("{name} was pinned and is not there, or not whole"));
        }
        let cores = [1, 2, 4][self.backups.rng.below(3) as usize];
        let seed = self.backups.rng.next_u64();
        let Some(node) = self.street.node.another() else { return };
        let found = match restored(node, copy.copied, &self.swarm, (cores, seed)) {
            Ok(found) => found,
            Err(words) => return self.violate(format!("a backup, restored: {words}")),
        };
        let span = &self.operations[self.span_start..copy.operations];
        let loss = Loss { safe_until_us: Some(begun_us.saturating_sub(1)) };
        if let Err(words) = loss::check(span, &self.base, &found, loss) {
            return self.violate(format!("a backup begun at {begun_us} us, restored: {words}"));
        }
        self.backups.judged += 1;
    }
}

/// The number of a backup and its files, out of the reply to `BEGIN`.
fn named(fields: &[Value]) -> Option<(i64, Vec<Named>)> {
    let [_, Value::Integer(id), .., Value::Array(files)] = fields else { return None };
    let file = |file: &Value| match file {
        Value::Array(pair) => match &pair[..] {
            [Value::Bulk(name), Value::Integer(bytes)] => {
                Some((String::from_utf8(name.clone()).ok()?, Some(usize::try_from(*bytes).ok()?)))
            }
            [Value::Bulk(name), Value::Null] => Some((String::from_utf8(name.clone()).ok()?, None)),
            _ => None,
        },
        _ => None,
    };
    Some((*id, files.iter().map(file).collect::<Option<_>>()?))
}

/// Starts a node on the files, in a world of its own, and reads all keys.
fn restored<N: Node>(
    node: N,
    mut files: Vec<(String, Vec<u8>)>,
    swarm: &crate::swarm::Swarm,
    (cores, seed): (u16, u64),
) -> Result<Base, String> {
    let mut street = Street::new(node, swarm.weather, seed, Trace::new(false));
    for (_, bytes) in &mut files {
        bytes.resize(bytes.len().max(room_bytes(bytes) as usize), 0);
    }
    street.disk = Disk::of(files);
    let cores = cores.min(street.node.abilities().cores_max);
    street.start(cores, swarm.durability, swarm.segment_bytes).map_err(|refusal| format!("{refusal:?}"))?;
    let socket = street.connect(0, Door::Standalone, 1);
    let actions = workload::audit(swarm);
    let mut bytes = Vec::new();
    actions.iter().flat_map(requests).for_each(|request| encode(&request, &mut bytes));
    street.write(socket, &bytes);
    let mut waiting: VecDeque<_> = actions.into();
    let (mut buffer, mut audit) = (Vec::new(), Vec::new());
    while let Some(action) = waiting.front() {
        match street.step() {
            Some(Happening::Received(_, bytes)) => buffer.extend_from_slice(&bytes),
            Some(Happening::Quiet) => {}
            other => return Err(format!("{action:?} was not answered, but {other:?}")),
        }
        while let Some((reply, taken)) = parse_reply(&buffer).map_err(|error| error.to_string())? {
            buffer.drain(..taken);
            let Some(action) = waiting.pop_front() else { return Err(format!("nobody asked for {reply:?}")) };
            let answer = answer(&action, &[reply])?;
            if !matches!(answer, Answer::Reply(_)) {
                return Err(format!("{action:?} was answered {answer:?}"));
            }
            audit.push(Operation { client: 0, action, invoked: 0, returned: 0, invoked_us: 0, returned_us: 0, answer });
        }
    }
    Ok(Base::of(&audit))
}
