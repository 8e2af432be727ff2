//! What a round is like: drawn from the campaign's seed and the round's number, and from nothing else.

use base::rng::{Rng, mix};
use clap::ValueEnum;

use super::disk::Loss;
use crate::kill::plan::between;

/// The port of a server of its own, inside.
pub const PORT: u16 = 6379;

/// Which server loses its power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// Zerohop, in `commit` and in `interval`.
    Zerohop,
    /// Redis with `appendfsync everysec`, held against what `commit` promises: it has to be caught.
    RedisEverysec,
    /// Redis that leaves syncs to the kernel, held against what `interval` promises: it has to be caught.
    RedisNo,
    /// Redis with `appendfsync always`, which keeps what `commit` promises.
    RedisAlways,
    /// Zerohop in `commit` on a file system that flushes no disk: it has to be caught, or the disk loses nothing.
    ZerohopUnflushed,
}

impl Subject {
    /// Who must lose what was promised, in words; `None` if it must not.
    pub fn loser(self) -> Option<&'static str> {
        match self {
            Subject::Zerohop | Subject::RedisAlways => None,
            Subject::RedisEverysec => Some("Redis with appendfsync everysec, held against commit,"),
            Subject::RedisNo => Some("Redis with appendfsync no, held against interval,"),
            Subject::ZerohopUnflushed => Some("a file system that does not flush the disk"),
        }
    }

    fn is_zerohop(self) -> bool {
        matches!(self, Subject::Zerohop | Subject::ZerohopUnflushed)
    }

    fn promise(self, round: u64) -> Promise {
        match self {
            // By number, so that a few rounds have both.
            Subject::Zerohop if round.is_multiple_of(3) => Promise::Interval,
            Subject::RedisNo => Promise::Interval,
            _ => Promise::Commit,
        }
    }
}

/// What must be found after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// All that was acknowledged.
    Commit,
    /// All that was acknowledged so many ticks before.
    Interval,
}

/// SIGTERM before the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The cut comes while the server stops, unless that is faster.
    CutMeanwhile,
    /// The cut comes behind a clean stop: everything is promised then, and nothing is replayed.
    CutBehind,
}

/// A cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The disk's writes and flushes until then.
    pub after_requests: u64,
    /// What it takes.
    pub loss: Loss,
    /// What it takes is drawn from.
    pub seed: u64,
}

/// One round.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its number, from 1.
    pub round: u64,
    subject: Subject,
    /// What is held against.
    pub promise: Promise,
    cores: u32,
    backend: &'static str,
    /// A cut while the machine or the server starts, before the start that serves.
    pub broken_start: Option<Cut>,
    /// The cut is set up when so many bytes of the bulk are acknowledged,
    pub load_bytes: u64,
    /// and the guest has printed so many ticks under load.
    pub ticks: u64,
    /// Whether the server is asked to stop then.
    pub stop: Option<Stop>,
    /// How the round ends.
    pub cut: Cut,
    /// What its clients draw from.
    pub client_seed: u64,
}

/// What looks at a directory, which is said behind it.
pub const CHECK: &str = "/bin/zerohop check";
/// Longest wait for a cut, in the disk's writes and flushes: `commit` asks it all the time, the others once a second.
const REQUESTS_MAX: (u64, u64) = (2000, 100);
/// A start of the machine and of a server asks the disk so often, more or less.
const START_REQUESTS_MAX: u64 = 300;
/// Bulk before a cut.
const LOAD_BYTES: (u64, u64) = (16 << 10, 6 << 20);
/// Ticks beyond those that `interval` may lose.
pub const TICKS_MORE: u64 = 6;

impl Plan {
    /// Round `round` of the campaign of this subject with this seed.
    pub fn draw(subject: Subject, seed: u64, round: u64) -> Plan {
        let rng = &mut Rng::new(mix(seed) ^ round);
        let promise = subject.promise(round);
        let is_interval = promise == Promise::Interval;
        let is_lazy = is_interval || subject == Subject::RedisEverysec;
        let requests_max = if is_lazy { REQUESTS_MAX.1 } else { REQUESTS_MAX.0 };
        let cores = [1, 2, 4][rng.below(3) as usize];
        let backend = if rng.chance(1, 2) { "uring" } else { "epoll" };
        let broken_start = rng.chance(1, 4).then(|| Cut::draw(rng, START_REQUESTS_MAX));
        let load_bytes = between(rng, LOAD_BYTES.0, LOAD_BYTES.1);
        let ticks = if is_interval { 1 + super::clock::TICKS_PROMISED + rng.below(TICKS_MORE) } else { 0 };
        let (cut, client_seed) = (Cut::draw(rng, requests_max), rng.next_u64());
        let is_stopped = subject == Subject::Zerohop && rng.chance(1, 4);
        let stop = is_stopped.then(|| if rng.chance(1, 2) { Stop::CutMeanwhile } else { Stop::CutBehind });
        Plan { round, subject, promise, cores, backend, broken_start, load_bytes, ticks, stop, cut, client_seed }
    }

