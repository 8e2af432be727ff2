//! A store small enough to be seen through, on the same contract as the real one: one core, a log, three promises, and
//! the planted bugs. It is the simulator's canary: what is caught here is caught for a known reason.
//!
//! ```text
//! segment  "TOY1" · boot u64 · group …        group  crc u32 · bytes u32 · ordinal u64 · durable u64 · {key, value}…
//! ```

use std::collections::{BTreeMap, VecDeque};

use base::checksum::crc32c;
use base::planted::{Bug, is_planted};
use base::street::Span;
use base::{ConnectionId, Effect, Event, LogOrdinal, Machine, SegmentNumber, TickInput, TickOutput};
use sim::disk::Disk;
use sim::node::{Abilities, Boot, Durability, Node, Refusal};
use wire::reply_parse::Value;
use wire::{ParseLimits, Parsed, Protocol, Reply};

const SEGMENT_HEADER_BYTES: usize = 12;
const GROUP_HEADER_BYTES: usize = 24;
const SYNC_EVERY_US: u64 = 500_000;

type Data = BTreeMap<Vec<u8>, Vec<u8>>;

/// The toy's directory and how often it was opened.
#[derive(Default)]
pub struct ToyNode {
    boots: u64,
}

impl Node for ToyNode {
    type Machine = Toy;

    fn open(&mut self, boot: Boot, disk: &mut Disk) -> Result<Vec<Toy>, Refusal> {
        let files: Vec<(String, Vec<u8>)> =
            disk.files().map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect();
        self.boots = files.iter().filter_map(|(name, _)| name.get(4..8)?.parse().ok()).max().unwrap_or(0) + 1;
        let mut data = Data::new();
        if boot.durability != Durability::Memory {
            for (name, bytes) in &files {
                let end = replay(name, bytes, &mut data)?;
                disk.truncate(name, end as u64)?;
            }
        }
        Ok(vec![Toy::new(data, boot, self.boots)])
    }

    fn file_name(&self, _core: u16, segment: SegmentNumber) -> String {
        format!("toy-{:04}-{}", self.boots, segment.0)
    }

