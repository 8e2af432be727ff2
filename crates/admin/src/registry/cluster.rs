//! The cluster as this node knows it: its table, its lease, its links.

use std::collections::BTreeMap;

use placement::ClusterView;
use replica::{Fills, FollowStanding, LeadStanding};
use shard::beside::MemberStanding;
use shard::node::TableCounts;
use shard::order::Standing;

use super::Value::{Micros, Whole};
use super::{Metric, Series, counter, gauge};
use crate::sample::Sample;

pub(super) static METRICS: [Metric; 25] = [
    gauge("zerohop_cluster_node", "This node's number.")
        .info("zh_node")
        .of_node(&[], |sample, series| put_member(sample, series, |member| u64::from(member.me.node.0))),
    gauge("zerohop_cluster_lease", "1 while the node may answer requests for keys.")
        .info("zh_lease")
        .of_node(&[], |sample, series| put_member(sample, series, |member| u64::from(member.lease_left_us > 0))),
    gauge("zerohop_cluster_lease_left_seconds", "How long it may, unless the lease is renewed.").of_node(
        &["core"],
        |sample, series| {
            for (core, standing) in sample.answered() {
                if let Some(member) = &standing.member {
                    series.put(&[&core], Micros(member.lease_left_us));
                }
            }
        },
    ),
    gauge("zerohop_cluster_table_version", "Version of the table that decides who serves what; 0 before one has come.")
        .info("zh_table_version")
        .of_node(&[], |sample, series| {
            put_member(sample, series, |member| member.view.as_deref().map_or(0, ClusterView::version));
        }),
    gauge("zerohop_cluster_nodes", "Nodes, by state: up, draining, fenced, down.").of_node(
        &["state"],
        |sample, series| {
            let Some(standing) = sample.cluster() else { return };
            let mut states: BTreeMap<_, u64> = ["up", "draining", "fenced", "down"].map(|state| (state, 0)).into();
            standing.nodes.iter().for_each(|node| *states.entry(node.state).or_default() += 1);
            states.iter().for_each(|(state, count)| series.put(&[state], Whole(*count)));
        },
    ),
    gauge("zerohop_cluster_chains", "Different chains of copies.")
        .info("zh_chains")
        .of_node(&[], |sample, series| put_table(sample, series, |counts| counts.chains)),
    gauge(
        "zerohop_cluster_chains_degraded",
        "Of those, with fewer whole copies of something than a reply promises: the next loss may cost data.",
    )
    .info("zh_chains_degraded")
    .of_node(&[], |sample, series| put_table(sample, series, |counts| counts.chains_degraded)),
    gauge("zerohop_cluster_slots_filling", "Slots of which a copy is being filled.")
        .info("zh_slots_filling")
        .of_node(&[], |sample, series| put_table(sample, series, |counts| counts.slots_filling)),
    gauge("zerohop_cluster_slots_unserved", "Slots that nobody serves.")
        .info("zh_slots_unserved")
        .of_node(&[], |sample, series| put_table(sample, series, |counts| counts.slots_unserved)),
    gauge("zerohop_cluster_slots", "Slots of this node's cores by role: first (it serves them), copy, filling.")
        .of_node(&["core", "role"], |sample, series| {
            for (core, standing) in sample.answered() {
                let Some(member) = &standing.member else { continue };
                for (role, count) in ["first", "copy", "filling"].into_iter().zip(slots_of(member)) {
                    series.put(&[&core, &role], Whole(count));
                }
            }
        }),
    gauge("zerohop_cluster_moves", "Slot ranges on their way from one instance to another.")
        .info("zh_moves")
        .of_node(&[], |sample, series| put_table(sample, series, |counts| counts.moves)),
    gauge("zerohop_cluster_leader_node", "Number of the node that leads the managers; absent while none is known.")
        .of_node(&[], |sample, series| {
            if let Some(leader) = sample.cluster().and_then(|standing| standing.leader) {
                series.put(&[], Whole(u64::from(leader.0)));
            }
        }),
    gauge("zerohop_cluster_leads", "1 on the node that leads the managers.").of_node(&[], |sample, series| {
        let me = sample.member().map(|member| member.me.node);
        put_cluster(sample, series, |standing| u64::from(me.is_some() && standing.leader == me));
    }),
    gauge("zerohop_cluster_voters", "Managers that vote.")
        .of_node(&[], |sample, series| put_cluster(sample, series, |standing| standing.voters.len() as u64)),
    gauge("zerohop_cluster_violations", "What is not as it should be; `zerohop cluster status` has the sentences.")
        .of_node(&[], |sample, series| put_cluster(sample, series, |standing| standing.violations.len() as u64)),
    counter("zerohop_cluster_distrusted", "Connections of other nodes that were not believed.").of_node(
        &["core"],
        |sample, series| {
            for (core, standing) in sample.answered() {
                if let Some(member) = &standing.member {
                    series.put(&[&core], Whole(member.distrusted));
                }
            }
        },
    ),
    counter("zerohop_replicate_kept_keys", "Keys that a follower which was filled had already, as they are.")
        .of_node(&["core"], |sample, series| put_fills(sample, series, |fills| fills.kept_keys)),
    counter("zerohop_replicate_sent_keys", "Copies of keys that followers were filled with.")
        .of_node(&["core"], |sample, series| put_fills(sample, series, |fills| fills.sent_keys)),
    gauge("zerohop_replicate_offset", "The last log group that there is for followers.").of_node(
        &["core"],
        |sample, series| {
            for (core, standing) in sample.answered() {
                if let Some(member) = &standing.member {
                    series.put(&[&core], Whole(member.links.offset));
                }
            }
        },
    ),
    gauge("zerohop_replicate_follower_connected", "1 while there is a connection to the follower.")
        .of_node(&["core", "member"], |sample, series| {
            put_followers(sample, series, |_, link| Whole(u64::from(link.is_connected)))
        }),
    gauge("zerohop_replicate_follower_whole", "1 when the follower holds everything that it is to hold.")
        .of_node(&["core", "member"], |sample, series| {
            put_followers(sample, series, |_, link| Whole(u64::from(link.is_whole)))
        }),
    gauge(
        "zerohop_replicate_follower_full",
        "1 when the follower's memory is full: what would take more of it is refused or evicts here.",
    )
    .of_node(&["core", "member"], |sample, series| {
        put_followers(sample, series, |_, link| Whole(u64::from(link.is_full)))
    }),
    gauge("zerohop_replicate_follower_lag_groups", "Log groups that the follower has not got yet.").of_node(
        &["core", "member"],
        |sample, series| {
            put_followers(sample, series, |member, link| Whole(member.links.offset.saturating_sub(link.has_until.0)));
        },
    ),
    gauge(
        "zerohop_replicate_follower_silent_seconds",
        "How long the follower has not said anything while something was on its way to it.",
    )
    .of_node(&["core", "member"], |sample, series| {
        put_followers(sample, series, |_, link| Micros(link.silent_us));
    }),
    gauge(
        "zerohop_replicate_first_silent_seconds",
        "How long nothing was heard from whoever is first of what this core has copies of.",
    )
    .of_node(&["core", "member"], |sample, series| {
        for (core, standing) in sample.answered() {
            let links = standing.member.iter().flat_map(|member| &member.links.firsts);
            for FollowStanding { from, silent_us, .. } in links {
                if let Some(silent_us) = silent_us {
                    series.put(&[&core, &format_args!("{}.{}", from.node.0, from.core.0)], Micros(*silent_us));
                }
            }
        }
    }),
];

