//! Target `table`: bytes of a table or of a command are refused or written again as they were; whatever table comes of that,
//! commands leave its invariants whole (the table asserts them itself), and plans for it can be asked for.

use base::{CoreId, Slot};
use control::plan;
use control::stretch::range;
use control::{
    Action, Comeback, Command, Founding, InstanceName, Newcomer, NodeId, Outcome, Replacement, RequestId, Settings,
    Table,
};
use placement::SlotRange;

use crate::source::Source;

/// Most commands of one input.
const COMMANDS_MAX: usize = 60;

/// Nobody in a table that was read.
const PROPOSER: u64 = 0x7A0B_5E11_C0DE;
/// Numbers of commands that plans make begin here.
const PLANNED: u64 = 1000;

/// Input: one byte in four bytes of a table; then commands, as bytes or as fields.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let mut table = match source.below(4) {
        0 => Table::decode(source.string()).inspect(check_round_trip).unwrap_or_default(),
        _ => founded(&mut source),
    };
    for number in 0..COMMANDS_MAX {
        if source.is_empty() {
            break;
        }
        let action = match source.byte() {
            255 => {
                let bytes = source.string();
                let Ok(command) = Command::decode(bytes) else { continue };
                assert_eq!(command.encode(), bytes);
                command.action
            }
            choice => action(choice, &table, &mut source),
        };
        obey(&mut table, number as u64, action);
    }
    check_round_trip(&table);
    check_plans(table);
}

fn check_round_trip(table: &Table) {
    let bytes = table.encode();
    let back = Table::decode(&bytes).expect("what a table writes is read");
    assert_eq!(back, *table);
    assert_eq!(back.encode(), bytes);
}

fn obey(table: &mut Table, number: u64, action: Action) -> Outcome {
    let command = Command { id: RequestId { proposer: PROPOSER + number % 3, number }, action };
    assert_eq!(Command::decode(&command.encode()), Ok(command.clone()));
    let index = table.version() + 1;
    let outcome = table.apply(index, &command);
    assert_eq!(table.clone().apply(index + 1, &command), outcome, "the same answer twice");
    outcome
}

/// What plans of moves ask is granted; what plans of chains ask does no harm.
fn check_plans(table: Table) {
    std::hint::black_box(plan::violations(&table));
    let nodes: Vec<NodeId> = table.nodes().map(|node| node.id()).collect();
    let mut moving = table.clone();
    for (number, action) in plan::rebalance(&table).into_iter().enumerate() {
        let outcome = obey(&mut moving, PLANNED + number as u64, action.clone());
        assert!(matches!(outcome, Outcome::Changed { .. }), "{action:?}: {outcome:?}");
    }
    let mut chained = table.clone();
    let mut number = PLANNED;
    for planned in [plan::fill_up, plan::mend, plan::trim] {
        for action in planned(&chained.clone()) {
            number += 1;
            obey(&mut chained, number, action);
        }
    }
    for node in nodes {
        std::hint::black_box(plan::replacements(&chained, node));
        std::hint::black_box(plan::drain(&chained, node));
    }
}

fn founded(source: &mut Source<'_>) -> Table {
    let mut table = Table::new();
    let settings = Settings { lease_ms: 300, chain_length: 1 + source.below(3) as u8 };
    let node = newcomer(1, source);
    let founding = Founding { cluster: [7; 16], settings, relaxed: source.below(8) == 7, node };
    obey(&mut table, 0, Action::Create(founding));
    table
}

fn newcomer(id: u32, source: &mut Source<'_>) -> Newcomer {
    let (zone, machine) = (source.below(3), source.below(6));
    Newcomer {
        id: NodeId(id),
        incarnation: 1,
        host: format!("h{id}"),
        port: 7000,
        cores: 1 + source.below(4) as u16,
        weight: source.below(3) as u16,
        zone: format!("z{zone}"),
        machine: format!("m{machine}"),
        identity: [0; 32],
    }
}

fn action(choice: u8, table: &Table, source: &mut Source<'_>) -> Action {
    let node = NodeId(1 + source.below(7) as u32);
    let incarnation = table.node(node).map_or(1, |node| node.facts.incarnation);
    let epoch = table.version();
    let a_move = source.below(4);
    let id = table.moves().get(a_move).map_or(0, |one| one.id);
    match choice % 16 {
        0 => Action::Join(newcomer(table.next_node().map_or(9, |node| node.0), source)),
        1 => {
            let (host, cores) = (format!("h{}", node.0), 1 + source.below(4) as u16);
            let takes_address = source.below(2) == 1;
            Action::Returned(Comeback { node, incarnation: incarnation + 1, host, port: 7000, cores, takes_address })
        }
        2 => Action::Fence { node, incarnation },
        3 => {
            let replacements = (0..source.below(3)).map(|_| {
                let slots = slots(source);
                Replacement { slots, place: place(table, slots, source) }
            });
            Action::Promote { node, incarnation, replacements: replacements.collect() }
        }
        4 => Action::Promote { node, incarnation, replacements: plan::replacements(table, node) },
        5 | 6 => {
            let slots = slots(source);
            let part = table.stretches_within(slots).next().map_or(slots, |(part, _)| part);
            match source.below(5) {
                0 => Action::Doubt { slots: part, node, epoch },
                _ => Action::Whole { slots: part, node, epoch },
            }
        }
        7 | 8 => replace(table, epoch, source),
        9 | 10 => {
            let slots = slots(source);
            let (part, stretch) = table.stretches_within(slots).next().expect("slots are covered");
            let to = place(table, part, source);
            Action::MoveBegin { slots: part, epoch, from: stretch.chain.primary().unwrap_or(to), to }
        }
        11 => Action::HandOver { id, epoch },
        12 => Action::MoveEnd { id },
        13 => Action::MoveCancel { id },
        14 => Action::Drain { node },
        _ => match source.below(3) {
            0 => Action::Remove { node, abandon: source.below(2) == 1 },
            1 => Action::Weigh { node, weight: source.below(20) as u16 },
            _ => Action::Configure(Settings { lease_ms: 300, chain_length: source.below(6) as u8 }),
        },
    }
}

fn replace(table: &Table, epoch: u64, source: &mut Source<'_>) -> Action {
    let slots = slots(source);
    let chain = table.stretch(slots.first).chain;
    let mut places: Vec<InstanceName> = chain.iter().map(|member| member.place).collect();
    match source.below(4) {
        0 => drop(places.pop()),
        1 if places.len() > 2 => places.swap(1, 2),
        _ => places.push(place(table, slots, source)),
    }
    Action::Replace { slots, epoch, places, counted: source.below(2) == 1 }
}

fn slots(source: &mut Source<'_>) -> SlotRange {
    let first = Slot::wrapping(source.short()).number();
    let length = [1, 40, 300, 4096][source.below(4)];
    range(first, (first + length - 1).min(16383)).expect("it ends where it begins or behind")
}

/// An instance of some node: mostly the one that has the first slot's group.
fn place(table: &Table, slots: SlotRange, source: &mut Source<'_>) -> InstanceName {
    let node = NodeId(1 + source.below(7) as u32);
    let home = table.node(node).map(|node| node.home(slots.first.group()));
    let other = CoreId(source.below(5) as u16);
    InstanceName { node, core: home.filter(|_| source.below(8) != 7).unwrap_or(other) }
}
