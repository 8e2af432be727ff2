//! A store with all slot groups and a clock that tests set; commands in, replies out, both as readable text.

use base::{CoreId, Database, SlotGroupId, Span};
use storage::{SlotGroup, Store};
use wire::registry::{CommandSpec, Resolved, resolve};
use wire::{Arguments, Protocol, Reply};

use crate::{May, Outcome, Unit, execute, resume, timed_out};

/// One client's view of a store.
pub(crate) struct Harness {
    pub(crate) store: Store,
    pub(crate) now_ms: u64,
    pub(crate) database: Database,
    pub(crate) protocol: Protocol,
    pub(crate) may_block: bool,
    pub(crate) several_databases: bool,
}

/// A request as the parser leaves it.
struct Request {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl Request {
    fn new(words: &[&[u8]]) -> Request {
        let mut request = Request { bytes: Vec::new(), spans: Vec::new() };
        for word in words {
            request.spans.push(Span { start: request.bytes.len() as u32, len: word.len() as u32 });
            request.bytes.extend_from_slice(word);
        }
        request
    }
}

impl Harness {
    pub(crate) fn new() -> Harness {
        let mut store = Store::new(CoreId(0), 1, true);
        for id in SlotGroupId::all() {
            store.insert_group(Box::new(SlotGroup::new(id, CoreId(0))));
        }
        let now_ms = 1_700_000_000_000;
        let (database, protocol) = (Database(0), Protocol::Resp2);
        Harness { store, now_ms, database, protocol, may_block: true, several_databases: true }
    }

    pub(crate) fn with_unit<T>(
        &mut self,
        words: &[&[u8]],
        run: impl FnOnce(Arguments<'_>, &mut Unit<'_>) -> T,
    ) -> (T, Vec<u8>) {
        let request = Request::new(words);
        let mut out = b"earlier replies".to_vec();
        let earlier = out.len();
        let mut unit = Unit {
            store: &mut self.store,
            reply: Reply::new(&mut out, self.protocol),
            now_ms: self.now_ms,
            database: self.database,
            several_databases: self.several_databases,
            first_key: None,
            random: 7,
            may: May { block: self.may_block, stage: false },
            long: &[],
            refused: &[],
        };
        let result = run(Arguments::new(&request.bytes, &request.spans), &mut unit);
        (result, out.split_off(earlier))
    }

    /// Execute one command as the shard does.
    pub(crate) fn call(&mut self, words: &[&[u8]]) -> (Outcome, Vec<u8>) {
        self.with_unit(words, |arguments, unit| match resolve(arguments) {
            Resolved::Command(spec) => execute(spec, arguments, unit),
            Resolved::WrongArity(spec) => {
                wire::error::wrong_arity(&mut unit.reply, spec.full_name);
                Outcome::Done
            }
            other => panic!("no such command: {other:?}"),
        })
    }

