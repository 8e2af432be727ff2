//! Who is heard by a manager, from its first byte on.

use base::{Door, Entrance, Event, InstanceName, Now, Span};
use wire::frame::Opened;
use wire::line::Line;
use wire::trust::{MANAGER, Purpose, Speaker, Token};

use super::*;
use crate::inside::COPY_TOKEN;
use crate::message::Introduction;
use crate::rig;
use crate::start::Files;

const CLUSTER: [u8; 16] = [1; 16];

/// Another node at the other end of a connection with node 1, which runs.
struct Pair {
    manager: Manager,
    now_us: u64,
    line: Line,
    speaker: Speaker,
    heard: Vec<Message>,
    is_closed: bool,
}

/// Node 1 of a cluster from which node 2 was removed is talked to by `node`.
fn pair(token: Token, node: u32) -> Pair {
    let inside = rig::without(NodeId(2));
    let files = Files { identity: Some(inside.identity.encode()), ..Files::default() };
    let start = Start { entry: Entry::Resume, newcomer: rig::newcomer("a", 2 << 16), files, seed: 3 };
    let mut speaker = Speaker::new(&token, 4);
    speaker.set_name(CLUSTER, Party::manager(NodeId(node), 1));
    let id = ConnectionId { index: 5, generation: 1 };
    let whom = (Purpose::Managers, InstanceName { node: NodeId(1), core: MANAGER });
    let line = Line::dialed(0, (id, String::new()), &mut speaker, whom);
    let manager = Manager::new(start, 1).expect("its files are its own");
    let mut pair = Pair { manager, now_us: 5_000_000, line, speaker, heard: Vec::new(), is_closed: false };
    let (peer, local) = ("10.0.0.9:1".to_owned(), String::new());
    pair.tick(
        vec![Event::Accepted { connection: id, door: Door::Node, entrance: Entrance::default(), peer, local }],
        &[],
    );
    for _ in 0..3 {
        pair.talk();
    }
    if pair.line.is_proven() && !pair.is_closed {
        let said = Introduction { start: 1, life: 4, has_come: true, news: News::default() };
        pair.line.send(|out| Message::Start(said).encode(out));
        pair.talk();
    }
    pair
}

