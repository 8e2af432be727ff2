//! Sequences of commands: what one seed stands for.

mod boundaries;
mod maker;
mod mutation;

use base::rng::Rng;

use crate::catalogue::{CATALOGUE, Entry};
use crate::template::{Part, parse};
use crate::values::Pool;
use maker::Maker;

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

    fn pool(&self, seed: u64, tags: Option<&Tags>, rng: &mut Rng) -> Pool {
        let unique = format!("{seed:x}");
        let Some(tags) = tags else { return Pool::new(&unique, None, self.now_s) };
        let first = rng.below(tags.same_node.len() as u64) as usize;
        let second = (first + 1) % tags.same_node.len();
        Pool::new(&unique, Some((&tags.same_node[first], &tags.same_node[second])), self.now_s)
    }
}

fn node_of(tags: Option<&Tags>) -> usize {
    tags.map_or(0, |tags| tags.node)
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
