//! Linearizability of one key whose value only grows by unique tokens `client.seq,`, in O(n log n).
//!
//! The value *is* the version order, so nothing has to be searched (`reliability.md` section 2):
//!
//! ```text
//!   L = longest value known         0.0,1.0,0.1,
//!   positions                     0   1 2   3 4   5 6      append of token i: 2i+1 · read of n tokens: 2n
//! ```
//!
//! Every operation has a position (or, for a refused compare, a lowest one); in order of real time positions must
//! never go back. A compare-and-swap that sets old+token is an append whose prefix in L must equal old.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// What is known of an append's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Acknowledged.
    Ok,
    /// Refused: it must not have happened.
    Failed,
    /// No reply: it may have happened, at any time after its invocation.
    Unknown,
}

/// What an operation did.
#[derive(Clone, Debug)]
pub enum What<'a> {
    /// A token was added.
    Append {
        /// The token, comma included.
        token: &'a [u8],
        /// Whether it was acknowledged.
        fate: Fate,
        /// For compare-and-swap, the value it was compared with.
        expected: Option<&'a [u8]>,
        /// The length that the reply named, bytes.
        length: Option<u64>,
    },
    /// The value was read.
    Read {
        /// All of it.
        value: &'a [u8],
    },
    /// A compare was refused. The same client had read `from` before, so the value has grown since.
    Differs {
        /// What it was compared with.
        from: &'a [u8],
    },
}

/// One operation on the key.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Moment of the invocation, in any ascending count.
    pub invoked: u64,
    /// Moment of the reply; `u64::MAX` when none came.
    pub returned: u64,
    /// What it did.
    pub what: What<'a>,
}

/// Why a history is not linearizable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A token is in the value twice.
    Duplicate(String),
    /// The value holds a token that nobody appended.
    Corruption(String),
    /// A refused append happened.
    Aborted(String),
    /// A read is no prefix of the longest one.
    Fork(String),
    /// A compare-and-swap happened on another value than the one it named.
    Compare(String),
    /// A reply named a length that contradicts the order.
    Length(String),
    /// An operation lies before one that had returned when it began: stale read, lost write, reorder.
    RealTime(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:?}")
    }
}

/// Position of an acknowledged append that no read ever saw: after everything.
const NEVER_SEEN: u64 = u64::MAX;

struct Order<'a> {
    longest: &'a [u8],
    /// Token to its index and the bytes before it.
    index: HashMap<&'a [u8], (u64, usize)>,
}

/// Tokens of a value; the last one lacks its comma if the value is torn.
pub fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split_inclusive(|&byte| byte == b',')
}

