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

/// Lengths of the longest common subsequences of all pairs of prefixes, 64 at a time (Hyyrö, "Bit-parallel LCS-length
/// computation revisited", 2004): of each row only where the length grows is known, and the next row is one addition of
/// numbers as long as the row.
///
/// ```text
///  columns    a b c a      lengths of row "ba"   0 1 1 2     kept, 0 where it is longer than left of it
///  rows  b    0 1 1 1                            1 1 1 2                  1 0 1 1
///        a    1 1 1 2                                                     0 1 1 0
/// ```
///
/// The longer string is that of the columns, or rows of a few bits would take a word each.
struct Table<'a> {
    rows: &'a [u8],
    columns: &'a [u8],
    /// Of a row.
    words: usize,
    /// A bit per pair of prefixes, of the empty one of the rows first: 0 where the length is more than with a column less.
    same: Vec<u64>,
    /// Whether the first string is that of the rows.
    first_is_rows: bool,
}

impl<'a> Table<'a> {
    fn new(a: &'a [u8], b: &'a [u8]) -> Table<'a> {
        let first_is_rows = a.len() <= b.len();
        let (rows, columns) = if first_is_rows { (a, b) } else { (b, a) };
        let words = columns.len().div_ceil(64);
        let places = Places::new(rows, columns, words);
        let mut same = vec![u64::MAX; (rows.len() + 1) * words];
        for (row, byte) in rows.iter().enumerate() {
            let (before, after) = same[row * words..].split_at_mut(words);
            let mut carry = false;
            for ((after, &before), &equal) in after.iter_mut().zip(&*before).zip(places.of(*byte)) {
                let (sum, first) = before.overflowing_add(before & equal);
                let (sum, second) = sum.overflowing_add(u64::from(carry));
                carry = first || second;
                *after = sum | (before & !equal);
            }
        }
        Table { rows, columns, words, same, first_is_rows }
    }

    /// Whether the length with so many rows and columns is more than with a column less.
    fn grows_at(&self, row: usize, column: usize) -> bool {
        self.same[row * self.words + (column - 1) / 64] >> ((column - 1) % 64) & 1 == 0
    }

    /// The length with so many rows and columns.
    fn length(&self, row: usize, column: usize) -> usize {
        let line = &self.same[row * self.words..][..self.words];
        let (whole, rest) = (column / 64, column % 64);
        let part = if rest == 0 { 0 } else { (!line[whole] & ((1 << rest) - 1)).count_ones() };
        (line[..whole].iter().map(|word| word.count_zeros()).sum::<u32>() + part) as usize
    }

    fn longest(&self) -> usize {
        self.length(self.rows.len(), self.columns.len())
    }

    /// The matches that make up the subsequence, from the last to the first. Of two ways that are as long Redis goes without the
    /// byte of the second string.
    fn matches(&self) -> Vec<Match> {
        let (mut row, mut column) = (self.rows.len(), self.columns.len());
        let mut matches: Vec<Match> = Vec::new();
        // Whether the length is more than with a row less; it stays so from column to column until two bytes are equal.
        let mut grows_down = None;
        while row > 0 && column > 0 {
            if self.rows[row - 1] == self.columns[column - 1] {
                (row, column, grows_down) = (row - 1, column - 1, None);
                let (a, b) = if self.first_is_rows { (row, column) } else { (column, row) };
                match matches.last_mut() {
                    Some(last) if last.a.0 == a + 1 && last.b.0 == b + 1 => (last.a.0, last.b.0) = (a, b),
                    _ => matches.push(Match { a: (a, a), b: (b, b) }),
                }
                continue;
            }
            let is_down = || self.length(row, column) > self.length(row - 1, column);
            let leaves_column =
                !self.grows_at(row, column) && (self.first_is_rows || *grows_down.get_or_insert_with(is_down));
            match leaves_column {
                true => column -= 1,
                false => (row, grows_down) = (row - 1, None),
            }
        }
        matches
    }
}

/// Where the bytes of the rows are among the columns: a bit for each column.
struct Places {
    words: usize,
    /// By byte; of those of the rows only, so that there are no more bits than pairs.
    index: [Option<u8>; 256],
    bits: Vec<u64>,
}

impl Places {
    fn new(rows: &[u8], columns: &[u8], words: usize) -> Places {
        let (mut index, mut count) = ([None; 256], 0);
        for byte in rows {
            if index[usize::from(*byte)].is_none() {
                index[usize::from(*byte)] = Some(count as u8);
                count += 1;
            }
        }
        let mut bits = vec![0; count * words];
        for (column, byte) in columns.iter().enumerate() {
            if let Some(index) = index[usize::from(*byte)] {
                bits[usize::from(index) * words + column / 64] |= 1 << (column % 64);
            }
        }
        Places { words, index, bits }
    }

    fn of(&self, byte: u8) -> &[u64] {
        let index = self.index[usize::from(byte)].expect("it is one of the rows");
        &self.bits[usize::from(index) * self.words..][..self.words]
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
        unit.reply.integer(table.longest() as i64);
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
        unit.reply.integer(table.longest() as i64);
    } else {
        unit.reply.bulk_header(table.longest());
        for found in table.matches().iter().rev() {
            unit.reply.raw(&a[found.a.0..=found.a.1]);
        }
        unit.reply.bulk_end();
    }
    DONE
}

#[cfg(test)]
mod tests {
    use super::{Match, Table};
    use base::rng::Rng;

    /// As Redis does it: a number for each pair of prefixes, and back along the larger ones.
    fn by_numbers(a: &[u8], b: &[u8]) -> (usize, Vec<Match>) {
        let mut lengths = vec![vec![0; b.len() + 1]; a.len() + 1];
        for (i, byte_a) in a.iter().enumerate() {
            for (j, byte_b) in b.iter().enumerate() {
                lengths[i + 1][j + 1] =
                    if byte_a == byte_b { lengths[i][j] + 1 } else { usize::max(lengths[i][j + 1], lengths[i + 1][j]) };
            }
        }
        let (mut i, mut j, mut matches) = (a.len(), b.len(), Vec::<Match>::new());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                match matches.last_mut() {
                    Some(last) if last.a.0 == i + 1 && last.b.0 == j + 1 => (last.a.0, last.b.0) = (i, j),
                    _ => matches.push(Match { a: (i, i), b: (j, j) }),
                }
            } else if lengths[i - 1][j] > lengths[i][j - 1] {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        (lengths[a.len()][b.len()], matches)
    }

    #[test]
    fn bits_give_what_numbers_give() {
        let mut rng = Rng::new(4);
        for _ in 0..2000 {
            let letters = 1 + rng.below(5);
            let mut text = || {
                let length = [0, 1, 2, 63, 64, 65, 127, 128, 200][rng.below(9) as usize] + rng.below(3);
                (0..length).map(|_| b'a' + rng.below(letters) as u8).collect::<Vec<u8>>()
            };
            let (a, b) = (text(), text());
            let table = Table::new(&a, &b);
            assert_eq!((table.longest(), table.matches()), by_numbers(&a, &b), "{a:?} {b:?}");
        }
    }
}
