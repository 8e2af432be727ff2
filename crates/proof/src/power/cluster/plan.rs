//! What a round of a cluster is like: drawn from the campaign's seed and the round's number, and from nothing else.

use base::rng::{Rng, mix};

use super::super::clock::TICKS_PROMISED;
use super::super::plan::{CHECK, Cut, Promise, Stop, Subject, TICKS_MORE};
use crate::kill::plan::between;
use crate::nemesis::ground::LOOPBACK;

/// A lease that nodes keep which are emulated and share two processors.
const LEASE_MS: u64 = 2000;
/// Longest wait for a cut, in the disk's writes and flushes: `commit` asks it all the time, `interval` once a second,
const REQUESTS_MAX: (u64, u64) = (2000, 100);
/// and slots are on their way for so long.
const MOVE_REQUESTS_MAX: u64 = 300;
/// From the power to nodes that serve the disk is asked so often, more or less,
const START_REQUESTS_MAX: u64 = 600;
/// and from then on until all is whole.
const FINDING_REQUESTS_MAX: u64 = 150;
/// Requests that are answered before a cut.
const ANSWERED: (u64, u64) = (50, 1500);

/// A cut before the start that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenStart {
    /// The cut is set up when all nodes have recovered, and so comes while they find each other and fill their copies; else
    /// with the power.
    pub is_recovered: bool,
    /// What comes then.
    pub cut: Cut,
}

/// One round.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its number, from 1.
    pub round: u64,
    subject: Subject,
    /// What is held against.
    pub promise: Promise,
    /// Of each node.
    pub cores: u16,
    backend: &'static str,
    /// Whether the power fails once more before all is whole.
    pub broken_start: Option<BrokenStart>,
    /// The cut is set up when so many requests are answered,
    pub answered: u64,
    /// the guest has printed so many ticks under load,
    pub ticks: u64,
    /// and, where slots go to and fro, a node has just taken an order to move some.
    pub moves: bool,
    /// Whether all nodes are asked to stop then.
    pub stop: Option<Stop>,
    /// How the round ends.
    pub cut: Cut,
    /// What clients and moves are drawn from.
    pub client_seed: u64,
}

impl Plan {
    /// Round `round` of the campaign of this subject with this seed.
    pub fn draw(subject: Subject, seed: u64, round: u64) -> Plan {
        let rng = &mut Rng::new(mix(seed) ^ round);
        // By number, so that a few rounds have both.
        let is_interval = subject == Subject::Zerohop && round.is_multiple_of(3);
        let promise = if is_interval { Promise::Interval } else { Promise::Commit };
        let moves = !round.is_multiple_of(2);
        let cores = 1 + rng.below(2) as u16;
        let backend = if rng.chance(1, 2) { "uring" } else { "epoll" };
        let broken_start = rng.chance(1, 3).then(|| BrokenStart::draw(rng));
        let answered = between(rng, ANSWERED.0, ANSWERED.1);
        let ticks = if is_interval { 1 + TICKS_PROMISED + rng.below(TICKS_MORE) } else { 0 };
        let requests_max = match (promise, moves) {
            (Promise::Interval, _) => REQUESTS_MAX.1,
            (_, true) => MOVE_REQUESTS_MAX,
            (_, false) => REQUESTS_MAX.0,
        };
        let (cut, client_seed) = (Cut::draw(rng, requests_max), rng.next_u64());
        let is_stopped = subject == Subject::Zerohop && !moves && rng.chance(1, 3);
        let stop = is_stopped.then(|| if rng.chance(1, 2) { Stop::CutMeanwhile } else { Stop::CutBehind });
        Plan { round, subject, promise, cores, backend, broken_start, answered, ticks, moves, stop, cut, client_seed }
    }

