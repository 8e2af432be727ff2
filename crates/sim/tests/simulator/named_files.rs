//! Files that a machine writes and replaces by name, over every crash: what was told durable is there, and a file that is being
//! replaced is the old one or the new one.

use base::{Effect, Event, Machine, SegmentNumber, TickInput, TickOutput};
use sim::disk::{CrashKind, Disk};
use sim::node::{Abilities, Boot, Durability, Node, Refusal};
use sim::street::{CrashPoint, Happening, Street, Weather};
use sim::trace::Trace;
use std::cell::RefCell;
use std::rc::Rc;

/// What the street told, in order: the number, and whether it is durable.
type Told = Rc<RefCell<Vec<(u64, Result<(), String>)>>>;

/// Asks for everything in its first tick.
struct Asker {
    effects: Vec<Effect>,
    told: Told,
}

impl Machine for Asker {
    type Message = ();

    fn tick(&mut self, input: TickInput<'_, ()>, output: &mut TickOutput<()>) {
        output.effects.append(&mut self.effects);
        for event in input.events.drain(..) {
            self.told.borrow_mut().push(match event {
                Event::FileDurable { token } => (token, Ok(())),
                Event::FileFailed { token, reason } => (token, Err(reason)),
                other => panic!("{other:?}"),
            });
        }
    }
}

struct AskerNode {
    effects: Vec<Effect>,
    told: Told,
}

impl Node for AskerNode {
    type Machine = Asker;

    fn open(&mut self, _boot: Boot, _disk: &mut Disk) -> Result<Vec<Asker>, Refusal> {
        Ok(vec![Asker { effects: std::mem::take(&mut self.effects), told: Rc::clone(&self.told) }])
    }

    fn file_name(&self, _core: u16, _segment: SegmentNumber) -> String {
        unreachable!("it has no log")
    }

    fn abilities(&self) -> Abilities {
        Abilities { cores_max: 1, cluster: false, waits: false, blocks: false, keyspace: false, outlives_syncs: false }
    }
}

fn replace(token: u64, byte: u8, count: usize) -> Effect {
    Effect::ReplaceFile { token, name: "log".into(), bytes: vec![byte; count] }
}

fn write(token: u64, offset: u64, byte: u8, count: usize) -> Effect {
    Effect::WriteFile { token, name: "log".into(), offset, bytes: vec![byte; count] }
}

/// What is in the file, what was told, and the durable steps there were.
struct Outcome {
    file: Option<Vec<u8>>,
    told: Vec<(u64, Result<(), String>)>,
    steps: u64,
}

fn run(effects: Vec<Effect>, seed: u64, crash: Option<CrashPoint>) -> Outcome {
    let told = Told::default();
    let weather = Weather {
        network_us_max: 100,
        tick_us_max: 100,
        hop_us_max: 10,
        write_us_max: 50,
        sync_us_max: 5_000,
        whole_segments_of_8: 4,
    };
    let node = AskerNode { effects, told: Rc::clone(&told) };
    let mut street = Street::new(node, weather, seed, Trace::new(false));
    street.start(1, Durability::Memory, 1 << 16).unwrap();
    if let Some(crash) = crash {
        street.plan_crash(crash);
    }
    while let Some(happening) = street.step() {
        assert!(crash.is_some() || matches!(happening, Happening::Quiet));
    }
    assert_eq!(street.is_up(), crash.is_none(), "the crash came");
    let file = street.disk.files().find(|(name, _)| *name == "log").map(|(_, bytes)| bytes.to_vec());
    Outcome { file, told: told.take(), steps: street.durable_steps() }
}

/// The file after each of the effects below.
fn contents() -> Vec<Vec<u8>> {
    let first = vec![1; 1000];
    let extended = [vec![1; 900], vec![2; 700]].concat();
    let second = vec![3; 2000];
    let mut changed = second.clone();
    changed[512..1512].fill(4);
    vec![first, extended, second, changed]
}

fn effects() -> Vec<Effect> {
    vec![replace(0, 1, 1000), write(1, 900, 2, 700), replace(2, 3, 2000), write(3, 512, 4, 1000)]
}

/// Whether a crash while effect `next` is under way may leave this file.
fn is_between(file: Option<&[u8]>, next: usize) -> bool {
    let contents = contents();
    let (before, after) = (next.checked_sub(1).map(|last| &contents[last][..]), contents.get(next).map(Vec::as_slice));
    if file == before || (file.is_some() && file == after) {
        return true;
    }
    // Only a write in place tears, and only in what it writes.
    let place = match next {
        1 => 900..1600,
        3 => 512..1512,
        _ => return false,
    };
    let (Some(file), Some(before), Some(after)) = (file, before, after) else { return false };
    let is_byte_fine = |(at, byte): (usize, &u8)| {
        *byte == before.get(at).copied().unwrap_or(0) || (place.contains(&at) && *byte == after[at])
    };
    (before.len()..=after.len()).contains(&file.len()) && file.iter().enumerate().all(is_byte_fine)
}

#[test]
fn named_files_are_what_was_asked_for_in_order() {
    for seed in 0..50 {
        let outcome = run(effects(), seed, None);
        assert_eq!(outcome.told, (0..4).map(|token| (token, Ok(()))).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(outcome.file.as_ref(), contents().last(), "seed {seed}");
    }
}

#[test]
fn a_named_file_keeps_what_was_told_durable_at_every_crash() {
    let steps = run(effects(), 0, None).steps;
    assert!(steps > 16, "{steps} durable steps");
    let mut torn = 0;
    for kind in [CrashKind::Kill, CrashKind::PowerCut] {
        for (step, seed) in (1..=steps).flat_map(|step| (0..20).map(move |seed| (step, seed))) {
            let Outcome { file, told, .. } = run(effects(), seed, Some(CrashPoint { step, kind }));
            // What is durable may not have been told yet.
            let fits = (told.len()..=4).any(|next| is_between(file.as_deref(), next));
            assert!(fits, "{kind:?} at step {step}, seed {seed}: {} told, and the file is {file:?}", told.len());
            torn += u64::from(file.is_some_and(|file| !contents().contains(&file)));
        }
    }
    assert!(torn > 20, "writes in place tear: {torn}");
}

#[test]
fn a_named_file_that_is_not_there_and_too_many_at_once_fail_by_name() {
    let outcome = run(vec![write(7, 0, 1, 10)], 1, None);
    assert_eq!(outcome.told, [(7, Err("log: No such file or directory".into()))]);
    assert_eq!(outcome.file, None);
    let crowd = std::iter::once(replace(0, 1, 10)).chain((1..70).map(|token| write(token, token, 2, 1)));
    let outcome = run(crowd.collect(), 1, None);
    let failed: Vec<u64> = outcome.told.iter().filter(|(_, told)| told.is_err()).map(|(token, _)| *token).collect();
    assert_eq!(failed, (64..70).collect::<Vec<_>>());
    assert_eq!(outcome.told.len(), 70);
    assert_eq!(outcome.file.map(|file| file.len()), Some(64));
}
