//! A manager's connections, and the managers at their other ends.

use base::limits::{UNPROVEN_CONNECTIONS_MAX, UNPROVEN_MS_MAX};

use super::*;

const CLUSTER: [u8; 16] = [5; 16];

fn id(index: u32) -> ConnectionId {
    ConnectionId { index, generation: 1 }
}

fn speaker(token: u8, node: u32) -> Speaker {
    let mut speaker = Speaker::new(&Token::new([token; 16]), u64::from(node));
    speaker.set_name(CLUSTER, Party::manager(NodeId(node), 1));
    speaker
}

/// Those of node 1.
fn peers() -> Peers {
    let mut peers = Peers::new(&Token::new([9; 16]), 1);
    peers.set_name(CLUSTER, Party::manager(NodeId(1), 1));
    peers
}

/// Another node's manager at the other end of a connection.
struct Other {
    line: Line,
    speaker: Speaker,
}

impl Other {
    fn said(&mut self) -> Vec<u8> {
        let mut effects = Vec::new();
        self.line.flush(&mut effects);
        self.line.on_sent();
        let bytes = |effect| if let Effect::Send { buffer, .. } = effect { buffer } else { Vec::new() };
        effects.into_iter().flat_map(bytes).collect()
    }

    fn say(&mut self, message: &Message) -> Vec<u8> {
        self.line.send(|out| message.encode(out));
        self.said()
    }
}

/// Both ends say what they have to say; who has proved itself to `peers`.
fn talk(peers: &mut Peers, now_us: u64, other: &mut Other) -> Vec<Greeted> {
    let (id, mut greeted) = (other.line.id(), Vec::new());
    for _ in 0..3 {
        let said = other.said();
        peers.receive(now_us, id, &said);
        greeted.extend(peers.greetings(now_us).into_iter().map(|(_, greeted)| greeted));
        let mut effects = Vec::new();
        peers.list.iter_mut().filter(|peer| peer.line.id() == id).for_each(|peer| peer.line.flush(&mut effects));
        peers.on_sent(id);
        for effect in effects {
            if let Effect::Send { buffer, .. } = effect {
                other.line.receive(&buffer);
                other.line.greet(now_us, &mut other.speaker);
            }
        }
    }
    greeted
}

/// Node `node` connects.
fn comes_in(peers: &mut Peers, id: ConnectionId, node: u32) -> Other {
    let to = InstanceName { node: NodeId(1), core: MANAGER };
    let mut speaker = speaker(9, node);
    let line = Line::dialed(0, (id, "b".to_owned()), &mut speaker, (Purpose::Managers, to));
    let mut other = Other { line, speaker };
    peers.on_accepted(0, id, "10.0.0.2:9".to_owned());
    let greeted = talk(peers, 0, &mut other);
    assert_eq!(greeted.iter().map(|greeted| greeted.from.name.node).collect::<Vec<_>>(), [NodeId(node)]);
    peers.greet(id, NodeId(node));
    other
}

fn closed(peers: &mut Peers) -> Vec<u32> {
    let mut effects = Vec::new();
    peers.end_distrusted();
    peers.flush(&mut effects);
    let close = |effect| if let Effect::Close { connection } = effect { Some(connection.index) } else { None };
    effects.into_iter().filter_map(close).collect()
}

fn dialed(peers: &mut Peers, now_us: u64, address: &str, connection: Option<ConnectionId>) -> bool {
    peers.dial(now_us, address, Some(NodeId(7)));
    let mut effects = Vec::new();
    peers.flush(&mut effects);
    let Some(Effect::Dial { token, .. }) = effects.last() else { return false };
    peers.on_dialed(now_us, *token, connection);
    true
}

#[test]
fn an_address_is_tried_again_after_a_while_and_one_that_was_wakes_nobody() {
    let mut peers = peers();
    assert!(dialed(&mut peers, 0, "a", None));
    assert!(!dialed(&mut peers, RETRY_US - 1, "a", None));
    assert_eq!(peers.deadline_us(1), Some(RETRY_US));
    assert_eq!(peers.deadline_us(RETRY_US), None, "it may be tried now");
    assert!(dialed(&mut peers, RETRY_US, "a", Some(id(1))));
    assert!(!dialed(&mut peers, 10 * RETRY_US, "a", None), "there is a connection");
    peers.on_closed(id(1));
    assert!(dialed(&mut peers, 10 * RETRY_US, "a", None));
}

#[test]
fn a_connection_on_which_nothing_comes_is_closed() {
    let mut peers = peers();
    let _seven = comes_in(&mut peers, id(1), 7);
    let _eight = comes_in(&mut peers, id(2), 8);
    peers.receive(SILENCE_US - 1, id(2), b"");
    peers.close_silent(SILENCE_US - 1);
    assert!(closed(&mut peers).is_empty() && peers.has(NodeId(7)));
    peers.close_silent(SILENCE_US);
    assert!(!peers.has(NodeId(7)), "what closes is no way to anybody");
    assert_eq!(closed(&mut peers), [1]);
}

