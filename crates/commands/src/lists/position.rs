//! Where an element is in a list: LPOS.

use types::List;
use wire::{Arguments, ErrorReply, error};

use crate::arguments::{at_least, integer, is};
use crate::failure::{DONE, Executed, Failure};
use crate::unit::{Unit, argument};
use crate::values::list;

const COUNT_NEGATIVE: ErrorReply = ErrorReply::new("ERR", "COUNT can't be negative");
const MAXLEN_NEGATIVE: ErrorReply = ErrorReply::new("ERR", "MAXLEN can't be negative");

/// What LPOS looks for.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Which match is the first that counts, 1 and up.
    rank: u64,
    /// From the tail towards the head.
    backward: bool,
    /// How many matches; `None` asks for one, without an array around it.
    count: Option<u64>,
    /// How many elements are compared.
    compared_max: u64,
}

impl Search {
    fn parse(arguments: Arguments<'_>) -> Result<Search, Failure> {
        let mut search = Search { rank: 1, backward: false, count: None, compared_max: u64::MAX };
        let mut is_smallest_rank = false;
        for index in (3..arguments.len()).step_by(2) {
            let (option, value) = (argument(arguments, index), arguments.get(index + 1).ok_or(error::SYNTAX)?);
            if is(option, "RANK") {
                let rank = integer(value)?;
                is_smallest_rank = rank == i64::MIN;
                (search.rank, search.backward) = (rank.checked_abs().unwrap_or(1).unsigned_abs(), rank < 0);
                if rank == 0 {
                    return Err(error::LPOS_RANK.into());
                }
            } else if is(option, "COUNT") {
                search.count = Some(at_least(value, 0, COUNT_NEGATIVE)?);
            } else if is(option, "MAXLEN") {
                let most = at_least(value, 0, MAXLEN_NEGATIVE)?;
                search.compared_max = if most == 0 { u64::MAX } else { most };
            } else {
                return Err(error::SYNTAX.into());
            }
        }
        // The smallest integer has no positive counterpart: Redis 7.0 begins at the last match and never has enough.
        if is_smallest_rank {
            search.count = search.count.map(|_| 0);
        }
        Ok(search)
    }

    /// Indexes of the matches, in the order they are met.
    fn run(&self, list: &List, wanted: &[u8]) -> Vec<i64> {
        let found = |elements: &mut dyn Iterator<Item = &[u8]>| -> Vec<usize> {
            let compared_max = usize::try_from(self.compared_max).unwrap_or(usize::MAX);
            let skipped = usize::try_from(self.rank - 1).unwrap_or(usize::MAX);
            let most = match self.count {
                None => 1,
                Some(0) => usize::MAX,
                Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
            };
            let matches = elements.take(compared_max).enumerate().filter(|(_, element)| *element == wanted);
            matches.skip(skipped).take(most).map(|(index, _)| index).collect()
        };
        if self.backward {
            let last = list.len() as i64 - 1;
            found(&mut list.iter_backward()).into_iter().map(|index| last - index as i64).collect()
        } else {
            found(&mut list.iter_from(0)).into_iter().map(|index| index as i64).collect()
        }
    }
}

/// LPOS key element [RANK rank] [COUNT matches] [MAXLEN len].
pub(crate) fn lpos(arguments: Arguments<'_>, unit: &mut Unit<'_>) -> Executed {
    let search = Search::parse(arguments)?;
    let key = unit.first_key(arguments, 1);
    let list = list(unit.store, &key, unit.now_ms)?;
    let indexes = list.map_or(Vec::new(), |list| search.run(list, argument(arguments, 2)));
    if search.count.is_some() {
        unit.reply.array(indexes.len());
        indexes.iter().for_each(|index| unit.reply.integer(*index));
    } else {
        match indexes.first() {
            Some(index) => unit.reply.integer(*index),
            None => unit.reply.null(),
        }
    }
    DONE
}