    fn line<T>(
        &mut self,
        line: &str,
        run: impl FnOnce(&'static CommandSpec, Arguments<'_>, &mut Unit<'_>) -> T,
    ) -> (T, Vec<u8>) {
        let words: Vec<Vec<u8>> = split(line);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        self.with_unit(&words, |arguments, unit| match resolve(arguments) {
            Resolved::Command(spec) => run(spec, arguments, unit),
            other => panic!("no such command: {other:?}"),
        })
    }

    /// What a blocked command answers when its time is over.
    pub(crate) fn time_out(&mut self, line: &str) -> String {
        show(&self.line(line, timed_out).1)
    }

    /// What a blocked command answers when one of its keys changed.
    pub(crate) fn resume(&mut self, line: &str) -> String {
        let (outcome, reply) = self.line(line, resume);
        self.describe(outcome, &reply)
    }

    /// The reply of a command line in one line; `blocks on …` when it blocks.
    pub(crate) fn run(&mut self, line: &str) -> String {
        let words: Vec<Vec<u8>> = split(line);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let (outcome, reply) = self.call(&words);
        self.describe(outcome, &reply)
    }

    /// The reply of a request of any bytes.
    pub(crate) fn reply(&mut self, words: &[&[u8]]) -> String {
        let (outcome, reply) = self.call(words);
        self.describe(outcome, &reply)
    }

    fn describe(&self, outcome: Outcome, reply: &[u8]) -> String {
        let Outcome::Block(block) = outcome else { return show(reply) };
        assert!(reply.is_empty(), "who blocks has not answered");
        let deadline = block.deadline_ms.map_or("ever".to_string(), |at_ms| format!("+{}", at_ms - self.now_ms));
        let keys: Vec<String> = block.keys.iter().map(|key| key.escape_ascii().to_string()).collect();
        format!("blocks on {} for {deadline}", keys.join(" "))
    }

    /// Run a transcript: lines of `command => reply`; `#` begins a comment.
    #[track_caller]
    pub(crate) fn transcript(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (command, expected) = line.split_once(" => ").expect("a line is `command => reply`");
            assert_eq!(self.run(command.trim()), expected.trim(), "{command}");
        }
    }
}

/// Run a transcript on a new store.
#[track_caller]
pub(crate) fn transcript(text: &str) {
    Harness::new().transcript(text);
}

/// Words of a line as redis-cli splits them: quotes and escapes.
fn split(line: &str) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut rest = line.as_bytes().iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte == b' ' {
            continue;
        }
        let mut word = Vec::new();
        if byte != b'"' {
            word.push(byte);
            while let Some(byte) = rest.next_if(|byte| *byte != b' ') {
                word.push(byte);
            }
            words.push(word);
            continue;
        }
        loop {
            match rest.next().expect("a quote ends") {
                b'"' => break,
                b'\\' => word.push(match rest.next().expect("an escape has a letter") {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b'x' => {
                        let digits = [rest.next().expect("two digits"), rest.next().expect("two digits")];
                        let digits = std::str::from_utf8(&digits).expect("digits are ASCII");
                        u8::from_str_radix(digits, 16).expect("hexadecimal digits")
                    }
                    other => other,
                }),
                byte => word.push(byte),
            }
        }
        words.push(word);
    }
    words
}

/// A reply in one line: `+OK`, `:1`, `"bulk"`, `nil`, `[a, b]`, `-ERR …`; RESP3's nulls and maps look like themselves.
fn show(reply: &[u8]) -> String {
    let mut rest = reply;
    let text = show_one(&mut rest);
    assert!(rest.is_empty(), "one reply only, and then {}", rest.escape_ascii());
    text
}

fn show_one(rest: &mut &[u8]) -> String {
    let end = rest.windows(2).position(|pair| pair == b"\r\n").expect("a line ends");
    let line = String::from_utf8_lossy(&rest[1..end]).into_owned();
    let marker = rest[0];
    *rest = &rest[end + 2..];
    match (marker, line.as_str()) {
        (b'$', "-1") => "nil".to_string(),
        (b'*', "-1") => "nil-array".to_string(),
        (b'$', len) => {
            let len: usize = len.parse().expect("a length");
            let text = format!("\"{}\"", rest[..len].escape_ascii());
            assert_eq!(&rest[len..len + 2], b"\r\n");
            *rest = &rest[len + 2..];
            text
        }
        (b'*', count) => {
            let count: usize = count.parse().expect("a count");
            let parts: Vec<String> = (0..count).map(|_| show_one(rest)).collect();
            format!("[{}]", parts.join(", "))
        }
        (b'%', count) => {
            let count: usize = count.parse().expect("a count");
            let parts: Vec<String> = (0..count).map(|_| format!("{}: {}", show_one(rest), show_one(rest))).collect();
            format!("{{{}}}", parts.join(", "))
        }
        _ => format!("{}{line}", marker as char),
    }
}
