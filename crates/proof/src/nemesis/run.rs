//! One seed: a cluster is founded, written to, harmed, healed, read, compared, stopped, started and read again.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use base::rng::Rng;

use super::client::{Client, Course, Stage};
use super::faults::{self, Fired};
use super::fire::{self, Size};
use super::fleet::{Fleet, Setting};
use super::gates::{Gate, await_gates};
use super::ground::Ground;
use super::history::Operation;
use super::mover::{self, Moves};
use super::plan::{self, Means, Step};
use super::scene::{COPIES, ORDER, Played, STARTED, Scene};
use super::strangers;
use super::whole::await_whole;

/// Clients that ask all the time.
const CLIENTS: usize = 20;
/// Clients of each gate, beside these.
const CLIENTS_OF_A_GATE: usize = 6;
/// How long clients go on after the last fault, so that all have met a whole cluster.
const AFTERWARDS: Duration = Duration::from_millis(500);

/// What is done to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Faults of every kind while slots move.
    Faults,
    /// Slots that go to and fro under load.
    Fire(Size),
    /// Processes that are not what they say.
    Strangers,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is done to the cluster.
    pub what: What,
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
    /// What other clients ask through, beside those that ask the nodes.
    pub gates: Vec<Gate>,
    /// Where history, faults and what nodes print are kept.
    pub folder: PathBuf,
    /// The lease, if the seed is not to draw it.
    pub lease_ms: Option<u64>,
    /// Cores of each node, the same.
    pub cores: Option<u16>,
}

impl Options {
    /// Clients of nodes, and of gates behind them.
    pub(super) fn clients(&self) -> usize {
        CLIENTS + self.gates.len() * CLIENTS_OF_A_GATE
    }
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
        let wrong = self.checks.iter().filter(|(_, problems)| !problems.is_empty());
        wrong
            .map(|(name, _)| name)
            .any(|name| [ORDER, COPIES, STARTED, fire::WHOLE_TRANSACTIONS, fire::FREIGHT].contains(name))
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
    let ground = Ground::prepare(options.nodes, options.gates.len())?;
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
    let means = Means {
        nodes: options.nodes,
        gates: options.gates.len(),
        lease_ms: setting.lease_ms,
        has_networks,
        has_shaping: ground.has_shaping,
    };
    let processes = match options.gates.len() {
        0 => format!("{} nodes", options.nodes),
        gates => format!("{} nodes and {gates} gates", options.nodes),
    };
    match &ground.shared_because {
        None => println!("seed {}: {processes}, each in a network namespace of its own", options.seed),
        Some(why) => println!(
            "seed {}: {processes} on the loopback address, so they are killed and stopped only: {why}",
            options.seed
        ),
    }
    let Setting { lease_ms, cores, durability, io, .. } = setting.clone();
    println!("  lease {lease_ms} ms, {cores} cores each, durability {durability}, io {io}");
    let steps = plan::draw(&mut rng, means, options.faults_ms);
    let fleet = Fleet::new(ground, &folder, setting.clone(), options.gates.clone())?;
    fleet.places().try_for_each(|place| fleet.start(place))?;
    await_whole(&fleet.doors, || false)
        .map_err(|told| io::Error::other(format!("at the start: {told}; {}", said(&fleet))))?;
    let scene = Scene { options, folder: &folder, fleet: &fleet };
    match options.what {
        What::Faults => play(&scene, &steps),
        What::Fire(size) => fire::play(&scene, &mut rng, lease_ms, size),
        What::Strangers => strangers::play(&scene),
    }
}

fn said(fleet: &Fleet) -> String {
    let of = |place| format!("{}: {}", fleet.name(place), fleet.output(place).trim());
    fleet.places().map(of).collect::<Vec<_>>().join("; ")
}

/// Faults of every kind, moves and clients side by side.
fn play(scene: &Scene<'_>, steps: &[Step]) -> io::Result<Verdict> {
    let course = Course::new();
    let stage = Stage::new(&scene.fleet.doors, &course);
    let (history, fired, moves, healed) = harm(scene, &stage, steps)?;
    let mut verdict = Verdict::default();
    let played = Played { history, fired, moves, healed, besides: 0, gaps: Vec::new() };
    scene.judge(&stage, played, &mut verdict, || ("", Vec::new()))?;
    scene.tell_checks(&verdict);
    Ok(verdict)
}

/// Clients, faults and moves side by side, until all is whole again.
#[expect(clippy::type_complexity, reason = "it is taken apart at once")]
fn harm(
    scene: &Scene<'_>,
    stage: &Stage<'_>,
    steps: &[Step],
) -> io::Result<(Vec<Operation>, Vec<Fired>, Option<Moves>, Result<(), String>)> {
    let seed = scene.options.seed;
    thread::scope(|scope| {
        let client = move |number: usize| {
            let client = Client::new(stage, number, seed);
            if number < CLIENTS { client } else { client.through(number % stage.doors.gates()) }
        };
        let clients: Vec<_> =
            (0..scene.options.clients()).map(|number| scope.spawn(move || client(number).run())).collect();
        let mover = scene.options.moves.then(|| scope.spawn(move || mover::run(stage, seed)));
        // Nodes that are started here live as long as this thread.
        let fired = faults::fire(scene.fleet, steps, stage.course.epoch, &stage.is_over);
        // Moves end, so that it can become whole; requests go on.
        stage.moves_are_over.store(true, Ordering::Relaxed);
        let moves = mover.map(|mover| mover.join().expect("it does not panic"));
        let whole = if fired.is_ok() {
            await_whole(&scene.fleet.doors, || false).and_then(|took| await_gates(&scene.fleet.doors).map(|()| took))
        } else {
            Err("faults could not be undone".to_owned())
        };
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
