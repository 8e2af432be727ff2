//! Keys of a command that has many: the memory of some of them is asked for before the first of these is read, as the decoder asks for
//! what the requests of a window need.
//!
//! ```text
//!  MGET  k1 … k16 │ k17 … k32 │ k33 …      hashed ─► buckets asked for ─► records asked for ─► the command takes one key after the other
//! ```
//!
//! Of a million keys each read waits twice for memory, and one behind the other these were half of what an `MGET` cost
//! (`docs/internals/tick.md`, windows).

use storage::Key;
use wire::Arguments;

use crate::unit::{Unit, argument};

/// Keys whose memory is on its way at a time: as many lines as a core has under way, a few for each.
const KEYS_AHEAD: usize = 16;

/// What a command does with its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Write,
}

/// See the module.
pub(crate) struct KeysAhead<'a> {
    arguments: Arguments<'a>,
    /// The argument of the next window's first key, those between two keys, and the one behind the last key's.
    next: usize,
    step: usize,
    end: usize,
    purpose: Use,
    /// Without memory while there is one key at most: `EXISTS key` would pay for it.
    window: Vec<(usize, Key<'a>)>,
    /// The next one of the window.
    at: usize,
}

impl<'a> KeysAhead<'a> {
    /// All arguments from the first one on are keys.
    pub(crate) fn all(arguments: Arguments<'a>, purpose: Use) -> KeysAhead<'a> {
        KeysAhead::every(arguments, (1, 1), arguments.len() - 1, purpose)
    }

    /// `count` keys: the arguments at `from`, `from + step` and so on.
    pub(crate) fn every(
        arguments: Arguments<'a>,
        (from, step): (usize, usize),
        count: usize,
        purpose: Use,
    ) -> KeysAhead<'a> {
        let end = from + step * count;
        KeysAhead { arguments, next: from, step, end, purpose, window: Vec::new(), at: 0 }
    }

    /// The next key, and which argument it is.
    #[inline]
    pub(crate) fn next(&mut self, unit: &Unit<'_>) -> Option<(usize, Key<'a>)> {
        if self.at == self.window.len() {
            // Of one key, what it needs is asked for by reading it.
            if self.next + self.step >= self.end {
                return self.take(unit);
            }
            self.fill(unit);
        }
        self.at += 1;
        Some(self.window[self.at - 1])
    }

    /// The next key, nothing asked for.
    #[inline]
    fn take(&mut self, unit: &Unit<'_>) -> Option<(usize, Key<'a>)> {
        let (index, arguments) = (self.next, self.arguments);
        if index >= self.end {
            return None;
        }
        self.next += self.step;
        Some((index, if index == 1 { unit.first_key(arguments, 1) } else { unit.key(argument(arguments, index)) }))
    }

    #[inline(never)]
    fn fill(&mut self, unit: &Unit<'_>) {
        self.at = 0;
        self.window.clear();
        self.window.reserve(KEYS_AHEAD);
        while let Some(key) = (self.window.len() < KEYS_AHEAD).then(|| self.take(unit)).flatten() {
            self.window.push(key);
        }
        let keys = || self.window.iter().map(|(_, key)| key);
        keys().for_each(|key| unit.store.prefetch_bucket(key));
        if self.purpose == Use::Write {
            keys().for_each(|key| unit.store.prefetch_counters(key));
        }
        keys().for_each(|key| unit.store.prefetch_record(key));
    }
}

#[cfg(test)]
mod tests {
    use super::{KEYS_AHEAD, KeysAhead, Use};
    use crate::harness::Harness;

    #[test]
    fn keys_of_all_windows_come_once_and_in_order() {
        let mut harness = Harness::new();
        for count in [1, 2, KEYS_AHEAD - 1, KEYS_AHEAD, KEYS_AHEAD + 1, 3 * KEYS_AHEAD + 5] {
            let names: Vec<String> = (0..count).map(|number| format!("key:{number}")).collect();
            for step in [1, 2] {
                let mut words = vec!["COMMAND"];
                words.extend(names.iter().flat_map(|name| std::iter::once(&**name).chain((1..step).map(|_| "value"))));
                let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
                let (seen, _) = harness.with_unit(&words, |arguments, unit| {
                    let mut keys = KeysAhead::every(arguments, (1, step), count, Use::Write);
                    let mut seen = Vec::new();
                    while let Some((index, key)) = keys.next(unit) {
                        let expected = unit.key(&arguments[index]);
                        assert_eq!((key.slot, key.hash), (expected.slot, expected.hash));
                        seen.push(String::from_utf8_lossy(key.bytes).into_owned());
                    }
                    assert!(keys.next(unit).is_none(), "it stays at its end");
                    seen
                });
                assert_eq!(seen, names);
            }
        }
    }
}