    fn abilities(&self) -> Abilities {
        Abilities { cores_max: 1, cluster: false, waits: false, blocks: false, keyspace: false, outlives_syncs: false }
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The group at `at`, if it is whole: ordinal, durable ordinal and records.
fn group_at(bytes: &[u8], at: usize) -> Option<(u64, u64, &[u8])> {
    let head = bytes.get(at..at + GROUP_HEADER_BYTES)?;
    let crc = u32::from_le_bytes(head[..4].try_into().unwrap());
    let len = u32::from_le_bytes(head[4..8].try_into().unwrap()) as usize;
    let records = bytes.get(at + GROUP_HEADER_BYTES..at.checked_add(GROUP_HEADER_BYTES + len)?)?;
    let whole = len > 0 && crc32c(&bytes[at + 4..at + GROUP_HEADER_BYTES + len]) == crc;
    whole.then(|| (u64_at(head, 8), u64_at(head, 16), records))
}

fn replay(name: &str, bytes: &[u8], data: &mut Data) -> Result<usize, Refusal> {
    let mut at = SEGMENT_HEADER_BYTES.min(bytes.len());
    let mut groups = Vec::new();
    while let Some((_, _, records)) = group_at(bytes, at) {
        groups.push(records);
        at += GROUP_HEADER_BYTES + records.len();
    }
    let next = groups.len() as u64 + 1;
    let promised = (at..bytes.len()).any(|later| group_at(bytes, later).is_some_and(|group| group.1 >= next));
    if promised && !is_planted(Bug::M16DamageTakenAsEnd) {
        return Err(Refusal::Damaged(format!("{name} at {at}: damage before data that was promised")));
    }
    if is_planted(Bug::M7ReplayDropsLast) {
        groups.pop();
    }
    for mut records in groups {
        while !records.is_empty() {
            let (key, rest) = take(records);
            let (value, rest) = take(rest);
            data.insert(key.to_vec(), value.to_vec());
            records = rest;
        }
    }
    Ok(at)
}

fn take(bytes: &[u8]) -> (&[u8], &[u8]) {
    let len = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    bytes[4..].split_at(len)
}

#[derive(Default)]
struct Client {
    input: Vec<u8>,
    output: Vec<u8>,
    sending: bool,
    ends: bool,
    queued: Option<Vec<Vec<Vec<u8>>>>,
}

/// One core of it; there is only one.
pub struct Toy {
    data: Data,
    durability: Durability,
    boot: u64,
    clients: BTreeMap<ConnectionId, Client>,
    records: Vec<u8>,
    asked_for_segment: bool,
    ready: bool,
    failed: bool,
    stopping: bool,
    offset: u64,
    ordinal: u64,
    synced: u64,
    syncing: bool,
    sync_at_us: u64,
    /// Replies that wait for their group, in order.
    held: VecDeque<(u64, ConnectionId, Vec<u8>)>,
    /// For M18: what a compare remembers.
    remembered: Data,
}

impl Toy {
    fn new(data: Data, boot: Boot, boots: u64) -> Toy {
        Toy {
            data,
            durability: boot.durability,
            boot: boots,
            clients: BTreeMap::new(),
            records: Vec::new(),
            asked_for_segment: false,
            ready: boot.durability == Durability::Memory,
            failed: false,
            stopping: false,
            offset: SEGMENT_HEADER_BYTES as u64,
            ordinal: 0,
            synced: 0,
            syncing: false,
            sync_at_us: 0,
            held: VecDeque::new(),
            remembered: Data::new(),
        }
    }

    fn event(&mut self, event: Event, received: &[u8]) {
        match event {
            Event::Accepted { connection, .. } => {
                self.clients.insert(connection, Client::default());
            }
            Event::Received { connection, span } => {
                if let Some(client) = self.clients.get_mut(&connection) {
                    client.input.extend_from_slice(Span::of(span, received));
                }
            }
            Event::PeerClosed { connection } => {
                if let Some(client) = self.clients.get_mut(&connection) {
                    client.ends = true;
                }
            }
            Event::SendDone { connection, .. } => {
                if let Some(client) = self.clients.get_mut(&connection) {
                    client.sending = false;
                }
            }
            Event::Closed { connection } => {
                self.clients.remove(&connection);
            }
            Event::LogWritten { .. } => {}
            Event::LogSynced { ordinal } => (self.synced, self.syncing) = (ordinal.0, false),
            Event::SegmentReady { .. } => self.ready = true,
            Event::TickGap(_) | Event::Dialed { .. } => {}
            Event::RunWritten { .. } | Event::RunsPublished | Event::RunRead { .. } | Event::RunFailed { .. } => {
                unreachable!("it makes no runs")
            }
            Event::FileDurable { .. } | Event::FileFailed { .. } | Event::FileRead { .. } => {
                unreachable!("it has no files but its log")
            }
            Event::RoomReady { .. } | Event::RoomFailed { .. } => unreachable!("it asks for none"),
            Event::ListeningStopped
            | Event::Stilled { .. }
            | Event::HandedOver { .. }
            | Event::Arrived { .. }
            | Event::ArrivalsEnded => unreachable!("it hands nothing over"),
            Event::LogFailed { .. } | Event::SegmentFailed { .. } => self.failed = true,
            Event::ShutdownRequested => self.stopping = true,
        }
    }

    fn execute_all(&mut self) {
        for id in self.clients.keys().copied().collect::<Vec<_>>() {
            let mut client = self.clients.remove(&id).unwrap();
            let (mut at, mut spans, mut replies) = (0, Vec::new(), Vec::new());
            while let Parsed::Request { consumed } =
                wire::parse(&client.input, at, &mut spans, &ParseLimits::AUTHENTICATED)
            {
                let arguments: Vec<Vec<u8>> = spans.drain(..).map(|span| span.of(&client.input).to_vec()).collect();
                let mut reply = Vec::new();
                self.request(&mut client, arguments, &mut reply);
                replies.push(reply);
                at += consumed;
            }
            client.input.drain(..at);
            if replies.len() > 1 && is_planted(Bug::M14RepliesSwapped) {
                replies.swap(0, 1);
            }
            self.clients.insert(id, client);
            let group = if self.records.is_empty() { self.ordinal } else { self.ordinal + 1 };
            self.held.extend(replies.into_iter().map(|reply| (group, id, reply)));
        }
    }

    fn request(&mut self, client: &mut Client, arguments: Vec<Vec<u8>>, out: &mut Vec<u8>) {
        match (&arguments[0][..], &mut client.queued) {
            (b"MULTI", queued) => {
                *queued = Some(Vec::new());
                Reply::new(out, Protocol::Resp2).ok();
            }
            (b"EXEC", queued) => {
                let all = queued.take().unwrap_or_default();
                if self.failed {
                    return out.extend_from_slice(b"-MISCONF the log failed\r\n");
                }
                out.extend_from_slice(format!("*{}\r\n", all.len()).as_bytes());
                all.iter().for_each(|arguments| self.command(arguments, out));
            }
            (_, Some(queued)) => {
                queued.push(arguments);
                out.extend_from_slice(b"+QUEUED\r\n");
            }
            (_, None) => self.command(&arguments, out),
        }
    }

    fn command(&mut self, arguments: &[Vec<u8>], out: &mut Vec<u8>) {
        let writes = !matches!(&arguments[0][..], b"GET" | b"LRANGE" | b"ECHO");
        if writes && self.failed {
            return out.extend_from_slice(b"-MISCONF the log failed\r\n");
        }
        let key = &arguments[1];
        let value = self.data.get(key).cloned();
        match &arguments[0][..] {
            b"GET" => show(&value.map_or(Value::Null, Value::Bulk), out),
            b"ECHO" => show(&Value::Bulk(key.clone()), out),
            b"APPEND" => {
                let new = [value.unwrap_or_default(), arguments[2].clone()].concat();
                show(&Value::Integer(new.len() as i64), out);
                self.put(key, new);
            }
            b"SET" => {
                let seen =
                    if is_planted(Bug::M18StaleCompare) { self.remembered.get(key).cloned() } else { value.clone() };
                let same = seen.as_ref() == Some(&arguments[4]);
                self.remembered.insert(key.clone(), value.unwrap_or_default());
                if !same {
                    return show(&Value::Null, out);
                }
                self.put(key, arguments[2].clone());
                out.extend_from_slice(b"+OK\r\n");
            }
            b"INCR" => {
                let old = value.map_or(0, |value| String::from_utf8(value).unwrap().parse::<i64>().unwrap());
                self.put(key, (old + 1).to_string().into_bytes());
                show(&Value::Integer(old + 1), out);
            }
            b"RPUSH" => {
                let new = [value.unwrap_or_default(), arguments[2].clone()].concat();
                show(&Value::Integer(new.iter().filter(|byte| **byte == b',').count() as i64), out);
                self.put(key, new);
            }
            b"LPOP" => {
                let list = value.unwrap_or_default();
                let end = list.iter().position(|byte| *byte == b',').map_or(0, |at| at + 1);
                let reply = if end == 0 { Value::Null } else { Value::Bulk(list[..end].to_vec()) };
                self.put(key, list[end..].to_vec());
                show(&reply, out);
            }
            b"LRANGE" => {
                let list = value.unwrap_or_default();
                let items = list.split_inclusive(|byte| *byte == b',').map(|item| Value::Bulk(item.to_vec()));
                show(&Value::Array(items.collect()), out);
            }
            other => panic!("the toy does not know {}", other.escape_ascii()),
        }
    }

    fn put(&mut self, key: &[u8], value: Vec<u8>) {
        for part in [key, &value] {
            self.records.extend_from_slice(&(part.len() as u32).to_le_bytes());
            self.records.extend_from_slice(part);
        }
        self.data.insert(key.to_vec(), value);
    }

    fn log(&mut self, now_us: u64, effects: &mut Vec<Effect>) {
        let records = std::mem::take(&mut self.records);
        if self.durability == Durability::Memory || self.failed {
            return;
        }
        if !records.is_empty() {
            self.ordinal += 1;
            let mut group = vec![0; 4];
            group.extend_from_slice(&(records.len() as u32).to_le_bytes());
            group.extend_from_slice(&self.ordinal.to_le_bytes());
            group.extend_from_slice(&self.synced.to_le_bytes());
            group.extend_from_slice(&records);
            let crc = crc32c(&group[4..]);
            group[..4].copy_from_slice(&crc.to_le_bytes());
            let (segment, ordinal, offset) = (SegmentNumber(0), LogOrdinal(self.ordinal), self.offset);
            self.offset += group.len() as u64;
            effects.push(Effect::WriteLog { segment, offset, bytes: group, ordinal });
        }
        let due = self.durability == Durability::Commit || now_us >= self.sync_at_us || self.stopping;
        if self.synced < self.ordinal && due && !self.syncing {
            self.syncing = true;
            self.sync_at_us = now_us + SYNC_EVERY_US;
            effects.push(Effect::SyncLog { segment: SegmentNumber(0), ordinal: LogOrdinal(self.ordinal) });
        }
    }

    fn reply(&mut self, effects: &mut Vec<Effect>) {
        let waits = self.durability == Durability::Commit && !is_planted(Bug::M1AckBeforeFsync);
        while let Some((group, ..)) = self.held.front() {
            if waits && *group > self.synced {
                break;
            }
            let (_, id, reply) = self.held.pop_front().unwrap();
            if let Some(client) = self.clients.get_mut(&id) {
                client.output.extend_from_slice(&reply);
            }
        }
        for (&connection, client) in &mut self.clients {
            if !client.sending && !client.output.is_empty() {
                client.sending = true;
                effects.push(Effect::Send { connection, buffer: std::mem::take(&mut client.output) });
            }
            let owed = self.held.iter().any(|(_, id, _)| *id == connection);
            if client.ends && !owed && client.output.is_empty() {
                client.ends = false;
                effects.push(Effect::Close { connection });
            }
        }
    }
}

fn show(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Integer(number) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
        Value::Bulk(bytes) => {
            out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
        Value::Array(items) => {
            out.extend_from_slice(format!("*{}\r\n", items.len()).as_bytes());
            items.iter().for_each(|item| show(item, out));
        }
        _ => out.extend_from_slice(b"$-1\r\n"),
    }
}

impl Machine for Toy {
    type Message = ();

    fn tick(&mut self, input: TickInput<'_, ()>, output: &mut TickOutput<()>) {
        for event in input.events.drain(..) {
            self.event(event, input.received);
        }
        if !self.asked_for_segment && self.durability != Durability::Memory {
            self.asked_for_segment = true;
            let header = [&b"TOY1"[..], &self.boot.to_le_bytes()].concat();
            let segment = SegmentNumber(0);
            output.effects.push(Effect::CreateSegment { segment, header, bytes: 4096, recycle: None });
        }
        if !self.ready {
            return;
        }
        self.execute_all();
        self.log(input.now.monotonic_us, &mut output.effects);
        self.reply(&mut output.effects);
        let logs = self.durability != Durability::Memory;
        if self.stopping && (!logs || self.synced == self.ordinal || self.failed) {
            output.effects.push(Effect::Stop);
        }
        output.deadline_us = (logs && self.synced < self.ordinal && !self.failed).then_some(self.sync_at_us);
    }
}
