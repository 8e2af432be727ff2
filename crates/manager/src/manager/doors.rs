//! What comes over a connection with a node that is, or says it is, of the cluster.

use base::ConnectionId;
use wire::trust::{Greeted, Purpose};

use crate::inside::Inside;
use crate::message::Message;
use crate::peers::Peers;
use crate::starts::Welcome;

/// Somebody has proved that it has the token: both say which process they are.
pub(super) fn greet_inside(inside: &Inside, peers: &mut Peers, (id, greeted): (ConnectionId, Greeted)) {
    let node = greeted.from.name.node;
    if greeted.purpose != Purpose::Managers {
        return;
    }
    if inside.is_dismissed(node) || inside.is_outdated(node, greeted.from.incarnation) {
        return dismiss(inside, peers, id);
    }
    peers.reply(id, &inside.introduction());
}

/// A node that was removed, or an older copy of one, has the token still: it is told so, and heard no more.
pub(super) fn dismiss(inside: &Inside, peers: &mut Peers, id: ConnectionId) {
    peers.reply(id, &Message::News(inside.news_of_table()));
    peers.close(id);
}

pub(super) fn heed_inside(now_us: u64, inside: &mut Inside, peers: &mut Peers, (id, message): (ConnectionId, Message)) {
    let party = peers.party(id).map(|party| party.name.node);
    match (peers.node(id), party, message) {
        (_, _, Message::Another { acts }) if party.is_some() => inside.on_another(acts),
        (None, Some(node), Message::Start(said)) => match inside.on_start(node, said) {
            Welcome::Heard => peers.greet(id, node),
            Welcome::Instead => {
                peers.dismiss(node, &Message::Another { acts: true });
                peers.greet(id, node);
            }
            Welcome::Outdated => dismiss(inside, peers, id),
            // It ends when it has heard that: what is closed at once may not arrive.
            Welcome::Another { acts } => peers.reply(id, &Message::Another { acts }),
        },
        // It does not hear this node, and says why.
        (None, Some(_), Message::News(news)) => inside.adopt(news),
        (None, Some(_), _) => {}
        (None, None, Message::Enlist { command }) => inside.on_enlist(id, command),
        (Some(from), _, message) => inside.heed(now_us, from, message),
        // A newcomer says nothing else; or it was closed a moment ago.
        (None, None, _) => peers.close(id),
    }
}