    /// What the guest's `init` is given.
    pub fn variables(&self, planted: Option<&str>) -> Vec<(&'static str, String)> {
        let serve = match self.subject {
            Subject::Zerohop | Subject::ZerohopUnflushed => {
                let durability = if self.promise == Promise::Interval { "interval" } else { "commit" };
                let Plan { cores, backend, .. } = self;
                format!(
                    "/bin/zerohop serve --bind 0.0.0.0 --protected-mode no --port {PORT} --dir /data/store --cores {cores} \
                     --io {backend} --durability {durability}"
                )
            }
            Subject::RedisEverysec => redis("everysec"),
            Subject::RedisNo => redis("no"),
            Subject::RedisAlways => redis("always"),
        };
        let mut variables = vec![("SERVE", serve)];
        if self.subject == Subject::ZerohopUnflushed {
            variables.push(("MOUNT", "nobarrier".to_owned()));
        }
        if self.is_zerohop() {
            variables.push(("CHECK", CHECK.to_owned()));
        }
        variables.extend(planted.map(|bug| ("PLANTED_BUG", bug.to_owned())));
        variables
    }

    /// What the server prints when it serves.
    pub fn ready(&self) -> &'static str {
        if self.is_zerohop() { "ready on " } else { "Ready to accept connections" }
    }

    /// Whether it is Zerohop, which tells about its recovery and can be checked.
    pub fn is_zerohop(&self) -> bool {
        self.subject.is_zerohop()
    }
}

fn redis(fsync: &str) -> String {
    format!(
        "/bin/redis-server --port {PORT} --bind 0.0.0.0 --protected-mode no --dir /data/store --save '' \
         --appendonly yes --appendfsync {fsync}"
    )
}

impl Cut {
    /// One of at most so many of the disk's requests later.
    pub fn draw(rng: &mut Rng, requests_max: u64) -> Cut {
        let loss = match rng.below(8) {
            0..3 => Loss::All,
            3 => Loss::Nothing,
            4 => Loss::Tail,
            _ => Loss::Blocks(1 + rng.below(7)),
        };
        Cut { after_requests: between(rng, 1, requests_max), loss, seed: rng.next_u64() }
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Plan { round, subject, promise, cores, backend, cut, .. } = self;
        match (subject, promise) {
            (Subject::Zerohop, Promise::Commit) => {
                write!(formatter, "round {round}: {cores} cores, commit, {backend}")?
            }
            (Subject::Zerohop, _) => write!(formatter, "round {round}: {cores} cores, interval, {backend}")?,
            _ => write!(formatter, "round {round}: {subject:?}")?,
        }
        if let Some(broken) = self.broken_start {
            write!(formatter, ", a start cut at request {}", broken.after_requests)?;
        }
        match self.stop {
            None => write!(formatter, ", cut at request {}", cut.after_requests)?,
            Some(Stop::CutMeanwhile) => write!(formatter, ", cut at request {} of a stop", cut.after_requests)?,
            Some(Stop::CutBehind) => write!(formatter, ", cut behind a stop")?,
        }
        write!(formatter, ", loses {:?}", cut.loss)
    }
}

#[cfg(test)]
mod tests {
    use super::{Loss, Plan, Promise, Stop, Subject};

    #[test]
    fn a_seed_is_a_campaign_and_a_campaign_has_everything() {
        let plans: Vec<Plan> = (1..200).map(|round| Plan::draw(Subject::Zerohop, 7, round)).collect();
        for (plan, round) in plans.iter().zip(1..) {
            assert_eq!(format!("{plan:?}"), format!("{:?}", Plan::draw(Subject::Zerohop, 7, round)));
        }
        for (promise, cores) in [Promise::Commit, Promise::Interval].into_iter().zip([1, 2, 4].into_iter().cycle()) {
            for backend in ["uring", "epoll"] {
                let is = |plan: &&Plan| (plan.promise, plan.cores, plan.backend) == (promise, cores, backend);
                assert!(plans.iter().any(|plan| is(&plan)), "{promise:?} {cores} {backend}");
            }
        }
        for loss in [Loss::All, Loss::Nothing, Loss::Tail, Loss::Blocks(1), Loss::Blocks(7)] {
            assert!(plans.iter().any(|plan| plan.cut.loss == loss), "{loss:?}");
        }
        assert!(plans.iter().any(|plan| plan.broken_start.is_some()));
        for stop in [None, Some(Stop::CutMeanwhile), Some(Stop::CutBehind)] {
            assert!(plans.iter().any(|plan| plan.stop == stop), "{stop:?}");
        }
    }

    #[test]
    fn redis_is_held_against_commit_and_zerohop_is_told_its_bug() {
        let plan = Plan::draw(Subject::RedisEverysec, 1, 1);
        assert_eq!((plan.promise, plan.variables(None).len()), (Promise::Commit, 1));
        assert_eq!(Plan::draw(Subject::RedisNo, 1, 1).promise, Promise::Interval);
        let plan = Plan::draw(Subject::Zerohop, 1, 1);
        assert_eq!(plan.variables(Some("M1")).last(), Some(&("PLANTED_BUG", "M1".to_owned())));
    }
}
