//! Stock applications before a store, directly and through the proxy, and while the store's primary is killed.
//!
//! ```text
//!   users ─HTTP─► Django, Express, Spring, redis-py ──┬──────────────────► store      the control
//!   cookies                                           └─► zerohop proxy ─► store      the same steps, the same results
//!                                                                          ├─ Zerohop, Valkey
//!                                                                          ├─ Valkey with sentinels, the master killed
//!                                                                          └─ three nodes of Zerohop, one killed
//! ```
//!
//! An application is a program under `tests/clients/applications`. How it reaches the store is what `docs/applications.md` shows,
//! with other ports. It tries its steps, prints what each gave, and serves users from then on: each has a count of its own, in a
//! session or a cache, so whoever hears another's, or an old one, knows it.

pub(crate) mod http;
mod page;
mod program;
mod stores;
mod users;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use clap::Args;

use crate::commands::Counts;
use program::{Kind, Program};
use stores::{Shape, Store};
use users::{Crowd, Moment};

/// Arguments of `applications`.
#[derive(Args)]
pub struct ApplicationsArguments {
    /// The binary zerohop.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: String,
    /// What moves the proxy's and the store's bytes.
    #[arg(long, default_value = "auto")]
    io: String,
    /// The binary valkey-server.
    #[arg(long, default_value = "valkey-server")]
    valkey_server: String,
    /// Where the applications are.
    #[arg(long, default_value = "tests/clients/applications")]
    sources: PathBuf,
    /// The page that says how each reaches the proxy.
    #[arg(long, default_value = "docs/applications.md")]
    page: PathBuf,
    /// A Python that has Django, redis-py and limits.
    #[arg(long)]
    python: PathBuf,
    /// A folder with the modules of the application in Express.
    #[arg(long)]
    node_modules: PathBuf,
    /// Where the classes of the application in Spring are, and what they need.
    #[arg(long)]
    classpath: String,
    /// Only these applications.
    #[arg(long, value_enum)]
    only: Vec<Kind>,
    /// Only before these stores.
    #[arg(long, value_enum)]
    store: Vec<Shape>,
}

/// What each step gave an application that reached a store directly.
type Controls = BTreeMap<(Kind, Shape), Vec<String>>;

/// Each step of an application, and each crowd of its users, is a test.
///
/// # Errors
/// When a program cannot be started, or a store does not become what it has to be.
pub fn applications(arguments: &ApplicationsArguments) -> io::Result<Counts> {
    let chosen = |kind: &Kind| arguments.only.is_empty() || arguments.only.contains(kind);
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(chosen).collect();
    let shapes = Shape::ALL.into_iter().filter(|shape| arguments.store.is_empty() || arguments.store.contains(shape));
    let mut counts = Counts::default();
    let mut controls = Controls::new();
    for shape in shapes {
        let kinds: Vec<Kind> = kinds.iter().copied().filter(|kind| kind.works_with(shape)).collect();
        if shape.is_one() {
            for kind in kinds {
                control(arguments, kind, shape, &mut controls, &mut counts)?;
                Run::start(arguments, shape, true, &[kind])?.all(&mut controls, &mut counts)?;
            }
        } else {
            for kind in &kinds {
                if !controls.contains_key(&(*kind, shape.control())) {
                    control(arguments, *kind, shape.control(), &mut controls, &mut counts)?;
                }
            }
            Run::start(arguments, shape, true, &kinds)?.all(&mut controls, &mut counts)?;
        }
    }
    Ok(counts)
}

fn control(
    arguments: &ApplicationsArguments,
    kind: Kind,
    shape: Shape,
    controls: &mut Controls,
    counts: &mut Counts,
) -> io::Result<()> {
    Run::start(arguments, shape, false, &[kind])?.all(controls, counts)
}

/// A store, and the applications before it.
struct Run {
    store: Store,
    programs: Vec<Program>,
    shape: Shape,
    is_proxied: bool,
}

impl Run {
    /// One application after the other: the steps of one may empty the database of another.
    fn start(arguments: &ApplicationsArguments, shape: Shape, is_proxied: bool, kinds: &[Kind]) -> io::Result<Run> {
        let store = Store::start(arguments, shape, is_proxied)?;
        let begin = |kind: &Kind| Program::start(arguments, *kind, store.port(), shape);
        let programs = kinds.iter().map(begin).collect::<io::Result<Vec<_>>>()?;
        Ok(Run { store, programs, shape, is_proxied })
    }

