//! The bytes of a request: everything that does not depend on a draw is rendered once, before the run.

use std::ops::RangeInclusive;

use base::rng::Rng;

use super::keys::{KeyChooser, KeyForm};
use super::plan::{Dialect, LoadPlan, Operation};
use super::route::SlotSet;

/// Bytes that values are cut from; random letters, so that no server gains from repetition.
const VALUE_POOL_BYTES: usize = 64 << 10;

#[derive(Clone, Debug)]
enum Segment {
    Literal(Vec<u8>),
    Key,
    /// Exactly so many bytes; their length stands in the literal before.
    FixedValue(usize),
    /// A drawn length in digits, CR LF, then so many bytes.
    SizedValue,
}

/// Everything a request draws: keys, values, and the operation itself.
#[derive(Clone, Debug)]
struct Draws {
    rng: Rng,
    keys: KeyChooser,
    key_form: KeyForm,
    value_bytes: RangeInclusive<usize>,
    value_pool: Vec<u8>,
}

/// Renders the requests of one generator thread.
#[derive(Clone, Debug)]
pub struct Requests {
    draws: Draws,
    get: Vec<Segment>,
    set: Vec<Segment>,
    /// Running sums of the weights, the operations, and their templates.
    mix: Vec<(u64, Operation, Vec<Segment>)>,
}

impl Requests {
    /// The requests of `plan` for one thread; `keys` is that thread's chooser.
    pub fn new(plan: &LoadPlan, keys: KeyChooser, seed: u64) -> Requests {
        let mut rng = Rng::new(seed);
        let largest = *plan.value_bytes.end();
        let value_pool = (0..VALUE_POOL_BYTES + largest).map(|_| b'a' + rng.below(26) as u8).collect();
        let mut sum = 0;
        let mix = plan
            .mix
            .iter()
            .map(|(weight, operation)| {
                sum += u64::from(*weight);
                (sum, operation.clone(), template(plan, operation))
            })
            .collect();
        Requests {
            get: template(plan, &Operation::Get),
            set: template(plan, &Operation::Set),
            mix,
            draws: Draws {
                rng,
                keys,
                key_form: KeyForm::new(&plan.keys),
                value_bytes: plan.value_bytes.clone(),
                value_pool,
            },
        }
    }

    /// Appends the next request of the mix to `out`, for a connection whose server owns `slots` (`None`: all).
    /// `follow_up` is the key of a read-modify-write whose write is due on that connection; taken or set here.
    pub fn append(&mut self, out: &mut Vec<u8>, slots: Option<&SlotSet>, follow_up: &mut Option<u64>) {
        let draws = &mut self.draws;
        if let Some(key) = follow_up.take() {
            draws.fill(&self.set, out, slots, Some(key));
            return;
        }
        let (_, operation, segments) = match self.mix.as_slice() {
            [only] => only,
            mix => {
                let sum = mix.last().expect("a checked plan has an operation").0;
                let ticket = draws.rng.below(sum);
                let index = mix.partition_point(|(running, _, _)| *running <= ticket);
                &mix[index]
            }
        };
        match operation {
            Operation::Insert => {
                let key = draws.keys.insert();
                draws.fill(segments, out, None, Some(key));
            }
            Operation::ReadModifyWrite => *follow_up = draws.fill(&self.get, out, slots, None),
            Operation::MultiGetRun(longest) => draws.fill_run(out, *longest),
            _ => {
                draws.fill(segments, out, slots, None);
            }
        }
    }

    /// Appends `SET key value` for exactly this key (preload).
    pub fn append_set(&mut self, out: &mut Vec<u8>, key: u64) {
        self.draws.fill(&self.set, out, None, Some(key));
    }

    /// A uniform number in `0.0..1.0` from the thread's generator (gaps of an open loop).
    pub fn unit(&mut self) -> f64 {
        self.draws.rng.unit()
    }
}

