//! Lists: every element pushed is popped at most once, lies in one list at most, and what is neither popped, moved nor
//! lost is still there, in order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wire::reply_parse::Value;

use super::append::Fate;
use super::{Base, bytes_of, fate_of, items_of};
use crate::history::{Action, Answer, Operation};

/// An element that was taken off a list, and when that was asked and answered.
type Taken<'a> = (&'a [u8], u64, u64);

#[derive(Default)]
pub(super) struct List<'a> {
    pub(super) pushes: HashMap<&'a [u8], (Fate, u64, u64)>,
    /// Pops, and moves to other lists.
    pub(super) pops: Vec<Taken<'a>>,
    /// Takes without an answer that may have been on this list.
    unknown_pops: usize,
    /// The last range, and when it was asked.
    last_range: Option<(Vec<Vec<u8>>, u64)>,
    last_invoked: u64,
}

/// Everything about the lists of a span.
#[derive(Default)]
pub(super) struct Lists<'a> {
    pub(super) by_key: BTreeMap<&'a str, List<'a>>,
    /// Moves without an answer: source and destination.
    unknown_moves: Vec<(&'a str, &'a str)>,
    unknown_takes: usize,
}

/// Check every list of a span. The last LRANGE of each is compared only when nothing came after it.
///
/// # Errors
/// Words about the first violation.
pub fn check(operations: &[Operation], base: &Base) -> Result<(), String> {
    let mut lists = Lists::of(operations, base);
    lists.explain_strangers();
    let mut missing = 0;
    for (key, list) in &lists.by_key {
        missing += list.check().map_err(|words| format!("{key}: {words}"))?;
    }
    match missing > lists.unknown_takes {
        true => Err(format!("{missing} elements of all lists are missing with {} unknown pops", lists.unknown_takes)),
        false => Ok(()),
    }
}

impl<'a> Lists<'a> {
    pub(super) fn of(operations: &'a [Operation], base: &'a Base) -> Lists<'a> {
        let mut lists = Lists::default();
        for operation in operations {
            lists.add(operation);
        }
        for (key, list) in &mut lists.by_key {
            for item in base.lists.get(*key).map_or(&[][..], |items| items) {
                list.pushes.insert(item, (Fate::Ok, 0, 0));
            }
        }
        lists
    }

    fn add(&mut self, operation: &'a Operation) {
        let (invoked, returned) = (operation.invoked, operation.returned);
        let (fate, is_unknown) = (fate_of(&operation.answer), operation.answer == Answer::None);
        let reply = match &operation.answer {
            Answer::Reply(reply) => Some(reply),
            _ => None,
        };
        self.unknown_takes += usize::from(is_unknown && is_take(&operation.action));
        for key in lists_of(&operation.action) {
            self.list(key).last_invoked = invoked;
            self.list(key).unknown_pops += usize::from(is_unknown && is_take(&operation.action));
        }
        let push = (fate, invoked, returned);
        match (&operation.action, reply) {
            (Action::Push { key, token }, _) => {
                self.list(key).pushes.insert(token.as_bytes(), push);
            }
            (Action::PushAll { pushes }, _) => pushes.iter().for_each(|(key, token)| {
                self.list(key).pushes.insert(token.as_bytes(), push);
            }),
            (Action::Pop { key }, Some(Value::Bulk(item))) => self.list(key).pops.push((item, invoked, returned)),
            (Action::BlockingPop { keys, .. }, Some(Value::Array(items))) => {
                let key = keys.iter().find(|key| key.as_bytes() == bytes_of(&items[0]));
                let key = key.expect("the answer was seen to name one of the keys");
                self.list(key).pops.push((bytes_of(&items[1]), invoked, returned));
            }
            (Action::BlockingMove { source, destination, .. }, Some(Value::Bulk(item))) => {
                self.list(source).pops.push((item, invoked, returned));
                self.list(destination).pushes.insert(item, push);
            }
            (Action::BlockingMove { source, destination, .. }, None) if is_unknown => {
                self.unknown_moves.push((source, destination));
            }
            (Action::Range { key }, Some(reply)) => self.list(key).last_range = Some((items_of(reply), invoked)),
            _ => {}
        }
    }

    fn list(&mut self, key: &'a str) -> &mut List<'a> {
        self.by_key.entry(key).or_default()
    }

    /// An element that nobody is known to have pushed to a list came by moves without an answer, if there are such.
    fn explain_strangers(&mut self) {
        let keys: Vec<&str> = self.by_key.keys().copied().collect();
        for key in keys {
            let list = &self.by_key[key];
            let strangers = list.seen().filter(|item| !list.pushes.contains_key(item));
            for item in strangers.map(<[u8]>::to_vec).collect::<BTreeSet<_>>() {
                self.explain(key, &item);
            }
        }
    }

    /// Takes the moves that may have brought the element to the list.
    fn explain(&mut self, key: &'a str, item: &[u8]) {
        for (source, destination) in self.way_to(key, item).unwrap_or_default() {
            let used = self.unknown_moves.iter().position(|one| *one == (source, destination));
            self.unknown_moves.swap_remove(used.expect("a way leads over moves that are left"));
            self.unknown_takes -= 1;
            let list = self.list(source);
            let (name, (fate, ..)) = list.pushes.get_key_value(item).expect("the way begins where it was");
            let (name, fate) = (*name, *fate);
            // When it was is not known: it says nothing about the order.
            list.pops.push((name, 0, u64::MAX));
            list.unknown_pops -= 1;
            self.list(destination).pushes.insert(name, (fate, 0, u64::MAX));
        }
    }

    /// The shortest way over moves without an answer, from a list where the element was and was not taken off. Taken
    /// shortest first, the moves that are left explain every further stranger that any choice would: the direct move is
    /// of use to nobody who has another way. Moves lead to lists of higher numbers, so this ends.
    fn way_to(&self, key: &'a str, item: &[u8]) -> Option<Vec<(&'a str, &'a str)>> {
        let moves: BTreeSet<_> = self.unknown_moves.iter().copied().filter(|(_, to)| *to == key).collect();
        let may_have_left = |source: &str| !self.by_key[source].pops.iter().any(|pop| pop.0 == item);
        let way_over = |last: (&'a str, &'a str)| {
            if self.by_key[last.0].pushes.contains_key(item) {
                return Some(vec![last]);
            }
            let mut way = self.way_to(last.0, item)?;
            way.push(last);
            Some(way)
        };
        moves.into_iter().filter(|(source, _)| may_have_left(source)).filter_map(way_over).min_by_key(Vec::len)
    }
}

