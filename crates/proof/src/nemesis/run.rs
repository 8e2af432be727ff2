//! One seed: a cluster is founded, written to, harmed, healed, read, compared, stopped, started and read again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use base::rng::Rng;

use super::client::{Client, Stage};
use super::copies::{Compared, compare};
use super::faults::{self, Fired};
use super::fleet::{Fleet, Setting};
use super::ground::Ground;
use super::history::{Answer, Operation, What, quoted, write_lines};
use super::judge::{by_key, judge};
use super::mover::{self, Moves};
use super::plan::{self, Means, Step};
use super::tally::{Ends, Met};
use super::whole::await_whole;
use crate::kill::told;

/// Clients that ask all the time.
const CLIENTS: usize = 20;
/// The client that reads in the end.
const LAST_CLIENT: usize = CLIENTS;
/// Tries for one of its reads: on a busy machine a node may lose its lease at any moment, and be whole again soon.
const LAST_TRIES: usize = 3000;
const LAST_PAUSE: Duration = Duration::from_millis(20);
/// How long clients go on after the last fault, so that all have met a whole cluster.
const AFTERWARDS: Duration = Duration::from_millis(500);
/// What is looked at.
const ORDER: &str = "every key's history is one of a single copy";
const COPIES: &str = "copies are equal";
const STARTED: &str = "the same after a stop and a start";
/// Findings that are told.
const TOLD_MAX: usize = 12;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The binary zerohop.
    pub zerohop: PathBuf,
    /// Draws everything.
    pub seed: u64,
    /// How long faults go on, about.
    pub faults_ms: u64,
    /// Nodes: 3 or 5.
    pub nodes: usize,
    /// Slots are moved meanwhile.
    pub moves: bool,
    /// Where history, faults and what nodes print are kept.
    pub folder: PathBuf,
    /// The lease, if the seed is not to draw it.
    pub lease_ms: Option<u64>,
    /// Cores of each node, the same.
    pub cores: Option<u16>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What was looked at, with what was wrong with it.
    pub checks: Vec<(&'static str, Vec<String>)>,
    /// Requests that were answered.
    pub ok: u64,
}

impl Verdict {
    /// Whether nothing was wrong.
    pub fn is_good(&self) -> bool {
        self.checks.iter().all(|(_, problems)| problems.is_empty())
    }

    /// Whether clients were told wrong things, or copies differ: what a planted bug has to be noticed by.
    pub fn noticed(&self) -> bool {
        self.checks.iter().any(|(name, problems)| [ORDER, COPIES, STARTED].contains(name) && !problems.is_empty())
    }
}

/// Runs a seed and prints what it met. To be called before there are threads.
///
/// # Errors
/// When the cluster cannot be started, or the folder not be written.
pub fn run(options: &Options) -> io::Result<Verdict> {
    if options.folder.exists() {
        fs::remove_dir_all(&options.folder)?;
    }
    fs::create_dir_all(&options.folder)?;
    let folder = fs::canonicalize(&options.folder)?;
    let ground = Ground::prepare(options.nodes)?;
    let mut rng = Rng::new(options.seed);
    let drawn = [250, 250, 400, 700][rng.below(4) as usize];
    let setting = Setting {
        zerohop: fs::canonicalize(&options.zerohop)?,
        lease_ms: options.lease_ms.unwrap_or(drawn),
        cores: options.cores.unwrap_or_else(|| if rng.chance(1, 2) { 1 } else { 2 }),
        durability: if rng.chance(1, 4) { "commit" } else { "interval" },
        io: if rng.chance(1, 2) { "auto" } else { "epoll" },
    };
    let has_networks = ground.shared_because.is_none();
    let means =
        Means { nodes: options.nodes, lease_ms: setting.lease_ms, has_networks, has_shaping: ground.has_shaping };
    match &ground.shared_because {
        None => println!("seed {}: {} nodes, each in a network namespace of its own", options.seed, options.nodes),
        Some(why) => println!(
            "seed {}: {} nodes on the loopback address, so they are killed and stopped only: {why}",
            options.seed, options.nodes
        ),
    }
    let Setting { lease_ms, cores, durability, io, .. } = &setting;
    println!("  lease {lease_ms} ms, {cores} cores each, durability {durability}, io {io}");
    let steps = plan::draw(&mut rng, means, options.faults_ms);
    let fleet = Fleet::new(ground, &folder, setting)?;
    (0..options.nodes).try_for_each(|node| fleet.start(node))?;
    await_whole(&fleet).map_err(|told| io::Error::other(format!("at the start: {told}; {}", said(&fleet))))?;
    let scene = Scene { options, folder: &folder, fleet: &fleet };
    scene.play(&steps)
}

