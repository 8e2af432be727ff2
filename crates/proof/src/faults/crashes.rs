//! The process dies right before any one of its calls on the data directory, and with it the power (AT-06): of what no sync covers parts
//! are lost, and the next start has all that was acknowledged.
//!
//! ```text
//!   life: start ─ load ─ stop          recovery, of every second trial     judged: check, start, every key, stop ─ cut ─ start, …
//!          └─ dies before call n ─ cut ─┴─ dies before call m ─ cut ───────┘
//!   trials   n drawn, again and again on one directory          every   all n of a life, each on a copy of one directory
//! ```
//!
//! No process is ever ended from outside: it would be between two calls of its own or within one, and the journal would not know.

mod trial;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use base::rng::{Rng, mix};

use super::book::Book;
use super::loss::Lost;
use super::node::{Home, Node, words};
use super::shim::{DIE, Rule, Shim, call, file};
use super::{Options, Setting, tell};
use crate::kill::told;
use crate::process::copy_directory;
use trial::{Calls, Death, EVERY, Life, Trial};

/// Trials on one directory; then there is a new one.
const TRIALS_PER_DIRECTORY: u64 = 12;
/// Lives do not make the same number of calls. After so many in a row that ended before they died there are no more.
const UNMET_MAX: u32 = 4;

/// When a life died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Died {
    InStart,
    UnderLoad,
    InStop,
    Never,
}

/// What came of the trials.
#[derive(Default)]
struct Tally {
    right: u64,
    wrong: Vec<String>,
    tried: u64,
    /// In starts, under load, in stops.
    died: [u64; 3],
    in_recoveries: u64,
    /// Before which calls.
    calls: BTreeMap<String, u64>,
    lost: Lost,
}

/// What a part works on.
struct Ground<'a> {
    home: &'a Home,
    shim: &'a Shim,
    options: &'a Options,
}

impl Tally {
    /// Counts a trial; whether the directory is good for another one.
    fn note(&mut self, trial: &Trial, result: Result<(Died, String), String>) -> bool {
        self.tried += 1;
        let is_right = result.is_ok();
        match result {
            Ok((Died::Never, _)) => println!("{trial}: ended before it died, so it says nothing"),
            Ok((died, what)) => {
                self.died[died as usize] += 1;
                tell(&trial.to_string(), Ok(what), (&mut self.right, &mut self.wrong));
            }
            Err(problem) => tell(&trial.to_string(), Err(problem), (&mut self.right, &mut self.wrong)),
        }
        is_right
    }

    fn add(&mut self, lost: Lost) {
        self.lost.unsynced += lost.unsynced;
        self.lost.places += lost.places;
        self.lost.names += lost.names;
    }

    fn end(mut self) -> (u64, Vec<String>) {
        let Tally { tried, died: [start, load, stop], in_recoveries, lost, .. } = &self;
        println!(
            "{tried} trials: died {start} times in a start, {load} under load, {stop} in a stop; {in_recoveries} recoveries died, too"
        );
        println!(
            "{} changes were not synced; {} places of files and {} names were lost",
            lost.unsynced, lost.places, lost.names
        );
        let calls: Vec<String> = self.calls.iter().map(|(call, count)| format!("{call} {count}")).collect();
        println!("before: {}", calls.join(", "));
        if self.wrong.is_empty() && 2 * (start + load + stop) < *tried {
            self.wrong.push(format!("it proves nothing: {tried} trials, and less than half of them died"));
        }
        (self.right, self.wrong)
    }
}

/// Runs trials of the seed, or all calls.
pub(super) fn run(options: &Options, home: &Home, shim: &Shim) -> io::Result<(u64, Vec<String>)> {
    let ground = Ground { home, shim, options };
    let mut tally = Tally::default();
    let outcome = match options.every {
        true => EVERY.iter().try_for_each(|life| ground.every(*life, options.seed, &mut tally)),
        false => ground.trials(&mut tally),
    };
    if let Err(problem) = outcome {
        tally.wrong.push(format!("a life without a cut: {problem}"));
    }
    Ok(tally.end())
}