/// Whether an action may take an element off a list.
fn is_take(action: &Action) -> bool {
    matches!(action, Action::Pop { .. } | Action::BlockingPop { .. } | Action::BlockingMove { .. })
}

/// The lists that an action may change.
fn lists_of(action: &Action) -> Vec<&str> {
    match action {
        Action::Push { key, .. } | Action::Pop { key } => vec![key],
        Action::BlockingPop { keys, .. } => keys.iter().map(String::as_str).collect(),
        Action::BlockingMove { source, .. } => vec![source],
        Action::PushAll { pushes } => pushes.iter().map(|(key, _)| key.as_str()).collect(),
        _ => Vec::new(),
    }
}

impl<'a> List<'a> {
    /// What the last range found, if nothing came after it.
    pub(super) fn range(&self) -> Option<&[Vec<u8>]> {
        let (items, asked) = self.last_range.as_ref()?;
        (*asked > self.last_invoked).then_some(&items[..])
    }

    /// Every element that somebody saw here.
    fn seen(&self) -> impl Iterator<Item = &[u8]> {
        self.pops.iter().map(|pop| pop.0).chain(self.range().unwrap_or_default().iter().map(|item| &item[..]))
    }

    /// How many elements are missing.
    fn check(&self) -> Result<usize, String> {
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
        self.check_order(self.pops.clone())?;
        let Some(items) = self.range() else { return Ok(0) };
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
        let missing = missing.count();
        if missing > self.unknown_pops {
            return Err(format!("{missing} elements are missing with {} unknown pops", self.unknown_pops));
        }
        // Elements lie in the order of their pushes.
        let after = |at: usize| self.pushes[&items[at][..]];
        match (1..items.len()).find(|&at| after(at).2 < after(at - 1).1) {
            Some(at) => Err(format!("{} lies behind an element pushed later", show(&items[at]))),
            None => Ok(missing),
        }
    }

    /// First in, first out: of two elements, the one whose push had returned before the other's began is not popped by
    /// a pop that began after the other's pop had returned.
    fn check_order(&self, mut pops: Vec<Taken<'_>>) -> Result<(), String> {
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
