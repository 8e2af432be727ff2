//! Sequences of commands: what one seed stands for.

use base::rng::{Rng, mix};

use wire::registry::{self, Spread};

use crate::catalogue::{CATALOGUE, Entry, Family};
use crate::template::{Filler, Part, parse};
use crate::values::{BOUNDARIES, Pool, Slot, pick};

/// Which server, or the model, says what is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// Redis 7.0.
    Redis,
    /// A newer Valkey.
    Valkey,
    /// The model of this crate.
    Model,
}

/// One command on one of a sequence's two connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// 0 or 1.
    pub connection: usize,
    /// Name and arguments.
    pub arguments: Vec<Vec<u8>>,
}

impl Step {
    /// Whether it only marks the end of its sequence.
    pub fn is_sentinel(&self) -> bool {
        self.arguments.get(1).is_some_and(|argument| argument.starts_with(b"sentinel-"))
    }

    /// The command's name in capitals.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.arguments[0]).to_ascii_uppercase()
    }
}

/// Commands whose replies must be those of the judge.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// What it was generated from.
    pub seed: u64,
    /// Who says what is right.
    pub judge: Judge,
    /// Whether it needs the whole server for itself.
    pub exclusive: bool,
    /// The node of a cluster that owns its keys.
    pub node: usize,
    /// The commands in order; a change of connection waits for the replies so far.
    pub steps: Vec<Step>,
}

/// The hash tags that a sequence of a cluster may use: all on one node, in different slots.
#[derive(Clone, Debug)]
pub struct Tags {
    /// Which node.
    pub node: usize,
    /// One per slot, at least two.
    pub same_node: Vec<String>,
}

/// Of 100 sequences, those for the model.
const CONDITIONAL_KINDS: std::ops::Range<u64> = 2..12;

/// Generates sequences from seeds.
pub struct Generator {
    entries: Vec<(Entry, Vec<Part>)>,
    now_s: i64,
    has_valkey: bool,
}

impl Generator {
    /// A generator whose absolute expiries lie around `now_s`; without a Valkey nothing is generated for it.
    pub fn new(now_s: i64, has_valkey: bool) -> Generator {
        let entries = CATALOGUE.iter().map(|entry| (*entry, parse(entry.template))).collect();
        Generator { entries, now_s, has_valkey }
    }

    /// The sequence of `seed`; with `tags` its keys belong to one node of a cluster.
    pub fn sequence(&self, seed: u64, tags: Option<&Tags>) -> Sequence {
        let mut rng = Rng::new(seed);
        let mut pool = self.pool(seed, tags, &mut rng);
        let kind = rng.below(100);
        if CONDITIONAL_KINDS.contains(&kind) {
            pool = pool.without_foreign_key();
        }
        let mut maker = Maker { generator: self, rng: &mut rng, pool: &pool, steps: Vec::new() };
        let (judge, exclusive) = match kind {
            0..=1 => {
                maker.global();
                (Judge::Redis, true)
            }
            kind if CONDITIONAL_KINDS.contains(&kind) => {
                maker.conditional();
                (Judge::Model, false)
            }
            12..=25 => {
                maker.transaction();
                (Judge::Redis, false)
            }
            26..=27 if self.has_valkey => {
                maker.valkey();
                (Judge::Valkey, false)
            }
            _ => {
                maker.plain();
                (Judge::Redis, false)
            }
        };
        Sequence { seed, judge, exclusive, node: node_of(tags), steps: maker.steps }
    }

    /// Every numeric argument of every command at every boundary: one short sequence for each.
    pub fn boundary_table(&self, tags: Option<&Tags>) -> Vec<Sequence> {
        let mut table = Vec::new();
        for (index, (entry, parts)) in self.entries.iter().enumerate() {
            if matches!(entry.family, Family::Conditional | Family::Connection | Family::Newer | Family::Transaction) {
                continue;
            }
            for boundary in BOUNDARIES {
                if boundary_is_unfit(entry, boundary) {
                    continue;
                }
                for variant in 0..6 {
                    let seed = mix(index as u64) ^ mix(0x0B0D ^ table.len() as u64);
                    table.push(self.boundary_sequence(seed, entry, parts, boundary, variant, tags));
                }
            }
        }
        table
    }

    fn boundary_sequence(
        &self,
        seed: u64,
        entry: &Entry,
        parts: &[Part],
        boundary: &str,
        variant: usize,
        tags: Option<&Tags>,
    ) -> Sequence {
        let mut rng = Rng::new(seed);
        let pool = self.pool(seed, tags, &mut rng);
        let mut maker = Maker { generator: self, rng: &mut rng, pool: &pool, steps: Vec::new() };
        if entry.family == Family::Global {
            maker.words(0, "FLUSHALL");
        }
        maker.setup();
        let mut arguments = Vec::new();
        let forced = Some((variant % 3, boundary.as_bytes()));
        Filler { rng: maker.rng, pool: &pool, forced, numeric_seen: 0 }.fill(parts, &mut arguments);
        if is_fit(&arguments) {
            maker.push(0, arguments);
        }
        for key in pool.keys() {
            maker.steps.push(Step { connection: 0, arguments: vec![b"TYPE".to_vec(), key.clone()] });
        }
        maker.epilogue();
        let exclusive = entry.family == Family::Global;
        Sequence { seed, judge: Judge::Redis, exclusive, node: node_of(tags), steps: maker.steps }
    }

