//! Requests made wrong on purpose.

use base::rng::Rng;

use wire::registry::{self, Spread};

use crate::catalogue::Family;
use crate::values::{Pool, Slot, pick};

/// Wrong arity, wrong values, wrong options: rarely, so that most commands still do something.
pub(super) fn mutate(arguments: &mut Vec<Vec<u8>>, family: Family, pool: &Pool, rng: &mut Rng) {
    let name = String::from_utf8_lossy(&arguments[0]).to_ascii_uppercase();
    match rng.below(40) {
        0 if arguments.len() > 1 => {
            arguments.pop();
        }
        // An argument too many may be a key of another slot, and the model knows no slots.
        1 if !is_blocking(&name) && family != Family::Conditional => {
            let mut extra = Vec::new();
            pool.fill(Slot::Element, rng, &mut extra);
            arguments.append(&mut extra);
        }
        2 => arguments.truncate(1),
        3 if arguments.len() > 2 && is_free_to_replace(&name) && family != Family::Conditional => {
            let place = 2 + rng.below(arguments.len() as u64 - 2) as usize;
            let slot = *pick(rng, &[Slot::Integer, Slot::Nonsense, Slot::Float]);
            let mut replacement = Vec::new();
            pool.fill(slot, rng, &mut replacement);
            arguments[place] = replacement.remove(0);
        }
        _ => {}
    }
}

/// Whether `name` may wait.
pub(super) fn is_blocking(name: &str) -> bool {
    matches!(name, "BLPOP" | "BRPOP" | "BLMOVE" | "BRPOPLPUSH" | "BLMPOP")
}

/// Whether any argument may become any number: not where that would block, allocate 512 MiB, or expire during the run.
fn is_free_to_replace(name: &str) -> bool {
    let bounded = matches!(
        name,
        "SET"
            | "SETEX"
            | "PSETEX"
            | "GETEX"
            | "EXPIRE"
            | "PEXPIRE"
            | "EXPIREAT"
            | "PEXPIREAT"
            | "RESTORE"
            | "SETBIT"
            | "BITFIELD"
    );
    let has_one_key = registry::lookup(name.as_bytes()).is_some_and(|spec| spec.spread == Spread::SingleKey);
    // A replaced key would be shared with other sequences.
    has_one_key && !is_blocking(name) && !bounded
}
