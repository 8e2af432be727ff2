//! The table of boundaries: every numeric argument of every command at every integer where peers have failed.

use base::rng::{Rng, mix};

use super::maker::Maker;
use super::mutation::is_blocking;
use super::{Generator, Judge, Sequence, Step, Tags, node_of};
use crate::catalogue::{Entry, Family};
use crate::template::{Filler, Part};
use crate::values::BOUNDARIES;

impl Generator {
    /// Every numeric argument of every command at every boundary: one short sequence for each.
    pub fn boundary_table(&self, tags: Option<&Tags>) -> Vec<Sequence> {
        let mut table = Vec::new();
        for (index, (entry, parts)) in self.entries.iter().enumerate() {
            if !has_boundaries(entry.family) {
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
}

fn has_boundaries(family: Family) -> bool {
    matches!(family, Family::String | Family::Bit | Family::Keyspace | Family::List | Family::Global)
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
