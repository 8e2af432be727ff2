//! Lists: every element pushed is popped at most once, and what is neither popped nor lost is still there, in order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::append::Fate;
use super::{Base, bytes_of, fate_of, items_of};
use crate::history::{Action, Answer, Operation};

#[derive(Default)]
struct List<'a> {
    pushes: HashMap<&'a [u8], (Fate, u64, u64)>,
    pops: Vec<(&'a [u8], u64, u64)>,
    unknown_pops: usize,
    /// The last range, and whether all operations had returned when it was read.
    last_range: Option<(Vec<Vec<u8>>, u64)>,
}

/// Check every list of a span. The last LRANGE of each is compared only when nothing came after it.
///
/// # Errors
/// Words about the first violation.
pub fn check(operations: &[Operation], base: &Base) -> Result<(), String> {
    let mut keys: BTreeMap<&str, List<'_>> = BTreeMap::new();
    let mut last_invoked: BTreeMap<&str, u64> = BTreeMap::new();
    for operation in operations {
        match (&operation.action, &operation.answer) {
            (Action::Push { key, token }, answer) => {
                let push = (fate_of(answer), operation.invoked, operation.returned);
                keys.entry(key).or_default().pushes.insert(token.as_bytes(), push);
                last_invoked.insert(key, operation.invoked);
            }
            (Action::Pop { key }, answer) => {
                last_invoked.insert(key, operation.invoked);
                let list = keys.entry(key).or_default();
                match answer {
                    Answer::None => list.unknown_pops += 1,
                    Answer::Reply(reply) if !bytes_of(reply).is_empty() => {
                        list.pops.push((bytes_of(reply), operation.invoked, operation.returned));
                    }
                    _ => {}
                }
            }
            (Action::Range { key }, Answer::Reply(reply)) => {
                keys.entry(key).or_default().last_range = Some((items_of(reply), operation.invoked));
            }
            _ => {}
        }
    }
    for (key, mut list) in keys {
        let start = base.lists.get(key).map_or(&[][..], |items| items);
        start.iter().for_each(|item| {
            list.pushes.insert(item, (Fate::Ok, 0, 0));
        });
        let last = last_invoked.get(key).copied().unwrap_or(0);
        list.check(last).map_err(|words| format!("{key}: {words}"))?;
    }
    Ok(())
}

impl List<'_> {
    fn check(&self, last_invoked: u64) -> Result<(), String> {
        let show = |item: &[u8]| item.escape_ascii().to_string();
        let mut gone = BTreeSet::new();
        for (item, _, _) in &self.pops {
            match self.pushes.get(item) {
                None => return Err(format!("{} was popped and never pushed", show(item))),
                Some((Fate::Failed, ..)) => return Err(format!("{} was popped though its push failed", show(item))),
                Some(_) if !gone.insert(*item) => return Err(format!("{} was popped twice", show(item))),
                Some(_) => {}
            }
        }
        self.check_order(self.pops.iter().map(|(item, invoked, returned)| (*item, *invoked, *returned)).collect())?;
        let Some((items, _)) = self.last_range.as_ref().filter(|(_, read)| *read > last_invoked) else {
            return Ok(());
        };
        let present: BTreeSet<&[u8]> = items.iter().map(|item| &item[..]).collect();
        if present.len() != items.len() {
            return Err("an element is in the list twice".to_owned());
        }
        if let Some(back) = present.iter().find(|item| gone.contains(*item) || !self.pushes.contains_key(*item)) {
            return Err(format!("{} is there though popped or never pushed", show(back)));
        }
        let missing = self
            .pushes
            .iter()
            .filter(|(item, (fate, ..))| *fate == Fate::Ok && !present.contains(*item) && !gone.contains(*item));
        let missing: Vec<String> = missing.map(|(item, _)| show(item)).collect();
        if missing.len() > self.unknown_pops {
            return Err(format!("{} elements are missing with {} unknown pops", missing.len(), self.unknown_pops));
        }
        // Elements lie in the order of their pushes.
        let after = |at: usize| self.pushes[&items[at][..]];
        match (1..items.len()).find(|&at| after(at).2 < after(at - 1).1) {
            Some(at) => Err(format!("{} lies behind an element pushed later", show(&items[at]))),
            None => Ok(()),
        }
    }

    /// First in, first out: of two elements, the one whose push had returned before the other's began is not popped by
    /// a pop that began after the other's pop had returned.
    fn check_order(&self, mut pops: Vec<(&[u8], u64, u64)>) -> Result<(), String> {
        pops.sort_unstable_by_key(|pop| pop.2);
        let mut latest_push_invoked: Vec<(u64, u64)> = Vec::new();
        for (item, _, returned) in &pops {
            let pushed = self.pushes[item].1;
            let highest = latest_push_invoked.last().map_or(0, |(_, highest)| *highest);
            latest_push_invoked.push((*returned, highest.max(pushed)));
        }
        for (item, invoked, _) in &pops {
            let before = latest_push_invoked.partition_point(|(returned, _)| returned < invoked);
            let Some((_, highest)) = before.checked_sub(1).map(|at| latest_push_invoked[at]) else { continue };
            let (_, _, push_returned) = self.pushes[item];
            if push_returned < highest && push_returned != 0 {
                return Err(format!("{} was popped after an element pushed later", item.escape_ascii()));
            }
        }
        Ok(())
    }
}
