//! A machine that answers lines, so that a street can be tested without a store: each line is a command.
//!
//! `ECHO t` | `BIG n` | `WHOLE n` | `TELL n` | `QUIT` | `STATE` | `TIMER ms` | `HOP core t` | `FLOOD core n` | `STALL us` | `GAP` | `LEAVE` | `DEAF` | `LOG t` | `SYNC` | `CREATE n` | `EXTEND bytes`
//! | `READ name offset bytes` | `PUT name offset text` | `REPLACE name text`

use base::ids::{ConnectionId, CoreId, LogOrdinal, SegmentNumber};
use base::street::{Effect, Event, HandOver, Machine, TickInput, TickOutput};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Unsent bytes at which a connection is no longer read.
const PAUSE_BYTES: usize = 64 << 10;
/// Most bytes per send.
const SEND_BYTES: usize = 32 << 10;

#[derive(Default)]
struct Client {
    input: Vec<u8>,
    output: VecDeque<u8>,
    /// A reply to be sent by one effect, however long.
    whole: Option<Vec<u8>>,
    /// Say so when it is sent.
    tell: bool,
    sending: bool,
    paused: bool,
    closing: bool,
    /// It is still, and goes when all is sent.
    leaving: bool,
}

/// What cores tell each other: a question for the target, or its answer for the asker's connection.
pub enum Message {
    Question(ConnectionId, Vec<u8>),
    Answer(ConnectionId, Vec<u8>),
    Count(u64),
    Batch(Vec<Message>),
}

/// See the module. The public fields are what a test asserts on after the street has stopped.
pub struct LineMachine {
    clients: BTreeMap<ConnectionId, Client>,
    core: CoreId,
    quiet: bool,
    timer: Option<(ConnectionId, u64, u64)>,
    synced_reply: Option<ConnectionId>,
    created_reply: Option<ConnectionId>,
    /// Who asked for a read, by its number.
    readers: Vec<ConnectionId>,
    /// Who asked for each write into a file, and each replacing of one.
    file_writers: Vec<ConnectionId>,
    /// Who asked for each dial.
    dialers: Vec<ConnectionId>,
    log_offset: u64,
    segment: SegmentNumber,
    ordinal: u64,
    hops: BTreeMap<CoreId, Vec<Message>>,
    counted: u64,
    gap_us_max: u64,
    pub ticks: u64,
    pub pauses: u64,
    pub accepted: u64,
    pub closed: u64,
    pub trace: Vec<String>,
}

impl LineMachine {
    pub fn new(core: CoreId, quiet: bool) -> LineMachine {
        LineMachine {
            clients: BTreeMap::new(),
            core,
            quiet,
            timer: None,
            synced_reply: None,
            created_reply: None,
            readers: Vec::new(),
            file_writers: Vec::new(),
            dialers: Vec::new(),
            log_offset: 0,
            segment: SegmentNumber(0),
            ordinal: 0,
            hops: BTreeMap::new(),
            counted: 0,
            gap_us_max: 0,
            ticks: 0,
            pauses: 0,
            accepted: 0,
            closed: 0,
            trace: Vec::new(),
        }
    }

    fn reply(&mut self, connection: ConnectionId, text: &[u8]) {
        if let Some(client) = self.clients.get_mut(&connection) {
            client.output.extend(text);
            client.output.push_back(b'\n');
        }
    }