    fn pool(&self, seed: u64, tags: Option<&Tags>, rng: &mut Rng) -> Pool {
        let unique = format!("{seed:x}");
        let Some(tags) = tags else { return Pool::new(&unique, None, self.now_s) };
        let first = rng.below(tags.same_node.len() as u64) as usize;
        let second = (first + 1) % tags.same_node.len();
        Pool::new(&unique, Some((&tags.same_node[first], &tags.same_node[second])), self.now_s)
    }
}

/// Collects the steps of one sequence.
struct Maker<'a> {
    generator: &'a Generator,
    rng: &'a mut Rng,
    pool: &'a Pool,
    steps: Vec<Step>,
}

impl Maker<'_> {
    fn plain(&mut self) {
        self.setup();
        let main = *pick(self.rng, &[Family::String, Family::Bit, Family::Keyspace, Family::List]);
        let length = 8 + self.rng.below(13);
        for _ in 0..length {
            let family = self.family_near(main);
            self.command(0, family);
        }
        self.epilogue();
    }

    fn transaction(&mut self) {
        let main = *pick(self.rng, &[Family::String, Family::Bit, Family::Keyspace, Family::List]);
        self.setup();
        if self.rng.chance(7, 10) {
            self.named(0, "WATCH");
        }
        self.some_commands(1, main, 2);
        self.some_commands(0, main, 2);
        self.words(0, "MULTI");
        let length = 1 + self.rng.below(6);
        for _ in 0..length {
            match self.rng.below(30) {
                0 => self.command(0, Family::Transaction),
                1 => self.command(0, Family::Connection),
                _ => {
                    let family = self.family_near(main);
                    self.command(0, family);
                }
            }
        }
        self.some_commands(1, main, 1);
        match self.rng.below(20) {
            0..=15 => self.words(0, "EXEC"),
            16..=18 => self.words(0, "DISCARD"),
            _ => {}
        }
        self.some_commands(0, main, 3);
        self.some_commands(1, main, 1);
        if self.rng.chance(1, 10) {
            self.command(0, Family::Transaction);
        }
        self.epilogue();
    }

    fn conditional(&mut self) {
        let length = 8 + self.rng.below(10);
        for _ in 0..length {
            self.command(0, Family::Conditional);
        }
        self.sentinels();
    }

    fn valkey(&mut self) {
        self.setup();
        for _ in 0..10 {
            let family = *pick(self.rng, &[Family::Newer, Family::Newer, Family::String]);
            self.command(0, family);
        }
        self.epilogue();
    }

    fn global(&mut self) {
        self.words(0, "FLUSHALL");
        self.setup();
        let length = 8 + self.rng.below(13);
        for _ in 0..length {
            let family = *pick(
                self.rng,
                &[Family::Global, Family::Global, Family::Keyspace, Family::String, Family::List, Family::Connection],
            );
            self.command(0, family);
        }
        self.epilogue();
    }

    fn family_near(&mut self, main: Family) -> Family {
        match self.rng.below(20) {
            0..=12 => main,
            13 => Family::Connection,
            _ => *pick(self.rng, &[Family::String, Family::Bit, Family::Keyspace, Family::List]),
        }
    }

    /// Something to work on: without it most commands would only meet missing keys.
    fn setup(&mut self) {
        for name in ["SET", "RPUSH", "MSET"] {
            if self.rng.chance(2, 3) {
                self.named(0, name);
            }
        }
    }

    /// Brings both connections back to where the next sequence expects them.
    fn epilogue(&mut self) {
        for connection in [0, 1] {
            let used = self.steps.iter().filter(|step| step.connection == connection);
            let changed =
                used.into_iter().any(|step| matches!(step.name().as_str(), "MULTI" | "WATCH" | "SELECT" | "EXEC"));
            if changed {
                self.words(connection, "DISCARD");
                self.words(connection, "UNWATCH");
                self.words(connection, "SELECT 0");
            }
        }
        self.sentinels();
    }

    /// A last command on each connection whose reply nothing else gives: a reply too many or too few shows here.
    fn sentinels(&mut self) {
        for connection in [0, 1] {
            if self.steps.iter().any(|step| step.connection == connection) {
                let text = format!("sentinel-{}-{}", self.steps.len(), self.pool.unique());
                self.push(connection, vec![b"ECHO".to_vec(), text.into_bytes()]);
            }
        }
    }

    fn some_commands(&mut self, connection: usize, main: Family, most: u64) {
        for _ in 0..self.rng.below(most + 1) {
            let family = self.family_near(main);
            self.command(connection, family);
        }
    }

    fn words(&mut self, connection: usize, line: &str) {
        let arguments = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        self.steps.push(Step { connection, arguments });
    }

    fn named(&mut self, connection: usize, name: &str) {
        let generator = self.generator;
        let candidates: Vec<&(Entry, Vec<Part>)> = generator
            .entries
            .iter()
            .filter(|(entry, _)| entry.name() == name && entry.family != Family::Conditional)
            .collect();
        let (_, parts) = candidates[self.rng.below(candidates.len() as u64) as usize];
        self.template(connection, parts, Family::String);
    }

    fn command(&mut self, connection: usize, family: Family) {
        let generator = self.generator;
        let of_family = || generator.entries.iter().filter(move |(entry, _)| entry.family == family);
        let total: u64 = of_family().map(|(entry, _)| entry.weight).sum();
        let mut left = self.rng.below(total);
        for (entry, parts) in of_family() {
            if left < entry.weight {
                self.template(connection, parts, family);
                return;
            }
            left -= entry.weight;
        }
    }

    fn template(&mut self, connection: usize, parts: &[Part], family: Family) {
        let mut arguments = Vec::new();
        Filler { rng: self.rng, pool: self.pool, forced: None, numeric_seen: 0 }.fill(parts, &mut arguments);
        if family != Family::Conditional || self.rng.chance(1, 3) {
            self.mutate(&mut arguments, family);
        }
        self.push(connection, arguments);
    }

    fn push(&mut self, connection: usize, arguments: Vec<Vec<u8>>) {
        self.steps.push(Step { connection, arguments });
    }

    /// Wrong arity, wrong values, wrong options: rarely, so that most commands still do something.
    fn mutate(&mut self, arguments: &mut Vec<Vec<u8>>, family: Family) {
        let name = String::from_utf8_lossy(&arguments[0]).to_ascii_uppercase();
        match self.rng.below(40) {
            0 if arguments.len() > 1 => {
                arguments.pop();
            }
            // An argument too many may be a key of another slot, and the model knows no slots.
            1 if !is_blocking(&name) && family != Family::Conditional => {
                let mut extra = Vec::new();
                self.pool.fill(Slot::Element, self.rng, &mut extra);
                arguments.append(&mut extra);
            }
            2 => arguments.truncate(1),
            3 if arguments.len() > 2 && is_free_to_replace(&name) && family != Family::Conditional => {
                let place = 2 + self.rng.below(arguments.len() as u64 - 2) as usize;
                let slot = *pick(self.rng, &[Slot::Integer, Slot::Nonsense, Slot::Float]);
                let mut replacement = Vec::new();
                self.pool.fill(slot, self.rng, &mut replacement);
                arguments[place] = replacement.remove(0);
            }
            _ => {}
        }
    }
}