    /// What the guest's `init` is given; nodes have these ports.
    pub fn variables(&self, ports: &[u16], planted: Option<&str>) -> Vec<(&'static str, String)> {
        let durability = if self.promise == Promise::Interval { "interval" } else { "commit" };
        let Plan { cores, backend, .. } = self;
        let serve = format!(
            "/bin/zerohop serve --bind 0.0.0.0 --announce-host {LOOPBACK} --protected-mode no --port $port \
             --dir /data/$node/store --machine m$node --hosts /tmp/hosts --token-file /tmp/token --lease-ms {LEASE_MS} \
             --cores {cores} --io {backend} --durability {durability}"
        );
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let mut variables = vec![("SERVE", serve), ("CHECK", CHECK.to_owned()), ("PORTS", ports.join(" "))];
        if self.subject == Subject::ZerohopUnflushed {
            variables.push(("MOUNT", "nobarrier".to_owned()));
        }
        variables.extend(planted.map(|bug| ("PLANTED_BUG", bug.to_owned())));
        variables
    }
}

impl BrokenStart {
    fn draw(rng: &mut Rng) -> BrokenStart {
        let is_recovered = rng.chance(1, 2);
        let requests_max = if is_recovered { FINDING_REQUESTS_MAX } else { START_REQUESTS_MAX };
        BrokenStart { is_recovered, cut: Cut::draw(rng, requests_max) }
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Plan { round, promise, cores, backend, cut, .. } = self;
        let durability = if *promise == Promise::Interval { "interval" } else { "commit" };
        write!(formatter, "round {round}: {cores} cores each, {durability}, {backend}")?;
        if let Some(broken) = self.broken_start {
            let behind = if broken.is_recovered { " behind recovery" } else { "" };
            write!(formatter, ", a start cut at request {}{behind}", broken.cut.after_requests)?;
        }
        match self.stop {
            None if self.moves => write!(formatter, ", cut at request {} behind an order to move", cut.after_requests)?,
            None => write!(formatter, ", cut at request {}", cut.after_requests)?,
            Some(Stop::CutMeanwhile) => write!(formatter, ", cut at request {} of a stop", cut.after_requests)?,
            Some(Stop::CutBehind) => write!(formatter, ", cut behind a stop")?,
        }
        write!(formatter, ", loses {:?}", cut.loss)
    }
}

#[cfg(test)]
mod tests {
    use super::{Plan, Promise, Stop, Subject};

    #[test]
    fn a_seed_is_a_campaign_and_a_campaign_has_everything() {
        let plans: Vec<Plan> = (1..200).map(|round| Plan::draw(Subject::Zerohop, 7, round)).collect();
        for (plan, round) in plans.iter().zip(1..) {
            assert_eq!(format!("{plan:?}"), format!("{:?}", Plan::draw(Subject::Zerohop, 7, round)));
        }
        for promise in [Promise::Commit, Promise::Interval] {
            for (moves, stop) in
                [(true, None), (false, None), (false, Some(Stop::CutMeanwhile)), (false, Some(Stop::CutBehind))]
            {
                let is = |plan: &&Plan| (plan.promise, plan.moves, plan.stop) == (promise, moves, stop);
                assert!(plans.iter().any(|plan| is(&plan)), "{promise:?} {moves} {stop:?}");
            }
        }
        for (cores, backend) in [(1, "uring"), (2, "uring"), (1, "epoll"), (2, "epoll")] {
            assert!(plans.iter().any(|plan| (plan.cores, plan.backend) == (cores, backend)), "{cores} {backend}");
        }
        for is_recovered in [true, false] {
            assert!(
                plans.iter().any(|plan| plan.broken_start.is_some_and(|broken| broken.is_recovered == is_recovered))
            );
        }
    }

    #[test]
    fn nodes_are_told_their_ports_and_their_bug() {
        let plan = Plan::draw(Subject::Zerohop, 1, 1);
        let variables = plan.variables(&[10_240, 10_272], Some("M3"));
        assert_eq!(variables[2..], [("PORTS", "10240 10272".to_owned()), ("PLANTED_BUG", "M3".to_owned())]);
        assert_eq!(Plan::draw(Subject::ZerohopUnflushed, 1, 3).promise, Promise::Commit);
    }
}
