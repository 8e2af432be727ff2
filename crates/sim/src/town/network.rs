//! The network between nodes: wires with a machine at both ends, and what keeps bytes from their way.
//!
//! ```text
//!  machine ─ street ─► Received ─► flow: segments with their times ─► write ─ street ─► machine
//!                      Gone     ─► the flow ends: the other end is told behind the last segment
//! ```
//!
//! Nothing is lost on a wire that lives: who is cut off has what was sent when the way is free again, as TCP would.

use std::collections::{BTreeMap, VecDeque};

use crate::network::Socket;

/// Where the managers are, among the numbers of nodes.
pub const MANAGERS: usize = usize::MAX;

/// One end of a wire.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Number of the node.
    pub node: usize,
    /// Its street's name for the connection.
    pub socket: Socket,
    /// Start of the node that has it.
    pub boot: u32,
    /// What it says and hears counts no more.
    pub is_over: bool,
}

/// One direction of a wire.
#[derive(Default)]
pub struct Flow {
    /// Not arrived.
    pub segments: VecDeque<Vec<u8>>,
    /// Nothing comes behind them.
    pub ends: bool,
    /// An arrival is planned.
    pub is_planned: bool,
}

/// A connection between two nodes; flow i is from end i to the other one.
pub struct Wire {
    /// Who dialed, who accepted.
    pub ends: [End; 2],
    /// What is on its way.
    pub flows: [Flow; 2],
    /// Nothing arrives, in neither direction.
    pub is_stopped: bool,
}

/// See the module.
#[derive(Default)]
pub struct Network {
    /// All there ever were.
    pub wires: Vec<Wire>,
    by_socket: BTreeMap<(usize, Socket), (usize, usize)>,
    /// Ways that are cut, from and to; as often as somebody cut them.
    cuts: BTreeMap<(usize, usize), u32>,
    /// How many wires are stopped.
    stopped: usize,
}

impl Network {
    /// A new wire; its number.
    pub fn add(&mut self, ends: [End; 2]) -> usize {
        let number = self.wires.len();
        for (at, end) in ends.iter().enumerate() {
            self.by_socket.insert((end.node, end.socket), (number, at));
        }
        self.wires.push(Wire { ends, flows: Default::default(), is_stopped: false });
        number
    }

    /// The wire and the end that a street's socket is.
    pub fn of_socket(&self, node: usize, socket: Socket) -> Option<(usize, usize)> {
        self.by_socket.get(&(node, socket)).copied()
    }

    /// Whether nothing gets from one place to another.
    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cuts.contains_key(&(from, to))
    }

    /// Whether every way is free.
    pub fn is_quiet(&self) -> bool {
        self.cuts.is_empty() && self.stopped == 0
    }

    /// Cuts ways, one count each.
    pub fn cut(&mut self, ways: &[(usize, usize)]) {
        ways.iter().for_each(|way| *self.cuts.entry(*way).or_default() += 1);
    }

    /// Takes the counts back.
    pub fn mend(&mut self, ways: &[(usize, usize)]) {
        for way in ways {
            let count = self.cuts.get_mut(way).expect("what is mended was cut");
            *count -= 1;
            if *count == 0 {
                self.cuts.remove(way);
            }
        }
    }

    /// Stops a wire, or lets it go.
    pub fn stop(&mut self, wire: usize, stops: bool) {
        let wire = &mut self.wires[wire];
        match (wire.is_stopped, stops) {
            (false, true) => self.stopped += 1,
            (true, false) => self.stopped -= 1,
            _ => {}
        }
        wire.is_stopped = stops;
    }

    /// Wires of which both ends count.
    pub fn alive(&self) -> Vec<usize> {
        let is_alive = |wire: &Wire| wire.ends.iter().all(|end| !end.is_over);
        (0..self.wires.len()).filter(|number| is_alive(&self.wires[*number])).collect()
    }

    /// Whether what flows from that end arrives.
    pub fn is_free(&self, wire: usize, from: usize) -> bool {
        let Wire { ends, is_stopped, .. } = &self.wires[wire];
        !is_stopped && !self.is_cut(ends[from].node, ends[1 - from].node)
    }

    /// Flows that have something for their end, and whose way is free.
    pub fn waiting(&self) -> Vec<(usize, usize)> {
        let has = |flow: &Flow| !flow.is_planned && (flow.ends || !flow.segments.is_empty());
        let both = (0..self.wires.len()).flat_map(|wire| [(wire, 0), (wire, 1)]);
        both.filter(|(wire, from)| has(&self.wires[*wire].flows[*from]) && self.is_free(*wire, *from)).collect()
    }
}
