//! Target `commands`: one reply per request in RESP2 and RESP3, errors change nothing, and the log replays to the same store.

use base::{CoreId, Database, LogOrdinal, SlotGroupId, Span};
use commands::{May, Outcome, Unit, execute, resume, timed_out};
use placement::slot_of;
use storage::log::format::GroupHeader;
use storage::log::record::RecordForm;
use storage::log::{LogBuffer, LogIdentity, LogWriter, Manifest, Replayed, recover};
use storage::{SlotGroup, Store};
use wire::registry::{CommandSpec, Resolved, resolve};
use wire::reply_parse::skip_reply;
use wire::{Arguments, Protocol, Reply};

use crate::source::Source;
use crate::vocabulary;

/// Most requests of one input.
const REQUESTS_MAX: usize = 200;
/// Values above this are left alone: they cost time, and say nothing that shorter ones do not.
const VALUE_BYTES_MAX: usize = 1 << 20;
const STORE_ID: [u8; 16] = [7; 16];
const IDENTITY: LogIdentity = LogIdentity { store_id: STORE_ID, incarnation: 1, core: 0, cores: 1 };
const DATABASES: [Database; 3] = [Database(0), Database(1), Database(15)];

/// A store with the state of its one client.
struct Client {
    store: Store,
    protocol: Protocol,
    database: Database,
    now_ms: u64,
    may_block: bool,
    several_databases: bool,
}

/// Input: requests, each a command and its words; between them what changes about the client.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let mut client = Client {
        store: Store::new(CoreId(0), 1, true),
        protocol: Protocol::Resp2,
        database: Database(0),
        now_ms: 1_700_000_000_000,
        may_block: true,
        several_databases: true,
    };
    for _ in 0..REQUESTS_MAX {
        if source.is_empty() {
            break;
        }
        client.change(source.byte());
        let spec = vocabulary::data_command(&mut source);
        let words = vocabulary::request(spec, &mut source);
        client.call(&words);
        if client.store.record_bytes() > VALUE_BYTES_MAX {
            break;
        }
    }
    client.check_log();
}

/// Makes the slot's group unless it is there: few are needed, and all 64 would take longer than the requests.
pub fn provide_group(store: &mut Store, group: SlotGroupId) {
    if store.group(group).is_none() {
        store.insert_group(Box::new(SlotGroup::new(group, CoreId(0))));
    }
}

impl Client {
    fn change(&mut self, choice: u8) {
        match choice {
            0 => self.protocol = Protocol::Resp2,
            1 => self.protocol = Protocol::Resp3,
            2..4 => self.database = DATABASES[usize::from(choice) - 1],
            4 => self.database = DATABASES[0],
            5..8 => self.now_ms += 1 << (choice * 3),
            8 => self.may_block = !self.may_block,
            9 => self.several_databases = !self.several_databases,
            _ => {}
        }
    }

    fn call(&mut self, words: &[Vec<u8>]) {
        let outcome = self.attempt(words, execute);
        if let Some(Outcome::Block(block)) = outcome {
            assert!(self.may_block && !block.keys.is_empty(), "who blocks waits for something");
            let again = self.attempt(words, resume);
            assert!(matches!(again, Some(Outcome::Block(_))), "nothing changed meanwhile");
            self.attempt(words, |spec, arguments, unit| {
                timed_out(spec, arguments, unit);
                Outcome::Done
            });
        }
    }