impl Draws {
    /// Appends the segments; `key` is used where given, drawn where not. Returns the last key.
    fn fill(
        &mut self,
        segments: &[Segment],
        out: &mut Vec<u8>,
        slots: Option<&SlotSet>,
        key: Option<u64>,
    ) -> Option<u64> {
        let mut last = key;
        for segment in segments {
            match segment {
                Segment::Literal(bytes) => out.extend_from_slice(bytes),
                Segment::Key => match key {
                    Some(number) => self.key_form.write(out, number),
                    None => last = Some(self.draw_key(out, slots)),
                },
                Segment::FixedValue(bytes) => self.put_value(out, *bytes),
                Segment::SizedValue => {
                    let (low, high) = (*self.value_bytes.start(), *self.value_bytes.end());
                    let bytes = low + self.rng.below((high - low) as u64 + 1) as usize;
                    out.extend_from_slice(format!("{bytes}\r\n").as_bytes());
                    self.put_value(out, bytes);
                }
            }
        }
        last
    }

    /// Appends a key that `slots` owns and returns its number.
    fn draw_key(&mut self, out: &mut Vec<u8>, slots: Option<&SlotSet>) -> u64 {
        let start = out.len();
        loop {
            let number = self.keys.draw(&mut self.rng);
            self.key_form.write(out, number);
            if slots.is_none_or(|slots| slots.owns(&out[start..])) {
                return number;
            }
            out.truncate(start);
        }
    }

    /// `MGET` of a run of 1 to `longest` keys that begins at a drawn key.
    fn fill_run(&mut self, out: &mut Vec<u8>, longest: usize) {
        let length = 1 + self.rng.below(longest as u64);
        let first = self.keys.draw(&mut self.rng);
        let existing = self.keys.existing();
        out.extend_from_slice(format!("*{}\r\n$4\r\nMGET\r\n", length + 1).as_bytes());
        for step in 0..length {
            out.extend_from_slice(format!("${}\r\n", self.key_form.bytes()).as_bytes());
            self.key_form.write(out, (first + step) % existing);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn put_value(&mut self, out: &mut Vec<u8>, bytes: usize) {
        let start = self.rng.below(VALUE_POOL_BYTES as u64) as usize;
        out.extend_from_slice(&self.value_pool[start..start + bytes]);
    }
}

fn template(plan: &LoadPlan, operation: &Operation) -> Vec<Segment> {
    const KEY: &str = "__key__";
    const VALUE: &str = "__value__";
    let words: Vec<String> = match operation {
        Operation::Get | Operation::ReadModifyWrite => ["GET", KEY].map(String::from).to_vec(),
        Operation::Set | Operation::Insert => ["SET", KEY, VALUE].map(String::from).to_vec(),
        Operation::Append => ["APPEND", KEY, VALUE].map(String::from).to_vec(),
        Operation::Incr => ["INCR", KEY].map(String::from).to_vec(),
        Operation::Del => ["DEL", KEY].map(String::from).to_vec(),
        Operation::MultiGet(keys) => {
            std::iter::once("MGET").chain(std::iter::repeat_n(KEY, *keys)).map(String::from).collect()
        }
        Operation::MultiGetRun(_) => Vec::new(),
        Operation::Custom(words) => words.clone(),
    };
    let mut writer = TemplateWriter { plan, segments: Vec::new(), literal: Vec::new() };
    match plan.dialect {
        Dialect::Memcached => writer.memcached(&words),
        Dialect::Resp2 | Dialect::Resp3 => writer.resp(&words),
    }
    writer.close();
    writer.segments
}

struct TemplateWriter<'a> {
    plan: &'a LoadPlan,
    segments: Vec<Segment>,
    literal: Vec<u8>,
}

impl TemplateWriter<'_> {
    fn resp(&mut self, words: &[String]) {
        self.text(&format!("*{}\r\n", words.len()));
        for word in words {
            match word.as_str() {
                "__key__" => {
                    self.text(&format!("${}\r\n", self.plan.keys.bytes));
                    self.put(Segment::Key);
                }
                "__value__" => {
                    self.text("$");
                    self.value();
                }
                word => self.text(&format!("${}\r\n{word}", word.len())),
            }
            self.text("\r\n");
        }
    }

    /// `get <key>` or `set <key> 0 0 <bytes>`, CR LF, data.
    fn memcached(&mut self, words: &[String]) {
        let [verb, _key, rest @ ..] = words else { return };
        self.text(&format!("{} ", verb.to_ascii_lowercase()));
        self.put(Segment::Key);
        if !rest.is_empty() {
            self.text(" 0 0 ");
            self.value();
        }
        self.text("\r\n");
    }

