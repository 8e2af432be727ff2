//! What a command touches: all its keys and what it does with each, as a node's answer to `COMMAND` says. Who decides whether a caller
//! may run it has to know; who only routes needs the first key.
//!
//! ```text
//!  key specification ─► begin: an index, or behind a word ─► find: a range, or as many as a number says ─► arguments
//!         └─ one that is not understood, or says that it does not find all ─► nobody can tell
//! ```

use super::entry::{field, integer, items, text};
use wire::Arguments;
use wire::number::leading_integer;
use wire::registry::Categories;
use wire::reply_parse::Value;

/// A key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// Index of the argument.
    pub index: usize,
    /// Its value is told, or used.
    pub reads: bool,
    /// It is changed.
    pub writes: bool,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// In lower case; of a subcommand `container|subcommand`.
    pub full_name: String,
    /// Those of the ACL that it is in, as far as we have them.
    pub categories: Categories,
    /// Its words, name included; negative: at least so many.
    arity: i32,
    /// `None`: nobody can tell all its keys.
    specs: Option<Vec<Spec>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Spec {
    begin: Begin,
    find: Find,
    reads: bool,
    writes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Begin {
    Index(usize),
    /// Behind this word, looked for from an index on; from the end if that is negative.
    Behind(Vec<u8>, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Find {
    /// Negative: from the end. `limit`: the keys are one of so many parts of what is left.
    Range { last: i64, step: usize, limit: usize },
    /// Places relative to the beginning.
    Number { number: usize, first: usize, step: usize },
}

/// What a node says of a command, as far as it matters here.
pub(super) struct Told<'a> {
    pub name: &'a [u8],
    pub arity: i32,
    pub is_movable: bool,
    /// First, last, step.
    pub keys: (i64, i64, i64),
    pub categories: &'a [&'a [u8]],
    pub key_specs: &'a [Value],
}

impl Reach {
    pub(super) fn of(told: &Told<'_>) -> Reach {
        let categories = told.categories.iter().filter_map(|name| Categories::named(name.strip_prefix(b"@")?));
        Reach {
            full_name: String::from_utf8_lossy(told.name).into_owned(),
            categories: categories.fold(Categories::EMPTY, Categories::union),
            arity: told.arity,
            specs: specs(told),
        }
    }

    /// Whether a request has as many words as it takes.
    pub fn takes(&self, words: usize) -> bool {
        match usize::try_from(self.arity) {
            Ok(exactly) => words == exactly,
            Err(_) => words >= self.arity.unsigned_abs() as usize,
        }
    }

    /// All keys of a request; `None` if nobody can tell.
    pub fn keys(&self, arguments: Arguments<'_>) -> Option<Vec<KeyUse>> {
        let mut keys = Vec::new();
        for spec in self.specs.as_ref()? {
            let Spec { reads, writes, .. } = *spec;
            let indices = spec.indices(arguments)?;
            keys.extend(indices.into_iter().map(|index| KeyUse { index, reads, writes }));
        }
        Some(keys)
    }
}

/// The specifications, or what stands for them in the answers of older nodes.
fn specs(told: &Told<'_>) -> Option<Vec<Spec>> {
    if !told.key_specs.is_empty() {
        return told.key_specs.iter().map(Spec::read).filter(|spec| *spec != Some(None)).map(Option::flatten).collect();
    }
    let (first, last, step) = told.keys;
    match usize::try_from(first) {
        _ if told.is_movable => None,
        Ok(0) => Some(Vec::new()),
        Ok(first) => {
            let last = if last < 0 { last } else { last - first as i64 };
            let find = Find::Range { last, step: usize::try_from(step).ok()?.max(1), limit: 0 };
            Some(vec![Spec { begin: Begin::Index(first), find, reads: true, writes: true }])
        }
        Err(_) => None,
    }
}

impl Spec {
    /// `None`: it is not understood, or does not find all; `Some(None)`: what it finds are no keys.
    fn read(value: &Value) -> Option<Option<Spec>> {
        let flags: Vec<Vec<u8>> =
            items(field(value, b"flags")?).iter().filter_map(text).map(<[u8]>::to_ascii_lowercase).collect();
        let has = |flag: &[u8]| flags.iter().any(|known| known == flag);
        if has(b"incomplete") {
            return None;
        }
        if has(b"not_key") {
            return Some(None);
        }
        let begin = field(value, b"begin_search")?;
        let inside = field(begin, b"spec")?;
        let size = |inside: &Value, name: &[u8]| usize::try_from(integer(field(inside, name)?)?).ok();
        let begin = match text(field(begin, b"type")?)? {
            b"index" => Begin::Index(size(inside, b"index")?),
            b"keyword" => {
                Begin::Behind(text(field(inside, b"keyword")?)?.to_vec(), integer(field(inside, b"startfrom")?)?)
            }
            _ => return None,
        };
        let find = field(value, b"find_keys")?;
        let inside = field(find, b"spec")?;
        let find = match text(field(find, b"type")?)? {
            b"range" => Find::Range {
                last: integer(field(inside, b"lastkey")?)?,
                step: size(inside, b"keystep")?.max(1),
                limit: size(inside, b"limit")?,
            },
            b"keynum" => Find::Number {
                number: size(inside, b"keynumidx")?,
                first: size(inside, b"firstkey")?,
                step: size(inside, b"keystep")?.max(1),
            },
            _ => return None,
        };
        // What other arguments may change, may be anything.
        let is_unsure = has(b"variable_flags");
        let writes = is_unsure || [&b"insert"[..], b"delete", b"update"].iter().any(|flag| has(flag));
        Some(Some(Spec { begin, find, reads: is_unsure || has(b"access"), writes }))
    }

    /// Where its keys are; none where the request has none of these; `None` where it contradicts itself.
    fn indices(&self, arguments: Arguments<'_>) -> Option<Vec<usize>> {
        let count = arguments.len();
        let begin = match &self.begin {
            Begin::Index(index) => Some(*index),
            Begin::Behind(word, from) => {
                let is_word = |&at: &usize| arguments[at].eq_ignore_ascii_case(word);
                let found = match usize::try_from(*from) {
                    Ok(from) => (from..count).find(is_word),
                    Err(_) => (1..=count.checked_sub(from.unsigned_abs() as usize)?).rev().find(is_word),
                };
                found.map(|at| at + 1)
            }
        };
        let Some(begin) = begin.filter(|&begin| begin < count) else { return Some(Vec::new()) };
        let (first, last, step) = match self.find {
            Find::Range { last, step, limit } => {
                let end = match usize::try_from(last) {
                    Ok(last) => begin + last,
                    // Of what is left, keys are the first half, third and so on.
                    Err(_) if limit > 1 => begin + (count - begin) / limit - usize::from((count - begin) / limit > 0),
                    Err(_) => count.checked_sub(last.unsigned_abs() as usize)?,
                };
                (begin, end, step)
            }
            Find::Number { number, first, step } => {
                let keys = usize::try_from(leading_integer(arguments.get(begin + number)?)?).ok()?;
                if keys == 0 {
                    return Some(Vec::new());
                }
                (begin + first, (begin + first).checked_add((keys - 1).checked_mul(step)?)?, step)
            }
        };
        (last < count).then(|| (first..=last).step_by(step).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{ParseLimits, Parsed, parse};

    fn spec(begin: Begin, find: Find) -> Spec {
        Spec { begin, find, reads: true, writes: false }
    }

    fn indices(spec: &Spec, words: &str) -> Option<Vec<usize>> {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        wire::request::encode(words.split(' ').map(str::as_bytes).collect::<Vec<_>>(), &mut bytes);
        assert!(matches!(parse(&bytes, 0, &mut spans, &ParseLimits::AUTHENTICATED), Parsed::Request { .. }));
        spec.indices(Arguments::new(&bytes, &spans))
    }

    #[test]
    fn all_keys_of_a_request_are_found_where_the_specification_says() {
        let range = |last, step, limit| Find::Range { last, step, limit };
        let plain = spec(Begin::Index(1), range(0, 1, 0));
        assert_eq!(indices(&plain, "HSET k f v"), Some(vec![1]));
        let all = spec(Begin::Index(1), range(-1, 1, 0));
        assert_eq!(indices(&all, "SINTER a b c"), Some(vec![1, 2, 3]));
        let without_last = spec(Begin::Index(1), range(-2, 1, 0));
        assert_eq!(indices(&without_last, "BZPOPMIN a b 0"), Some(vec![1, 2]));
        let streams = spec(Begin::Behind(b"STREAMS".to_vec(), 1), range(-1, 1, 2));
        assert_eq!(indices(&streams, "XREAD COUNT 2 STREAMS a b 0 0"), Some(vec![4, 5]));
        assert_eq!(indices(&streams, "XREAD STREAMS a 0"), Some(vec![2]));
        assert_eq!(indices(&streams, "XREAD COUNT 2"), Some(vec![]));
        let counted = spec(Begin::Index(2), Find::Number { number: 0, first: 1, step: 1 });
        assert_eq!(indices(&counted, "ZUNIONSTORE to 2 a b"), Some(vec![3, 4]));
        for wrong in ["ZUNIONSTORE to 3 a b", "ZUNIONSTORE to x a", "ZUNIONSTORE to -1 a"] {
            assert_eq!(indices(&counted, wrong), None, "{wrong}");
        }
        let from_end = spec(Begin::Behind(b"KEYS".to_vec(), -2), range(-1, 1, 0));
        assert_eq!(indices(&from_end, "MIGRATE h 1 k 0 9 KEYS a b"), Some(vec![7, 8]));
    }

    #[test]
    fn who_describes_no_specifications_is_believed_as_far_as_that_goes() {
        let told = |keys, is_movable| Told {
            name: b"x",
            arity: -2,
            is_movable,
            keys,
            categories: &[b"@hash"],
            key_specs: &[],
        };
        let reach = Reach::of(&told((1, 1, 1), false));
        assert!(reach.categories.contains(Categories::HASH) && reach.takes(5) && !reach.takes(1));
        let spec = reach.specs.expect("one");
        assert_eq!(indices(&spec[0], "HSET k f v"), Some(vec![1]));
        assert!(spec[0].reads && spec[0].writes);
        assert_eq!(specs(&told((0, 0, 0), false)), Some(Vec::new()));
        assert_eq!(specs(&told((0, 0, 0), true)), None);
    }
}