fn node_of(tags: Option<&Tags>) -> usize {
    tags.map_or(0, |tags| tags.node)
}

/// Whether `name` may wait.
fn is_blocking(name: &str) -> bool {
    matches!(name, "BLPOP" | "BRPOP" | "BLMOVE" | "BRPOPLPUSH" | "BLMPOP")
}

/// Whether any argument may become any number: not where that would block, allocate 512 MiB, or expire during the run.
fn is_free_to_replace(name: &str) -> bool {
    let bounded = matches!(
        name,
        "SET" | "SETEX" | "PSETEX" | "GETEX" | "EXPIRE" | "PEXPIRE" | "EXPIREAT" | "PEXPIREAT" | "SETBIT" | "BITFIELD"
    );
    let has_one_key = registry::lookup(name.as_bytes()).is_some_and(|spec| spec.spread == Spread::SingleKey);
    // A replaced key would be shared with other sequences.
    has_one_key && !is_blocking(name) && !bounded
}

/// A near expiry would make the clock decide; a large bit offset allocates 256 MiB and more, and has its own test.
fn boundary_is_unfit(entry: &Entry, boundary: &str) -> bool {
    let near = entry.template.contains("<sec>") || entry.template.contains("<ms>");
    let allocates = matches!(entry.name(), "SETBIT" | "BITFIELD");
    (near && boundary == "1") || (allocates && matches!(boundary, "2147483647" | "2147483649" | "4294967295"))
}

/// A last look at forced arguments: a blocking command must not wait.
fn is_fit(arguments: &[Vec<u8>]) -> bool {
    !is_blocking(&String::from_utf8_lossy(&arguments[0]).to_ascii_uppercase())
        || arguments.iter().any(|argument| argument.starts_with(b"0.00"))
}

#[cfg(test)]
mod tests {
    use super::{Generator, Judge};

    #[test]
    fn a_seed_stands_for_one_sequence() {
        let generator = Generator::new(1_800_000_000, true);
        for seed in 0..200 {
            assert_eq!(generator.sequence(seed, None).steps, generator.sequence(seed, None).steps);
        }
        assert_ne!(generator.sequence(1, None).steps, generator.sequence(2, None).steps);
    }

    #[test]
    fn every_kind_of_sequence_occurs() {
        let generator = Generator::new(1_800_000_000, true);
        let all: Vec<_> = (0..1000).map(|seed| generator.sequence(seed, None)).collect();
        assert!(all.iter().any(|sequence| sequence.exclusive));
        assert!(all.iter().any(|sequence| sequence.judge == Judge::Model));
        assert!(all.iter().any(|sequence| sequence.steps.iter().any(|step| step.connection == 1)));
    }
}