    fn line(&mut self, id: ConnectionId, line: &[u8], now_us: u64, effects: &mut Vec<Effect>) {
        let text = std::str::from_utf8(line).unwrap();
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "ECHO" => self.reply(id, rest.as_bytes()),
            "BIG" => self.reply(id, &vec![b'x'; rest.parse().unwrap()]),
            "WHOLE" => {
                let bytes = [vec![b'w'; rest.parse().unwrap()], b"\n".to_vec()].concat();
                self.clients.get_mut(&id).unwrap().whole = Some(bytes);
            }
            "TELL" => {
                let client = self.clients.get_mut(&id).unwrap();
                client.whole = Some([vec![b't'; rest.parse().unwrap()], b"\n".to_vec()].concat());
                client.tell = true;
            }
            "QUIT" => {
                self.reply(id, b"bye");
                self.clients.get_mut(&id).unwrap().closing = true;
            }
            "STATE" => {
                let state = format!("clients {} pauses {} counted {}", self.clients.len(), self.pauses, self.counted);
                self.reply(id, state.as_bytes());
            }
            "TIMER" => self.timer = Some((id, now_us + rest.parse::<u64>().unwrap() * 1000, self.ticks)),
            "HOP" => {
                let (core, text) = rest.split_once(' ').unwrap();
                let core = CoreId(core.parse().unwrap());
                self.hops.entry(core).or_default().push(Message::Question(id, text.as_bytes().to_vec()));
            }
            "FLOOD" => {
                let (core, count) = rest.split_once(' ').unwrap();
                let core = CoreId(core.parse().unwrap());
                let count: u64 = count.parse().unwrap();
                self.hops.entry(core).or_default().extend((0..count).map(Message::Count));
                self.reply(id, b"flooded");
            }
            "STALL" => {
                let (began, us) = (Instant::now(), rest.parse().unwrap());
                while began.elapsed() < Duration::from_micros(us) {
                    std::hint::spin_loop();
                }
                self.reply(id, b"stalled");
            }
            "LEAVE" => effects.push(Effect::Still { connection: id }),
            "DEAF" => {
                effects.push(Effect::StopListening);
                self.reply(id, b"deaf");
            }
            "GAP" => self.reply(id, self.gap_us_max.to_string().as_bytes()),
            _ => self.disk_line(id, (word, rest), effects),
        }
    }

    /// A line about files.
    fn disk_line(&mut self, id: ConnectionId, (word, rest): (&str, &str), effects: &mut Vec<Effect>) {
        match word {
            "LOG" => {
                self.ordinal += 1;
                let ordinal = LogOrdinal(self.ordinal);
                let bytes = [rest.as_bytes(), b"\n"].concat();
                let length = bytes.len() as u64;
                effects.push(Effect::WriteLog { segment: self.segment, offset: self.log_offset, bytes, ordinal });
                self.log_offset += length;
                self.reply(id, b"logged");
            }
            "SYNC" => {
                effects.push(Effect::SyncLog { segment: self.segment, ordinal: LogOrdinal(self.ordinal) });
                self.synced_reply = Some(id);
            }
            "CREATE" => {
                let segment = SegmentNumber(rest.parse().unwrap());
                let (header, bytes, recycle) = (b"head".to_vec(), 3 << 20, None);
                effects.push(Effect::CreateSegment { segment, header, bytes, recycle });
                self.created_reply = Some(id);
            }
            "REMOVE" => {
                effects.push(Effect::RemoveFiles { names: vec![rest.to_owned()] });
                self.reply(id, b"asked");
            }
            "DIAL" => {
                let token = self.dialers.len() as u64;
                self.dialers.push(id);
                effects.push(Effect::Dial { token, address: rest.to_owned() });
            }
            "EXTEND" => {
                effects.push(Effect::ExtendSegment { segment: self.segment, bytes: rest.parse().unwrap() });
                self.created_reply = Some(id);
            }
            "READ" => {
                let words: Vec<&str> = rest.split(' ').collect();
                let (offset, bytes) = (words[1].parse().unwrap(), words[2].parse().unwrap());
                let token = self.readers.len() as u64;
                self.readers.push(id);
                effects.push(Effect::ReadRun { token, name: words[0].to_owned(), offset, bytes });
            }
            "PUT" | "REPLACE" | "LOAD" => {
                let token = self.file_writers.len() as u64;
                self.file_writers.push(id);
                effects.push(file_effect(token, word, rest));
            }
            _ => self.reply(id, b"?"),
        }
    }

    fn receive(&mut self, id: ConnectionId, bytes: &[u8], now_us: u64, effects: &mut Vec<Effect>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.input.extend_from_slice(bytes);
        let mut input = std::mem::take(&mut client.input);
        let mut start = 0;
        while let Some(length) = input[start..].iter().position(|&byte| byte == b'\n') {
            self.line(id, &input[start..start + length], now_us, effects);
            start += length + 1;
        }
        input.drain(..start);
        self.clients.get_mut(&id).unwrap().input = input;
    }

    fn file_reply(&mut self, token: u64, text: &str) {
        self.reply(self.file_writers[token as usize], format!("{token} {text}").as_bytes());
    }

    fn event(&mut self, event: Event, received: &[u8], now_us: u64, output: &mut TickOutput<Message>) {
        match event {
            Event::Accepted { connection, peer, local, .. } => {
                assert!(peer.contains([':', '/']) && local.contains([':', '/']));
                self.accepted += 1;
                assert!(self.clients.insert(connection, Client::default()).is_none());
            }
            Event::Received { connection, span } => {
                self.receive(connection, span.of(received), now_us, &mut output.effects);
            }
            Event::PeerClosed { connection } => self.clients.get_mut(&connection).unwrap().closing = true,
            Event::SendDone { connection, .. } => {
                let client = self.clients.get_mut(&connection).unwrap();
                client.sending = false;
                if std::mem::take(&mut client.tell) {
                    self.reply(connection, b"told");
                }
            }
            Event::Closed { connection } => {
                self.closed += 1;
                assert!(self.clients.remove(&connection).is_some(), "told once, of a connection that was told");
            }
            Event::LogWritten { ordinal, .. } => self.trace.push(format!("written {}", ordinal.0)),
            Event::LogSynced { ordinal } => {
                self.trace.push(format!("synced {}", ordinal.0));
                let id = self.synced_reply.take().unwrap();
                self.reply(id, b"synced");
            }
            Event::SegmentReady { segment } => {
                (self.segment, self.log_offset) = (segment, 4);
                self.trace.push(format!("ready {}", segment.0));
                let id = self.created_reply.take().unwrap();
                self.reply(id, b"created");
            }
            Event::RoomReady { segment, bytes } => {
                self.trace.push(format!("room {} {bytes}", segment.0));
                let id = self.created_reply.take().unwrap();
                self.reply(id, b"extended");
            }
            Event::SegmentFailed { reason, .. } | Event::RoomFailed { reason } | Event::LogFailed { reason } => {
                self.trace.push(format!("failed {reason}"));
                if let Some(id) = self.created_reply.take().or(self.synced_reply.take()) {
                    self.reply(id, b"refused");
                }
            }
            Event::Dialed { token, connection } => {
                let asker = self.dialers[token as usize];
                self.reply(asker, if connection.is_ok() { b"dialed" } else { b"nobody" });
                if let Ok(connection) = connection {
                    assert!(self.clients.insert(connection, Client::default()).is_none());
                    self.reply(connection, format!("token {token}").as_bytes());
                }
            }
            Event::TickGap(gap) => self.gap_us_max = gap.us.max(self.gap_us_max),
            Event::ShutdownRequested => output.effects.push(Effect::Stop),
            other => self.file_event(other, &mut output.effects),
        }
    }

    fn file_event(&mut self, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::RunWritten { .. } => self.trace.push("run written".to_owned()),
            Event::RunRead { token, read } => {
                let text = read.map_or_else(|words| words, |bytes| format!("{} {}", bytes.len(), checksum(&bytes)));
                self.reply(self.readers[token as usize], format!("{token} {text}").as_bytes());
            }
            Event::RunsPublished => self.trace.push("runs published".to_owned()),
            Event::RunFailed { reason } => self.trace.push(format!("run failed {reason}")),
            Event::FileDurable { token } => self.file_reply(token, "durable"),
            Event::FileRead { token, read: Ok(bytes) } => self.file_reply(token, &String::from_utf8_lossy(&bytes)),
            Event::FileFailed { token, reason } | Event::FileRead { token, read: Err(reason) } => {
                self.file_reply(token, &reason);
            }
            other => self.handover_event(other, effects),
        }
    }

    fn handover_event(&mut self, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Stilled { connection } => self.clients.get_mut(&connection).unwrap().leaving = true,
            Event::HandedOver { connection, outcome } => {
                self.trace.push(format!("{outcome:?}"));
                match outcome {
                    HandOver::Gone => drop(self.clients.remove(&connection)),
                    HandOver::Full | HandOver::Nobody => effects.push(Effect::ResumeReceive { connection }),
                }
            }
            Event::Arrived { connection, state } => {
                let input = state.strip_prefix(b"state ").unwrap().to_vec();
                assert!(self.clients.insert(connection, Client { input, ..Client::default() }).is_none());
            }
            Event::ListeningStopped => self.trace.push("listening stopped".to_owned()),
            Event::ArrivalsEnded => self.trace.push("arrivals ended".to_owned()),
            other => panic!("nobody asked for {other:?}"),
        }
    }

    fn hop(&mut self, from: CoreId, message: Message) {
        match message {
            Message::Question(id, text) => {
                let answer = [b"core ", self.core.0.to_string().as_bytes(), b" heard ", &text].concat();
                self.hops.entry(from).or_default().push(Message::Answer(id, answer));
            }
            Message::Answer(id, text) => self.reply(id, &text),
            Message::Count(number) => {
                assert_eq!(number, self.counted, "in order and none lost");
                self.counted += 1;
            }
            Message::Batch(messages) => messages.into_iter().for_each(|message| self.hop(from, message)),
        }
    }

    /// Sends, pauses, resumes and closes as each client's output demands.
    fn flush(&mut self, effects: &mut Vec<Effect>) {
        for (&connection, client) in &mut self.clients {
            if !client.sending
                && let Some(buffer) = client.whole.take()
            {
                client.sending = true;
                effects.push(Effect::Send { connection, buffer });
            }
            if !client.sending && !client.output.is_empty() {
                let buffer = client.output.drain(..client.output.len().min(SEND_BYTES)).collect();
                client.sending = true;
                effects.push(Effect::Send { connection, buffer });
            }
            if client.leaving && !client.sending {
                client.leaving = false;
                let state = [b"state ", &client.input[..]].concat();
                effects.push(Effect::HandOver { connection, state });
            }
            if client.closing && client.output.is_empty() {
                effects.push(Effect::Close { connection });
                client.closing = false;
            }
            if client.paused != (client.output.len() > PAUSE_BYTES) {
                client.paused = !client.paused;
                self.pauses += u64::from(client.paused);
                effects.push(match client.paused {
                    true => Effect::PauseReceive { connection },
                    false => Effect::ResumeReceive { connection },
                });
            }
        }
    }
}

