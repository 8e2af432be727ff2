//! `cargo x test`: chooses suites, meets their needs, runs them in order, counts. The last line is
//! `N passed, N failed` (and `, N skipped` where something was left out).

use std::process::ExitCode;
use std::time::Instant;

use crate::needs::{self, Need};
use crate::schedule::{Ended, Schedule};
use crate::suites::{Counts, SUITES, Suite, Turn};
use crate::{Outcome, process, workspace};

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    no_install: bool,
    list: bool,
    only: Vec<String>,
    shard: Option<String>,
}

/// `cargo x test` and `cargo x ci`.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    let options = parse(arguments)?;
    let commit = workspace::commit();
    let shard = match &options.shard {
        Some(name) => name.clone(),
        None => shard_of(&commit).to_owned(),
    };
    if options.list {
        list(&shard);
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = choose(&options, &shard)?;
    println!("suites: the fixed set and shard `{shard}` (commit {})", &commit[..commit.len().min(12)]);
    println!("        {}", chosen.iter().map(|suite| suite.name).collect::<Vec<_>>().join(", "));
    let missing = meet_needs(&chosen, options.no_install)?;
    let counts = run_all(&chosen, options.no_install, &missing);
    tell_missing(&missing);
    println!("{}", summary(counts));
    Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse(arguments: &[String]) -> Outcome<Options> {
    let mut options = Options::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().ok_or(format!("`{word}` wants a name after it"));
        match word.as_str() {
            "--no-install" => options.no_install = true,
            "--list" => options.list = true,
            "--only" => options.only.push(value()?),
            "--shard" => options.shard = Some(value()?),
            _ => return Err(format!("test does not know `{word}`; see `cargo x test --help`")),
        }
    }
    Ok(options)
}

/// The names of all shards, in order.
fn shards() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        SUITES.iter().filter_map(|suite| if let Turn::Shard(name) = suite.turn { Some(name) } else { None }).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The shard whose turn it is at this commit.
fn shard_of(commit: &str) -> &'static str {
    let number = u64::from_str_radix(commit.get(..8).unwrap_or("0"), 16).unwrap_or(0);
    let shards = shards();
    let turn = number.checked_rem(shards.len() as u64).unwrap_or(0);
    usize::try_from(turn).ok().and_then(|turn| shards.get(turn).copied()).unwrap_or("none")
}

fn choose(options: &Options, shard: &str) -> Outcome<Vec<&'static Suite>> {
    if shard != "all" && shard != "none" && !shards().contains(&shard) {
        return Err(format!("no shard is called `{shard}`; there are: {}", shards().join(", ")));
    }
    if let Some(unknown) = options.only.iter().find(|name| !SUITES.iter().any(|suite| suite.name == **name)) {
        return Err(format!("no suite is called `{unknown}`; `cargo x test --list` names them"));
    }
    let is_chosen = |suite: &&Suite| {
        if !options.only.is_empty() {
            return options.only.iter().any(|name| name == suite.name);
        }
        suite.turn == Turn::Fixed || shard == "all" || matches!(suite.turn, Turn::Shard(name) if name == shard)
    };
    Ok(SUITES.iter().filter(is_chosen).collect())
}

fn list(shard: &str) {
    let mut lines = vec![format!("{:<18}{:<14}{:>8}  what it proves", "suite", "turn", "seconds")];
    for suite in SUITES {
        let turn = match suite.turn {
            Turn::Fixed => "every run".to_owned(),
            Turn::Shard(name) => format!("shard {name}"),
        };
        lines.push(format!("{:<18}{turn:<14}{:>8}  {}", suite.name, suite.budget_seconds, suite.about));
        for need in suite.needs {
            let state = if need.is_met() { "present" } else { "missing" };
            lines.push(format!("{:<42}needs {} ({state})", "", need.name));
        }
    }
    lines.push(format!("shard of this commit: {shard}"));
    process::say(&lines);
}

