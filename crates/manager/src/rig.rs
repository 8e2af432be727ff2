//! For tests: a founder that leads a cluster of its own, without a street.

use base::Effect;
use consensus::Proposal;
use control::{Action, Command, Newcomer, NodeId, RequestId, Settings, Table};
use wire::trust::Token;

use crate::agreement::Asker;
use crate::identity::Identity;
use crate::inside::{IDENTITY_TOKEN, Inside};
use crate::start::{Entry, Files, Start};

pub(crate) const TOKEN: Token = Token::new([2; 16]);

/// A node that comes to host `host`.
pub(crate) fn newcomer(host: &str, incarnation: u64) -> Newcomer {
    Newcomer {
        id: NodeId(0),
        incarnation,
        host: host.to_owned(),
        port: 7000,
        cores: 1,
        weight: 0,
        zone: String::new(),
        machine: host.to_owned(),
        identity: [0; 32],
    }
}

/// One that founded nothing yet.
pub(crate) fn founder() -> Inside {
    let settings = Settings { lease_ms: 300, chain_length: 2 };
    let entry = Entry::Found { cluster: [1; 16], token: TOKEN, settings, relaxed: false, others: Vec::new() };
    let start = Start { entry, newcomer: newcomer("a", 1 << 16), files: Files::default(), seed: 5 };
    let voters = Default::default();
    let identity = Identity { cluster: [1; 16], token: TOKEN, node: NodeId(1), voters, table: Table::new() };
    let mut inside = Inside::new(0, identity, &start).expect("no files");
    inside.is_written = true;
    inside.starts = crate::starts::Starts::acting();
    inside
}

/// Lets it work for so long, alone, on a disk that is done at once.
pub(crate) fn work(inside: &mut Inside, from_us: u64, until_us: u64) {
    let mut now_us = from_us;
    while now_us < until_us {
        let mut effects = Vec::new();
        inside.agree(now_us, &mut effects);
        inside.refresh(now_us);
        inside.renew(now_us);
        inside.watch(now_us);
        inside.plan(now_us);
        for effect in effects {
            if let Effect::WriteFile { token, .. } | Effect::ReplaceFile { token, .. } = effect
                && token != IDENTITY_TOKEN
            {
                inside.agreement.tell(consensus::Event::Durable { ordinal: token });
            }
        }
        let me = inside.me();
        for (to, message) in std::mem::take(&mut inside.outbox) {
            if to == me {
                inside.heed(now_us, me, message);
            }
        }
        now_us += 1_000;
    }
}

/// One that leads its cluster and has a lease, after two seconds.
pub(crate) fn leading() -> Inside {
    let mut inside = founder();
    work(&mut inside, 0, 2_000_000);
    assert!(inside.agreement.leads() && inside.table().is_created());
    inside
}

/// One that leads its cluster, of which node `gone` was, and is no more.
pub(crate) fn without(gone: NodeId) -> Inside {
    let mut inside = leading();
    let mut newcomer = newcomer("b", 1);
    newcomer.id = gone;
    let actions = [
        Action::Join(newcomer),
        Action::Fence { node: gone, incarnation: 1 },
        Action::Promote { node: gone, incarnation: 1, replacements: Vec::new() },
        Action::Remove { node: gone, abandon: true },
    ];
    for (number, action) in (1..).zip(actions) {
        assert!(!inside.table().is_gone(gone), "{action:?} comes");
        let id = RequestId { proposer: 77, number };
        inside.agreement.propose(Asker::Plan, Proposal::Agree(Command { id, action }));
        work(&mut inside, 2_000_000 + number * 20_000, 2_010_000 + number * 20_000);
    }
    inside
}
