//! What is asked from beside the cores: a machine of this node that is no core has a number behind theirs in the mesh of
//! hops, and wants to know how a core stands.
//!
//! ```text
//!   cores 0 … n-1 │ the manager, in a cluster │ whoever asks      numbers in the mesh
//! ```

use std::sync::Arc;

use base::{CoreId, InstanceName, Now};
use placement::ClusterView;
use replica::Fills;

use crate::hop::HopBatch;
use crate::node::{CoreFacts, LinkFacts};
use crate::shard::Shard;

/// How a core stands.
#[derive(Clone, Debug, Default)]
pub struct CoreStanding {
    /// The clock reading of the tick that tells it.
    pub now: Now,
    /// What INFO sums up.
    pub facts: CoreFacts,
    /// Why its log takes nothing any more.
    pub log_failure: Option<String>,
    /// `maxmemory`, bytes.
    pub memory_bytes_max: Option<u64>,
    /// Clients that the node serves at once.
    pub clients_max: u64,
    /// What it is in a cluster of several nodes.
    pub member: Option<MemberStanding>,
}

/// How a core of a node in a cluster stands.
#[derive(Clone, Debug)]
pub struct MemberStanding {
    /// Which instance it is.
    pub me: InstanceName,
    /// Who serves what; `None`: no table has come yet.
    pub view: Option<Arc<ClusterView>>,
    /// How long it may still answer, by the clock of its tick, microseconds; 0: it may not.
    pub lease_left_us: u64,
    /// Its links.
    pub links: LinkFacts,
    /// Connections of other nodes that were not believed.
    pub distrusted: u64,
    /// What its followers were filled with.
    pub fills: Fills,
}

impl Shard {
    /// What this core tells whoever asks from beside.
    pub(crate) fn standing(&self) -> CoreStanding {
        let config = &self.node.config;
        CoreStanding {
            now: self.now,
            facts: self.facts(),
            log_failure: self.node.log_failure().map(str::to_owned),
            memory_bytes_max: config.memory_bytes_max(),
            clients_max: u64::try_from(config.integer("maxclients")).unwrap_or(0),
            member: self.membership.as_deref().map(|membership| membership.standing(self.now)),
        }
    }

    /// The batch for whoever has this number in the mesh.
    pub(crate) fn batch_for(&mut self, number: CoreId) -> &mut HopBatch {
        let index = usize::from(number.0);
        if index < self.outbox.len() {
            return &mut self.outbox[index];
        }
        let place = self.beside.iter().position(|(to, _)| *to == number).unwrap_or_else(|| {
            self.beside.push((number, HopBatch::default()));
            self.beside.len() - 1
        });
        &mut self.beside[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durability;
    use crate::gather::{Answer, Question};
    use crate::hop::Control;
    use crate::one_core::{Core, request, turn};

    #[test]
    fn whoever_asks_from_beside_the_cores_is_told_and_nobody_else() {
        let _turn = turn();
        let mut core = Core::new(Durability::Memory, 1);
        core.tick(0, &request(&[b"SET", b"k", b"v"]));
        let before = core.shard.facts().statistics.counters;
        let asker = CoreId(2);
        core.shard.on_control(asker, Control::Ask { gather: 7, question: Question::Standing });
        assert!(core.shard.outbox.iter().all(HopBatch::is_empty));
        let [(to, batch)] = &core.shard.beside[..] else { panic!("one answer") };
        let [Control::Answer { gather, answer: Answer::Standing(standing) }] = &batch.controls[..] else {
            panic!("an answer to the question")
        };
        assert_eq!((*to, *gather), (asker, 7));
        assert_eq!(standing.facts.statistics.counters, before);
        assert_eq!(standing.facts.keyspace[0].keys, 1);
        assert!(standing.member.is_none() && standing.log_failure.is_none());
        core.tick(0, b"");
        assert!(core.shard.beside.is_empty(), "it leaves with the tick's hops");
    }

    #[test]
    fn a_log_that_failed_is_told_with_its_reason() {
        let _turn = turn();
        let mut core = Core::new(Durability::Interval, 1);
        core.tick(0, &request(&[b"SET", b"k", b"v"]));
        assert_eq!(core.shard.standing().log_failure, None);
        core.events.push(base::Event::LogFailed { reason: "a sync of x.log failed".into() });
        core.tick(0, b"");
        assert_eq!(core.shard.standing().log_failure.as_deref(), Some("a sync of x.log failed"));
    }
}
