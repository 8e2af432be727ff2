//! A round of questions: every core is asked how it stands, and the manager how the cluster does.
//!
//! ```text
//!   ask ─► core 0 … n-1, manager ─► answers ─► done when all are here, or after a second
//! ```
//!
//! Whoever still owes an answer of an earlier round is not asked again: a core that stands still has one question in its
//! mailbox, however often it is scraped.

use base::CoreId;
use base::limits::ADMIN_ANSWER_MS_MAX;
use shard::beside::CoreStanding;
use shard::gather::{Answer, Question};
use shard::order::{Order, Ordered};
use shard::{Control, HopBatch};

use crate::sample::ManagerStanding;

/// What came of a round.
pub(crate) struct Outcome {
    pub cores: Vec<Option<Box<CoreStanding>>>,
    pub manager: ManagerStanding,
    /// By machine: how long it has owed an answer, microseconds; 0: it owes none.
    pub owed_us: Vec<u64>,
    /// How long the round took, microseconds.
    pub us: u64,
}

/// See the module.
pub(crate) struct Rounds {
    cores: usize,
    count: u64,
    /// By machine: since when it owes an answer, microseconds.
    owed_since_us: Vec<Option<u64>>,
    /// The one under way began then.
    began_us: Option<u64>,
    answers: Vec<Option<Box<CoreStanding>>>,
    manager: ManagerStanding,
}

impl Rounds {
    /// With so many cores, and a manager behind them or none.
    pub fn new(cores: usize, has_manager: bool) -> Rounds {
        Rounds {
            cores,
            count: 0,
            owed_since_us: vec![None; cores + usize::from(has_manager)],
            began_us: None,
            answers: Vec::new(),
            manager: ManagerStanding::None,
        }
    }

    pub fn is_under_way(&self) -> bool {
        self.began_us.is_some()
    }

    /// When the round under way ends at the latest.
    pub fn deadline_us(&self) -> Option<u64> {
        Some(self.began_us? + ADMIN_ANSWER_MS_MAX * 1000)
    }

    /// Asks everybody who owes no answer.
    pub fn begin(&mut self, now_us: u64, hops: &mut Vec<(CoreId, HopBatch)>) {
        self.count += 1;
        self.began_us = Some(now_us);
        self.answers = (0..self.cores).map(|_| None).collect();
        self.manager = if self.has_manager() { ManagerStanding::Silent } else { ManagerStanding::None };
        let (gather, cores) = (self.count, self.cores);
        for (machine, owed) in self.owed_since_us.iter_mut().enumerate().filter(|(_, owed)| owed.is_none()) {
            *owed = Some(now_us);
            let mut batch = HopBatch::default();
            batch.controls.push(match machine < cores {
                true => Control::Ask { gather, question: Question::Standing },
                false => Control::Order { gather, order: Order::Status },
            });
            hops.push((CoreId(machine as u16), batch));
        }
    }

    /// Somebody answers, this round's question or an earlier one: it has ticked just now.
    pub fn heed(&mut self, from: CoreId, answer: Answer) {
        let machine = usize::from(from.0);
        let Some(owed) = self.owed_since_us.get_mut(machine) else { return };
        *owed = None;
        if self.began_us.is_none() {
            return;
        }
        match answer {
            Answer::Standing(standing) if machine < self.cores => self.answers[machine] = Some(standing),
            Answer::Ordered(Ordered::Status(standing)) => self.manager = ManagerStanding::Inside(standing),
            Answer::Ordered(Ordered::Refused(why)) => self.manager = ManagerStanding::Outside(why),
            _ => {}
        }
    }

    /// What came of the round, once it is over.
    pub fn end(&mut self, now_us: u64) -> Option<Outcome> {
        let began_us = self.began_us?;
        let is_overdue = self.deadline_us().is_some_and(|at_us| at_us <= now_us);
        if self.owed_since_us.iter().any(Option::is_some) && !is_overdue {
            return None;
        }
        self.began_us = None;
        let owed = self.owed_since_us.iter().map(|owed| owed.map_or(0, |since_us| now_us.saturating_sub(since_us)));
        Some(Outcome {
            owed_us: owed.collect(),
            cores: std::mem::take(&mut self.answers),
            manager: std::mem::take(&mut self.manager),
            us: now_us.saturating_sub(began_us),
        })
    }

    fn has_manager(&self) -> bool {
        self.owed_since_us.len() > self.cores
    }
}
