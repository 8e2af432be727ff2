//! The longest common subsequence of two strings: LCS.

use base::limits::VALUE_BYTES_MAX;
use wire::{Arguments, ErrorReply, error};

use crate::arguments::{integer, is};
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::string;

const NOT_STRINGS: ErrorReply = ErrorReply::new("ERR", "The specified keys must contain string values");
const TOO_LARGE: ErrorReply =
    ErrorReply::new("ERR", "Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");

/// Most cells of the table: what Redis's would take of `proto-max-bulk-len`, at four bytes each. Ours take one bit.
const CELLS_MAX: usize = VALUE_BYTES_MAX / 4;

/// What LCS is asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    length: bool,
    indexes: bool,
    with_lengths: bool,
    shortest: i64,
}

impl Options {
    fn parse(arguments: Arguments<'_>) -> Result<Options, Failure> {
        let (mut options, mut index) = (Options::default(), 3);
        while let Some(option) = arguments.get(index) {
            match arguments.get(index + 1) {
                _ if is(option, "LEN") => options.length = true,
                _ if is(option, "IDX") => options.indexes = true,
                _ if is(option, "WITHMATCHLEN") => options.with_lengths = true,
                Some(value) if is(option, "MINMATCHLEN") => {
                    options.shortest = integer(value)?;
                    index += 1;
                }
                _ => return Err(error::SYNTAX.into()),
            }
            index += 1;
        }
        if options.length && options.indexes {
            return Err(error::LCS_OPTIONS.into());
        }
        Ok(options)
    }
}

/// A stretch of both strings that is the same, by its first and last index in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    a: (usize, usize),
    b: (usize, usize),
}

impl Match {
    fn len(&self) -> usize {
        self.a.1 - self.a.0 + 1
    }
}

/// Lengths of the longest common subsequences of all pairs of prefixes (Wagner and Fischer, 1974), of which only the
/// last row is kept, and of the others which way they led.
struct Table<'a> {
    a: &'a [u8],
    b: &'a [u8],
    /// A bit per pair of bytes: whether the longer way is without the byte of `a`.
    without_a: Vec<u64>,
    longest: u32,
}

impl<'a> Table<'a> {
    fn new(a: &'a [u8], b: &'a [u8]) -> Table<'a> {
        let mut table = Table { a, b, without_a: vec![0; (a.len() * b.len()).div_ceil(64)], longest: 0 };
        // Of prefixes of `b` with the bytes of `a` so far; written over from left to right.
        let mut lengths = vec![0u32; b.len() + 1];
        for (row, byte_a) in a.iter().enumerate() {
            let (mut diagonal, mut left) = (0, 0);
            for (column, byte_b) in b.iter().enumerate() {
                let above = lengths[column + 1];
                left = if byte_a == byte_b {
                    diagonal + 1
                } else {
                    let cell = row * b.len() + column;
                    table.without_a[cell / 64] |= u64::from(above > left) << (cell % 64);
                    above.max(left)
                };
                diagonal = above;
                lengths[column + 1] = left;
            }
        }
        table.longest = lengths[b.len()];
        table
    }

    fn is_longer_without_a(&self, row: usize, column: usize) -> bool {
        let cell = row * self.b.len() + column;
        self.without_a[cell / 64] >> (cell % 64) & 1 == 1
    }

    /// The matches that make up the subsequence, from the last to the first.
    fn matches(&self) -> Vec<Match> {
        let (mut row, mut column) = (self.a.len(), self.b.len());
        let mut matches: Vec<Match> = Vec::new();
        while row > 0 && column > 0 {
            if self.a[row - 1] == self.b[column - 1] {
                (row, column) = (row - 1, column - 1);
                match matches.last_mut() {
                    Some(last) if last.a.0 == row + 1 && last.b.0 == column + 1 => {
                        (last.a.0, last.b.0) = (row, column);
                    }
                    _ => matches.push(Match { a: (row, row), b: (column, column) }),
                }
            } else if self.is_longer_without_a(row - 1, column - 1) {
                row -= 1;
            } else {
                column -= 1;
            }
        }
        matches
    }
}

/// LCS key1 key2 [LEN | IDX] [MINMATCHLEN n] [WITHMATCHLEN].
pub(crate) fn lcs(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let (first, second) = (unit.key(argument(arguments, 1)), unit.key(argument(arguments, 2)));
    let a = string(unit.store, &first, unit.now_ms).map_err(|_| NOT_STRINGS)?.unwrap_or_default().whole().into_owned();
    let b = string(unit.store, &second, unit.now_ms).map_err(|_| NOT_STRINGS)?.unwrap_or_default().whole();
    let options = Options::parse(arguments)?;
    if (a.len() + 1).saturating_mul(b.len() + 1) > CELLS_MAX {
        return Err(TOO_LARGE.into());
    }
    let table = Table::new(&a, &b);
    if options.length {
        unit.reply.integer(i64::from(table.longest));
    } else if options.indexes {
        let long_enough = |found: &Match| found.len() as i64 >= options.shortest;
        let matches: Vec<Match> = table.matches().into_iter().filter(long_enough).collect();
        unit.reply.map(2);
        unit.reply.bulk(b"matches");
        unit.reply.array(matches.len());
        for found in matches {
            unit.reply.array(if options.with_lengths { 3 } else { 2 });
            for (start, end) in [found.a, found.b] {
                unit.reply.array(2);
                unit.reply.integer(start as i64);
                unit.reply.integer(end as i64);
            }
            if options.with_lengths {
                unit.reply.integer(found.len() as i64);
            }
        }
        unit.reply.bulk(b"len");
        unit.reply.integer(i64::from(table.longest));
    } else {
        unit.reply.bulk_header(table.longest as usize);
        for found in table.matches().iter().rev() {
            unit.reply.raw(&a[found.a.0..=found.a.1]);
        }
        unit.reply.bulk_end();
    }
    DONE
}