    fn all(mut self, controls: &mut Controls, counts: &mut Counts) -> io::Result<()> {
        for program in &self.programs {
            let control = self.is_proxied.then(|| &controls[&(program.kind, self.shape.control())]);
            let wrong = judged(&program.said, control, counts);
            self.tell(program, &format!("{} steps", program.said.len()), wrong);
            if !self.is_proxied {
                controls.insert((program.kind, self.shape), program.said.clone());
            }
        }
        let mut crowds: Vec<Crowd> = self.programs.iter().map(|program| Crowd::new(program.port)).collect();
        let hear = |moment: Moment, crowds: &mut Vec<Crowd>| users::side_by_side(crowds, |user| user.live(&moment));
        hear(Moment::Arrival, &mut crowds);
        self.hooks("before", counts)?;
        if !self.shape.is_one() {
            self.store.settle()?;
            self.killed_while_they_run(&mut crowds)?;
        }
        self.hooks("after", counts)?;
        hear(Moment::End, &mut crowds);
        for (program, crowd) in self.programs.iter().zip(&crowds) {
            let wrong = crowd.wrong();
            counts.failed += u64::from(!wrong.is_empty());
            counts.passed += u64::from(wrong.is_empty());
            self.tell(program, &crowd.tally(), wrong);
        }
        let wrong = self.store.where_it_should_not_be(self.shape)?;
        counts.failed += u64::from(wrong.is_some());
        counts.passed += u64::from(wrong.is_none());
        wrong.iter().for_each(|wrong| println!("  FAILED {wrong}"));
        Ok(())
    }

    fn hooks(&self, name: &str, counts: &mut Counts) -> io::Result<()> {
        for program in self.programs.iter().filter(|program| program.has_hooks()) {
            let said = program.hook(name)?;
            let wrong = judged(&said, None, counts);
            self.tell(program, &format!("{} steps {name}", said.len()), wrong);
        }
        Ok(())
    }

    /// Half of the users ask all the time, the others come back afterwards.
    fn killed_while_they_run(&mut self, crowds: &mut [Crowd]) -> io::Result<()> {
        let kill = users::Kill::new(self.shape.forgets());
        let store = &mut self.store;
        let running = crowds.iter_mut().flat_map(Crowd::running);
        let said = users::through(running, &kill, || store.kill())?;
        println!("{}: {said}", self.shape.name());
        Ok(())
    }

    fn tell(&self, program: &Program, what: &str, wrong: Vec<String>) {
        let way = if self.is_proxied { "through the proxy" } else { "directly" };
        println!("{}, {}, {way}: {what}", program.kind.name(), self.shape.name());
        let is_right = wrong.is_empty();
        wrong.into_iter().for_each(|line| println!("  FAILED {line}"));
        if !is_right {
            println!("{}", program.errors());
        }
    }
}

/// Counts steps that gave what they have to, and what they gave directly; the others.
fn judged(said: &[String], control: Option<&Vec<String>>, counts: &mut Counts) -> Vec<String> {
    let mut wrong: Vec<String> = said.iter().filter(|line| !line.starts_with("ok ")).cloned().collect();
    if let Some(control) = control {
        let missing = control.iter().filter(|line| line.starts_with("ok ") && !said.contains(line));
        wrong.extend(missing.map(|line| format!("(directly) {line}")));
    }
    counts.failed += wrong.len() as u64;
    counts.passed += (said.len() - said.len().min(wrong.len())) as u64;
    wrong
}

#[cfg(test)]
mod tests {
    use super::judged;
    use crate::commands::Counts;

    #[test]
    fn a_step_has_to_give_what_it_must_and_what_it_gave_directly() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let mut counts = Counts::default();
        let control = lines("ok a: 1\nok b: 2");
        assert!(judged(&control, Some(&control), &mut counts).is_empty());
        assert_eq!((counts.passed, counts.failed), (2, 0));
        let wrong = judged(&lines("ok a: 1\nFAILED b: 3, expected 2"), Some(&control), &mut counts);
        assert_eq!(wrong, ["FAILED b: 3, expected 2", "(directly) ok b: 2"]);
        assert_eq!(judged(&lines("ok a: 1"), Some(&control), &mut counts), ["(directly) ok b: 2"], "it ended early");
    }
}