    /// The length of a value in digits, CR LF, the value.
    fn value(&mut self) {
        let (low, high) = (*self.plan.value_bytes.start(), *self.plan.value_bytes.end());
        if low == high {
            self.text(&format!("{low}\r\n"));
            self.put(Segment::FixedValue(low));
        } else {
            self.put(Segment::SizedValue);
        }
    }

    fn text(&mut self, text: &str) {
        self.literal.extend_from_slice(text.as_bytes());
    }

    fn put(&mut self, segment: Segment) {
        self.close();
        self.segments.push(segment);
    }

    fn close(&mut self) {
        if !self.literal.is_empty() {
            self.segments.push(Segment::Literal(std::mem::take(&mut self.literal)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Target;
    use super::*;

    fn plan(operation: Operation) -> LoadPlan {
        let mut plan = LoadPlan::new(Target::Tcp("127.0.0.1:1".into()));
        plan.mix = vec![(1, operation)];
        plan.keys.count = 1;
        plan.value_bytes = 3..=3;
        plan
    }

    fn rendered(plan: &LoadPlan, requests: usize) -> String {
        let mut renderer = Requests::new(plan, KeyChooser::new(&plan.keys), plan.seed);
        let (mut out, mut follow_up) = (Vec::new(), None);
        for _ in 0..requests {
            renderer.append(&mut out, None, &mut follow_up);
        }
        String::from_utf8(out).expect("requests of letters and digits")
    }

    #[test]
    fn get_and_set_are_the_bytes_a_client_sends() {
        assert_eq!(rendered(&plan(Operation::Get), 1), "*2\r\n$3\r\nGET\r\n$15\r\nkey:00000000000\r\n");
        let set = rendered(&plan(Operation::Set), 1);
        assert!(set.starts_with("*3\r\n$3\r\nSET\r\n$15\r\nkey:00000000000\r\n$3\r\n"), "{set}");
        assert_eq!(set.len(), "*3\r\n$3\r\nSET\r\n$15\r\nkey:00000000000\r\n$3\r\nabc\r\n".len());
    }

    #[test]
    fn memcached_has_its_own_words() {
        let mut get = plan(Operation::Get);
        get.dialect = Dialect::Memcached;
        assert_eq!(rendered(&get, 1), "get key:00000000000\r\n");
        get.mix = vec![(1, Operation::Set)];
        let set = rendered(&get, 1);
        assert!(set.starts_with("set key:00000000000 0 0 3\r\n") && set.ends_with("\r\n"), "{set}");
        assert_eq!(set.len(), "set key:00000000000 0 0 3\r\nabc\r\n".len());
    }

    #[test]
    fn a_size_range_writes_the_length_it_drew() {
        let mut plan = plan(Operation::Set);
        plan.value_bytes = 1..=9;
        for line in rendered(&plan, 50).split("*3\r\n").skip(1) {
            let words: Vec<&str> = line.split("\r\n").collect();
            assert_eq!(words[4], format!("${}", words[5].len()));
        }
    }

    #[test]
    fn read_modify_write_reads_then_writes_the_same_key() {
        let mut plan = plan(Operation::ReadModifyWrite);
        plan.keys.count = 1000;
        let text = rendered(&plan, 2);
        let words: Vec<&str> = text.split("\r\n").collect();
        assert_eq!((words[2], words[7]), ("GET", "SET"));
        assert_eq!(words[4], words[9]);
    }

    #[test]
    fn weights_decide_the_mix() {
        let mut plan = plan(Operation::Get);
        plan.mix = vec![(9, Operation::Get), (1, Operation::Incr)];
        let text = rendered(&plan, 10_000);
        let increments = text.matches("INCR").count();
        assert!((800..1200).contains(&increments), "{increments} of 10,000 at weight 1 of 10");
    }

    #[test]
    fn a_custom_command_replaces_its_placeholders() {
        let words = ["LPUSH", "__key__", "__value__", "tail"].map(String::from).to_vec();
        let text = rendered(&plan(Operation::Custom(words)), 1);
        assert!(text.starts_with("*4\r\n$5\r\nLPUSH\r\n$15\r\nkey:00000000000\r\n$3\r\n"), "{text}");
        assert!(text.ends_with("\r\n$4\r\ntail\r\n"), "{text}");
    }
}
