//! What a store tells of its inside, where it does: who leads its managers, and which nodes have which slots.

use super::client::connect;
use crate::load::control::{Reply, ask};

/// From a node's own port to that of its core, which clients of a cluster use.
const CORE_PORT_OFFSET: u16 = 1;

/// See the module. Nodes are known by the ports where cluster clients reach them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Who leads the managers.
    pub leader: Option<u16>,
    /// First slot, last slot, and the members in their order.
    pub chains: Vec<(u16, u16, Vec<u16>)>,
}

impl Standing {
    /// As the node on `port` tells it by `ZH.CLUSTER STATUS`; none if it does not know the command.
    pub fn told(port: u16) -> Option<Standing> {
        Standing::of(&ask(&mut connect(port).ok()?, &["ZH.CLUSTER", "STATUS"]).ok()?)
    }

    /// The nodes that have `slot`, the first one before the others.
    pub fn members(&self, slot: u16) -> &[u16] {
        let chain = self.chains.iter().find(|(first, last, _)| (*first..=*last).contains(&slot));
        chain.map_or(&[], |(_, _, members)| members)
    }

    fn of(reply: &Reply) -> Option<Standing> {
        let port = |node: &Reply| Some((number(member(node, "node")?)?, number(member(node, "port")?)?));
        let ports: Vec<(u16, u16)> = member(reply, "nodes")?.list().iter().map(port).collect::<Option<_>>()?;
        let port_of = |node: u16| Some(ports.iter().find(|(known, _)| *known == node)?.1 + CORE_PORT_OFFSET);
        let chain = |chain: &Reply| {
            let [first, last, members @ ..] = chain.list() else { return None };
            let members = members.iter().map(|member| port_of(number(member.list().first()?)?));
            Some((number(first)?, number(last)?, members.collect::<Option<_>>()?))
        };
        Some(Standing {
            leader: member(reply, "leader").and_then(number).and_then(port_of),
            chains: member(reply, "chains")?.list().iter().map(chain).collect::<Option<_>>()?,
        })
    }
}

/// The value behind `name` in a map, which is a flat list.
fn member<'a>(map: &'a Reply, name: &str) -> Option<&'a Reply> {
    map.list().chunks_exact(2).find(|pair| pair[0].text() == Some(name)).map(|pair| &pair[1])
}

fn number(reply: &Reply) -> Option<u16> {
    reply.text()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Reply {
        Reply::Text(text.to_owned())
    }

    fn numbers(numbers: &[u16]) -> Reply {
        Reply::List(numbers.iter().map(|number| text(&number.to_string())).collect())
    }

    fn node(node: &str, port: &str) -> Reply {
        Reply::List(["node", node, "cores", "1", "port", port].map(text).to_vec())
    }

    fn status(leader: Reply) -> Reply {
        let mut chain = numbers(&[0, 5631]);
        if let Reply::List(items) = &mut chain {
            items.extend([numbers(&[2, 0, 1]), numbers(&[7, 0, 1])]);
        }
        Reply::List(vec![
            text("leader"),
            leader,
            text("nodes"),
            Reply::List(vec![node("2", "7100"), node("7", "7200")]),
            text("chains"),
            Reply::List(vec![chain]),
        ])
    }

    #[test]
    fn the_leader_and_the_members_of_a_slot_are_known_by_their_ports() {
        let standing = Standing::of(&status(text("7")));
        let expected = Standing { leader: Some(7201), chains: vec![(0, 5631, vec![7101, 7201])] };
        assert_eq!(standing, Some(expected.clone()));
        assert_eq!((expected.members(5631), expected.members(5632)), (&[7101, 7201][..], &[][..]));
        assert_eq!(Standing::of(&status(Reply::Null)).map(|standing| standing.leader), Some(None));
        assert_eq!(Standing::of(&Reply::Error("ERR unknown command".to_owned())), None);
    }
}
