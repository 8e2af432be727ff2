//! Any one call fails, from the first of a start to the last of a stop, again and again on one directory (AT-06).
//!
//! ```text
//!   count all calls of a life ─► trial: the n-th fails ─► maybe another start with a fault ─► a start without: every key judged
//! ```

use std::io;
use std::path::Path;

use base::rng::{Rng, mix};

use super::book::Book;
use super::node::{Home, Node, words};
use super::shim::{EIO, ENOSPC, Rule, SHORT, Shim, call, file};
use super::{Options, Setting, tell};

/// Written by a life, bytes: the log leaves its first segment, and runs are made.
const LOAD_BYTES: u64 = 3 << 20;
/// Trials on one directory; then there is a new one.
const TRIALS_PER_DIRECTORY: u64 = 12;

/// What a trial is like.
#[derive(Clone, Copy, Debug)]
struct Trial {
    setting: Setting,
    nth: u32,
    error: u32,
    times: u32,
    is_killed: bool,
    /// Another life with a fault follows, whose n-th call fails.
    then_nth: Option<u32>,
}

impl Trial {
    fn draw(rng: &mut Rng, calls: u32) -> Trial {
        let setting = Setting {
            durability: if rng.chance(1, 2) { "interval" } else { "commit" },
            backend: if rng.chance(1, 2) { "epoll" } else { "uring" },
            cores: 1 + rng.below(2) as u32,
        };
        // Every order of magnitude as often as any other, so that starts are met as well as loads and stops.
        let nth = |rng: &mut Rng| f64::from(calls).powf(rng.unit()) as u32;
        Trial {
            setting,
            nth: nth(rng),
            error: [EIO, ENOSPC, SHORT][rng.below(3) as usize],
            times: [1, 1, 0][rng.below(3) as usize],
            is_killed: rng.chance(1, 2),
            then_nth: rng.chance(1, 2).then(|| nth(rng)),
        }
    }

    fn rule(&self, nth: u32) -> Rule {
        // A disk that writes half of everything for ever is none.
        let times = if self.error == SHORT { 1 } else { self.times };
        Rule { calls: call::ALL, files: file::ALL, nth, times, error: self.error, first_is_short: false }
    }
}

impl std::fmt::Display for Trial {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = match self.error {
            EIO => "EIO",
            ENOSPC => "ENOSPC",
            _ => "short",
        };
        let Trial { setting, nth, times, is_killed, then_nth, .. } = self;
        let from = if *times == 0 { "from" } else { "at" };
        let end = if *is_killed { "kill -9" } else { "SIGTERM" };
        write!(formatter, "{error} {from} call {nth}, {end}, then {then_nth:?} ({setting})")
    }
}

/// Runs trials of the seed.
pub(super) fn run(options: &Options, home: &Home, shim: &Shim) -> io::Result<(u64, Vec<String>)> {
    let (mut right, mut wrong) = (0, Vec::new());
    let mut rng = Rng::new(mix(options.seed));
    let calls = match count(home, shim) {
        Ok(calls) => calls,
        Err(problem) => return Ok((0, vec![format!("a life without faults: {problem}")])),
    };
    println!("{calls} calls in a life without faults");
    let (mut fired, mut refused_starts, mut tried) = (0, 0, 0);
    for directory in 0..options.trials.div_ceil(TRIALS_PER_DIRECTORY) {
        let data = home.data().map_err(io::Error::other)?;
        let mut book = Book::new(options.seed ^ directory);
        let trials = TRIALS_PER_DIRECTORY.min(options.trials - directory * TRIALS_PER_DIRECTORY);
        // Of a directory that is left out, too: what the others are asked stays the same.
        let trials: Vec<Trial> = (0..trials).map(|_| Trial::draw(&mut rng, calls)).collect();
        for trial in trials.iter().filter(|_| options.has_third(directory)) {
            tried += 1;
            let result = one(trial, (home, shim), &data, &mut book);
            let result = result.map(|lives| {
                fired += lives.iter().filter(|life| life.has_fired).count();
                refused_starts += lives.iter().filter(|life| life.is_refused).count();
                format!("{} units acknowledged so far", book.acknowledged)
            });
            let is_wrong = result.is_err();
            tell(&trial.to_string(), result, (&mut right, &mut wrong));
            if is_wrong {
                break;
            }
        }
    }
    println!("{fired} faults fired, {refused_starts} starts refused");
    if wrong.is_empty() && fired < tried / 2 {
        wrong.push(format!("it proves nothing: in {tried} trials {fired} faults fired"));
    }
    Ok((right, wrong))
}

/// What became of one life.
struct Life {
    has_fired: bool,
    is_refused: bool,
}

/// How many calls there are.
fn count(home: &Home, shim: &Shim) -> Result<u32, String> {
    let setting = Setting { durability: "commit", backend: "epoll", cores: 1 };
    let rule = Rule { calls: call::ALL, files: file::ALL, nth: u32::MAX, times: 1, error: EIO, first_is_short: false };
    let mut book = Book::new(1);
    let data = home.data()?;
    let mut node = armed_start(&setting, &rule, (home, shim), &data)?;
    node.write(&mut book, LOAD_BYTES)?;
    node.stop()?;
    match shim.seen().map_err(words)? {
        0 => Err("the shim saw no call: is the binary linked statically?".to_owned()),
        calls => Ok(calls),
    }
}

fn armed_start(setting: &Setting, rule: &Rule, (home, shim): (&Home, &Shim), data: &Path) -> Result<Node, String> {
    shim.arm(rule).map_err(words)?;
    home.start(setting, data, Some(shim))
}

fn one(trial: &Trial, (home, shim): (&Home, &Shim), data: &Path, book: &mut Book) -> Result<Vec<Life>, String> {
    let mut lives = Vec::new();
    for nth in [Some(trial.nth), trial.then_nth].into_iter().flatten() {
        lives.push(life(trial, nth, (home, shim), data, book)?);
    }
    shim.disarm().map_err(words)?;
    home.judge(&trial.setting, data, book)?;
    Ok(lives)
}

/// A process whose n-th call fails: it may refuse to start, refuse writes, or end; what it acknowledged, the book has.
fn life(trial: &Trial, nth: u32, (home, shim): (&Home, &Shim), data: &Path, book: &mut Book) -> Result<Life, String> {
    let started = armed_start(&trial.setting, &trial.rule(nth), (home, shim), data);
    let is_refused = started.is_err();
    match started {
        // It says why, and does not die of it.
        Err(refusal) if refusal.contains("exit status: 1") && refusal.contains("os error") => {}
        Err(refusal) => return Err(format!("a start ended with {refusal}")),
        Ok(mut node) => {
            let mut bytes = 0;
            node.load(book, "loaded", &mut |_, burst| {
                bytes += burst.bytes;
                Ok(bytes >= LOAD_BYTES || burst.is_broken || burst.refusal.is_some())
            })?;
            match node.is_alive() {
                true if trial.is_killed => node.kill()?,
                true => drop(node.stop()?),
                false => drop(node.end()?),
            }
        }
    }
    shim.lose_if(trial.setting.durability == "commit").map_err(words)?;
    Ok(Life { has_fired: shim.fired().map_err(words)? > 0, is_refused })
}
