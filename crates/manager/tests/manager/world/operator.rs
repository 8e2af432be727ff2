//! Who asks a node's manager for something from outside: it has the token, and says so as a node does.

use base::{ConnectionId, Door, Effect, Entrance, Event, InstanceName, NodeId};
use manager::identity::Identity;
use manager::message::{Introduction, Message};
use wire::line::Line;
use wire::trust::{MANAGER, Party, Purpose, Speaker};

use super::{Input, World};

/// One conversation; its connection is no link's.
pub struct Operator {
    to: usize,
    connection: ConnectionId,
    line: Line,
    speaker: Speaker,
    /// What it asks for, until it has.
    asks: Option<Message>,
}

impl World {
    /// An operator connects to a node, and asks once both have proved that they have the token.
    pub(super) fn ask(&mut self, to: usize, known: &Identity, number: u64, asks: Message) {
        let connection = ConnectionId { index: u32::MAX, generation: number as u32 };
        let mut speaker = Speaker::new(&known.token, number);
        speaker.set_name(known.cluster, Party::manager(NodeId(u32::MAX), number));
        let whom = (Purpose::Managers, InstanceName { node: known.node, core: MANAGER });
        let line = Line::dialed(0, (connection, String::new()), &mut speaker, whom);
        let life = self.nodes[to].life;
        self.operators.push(Operator { to, connection, line, speaker, asks: Some(asks) });
        let (peer, local) = ("10.1.0.1:1".to_owned(), String::new());
        self.tell(
            to,
            life,
            Input::Event(Event::Accepted { connection, door: Door::Node, entrance: Entrance::default(), peer, local }),
        );
        self.answer_operator(to, connection, &[]);
    }

    /// A node says something to an operator.
    pub(super) fn answer_operator(&mut self, to: usize, connection: ConnectionId, bytes: &[u8]) {
        let mut operators = self.operators.iter_mut();
        let Some(operator) = operators.find(|known| (known.to, known.connection) == (to, connection)) else { return };
        operator.line.receive(bytes);
        if operator.line.greet(0, &mut operator.speaker).is_some()
            && let Some(asks) = operator.asks.take()
        {
            let said = Introduction { start: 1, life: 1, has_come: false, news: Default::default() };
            operator.line.send(|out| Message::Start(said).encode(out));
            operator.line.send(|out| asks.encode(out));
        }
        let mut effects = Vec::new();
        operator.line.flush(&mut effects);
        operator.line.on_sent();
        let life = self.nodes[to].life;
        for effect in effects {
            if let Effect::Send { buffer, .. } = effect {
                self.tell(to, life, Input::Bytes(connection, buffer));
            }
        }
    }
}