fn put_member(sample: &Sample, series: &mut Series<'_>, of: impl Fn(&MemberStanding) -> u64) {
    if let Some(member) = sample.member() {
        series.put(&[], Whole(of(member)));
    }
}

fn put_table(sample: &Sample, series: &mut Series<'_>, of: fn(&TableCounts) -> u64) {
    put_member(sample, series, |member| of(&member.view.as_deref().map(TableCounts::of).unwrap_or_default()));
}

fn put_cluster(sample: &Sample, series: &mut Series<'_>, of: impl Fn(&Standing) -> u64) {
    if let Some(standing) = sample.cluster() {
        series.put(&[], Whole(of(standing)));
    }
}

fn put_fills(sample: &Sample, series: &mut Series<'_>, of: fn(&Fills) -> u64) {
    for (core, standing) in sample.answered() {
        if let Some(member) = &standing.member {
            series.put(&[&core], Whole(of(&member.fills)));
        }
    }
}

fn put_followers(sample: &Sample, series: &mut Series<'_>, of: fn(&MemberStanding, &LeadStanding) -> super::Value) {
    for (core, standing) in sample.answered() {
        let Some(member) = &standing.member else { continue };
        for link in &member.links.followers {
            let name = format_args!("{}.{}", link.to.node.0, link.to.core.0);
            series.put(&[&core, &name], of(member, link));
        }
    }
}

/// Slots that an instance serves, of which it has a whole copy, and of which its copy is being filled.
fn slots_of(member: &MemberStanding) -> [u64; 3] {
    let mut counts = [0; 3];
    let slots = member.view.iter().flat_map(|view| view.slots());
    for (_, chain) in slots {
        match chain.members.iter().position(|one| *one == member.me) {
            Some(0) => counts[0] += 1,
            Some(place) if place < chain.whole => counts[1] += 1,
            Some(_) => counts[2] += 1,
            None => {}
        }
    }
    counts
}