/// What the chosen suites need and the machine does not have after an attempt to install it.
fn meet_needs(chosen: &[&'static Suite], no_install: bool) -> Outcome<Vec<&'static Need>> {
    let unmet = || {
        let mut needs: Vec<&'static Need> = Vec::new();
        for need in chosen.iter().flat_map(|suite| suite.needs).filter(|need| !need.is_met()) {
            if !needs.iter().any(|known| known.name == need.name) {
                needs.push(need);
            }
        }
        needs
    };
    let missing = unmet();
    if missing.is_empty() {
        return Ok(missing);
    }
    println!("needed and not here: {}", missing.iter().map(|need| need.name).collect::<Vec<_>>().join(", "));
    if no_install {
        return Ok(missing);
    }
    needs::install(&missing)?;
    Ok(unmet())
}

fn run_all(chosen: &[&'static Suite], no_install: bool, missing: &[&Need]) -> Counts {
    let begun = Instant::now();
    let lacks = |suite: &Suite| suite.needs.iter().find(|need| missing.iter().any(|absent| absent.name == need.name));
    let (lacking, able): (Vec<&Suite>, Vec<&Suite>) = chosen.iter().partition(|suite| lacks(suite).is_some());
    let ended = Schedule::new(no_install).run(&able);
    let mut total = Counts { skipped: lacking.len(), ..Counts::default() };
    println!();
    for Ended { suite, counts, seconds, cpu_seconds } in ended {
        let over = if seconds > suite.budget_seconds { "  over its budget" } else { "" };
        let Counts { passed, failed, skipped } = counts;
        println!(
            "{:<18}{passed:>7} passed {failed:>5} failed {skipped:>5} skipped {seconds:>6} s of {:<4} {cpu_seconds:>6} s of CPU{over}",
            suite.name, suite.budget_seconds
        );
        total.add(counts);
    }
    for suite in lacking {
        println!("{:<18}skipped: it needs {}", suite.name, lacks(suite).map_or("", |need| need.name));
    }
    println!("{:<18}{:>52} s", "all", begun.elapsed().as_secs());
    total
}

fn tell_missing(missing: &[&Need]) {
    for need in missing {
        println!("missing: {} -> {}", need.name, need.advice());
    }
    if !missing.is_empty() && !needs::is_root() {
        println!("run the commands above as root, then `cargo x test` again");
    }
}

/// The last line of the run.
pub fn summary(counts: Counts) -> String {
    let skipped = if counts.skipped > 0 { format!(", {} skipped", counts.skipped) } else { String::new() };
    format!("{} passed, {} failed{skipped}", counts.passed, counts.failed)
}

#[cfg(test)]
mod tests {
    use super::{Counts, Options, choose, parse, shard_of, shards, summary};
    use crate::suites::{SUITES, Turn};

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_last_line_is_exact() {
        assert_eq!(summary(Counts { passed: 12, failed: 0, skipped: 0 }), "12 passed, 0 failed");
        assert_eq!(summary(Counts { passed: 1, failed: 2, skipped: 3 }), "1 passed, 2 failed, 3 skipped");
    }

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let options = parse(&words("--no-install --only tidy --only clippy --shard all")).expect("all are known");
        let only = vec!["tidy".to_owned(), "clippy".to_owned()];
        assert_eq!(options, Options { no_install: true, list: false, only, shard: Some("all".to_owned()) });
        assert!(parse(&words("--quick")).is_err());
        assert!(parse(&words("--only")).is_err());
    }

    #[test]
    fn every_run_takes_the_fixed_set_and_one_shard() {
        let shard = shard_of("0000000012");
        let chosen = choose(&Options::default(), shard).expect("the shard exists");
        for suite in SUITES {
            let expected = suite.turn == Turn::Fixed || suite.turn == Turn::Shard(shard);
            assert_eq!(chosen.iter().any(|c| c.name == suite.name), expected, "{}", suite.name);
        }
        assert!(choose(&Options::default(), "no-such-shard").is_err());
    }

    #[test]
    fn every_shard_has_its_turn() {
        let seen: std::collections::BTreeSet<&str> = (0..64).map(|n| shard_of(&format!("{n:08x}"))).collect();
        assert_eq!(seen.len(), shards().len().max(1));
    }

    #[test]
    fn suite_names_are_unique() {
        let names: std::collections::BTreeSet<&str> = SUITES.iter().map(|suite| suite.name).collect();
        assert_eq!(names.len(), SUITES.len());
    }
}