fn show(entry: &Entry<'_>) -> String {
    let what = match entry.what {
        What::Append { token, fate, .. } => format!("append of {} ({fate:?})", text(token)),
        What::Read { value } => format!("read of {}", text(value)),
        What::Differs { from } => format!("refused compare with {}", text(from)),
    };
    format!("{what} at {}..{}", entry.invoked, entry.returned)
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// The longest value that anybody knows to have existed: by reading it, or by a compare-and-swap.
fn longest_known<'a>(base: &'a [u8], entries: &[Entry<'a>]) -> Cow<'a, [u8]> {
    let known = |entry: &Entry<'a>| match entry.what {
        What::Read { value } | What::Differs { from: value } => Some(Cow::Borrowed(value)),
        What::Append { token, fate: Fate::Ok, expected: Some(expected), .. } => Some([expected, token].concat().into()),
        What::Append { .. } => None,
    };
    entries.iter().filter_map(known).chain([base.into()]).max_by_key(|value| value.len()).unwrap_or(base.into())
}

impl<'a> Order<'a> {
    fn of(longest: &'a [u8]) -> Result<Order<'a>, Violation> {
        let mut index = HashMap::new();
        let mut at = 0;
        for (number, token) in tokens(longest).enumerate() {
            if index.insert(token, (number as u64, at)).is_some() {
                return Err(Violation::Duplicate(text(token)));
            }
            at += token.len();
        }
        Ok(Order { longest, index })
    }

    /// Tokens in a value that must be a prefix of the order.
    fn prefix_tokens(&self, value: &[u8]) -> Result<u64, Violation> {
        if !self.longest.starts_with(value) || !(value.is_empty() || value.ends_with(b",")) {
            return Err(Violation::Fork(format!("{} against {}", text(value), text(self.longest))));
        }
        Ok(tokens(value).count() as u64)
    }

    /// Lowest and highest position of an operation; `None` when it says nothing.
    fn span(&self, entry: &Entry<'_>) -> Result<Option<(u64, u64)>, Violation> {
        match entry.what {
            What::Read { value } => self.prefix_tokens(value).map(|count| Some((2 * count, 2 * count))),
            What::Differs { from } => self.prefix_tokens(from).map(|count| Some((2 * count + 1, u64::MAX))),
            What::Append { token, fate, expected, length } => self.append_span(token, fate, expected, length),
        }
    }

    fn append_span(
        &self,
        token: &[u8],
        fate: Fate,
        expected: Option<&[u8]>,
        length: Option<u64>,
    ) -> Result<Option<(u64, u64)>, Violation> {
        let Some(&(number, at)) = self.index.get(token) else {
            if length.is_some_and(|length| length <= self.longest.len() as u64) {
                return Err(Violation::Length(format!("{} is not within the length it was told", text(token))));
            }
            return Ok((fate == Fate::Ok).then_some((NEVER_SEEN, NEVER_SEEN)));
        };
        if fate == Fate::Failed {
            return Err(Violation::Aborted(text(token)));
        }
        if length.is_some_and(|length| length != (at + token.len()) as u64) {
            return Err(Violation::Length(format!("{} ends at {}, told {length:?}", text(token), at + token.len())));
        }
        if let Some(expected) = expected.filter(|expected| *expected != &self.longest[..at]) {
            let found = text(&self.longest[..at]);
            return Err(Violation::Compare(format!("{} on {} instead of {}", text(token), found, text(expected))));
        }
        Ok(Some((2 * number + 1, 2 * number + 1)))
    }
}

/// Check one key. `base` is what it held before the first entry.
///
/// # Errors
/// The first violation found.
pub fn check<'a>(base: &'a [u8], entries: &[Entry<'a>]) -> Result<(), Violation> {
    let longest = longest_known(base, entries);
    let order = Order::of(&longest)?;
    order.prefix_tokens(base)?;
    let known: std::collections::HashSet<&[u8]> = entries
        .iter()
        .filter_map(|entry| match entry.what {
            What::Append { token, .. } => Some(token),
            _ => None,
        })
        .chain(tokens(base))
        .collect();
    if let Some(stranger) = tokens(order.longest).find(|token| !known.contains(token)) {
        return Err(Violation::Corruption(text(stranger)));
    }
    let mut moments = Vec::with_capacity(entries.len() * 2);
    for (number, entry) in entries.iter().enumerate() {
        if let Some((low, high)) = order.span(entry)? {
            moments.push((entry.invoked, false, high, number));
            if entry.returned != u64::MAX {
                moments.push((entry.returned, true, low, number));
            }
        }
    }
    sweep(entries, moments)
}

/// In order of real time: nobody begins below what has returned.
fn sweep(entries: &[Entry<'_>], mut moments: Vec<(u64, bool, u64, usize)>) -> Result<(), Violation> {
    moments.sort_unstable();
    let (mut highest, mut holder) = (0, None);
    for (_, returns, position, number) in moments {
        if returns {
            if position > highest {
                (highest, holder) = (position, Some(number));
            }
        } else if position < highest {
            let before = holder.map(|holder: usize| show(&entries[holder])).unwrap_or_default();
            return Err(Violation::RealTime(format!("{before} had returned before {}", show(&entries[number]))));
        }
    }
    Ok(())
}