impl Ground<'_> {
    fn trials(&self, tally: &mut Tally) -> Result<(), String> {
        let calls = self.count(&EVERY[0], &self.home.data()?, &mut Book::new(self.options.seed))?;
        println!("{calls} ({})", EVERY[0]);
        let mut rng = Rng::new(mix(self.options.seed));
        for directory in 0..self.options.trials.div_ceil(TRIALS_PER_DIRECTORY) {
            let trials = TRIALS_PER_DIRECTORY.min(self.options.trials - directory * TRIALS_PER_DIRECTORY);
            // Of a directory that is left out, too: what the others are asked stays the same.
            let trials: Vec<Trial> = (0..trials).map(|_| Trial::draw(&mut rng, calls)).collect();
            let (data, mut book) = (self.home.data()?, Book::new(self.options.seed ^ directory));
            let is_named =
                |trial: &&Trial| self.options.only.as_ref().is_none_or(|part| trial.to_string().contains(part));
            for trial in trials.iter().filter(|_| self.options.has_third(directory)).filter(is_named) {
                let result = self.one(trial, &data, &mut book, tally);
                if !tally.note(trial, result) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// All calls of a life, one after the other.
    fn every(&self, life: Life, seed: u64, tally: &mut Tally) -> Result<(), String> {
        let (mut book, mut rng) = (Book::new(seed), Rng::new(mix(seed)));
        let data = self.home.data()?;
        self.count(&life, &data, &mut book)?;
        // A log that was not closed, and runs.
        let mut node = self.started(&life.setting, Death::At(u32::MAX), &data)?.ok_or("it died")?;
        self.load(&life, &mut node, &mut book)?;
        self.arm(Death::At(1))?;
        node.stop()?;
        self.shim.cut(&data, &mut rng).map_err(words)?;
        let origin = self.home.beside("origin")?;
        copy_directory(&data, &origin).map_err(words)?;
        let calls = self.count(&life, &data, &mut book.clone())?;
        println!("{calls} ({life})");
        let mut unmet = 0;
        for nth in (1..).filter(|nth| self.options.has_third(u64::from(*nth))) {
            let trial = Trial::of(life, Death::At(nth), calls, &mut rng);
            let data = self.home.data()?;
            copy_directory(&origin, &data).map_err(words)?;
            let result = self.one(&trial, &data, &mut book.clone(), tally);
            unmet = if matches!(result, Ok((Died::Never, _))) { unmet + 1 } else { 0 };
            tally.note(&trial, result);
            if unmet == UNMET_MAX {
                break;
            }
        }
        Ok(())
    }

    fn one(&self, trial: &Trial, data: &Path, book: &mut Book, tally: &mut Tally) -> Result<(Died, String), String> {
        let (mut story, kept) = (String::new(), self.home.beside("cut")?);
        let died = self.judged(trial, data, book, (tally, &mut story));
        let what = format!("{story}; {} units acknowledged so far", book.acknowledged);
        match died {
            Ok(died) => Ok((died, what)),
            Err(problem) => {
                if let Some(keep) = self.options.keep.as_ref().filter(|keep| !keep.exists()) {
                    fs::create_dir_all(keep).map_err(words)?;
                    copy_directory(&kept, keep).map_err(words)?;
                }
                Err(format!("{what}: {problem}"))
            }
        }
    }

    fn judged(
        &self,
        trial: &Trial,
        data: &Path,
        book: &mut Book,
        (tally, story): (&mut Tally, &mut String),
    ) -> Result<Died, String> {
        let mut rng = Rng::new(trial.loss);
        let died = self.life(trial, data, book)?;
        if died != Died::Never {
            let call = self.shim.last().map_err(words)?;
            *story = format!("{died:?} before a {call}");
            *tally.calls.entry(call).or_default() += 1;
        }
        self.cut(data, &mut rng, (tally, story))?;
        if let Some(nth) = trial.then_nth.filter(|_| died != Died::Never) {
            let was_start = self.recovery(&trial.life.setting, nth, data)?;
            tally.in_recoveries += u64::from(was_start);
            *story += &format!("; then before a {}", self.shim.last().map_err(words)?);
            self.cut(data, &mut rng, (tally, story))?;
        }
        self.shim.disarm().map_err(words)?;
        // A clean stop promises everything, so what it left unsynced may go as well.
        let cut_again = &mut || self.shim.cut(data, &mut rng).map(drop).map_err(words);
        self.home.judge_with(&trial.life.setting, (data, Some(self.shim)), book, cut_again)?;
        Ok(died)
    }

    /// The power fails, too.
    fn cut(&self, data: &Path, rng: &mut Rng, (tally, story): (&mut Tally, &mut String)) -> Result<(), String> {
        let lost = self.shim.cut(data, rng).map_err(words)?;
        *story += &format!(", lost {lost}");
        tally.add(lost);
        match self.options.keep {
            Some(_) => copy_directory(data, &self.home.beside("cut")?).map_err(words),
            None => Ok(()),
        }
    }

    fn arm(&self, death: Death) -> Result<(), String> {
        let (calls, files, nth, behind) = match death {
            Death::At(nth) => (call::ALL, file::ALL, nth, 0),
            Death::Recycling(behind) => (call::RENAME, file::NEW_LOG, 1, behind),
        };
        let rule = Rule { calls, files, nth, times: 1, error: DIE, first_is_short: false };
        self.shim.arm_behind(&rule, behind).map_err(words)
    }

    fn is_dead(&self) -> Result<bool, String> {
        self.shim.fired().map(|fired| fired > 0).map_err(words)
    }

    /// A start; `None` if it died of its call.
    fn started(&self, setting: &Setting, death: Death, data: &Path) -> Result<Option<Node>, String> {
        // Left by a trial that was wrong.
        self.shim.forget().map_err(words)?;
        self.arm(death)?;
        match self.home.start(setting, data, Some(self.shim)) {
            Ok(node) => Ok(Some(node)),
            Err(problem) => match told::panic(&problem) {
                None if self.is_dead()? => Ok(None),
                _ => Err(format!("a start ended with {problem}")),
            },
        }
    }

    /// All of the load, or until it dies of its call.
    fn load(&self, life: &Life, node: &mut Node, book: &mut Book) -> Result<(), String> {
        (node.clients, node.burst) = (life.clients, life.burst);
        let mut connections = match node.clients() {
            Err(_) if self.is_dead()? => return Ok(()),
            connected => connected?,
        };
        let mut bytes = 0;
        node.load_over(&mut connections, book, "loaded", &mut |_, burst| {
            if let Some(refusal) = &burst.refusal {
                return Err(format!("a write was refused: {refusal}"));
            }
            bytes += burst.bytes;
            Ok(bytes >= life.bytes || (burst.is_broken && self.is_dead()?))
        })
    }

    /// Start, load and stop, up to the call that it dies of.
    fn life(&self, trial: &Trial, data: &Path, book: &mut Book) -> Result<Died, String> {
        let Some(mut node) = self.started(&trial.life.setting, trial.death, data)? else { return Ok(Died::InStart) };
        self.load(&trial.life, &mut node, book)?;
        if self.is_dead()? {
            return node.end().map(|_| Died::UnderLoad);
        }
        let status = node.stop()?;
        match self.is_dead()? {
            true => Ok(Died::InStop),
            false if status.success() => Ok(Died::Never),
            false => Err(format!("its stop ended with {status}: {}", node.output())),
        }
    }

    /// A start that dies, or, where it has fewer calls, the stop behind it; returns whether it was the start.
    fn recovery(&self, setting: &Setting, nth: u32, data: &Path) -> Result<bool, String> {
        let Some(mut node) = self.started(setting, Death::At(nth), data)? else { return Ok(true) };
        let was_start = self.is_dead()?;
        if !was_start {
            self.arm(Death::At(1))?;
        }
        node.stop()?;
        Ok(was_start)
    }

    /// The calls of a life that does not die; the power fails behind its stop.
    fn count(&self, life: &Life, data: &Path, book: &mut Book) -> Result<Calls, String> {
        let mut node = self.started(&life.setting, Death::At(u32::MAX), data)?.ok_or("it died")?;
        let start = self.shim.seen().map_err(words)?;
        self.load(life, &mut node, book)?;
        let status = node.stop()?;
        let all = self.shim.seen().map_err(words)?;
        match (all, status.success()) {
            (0, _) => return Err("the shim saw no call: is the binary linked statically?".to_owned()),
            (_, false) => return Err(format!("its stop ended with {status}: {}", node.output())),
            _ => {}
        }
        self.shim.cut(data, &mut Rng::new(self.options.seed)).map_err(words)?;
        Ok(Calls { all, start })
    }
}