/// A connection that ends says nothing; nor does a dial of somebody who was never there, or is still there by another connection.
#[test]
fn who_was_spoken_with_and_does_not_listen_any_more_is_told_once() {
    let mut peers = peers();
    assert!(dialed(&mut peers, 0, "a", None) && peers.take_refusing().is_empty(), "it may not be up yet");
    let _one = comes_in(&mut peers, id(1), 7);
    let _two = comes_in(&mut peers, id(2), 8);
    dialed(&mut peers, RETRY_US, "a", Some(id(3)));
    let line = Line::accepted(0, id(3), "c".to_owned(), PURPOSES);
    assert_eq!(talk(&mut peers, 0, &mut Other { line, speaker: speaker(9, 7) }).len(), 1);
    peers.greet(id(3), NodeId(7));
    peers.close(id(3));
    peers.on_closed(id(3));
    assert!(peers.lost().is_empty(), "it speaks on its other connection");
    peers.close(id(1));
    assert_eq!(peers.lost(), [NodeId(7)]);
    assert!(dialed(&mut peers, 2 * RETRY_US, "a", None));
    assert_eq!((peers.take_refusing(), peers.take_refusing()), (vec![NodeId(7)], vec![]));
    assert!(dialed(&mut peers, 3 * RETRY_US, "a", None) && peers.take_refusing().is_empty(), "once");
    peers.on_closed(id(2));
    assert_eq!(peers.lost(), [NodeId(8)]);
    let _again = comes_in(&mut peers, id(4), 8);
    assert!(peers.lost().is_empty(), "it came back by itself");
}

#[test]
fn a_second_connection_of_a_node_takes_the_place_of_the_first_made_the_same_way() {
    let mut peers = peers();
    for number in 1..=2 {
        comes_in(&mut peers, id(number), 7);
    }
    assert_eq!(closed(&mut peers), [1]);
    dialed(&mut peers, 0, "a", Some(id(3)));
    let line = Line::accepted(0, id(3), "c".to_owned(), PURPOSES);
    let mut other = Other { line, speaker: speaker(9, 7) };
    assert_eq!(talk(&mut peers, 0, &mut other).len(), 1);
    peers.greet(id(3), NodeId(7));
    assert!(closed(&mut peers).is_empty(), "both ends may dial at once, and close neither");
    assert_eq!((peers.nodes(), peers.node(id(1)), peers.node(id(2))), (vec![NodeId(7)], None, Some(NodeId(7))));
    peers.close_node(NodeId(7));
    assert_eq!((closed(&mut peers), peers.nodes()), (vec![2, 3], vec![]));
}

#[test]
fn connections_and_what_waits_for_them_are_bounded() {
    let mut peers = peers();
    comes_in(&mut peers, id(0), 7);
    (1..=UNPROVEN_CONNECTIONS_MAX as u32 + 2).for_each(|number| peers.on_accepted(0, id(number), String::new()));
    assert_eq!(closed(&mut peers), [1, 2], "the oldest of those that proved nothing");
    let message = Message::Agreement(vec![0; MANAGER_FRAME_BYTES_MAX / 2]);
    (0..20).for_each(|_| peers.reply(id(0), &message));
    let waiting = peers.peer(id(0)).map_or(0, |peer| peer.line.waiting_bytes());
    assert!((WAITING_BYTES_MAX..WAITING_BYTES_MAX + MANAGER_FRAME_BYTES_MAX).contains(&waiting), "{waiting}");
    peers.reply(id(3), &message);
    assert_eq!(peers.peer(id(3)).map(|peer| peer.line.waiting_bytes()), Some(0), "who proved nothing is told nothing");
    peers.greetings(UNPROVEN_MS_MAX * 1000);
    assert_eq!(closed(&mut peers).len(), UNPROVEN_CONNECTIONS_MAX, "nor waited for");
}

#[test]
fn who_sends_no_message_is_closed_and_heard_up_to_there() {
    let mut peers = peers();
    let mut other = comes_in(&mut peers, id(1), 7);
    let bytes = other.say(&Message::Read { number: 5 });
    peers.receive(0, id(1), &bytes[..3]);
    assert!(peers.messages().is_empty());
    peers.receive(0, id(1), &bytes[3..]);
    other.line.send(|out| wire::frame::seal(99, out, |_| ()));
    peers.receive(0, id(1), &other.said());
    assert_eq!(peers.messages(), [(id(1), Message::Read { number: 5 })]);
    assert_eq!(closed(&mut peers), [1]);
    assert!(peers.poll_distrusted(0).is_some_and(|said| said.contains("10.0.0.2:9")));
}

#[test]
fn what_is_forged_or_said_again_is_not_heard() {
    let read = |number| Message::Read { number };
    for number in 0..3 {
        let mut peers = peers();
        let mut other = comes_in(&mut peers, id(1), 7);
        let (mut first, second) = (other.say(&read(1)), other.say(&read(2)));
        match number {
            0 => first = [&first[..], &first].concat(),
            1 => first.extend_from_slice(&second[..second.len() - 1]),
            // A frame without a mark, as anybody can make it.
            _ => read(3).encode(&mut first),
        }
        peers.receive(0, id(1), &first);
        peers.receive(0, id(1), &[0; 64]);
        assert_eq!(peers.messages(), [(id(1), read(1))], "{number}");
        assert_eq!((closed(&mut peers), peers.has(NodeId(7))), (vec![1], false), "{number}");
    }
}

#[test]
fn a_newcomer_learns_that_its_token_is_another_one_and_is_spoken_to_by_nobody() {
    let mut peers = Peers::new(&Token::new([8; 16]), 1);
    peers.set_name([0; 16], Party::newcomer(5));
    peers.on_accepted(0, id(9), String::new());
    assert_eq!(closed(&mut peers), [9]);
    peers.dial(0, "a", None);
    peers.on_dialed(0, 1, Some(id(1)));
    let line = Line::accepted(0, id(1), "c".to_owned(), PURPOSES);
    assert!(talk(&mut peers, 0, &mut Other { line, speaker: speaker(9, 7) }).is_empty());
    assert!(peers.end_distrusted());
}