impl Pair {
    fn tick(&mut self, mut events: Vec<Event>, received: &[u8]) {
        self.now_us += 100;
        let now = Now { monotonic_us: self.now_us, unix_ms: 0 };
        let mut output = TickOutput::default();
        self.manager.tick(TickInput { now, received, events: &mut events, hops: &mut Vec::new() }, &mut output);
        for effect in output.effects {
            match effect {
                Effect::Send { connection, buffer } if connection == self.line.id() => self.hear(&buffer),
                Effect::Close { connection } => self.is_closed |= connection == self.line.id(),
                _ => {}
            }
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.line.receive(bytes);
        self.line.greet(0, &mut self.speaker);
        while let Opened::Whole { kind, body, bytes } = self.line.frame(1 << 24) {
            let message = Message::decode(kind, body).expect("a message");
            if !matches!(message, Message::Start(_)) {
                self.heard.push(message);
            }
            self.line.skip(bytes);
        }
    }

    /// What the other node has to say goes to the manager.
    fn talk(&mut self) {
        let mut effects = Vec::new();
        self.line.flush(&mut effects);
        self.line.on_sent();
        let bytes = |effect| if let Effect::Send { buffer, .. } = effect { buffer } else { Vec::new() };
        let bytes: Vec<u8> = effects.into_iter().flat_map(bytes).collect();
        let connection = self.line.id();
        let span = Span { start: 0, len: bytes.len() as u32 };
        let done = Event::SendDone { connection, buffer: Vec::new() };
        self.tick(vec![done, Event::Received { connection, span }], &bytes);
    }

    /// What the manager answers to who reads, which every node may: that somebody else leads.
    fn ask(&mut self) -> Vec<Message> {
        let command = control::Command {
            id: control::RequestId { proposer: 9, number: 9 },
            action: control::Action::Drain { node: NodeId(1) },
        };
        self.heard.clear();
        // It waits no longer for nodes that are not there.
        self.now_us += 1_000_000;
        self.tick(Vec::new(), &[]);
        let message = Message::Propose { number: 9, command };
        self.line.send(|out| message.encode(out));
        self.talk();
        self.talk();
        std::mem::take(&mut self.heard)
    }
}

#[test]
fn who_has_the_token_and_a_number_is_heard() {
    // It may be in a newer table.
    let mut pair = pair(rig::TOKEN, 3);
    assert!(pair.line.is_proven() && !pair.is_closed && pair.heard.is_empty());
    let answers = pair.ask();
    assert!(matches!(answers[..], [Message::Proposed { number: 9, .. }]), "{answers:?}");
}

#[test]
fn a_node_that_was_removed_has_the_token_still_and_is_told_that_it_is_gone() {
    let mut pair = pair(rig::TOKEN, 2);
    assert!(pair.line.is_proven() && pair.is_closed);
    let [Message::News(news)] = &pair.heard[..] else { panic!("{:?}", pair.heard) };
    let table = Table::decode(&news.table).expect("a table");
    assert_eq!(table.node(NodeId(2)).map(|node| node.state), Some(control::NodeState::Gone));
    assert_eq!(pair.ask(), [], "nothing that it says is heard");
}

#[test]
fn who_has_another_token_or_none_is_told_nothing() {
    let pair = pair(Token::new([3; 16]), 3);
    assert!(!pair.line.is_proven() && pair.line.is_closing() && pair.heard.is_empty());
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"*1\r\n$4\r\nPING\r\n", &[0; 64]] {
        let mut pair = self::pair(rig::TOKEN, 3);
        pair.is_closed = false;
        let (peer, local) = ("10.0.0.9:2".to_owned(), String::new());
        let connection = ConnectionId { index: 6, generation: 1 };
        pair.line = Line::accepted(0, connection, String::new(), &[]);
        let span = Span { start: 0, len: bytes.len() as u32 };
        let accepted = Event::Accepted { connection, door: Door::Node, entrance: Entrance::default(), peer, local };
        pair.tick(vec![accepted, Event::Received { connection, span }], bytes);
        assert!(pair.is_closed && pair.heard.is_empty(), "{}", bytes.escape_ascii());
    }
}

#[test]
fn an_older_copy_of_a_directory_says_so_at_every_later_start() {
    let identity = rig::leading().identity;
    let start = |number: u64, identity: Vec<u8>| {
        let files = Files { identity: Some(identity), ..Files::default() };
        Start { entry: Entry::Resume, newcomer: rig::newcomer("a", number << 16), files, seed: 3 }
    };
    let tick = |manager: &mut Manager, mut events: Vec<Event>| {
        let mut output = TickOutput::default();
        let now = Now { monotonic_us: 1_000_000, unix_ms: 0 };
        manager.tick(TickInput { now, received: &[], events: &mut events, hops: &mut Vec::new() }, &mut output);
        output.effects
    };
    let marked = |effects: Vec<Effect>| {
        effects.into_iter().find_map(|effect| match effect {
            Effect::ReplaceFile { token: COPY_TOKEN, bytes, .. } => Some(bytes),
            _ => None,
        })
    };
    let mut newest = Manager::new(start(2, identity.encode()), 1).expect("its file is its own");
    assert!(marked(tick(&mut newest, Vec::new())).is_none() && newest.failure().is_none());
    // The table knows the first start, and this is another one of that number.
    let mut copy = Manager::new(start(1, identity.encode()), 1).expect("its file is its own");
    let marked = marked(tick(&mut copy, Vec::new())).expect("it writes down what it is");
    assert!(copy.failure().is_none(), "not before that is written");
    tick(&mut copy, vec![Event::FileDurable { token: COPY_TOKEN }]);
    assert!(copy.failure().is_some_and(|why| why.contains("older copy")));
    let again = Manager::new(start(7, marked), 1).err();
    assert!(again.is_some_and(|why| why.contains("older copy")), "whatever number its start has then");
}
