//! Orders that take their time: given, then watched until they are done.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::order::Operator;
use super::standing::{Chain, Standing};
use crate::say;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// What is still to be done, in slots; an error ends the waiting.
type Left<'a> = &'a dyn Fn(&Standing) -> Result<i64, String>;

/// `drain`.
pub fn drain(operator: &mut Operator, name: &str, waits: bool) -> Result<(), String> {
    let node = number(&operator.status()?, name)?;
    operator.order(&["DRAIN", name])?;
    if waits {
        emptied(operator, node)?;
        say::line(&format!("node {node} has nothing any more: 'zerohop cluster remove {node}' takes it out"));
    }
    Ok(())
}

fn emptied(operator: &mut Operator, node: i64) -> Result<(), String> {
    until_none(operator, &format!("draining node {node}"), &|standing| {
        let known = standing.nodes.iter().find(|known| known.node == node);
        match known.map(|known| known.state.as_str()) {
            Some("draining") => {
                let (first, copies) = standing.slots_of(node);
                Ok(first + copies)
            }
            Some(state) => Err(format!("node {node} is {state} now, so it drains no more")),
            None => Ok(0),
        }
    })
}

/// `remove`: drained before, if it is up and has anything.
pub fn remove(operator: &mut Operator, name: &str) -> Result<(), String> {
    let standing = operator.status()?;
    let node = number(&standing, name)?;
    let state = standing.node(name).map(|node| node.state.clone()).unwrap_or_default();
    let (first, copies) = standing.slots_of(node);
    if state == "up" && first + copies > 0 {
        operator.order(&["DRAIN", name])?;
    }
    if state == "up" || state == "draining" {
        emptied(operator, node)?;
    }
    operator.order(&["REMOVE", &node.to_string()])?;
    say::line(&format!(
        "node {node} is removed: its process ends by itself, and its directory is of no use to the cluster"
    ));
    Ok(())
}

/// `replace`.
pub fn replace(operator: &mut Operator, old: &str, new: &str) -> Result<(), String> {
    let standing = operator.status()?;
    let (from, to) = (number(&standing, old)?, number(&standing, new)?);
    let state = standing.node(new).map(|node| node.state.clone()).unwrap_or_default();
    if from == to || state != "up" {
        return Err(format!(
            "node {to} cannot take what node {from} has: it is {state}, and has to be another one that is up"
        ));
    }
    remove(operator, old)?;
    rebalance(operator, true)
}

/// `rebalance`.
pub fn rebalance(operator: &mut Operator, waits: bool) -> Result<(), String> {
    operator.order(&["REBALANCE"])?;
    if !waits {
        return Ok(());
    }
    until_none(operator, "moving slots", &|standing| {
        let left: i64 = standing.moves.iter().map(|one| one.last - one.first + 1).sum();
        let is_open = standing.nodes.iter().any(|node| node.takes_share && node.state == "up");
        Ok(left.max(i64::from(is_open)))
    })?;
    let standing = operator.status()?;
    for node in &standing.nodes {
        let (first, copies) = standing.slots_of(node.node);
        say::line(&format!("node {} serves {first} slots and has copies of {copies}", node.node));
    }
    Ok(())
}

/// `move`.
pub fn move_slots(operator: &mut Operator, slots: &[&str], to: &str, waits: bool) -> Result<(), String> {
    let ranges = slots.iter().map(|text| range(text)).collect::<Result<Vec<_>, _>>()?;
    let numbers: Vec<String> = ranges.iter().flat_map(|(first, last)| [first.to_string(), last.to_string()]).collect();
    let standing = operator.status()?;
    let node = number(&standing, to.split('.').next().unwrap_or(to))?;
    let core = to.split_once('.').map_or("0", |(_, core)| core);
    let place = format!("{node}.{core}");
    let words = ["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE"].into_iter().chain(numbers.iter().map(String::as_str));
    operator.call(&words.chain(["NODE", &place]).collect::<Vec<_>>())?;
    if !waits {
        return Ok(());
    }
    until_none(operator, "moving slots", &|standing| {
        Ok(standing.moves.iter().map(|one| common(&ranges, one.first, one.last)).sum())
    })?;
    let standing = operator.status()?;
    let is_elsewhere = |chain: &&Chain| chain.members.first().is_none_or(|first| first.node != node);
    let elsewhere: i64 =
        standing.chains.iter().filter(is_elsewhere).map(|chain| common(&ranges, chain.first, chain.last)).sum();
    if elsewhere > 0 {
        return Err(format!("{elsewhere} slots did not move: a move was called off, or one of its ends failed"));
    }
    say::line(&format!("moved to node {node}"));
    Ok(())
}

/// How many slots of `first` to `last` are in the ranges.
fn common(ranges: &[(i64, i64)], first: i64, last: i64) -> i64 {
    ranges.iter().map(|range| (range.1.min(last) - range.0.max(first) + 1).max(0)).sum()
}

fn range(text: &str) -> Result<(i64, i64), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) => Ok((first, last)),
        _ => Err(format!("'{text}' is no range of slots: write it as 0-99")),
    }
}

fn number(standing: &Standing, name: &str) -> Result<i64, String> {
    let known = || standing.nodes.iter().map(|node| node.node.to_string()).collect::<Vec<_>>().join(", ");
    standing.node(name).map(|node| node.node).ok_or_else(|| format!("there is no node '{name}'; there are {}", known()))
}

/// Looks until nothing is left.
fn until_none(operator: &mut Operator, what: &str, left: Left<'_>) -> Result<(), String> {
    let mut bar: Option<ProgressBar> = None;
    loop {
        let slots = left(&operator.status()?)?;
        if slots == 0 {
            bar.iter().for_each(ProgressBar::finish_and_clear);
            return Ok(());
        }
        let bar = bar.get_or_insert_with(|| bar_for(what, slots as u64));
        bar.set_length(bar.length().unwrap_or(0).max(slots as u64));
        bar.set_position(bar.length().unwrap_or(0).saturating_sub(slots as u64));
        std::thread::sleep(LOOK);
    }
}

fn bar_for(what: &str, slots: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{what} {{wide_bar}} {{pos}}/{{len}} slots"))
        .expect("the template is one that indicatif knows");
    ProgressBar::new(slots).with_style(style)
}