fn file_effect(token: u64, word: &str, rest: &str) -> Effect {
    let (name, rest) = rest.split_once(' ').unwrap();
    let name = name.to_owned();
    if word == "REPLACE" {
        return Effect::ReplaceFile { token, name, bytes: rest.as_bytes().to_vec() };
    }
    if word == "LOAD" {
        return Effect::ReadFile { token, name, bytes_max: rest.parse().unwrap() };
    }
    let (offset, text) = rest.split_once(' ').unwrap();
    Effect::WriteFile { token, name, offset: offset.parse().unwrap(), bytes: text.as_bytes().to_vec() }
}

/// Of bytes in their order.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(7, |sum: u64, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}

impl Machine for LineMachine {
    type Message = Message;

    fn tick(&mut self, input: TickInput<'_, Message>, output: &mut TickOutput<Message>) {
        self.ticks += 1;
        let now_us = input.now.monotonic_us;
        for event in input.events.drain(..) {
            self.event(event, input.received, now_us, output);
        }
        for (from, message) in input.hops.drain(..) {
            self.hop(from, message);
        }
        if let Some((id, deadline_us, started_at)) = self.timer {
            if now_us >= deadline_us {
                self.timer = None;
                let ticks = self.ticks - started_at;
                self.reply(id, format!("woke after {ticks} ticks").as_bytes());
            } else {
                output.deadline_us = Some(deadline_us);
            }
        }
        self.flush(&mut output.effects);
        // FLOOD is delivered one message per hop, to fill the mailbox.
        for (core, messages) in std::mem::take(&mut self.hops) {
            if messages.iter().any(|message| matches!(message, Message::Count(_))) {
                output.hops.extend(messages.into_iter().map(|message| (core, message)));
            } else {
                output.hops.push((core, Message::Batch(messages)));
            }
        }
        output.quiet_completions = self.quiet && self.clients.values().all(|client| client.output.is_empty());
    }
}