    /// Runs one request and looks at its reply; `None` when it names no command.
    fn attempt(
        &mut self,
        words: &[Vec<u8>],
        run: impl FnOnce(&'static CommandSpec, Arguments<'_>, &mut Unit<'_>) -> Outcome,
    ) -> Option<Outcome> {
        const EARLIER: &[u8] = b"earlier replies";
        words.iter().for_each(|word| provide_group(&mut self.store, slot_of(word).group()));
        let (bytes, spans) = laid_out(words);
        let arguments = Arguments::new(&bytes, &spans);
        let Resolved::Command(spec) = resolve(arguments) else { return None };
        let (changes, expired) = (self.store.changes(), self.store.expired());
        let mut out = EARLIER.to_vec();
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
        let outcome = run(spec, arguments, &mut unit);
        let reply = out.strip_prefix(EARLIER).expect("earlier replies stay as they are");
        if outcome == Outcome::Done {
            assert_eq!(skip_reply(reply), Ok(Some(reply.len())), "{arguments:?}: {}", reply.escape_ascii());
            assert!(self.protocol == Protocol::Resp3 || !b"_,#(=%~>!".contains(&reply[0]), "{arguments:?} in RESP2");
        } else {
            assert!(reply.is_empty(), "{arguments:?}: who blocks has not answered");
        }
        if outcome != Outcome::Done || reply[0] == b'-' {
            let made = (self.store.changes() - changes) - (self.store.expired() - expired);
            assert_eq!(made, 0, "{arguments:?} is refused and changes something");
        }
        assert!(spec.is_write() || self.store.changes() - changes == self.store.expired() - expired, "{arguments:?}");
        Some(outcome)
    }

    /// What was logged, written as a segment and recovered, is the same store.
    fn check_log(&mut self) {
        let log = std::mem::take(self.store.log_mut().expect("this store logs"));
        let mut recovered = Store::new(CoreId(0), 1, false);
        let segment = segment(log);
        let manifest = Manifest {
            store_id: STORE_ID,
            incarnation: 1,
            cores: 1,
            serving: true,
            closed: Vec::new(),
            cuts: Vec::new(),
        };
        let names = [LogWriter::first_segment(&IDENTITY, 0).file_name()];
        let mut apply = |replayed: Replayed<'_>| match replayed {
            Replayed::Change { slot, database, key, version, change, .. } => {
                provide_group(&mut recovered, slot.group());
                let key = recovered.key(key, database, slot);
                recovered.replay(&key, &change, version, false)
            }
            Replayed::Ahead { .. } => Ok(()),
            Replayed::Run { .. } | Replayed::Loaded { .. } | Replayed::Versions { .. } | Replayed::Known { .. } => {
                Err("there is no run".to_owned())
            }
            Replayed::Forget { .. } => Err("no data command forgets a slot".to_owned()),
            Replayed::Clear { .. } => Err("no data command clears a database".to_owned()),
        };
        let mut read = |_: &str, bytes: &mut Vec<u8>| {
            bytes.clone_from(&segment);
            Ok(())
        };
        let recovery = recover(&manifest, &names, &|_, _| u64::MAX, &mut read, &mut apply);
        let recovery = recovery.expect("what was written is read");
        assert!(recovery.torn.is_empty());
        for database in DATABASES {
            assert_eq!(contents(&recovered, database), contents(&self.store, database));
        }
    }
}

/// The words as the parser leaves them: behind each other, with their spans.
fn laid_out(words: &[Vec<u8>]) -> (Vec<u8>, Vec<Span>) {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    for word in words {
        spans.push(Span { start: bytes.len() as u32, len: word.len() as u32 });
        bytes.extend_from_slice(word);
    }
    (bytes, spans)
}

/// A segment that holds `log` as its one group.
fn segment(log: LogBuffer) -> Vec<u8> {
    let header = LogWriter::first_segment(&IDENTITY, 0);
    let mut bytes = header.encode().to_vec();
    if !log.is_empty() {
        let group = GroupHeader {
            record_bytes: log.record_bytes() as u32,
            records: log.records(),
            ordinal: LogOrdinal(1),
            durable: LogOrdinal(0),
            identity: header.identity(),
            unix_ms: 1,
            form: RecordForm::Short,
        };
        let mut group_bytes = log.into_bytes();
        group.seal(&mut group_bytes);
        bytes.extend_from_slice(&group_bytes);
    }
    bytes
}

/// A key with its version, expiry and value.
pub type Content = (Vec<u8>, u64, Option<u64>, Vec<u8>);

/// Every key, sorted.
pub fn contents(store: &Store, database: Database) -> Vec<Content> {
    let keys = store.count(database).keys;
    let mut all = Vec::new();
    if keys == 0 {
        return all;
    }
    let end = base::SLOT_GROUP_COUNT;
    let rest = store.scan(storage::ScanCursor(0), (usize::MAX, end), database, 0, |record| {
        let value = match record.value {
            storage::Value::String { text, .. } => [b"s", &*text.whole()].concat(),
            storage::Value::Cold => unreachable!("nothing leaves memory here"),
            storage::Value::List(list) => {
                let mut encoded = b"l".to_vec();
                list.encode(&mut encoded);
                encoded
            }
        };
        all.push((record.key.to_vec(), record.version.0, record.expire_at_ms, value));
    });
    assert!(rest.is_none(), "one step visits everything");
    all.sort();
    all.dedup(); // A walk may show an entry twice.
    // A log may hold a deadline at the beginning of time, which no clock reading is before.
    let hidden = keys - all.len() as u64;
    assert!(hidden == 0 || store.count(database).expiring >= hidden, "{hidden} keys are counted and not found");
    all
}