fn said(fleet: &Fleet) -> String {
    (0..fleet.len()).map(|node| format!("node {node}: {}", fleet.output(node).trim())).collect::<Vec<_>>().join("; ")
}

struct Scene<'a> {
    options: &'a Options,
    folder: &'a Path,
    fleet: &'a Fleet,
}

impl Scene<'_> {
    fn play(&self, steps: &[Step]) -> io::Result<Verdict> {
        let stage = Stage::new(self.fleet);
        let (mut history, fired, moves, whole) = self.harm(&stage, steps)?;
        let seconds = stage.epoch.elapsed().as_secs();
        let mut verdict = Verdict::default();
        let healed_us = stage.now_us();
        let is_whole = whole.is_ok();
        verdict.checks.push(("it heals", whole.err().into_iter().collect()));
        let keys: Vec<String> = by_key(&history).into_keys().map(str::to_owned).collect();
        if is_whole {
            history.extend(last_reads(&stage, &keys, self.options.seed));
            self.compare_copies(&keys, &mut verdict);
        }
        self.write(&history, &fired)?;
        let met = Met { history: &history, fired: &fired, moves, seconds, healed_us };
        self.tell(&met);
        verdict.ok = Ends::of(history.iter()).ok;
        verdict.checks.push((ORDER, judge(&history)));
        verdict.checks.push(("it proves something", met.gaps()));
        verdict.checks.push(("no process ended or panicked by itself", self.panics()));
        for (name, problems) in &verdict.checks {
            println!("  {}  {name}", if problems.is_empty() { "ok    " } else { "FAILED" });
            problems.iter().take(TOLD_MAX).for_each(|problem| println!("          {problem}"));
            if problems.len() > TOLD_MAX {
                println!("          and {} others", problems.len() - TOLD_MAX);
            }
        }
        Ok(verdict)
    }

    /// Clients, faults and moves side by side, until all is whole again.
    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    fn harm(
        &self,
        stage: &Stage<'_>,
        steps: &[Step],
    ) -> io::Result<(Vec<Operation>, Vec<Fired>, Option<Moves>, Result<(), String>)> {
        let seed = self.options.seed;
        thread::scope(|scope| {
            let clients: Vec<_> =
                (0..CLIENTS).map(|number| scope.spawn(move || Client::new(stage, number, seed).run())).collect();
            let mover = self.options.moves.then(|| scope.spawn(move || mover::run(stage, seed)));
            // Nodes that are started here live as long as this thread.
            let fired = faults::fire(self.fleet, steps, stage.epoch, &stage.is_over);
            // Moves end, so that it can become whole; requests go on.
            stage.moves_are_over.store(true, Ordering::Relaxed);
            let moves = mover.map(|mover| mover.join().expect("it does not panic"));
            let whole =
                if fired.is_ok() { await_whole(self.fleet) } else { Err("faults could not be undone".to_owned()) };
            if whole.is_ok() {
                thread::sleep(AFTERWARDS);
            }
            stage.is_over.store(true, Ordering::Relaxed);
            let history = clients.into_iter().flat_map(|client| client.join().expect("it does not panic")).collect();
            if let Ok(took) = whole {
                println!("  whole {} ms after the last fault", took.as_millis());
            }
            Ok((history, fired?, moves, whole.map(drop)))
        })
    }

    /// At every member, and at every member again after a clean stop and a start.
    fn compare_copies(&self, keys: &[String], verdict: &mut Verdict) {
        let before = compare(self.fleet, keys);
        if let Ok((compared, _)) = &before {
            println!("  compared: {} keys in {} slots, {} exist", compared.keys, compared.slots, compared.exist);
        }
        let digests = before.as_ref().ok().map(|(compared, _)| compared.digests.clone());
        verdict.checks.push((COPIES, problems(before)));
        let mut stopped = self.fleet.stop_all();
        stopped.extend((0..self.fleet.len()).filter_map(|node| self.check(node).err()));
        if stopped.is_empty() {
            let again = (0..self.fleet.len())
                .try_for_each(|node| self.fleet.start(node))
                .map_err(|error| error.to_string())
                .and_then(|()| await_whole(self.fleet).map(drop))
                .and_then(|()| compare(self.fleet, keys));
            let is_other = |(compared, _): &(Compared, _)| digests.is_some_and(|digests| digests != compared.digests);
            if again.as_ref().is_ok_and(is_other) {
                stopped.push("what was read is another one than before the stop".to_owned());
            }
            stopped.extend(problems(again));
        }
        verdict.checks.push((STARTED, stopped));
    }

    /// `zerohop check` of what a node left.
    fn check(&self, node: usize) -> Result<(), String> {
        let mut command = Command::new(&self.options.zerohop);
        let output = command.arg("check").arg(self.fleet.data(node)).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("check of node {node}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    fn panics(&self) -> Vec<String> {
        let of_node = |node| {
            let ended = self.fleet.has_ended(node).map(|status| format!("ended by itself: {status}"));
            let panic = told::panic(&self.fleet.output(node));
            ended.into_iter().chain(panic).map(move |what| format!("node {node}: {what}"))
        };
        (0..self.fleet.len()).flat_map(of_node).collect()
    }

    fn write(&self, history: &[Operation], fired: &[Fired]) -> io::Result<()> {
        write_lines(&self.folder.join("history.jsonl"), history.iter().map(Operation::line))?;
        let fault = |fired: &Fired| {
            let Fired { step, begun_us, ended_us, has_worked } = fired;
            let (kind, fault) = (format!("{:?}", step.kind), step.fault.to_string());
            format!(
                "{{\"kind\":{},\"fault\":{},\"begun\":{begun_us},\"ended\":{ended_us},\"worked\":{has_worked}}}",
                quoted(&kind),
                quoted(&fault)
            )
        };
        write_lines(&self.folder.join("faults.jsonl"), fired.iter().map(fault))?;
        let Options { seed, nodes, faults_ms, moves, .. } = self.options;
        let run = format!("{{\"seed\":{seed},\"nodes\":{nodes},\"faults_ms\":{faults_ms},\"moves\":{moves}}}");
        write_lines(&self.folder.join("run.json"), std::iter::once(run))
    }

    fn tell(&self, met: &Met<'_>) {
        let (all, during) = (Ends::of(met.history.iter()), met.during_faults());
        println!("  {} requests ok, {} refused, {} unknown in {} s", all.ok, all.refused, all.unknown, met.seconds);
        println!("  during faults: {} ok, {} refused, {} unknown", during.ok, during.refused, during.unknown);
        println!("  not answered: {}", met.reasons());
        for line in met.sums() {
            println!("  {line}");
        }
        let faults: Vec<String> = met.fired.iter().map(|fired| fired.step.fault.to_string()).collect();
        println!("  {} faults: {}", faults.len(), faults.join("; "));
        match met.moves {
            Some(Moves { ordered, arrived, called_off }) => {
                println!("  moves: {ordered} ordered, {arrived} arrived in time, {called_off} called off");
            }
            None => println!("  no moves"),
        }
    }
}

fn problems(result: Result<(Compared, Vec<String>), String>) -> Vec<String> {
    result.map_or_else(|error| vec![error], |(_, differences)| differences)
}

/// Reads every key once more, now that all is whole.
fn last_reads(stage: &Stage<'_>, keys: &[String], seed: u64) -> Vec<Operation> {
    let mut client = Client::new(stage, LAST_CLIENT, seed);
    let mut done = Vec::new();
    for key in keys {
        for _ in 0..LAST_TRIES {
            let what = if key.starts_with("c:") { What::Count } else { What::Read };
            let operation = client.perform(key.clone(), what);
            let is_answered = matches!(operation.answer, Answer::Number(_) | Answer::Value(_));
            done.push(operation);
            if is_answered {
                break;
            }
            thread::sleep(LAST_PAUSE);
        }
    }
    done
}
