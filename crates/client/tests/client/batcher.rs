//! The batcher under random schedules: nothing late, nothing lost, nothing twice, each caller's order kept.

use client::batch::*;
use proptest::prelude::*;

const POLICIES: [PolicyConfig; 5] = [
    PolicyConfig::Immediate,
    PolicyConfig::SelfClocked,
    PolicyConfig::Fixed(FixedConfig { count_max: 5, bytes_max: 400, interval_us: 5000, is_stop_and_wait: true }),
    PolicyConfig::Edf(EdfConfig { wait_us_max: 1_000_000 }),
    PolicyConfig::Stout(STOUT),
];
const STOUT: StoutConfig = StoutConfig {
    alpha: 0.05,
    beta: 0.8,
    factor: 0.8,
    weight: 1.0 / 15.0,
    interval_ms_min: 1.0,
    interval_ms_max: 400.0,
    interval_ms_start: 80.0,
    best_us: 1_000_000,
};

/// Batches that may be out.
const OUT_MAX: usize = 12;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Push {
        caller: u64,
        qos: Qos,
        bytes: usize,
    },
    /// The oldest batch ends this way.
    End(BatchOutcome),
    /// So much time passes, with the batcher asked when it wants to be.
    Pass {
        us: u64,
    },
    Reset,
}

fn qos() -> impl Strategy<Value = Qos> {
    prop_oneof![
        2 => Just(Qos::Batch),
        1 => Just(Qos::Single),
        3 => prop::sample::select(vec![500, 1000, 10_000, 100_000, 1_000_000]).prop_map(|us| Qos::Within { us }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..4u64, qos(), 8..100usize).prop_map(|(caller, qos, bytes)| Step::Push { caller, qos, bytes }),
        3 => Just(Step::End(BatchOutcome::Answered)),
        1 => prop::sample::select(vec![BatchOutcome::TimedOut, BatchOutcome::Failed, BatchOutcome::Rerouted])
            .prop_map(Step::End),
        4 => (0..3000u64).prop_map(|us| Step::Pass { us }),
        1 => (0..60_000u64).prop_map(|us| Step::Pass { us }),
        1 => Just(Step::Reset),
    ]
}

/// A request as its owner knows it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    number: usize,
    caller: u64,
    bytes: usize,
    /// When it has to be answered, unless that could not be promised.
    deadline_us: Option<u64>,
}

/// A batcher, its clock, and what went in and came out.
struct World {
    batcher: Batcher<Asked>,
    now_us: u64,
    asked: Vec<Asked>,
    is_sent: Vec<bool>,
    last_of_caller: [Option<usize>; 4],
    out: std::collections::VecDeque<BatchTicket>,
    /// Bytes of one bucket, for the bound of a batch.
    bucket_bytes_max: usize,
}

impl World {
    fn new(policy: PolicyConfig) -> World {
        let bounds = BatchBounds {
            items_max: 20,
            bytes_max: 1500,
            waiting_bytes_max: 2500,
            in_flight_batches_max: OUT_MAX,
            ..BatchBounds::default()
        };
        let config = BatcherConfig { policy, bounds, ..BatcherConfig::default() };
        World {
            batcher: Batcher::new(config, 0),
            now_us: 0,
            asked: Vec::new(),
            is_sent: Vec::new(),
            last_of_caller: [None; 4],
            out: Default::default(),
            bucket_bytes_max: bounds.bytes_max,
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            match *step {
                Step::Push { caller, qos, bytes } => self.push(caller, qos, bytes),
                Step::End(outcome) => self.end(outcome),
                Step::Pass { us } => self.pass(us),
                Step::Reset => {
                    self.batcher.reset(self.now_us);
                    self.out.clear();
                }
            }
            self.poll();
        }
        while let Some(batch) = self.batcher.drain(self.now_us) {
            self.sent(batch);
        }
        assert!(self.is_sent.iter().all(|sent| *sent), "a request was lost");
    }

    fn push(&mut self, caller: u64, qos: Qos, bytes: usize) {
        let number = self.asked.len();
        let deadline_us = match qos {
            // In best effort, what cannot be had is promised by nobody.
            Qos::Within { us } if self.batcher.is_best_effort() && us < self.batcher.estimate_us(1, 0) => None,
            Qos::Within { us } => Some(self.now_us + us),
            Qos::Single => Some(self.now_us),
            Qos::Batch => None,
        };
        let asked = Asked { number, caller, bytes, deadline_us };
        let waiting = self.batcher.waiting_bytes();
        let pushed = self
            .batcher
            .push(self.now_us, caller, qos, asked, |buffer| buffer.resize(buffer.len() + bytes, number as u8));
        assert_eq!(pushed.is_ok(), waiting < 2500, "{waiting} bytes wait");
        if pushed.is_ok() {
            self.asked.push(asked);
            self.is_sent.push(false);
        } else {
            assert_eq!(self.batcher.waiting_bytes(), waiting);
        }
    }

    fn end(&mut self, outcome: BatchOutcome) {
        if let Some(ticket) = self.out.pop_front() {
            self.batcher.answered(self.now_us, BatchAnswer { ticket, outcome });
        }
    }

    fn pass(&mut self, us: u64) {
        let until_us = self.now_us + us;
        while let Some(due_us) = self.batcher.deadline_us().filter(|&due_us| due_us <= until_us) {
            assert!(due_us > self.now_us, "it was asked already");
            self.now_us = due_us;
            self.poll();
        }
        self.now_us = until_us;
        self.poll();
    }

    /// Sends what is due; what then still waits must be able to.
    fn poll(&mut self) {
        while let Some(batch) = self.batcher.due(self.now_us) {
            self.sent(batch);
        }
        assert_eq!(self.out.len(), self.batcher.batches_in_flight());
        assert!(self.out.len() <= OUT_MAX);
        if self.out.len() == OUT_MAX {
            return;
        }
        for asked in self.asked.iter().filter(|asked| !self.is_sent[asked.number]) {
            let Some(deadline_us) = asked.deadline_us else { continue };
            let send_by_us = deadline_us.saturating_sub(self.batcher.estimate_us(1, asked.bytes));
            assert!(self.now_us < send_by_us, "{asked:?} waits at {} and was to be sent by {send_by_us}", self.now_us);
        }
    }

    fn sent(&mut self, batch: Batch<Asked>) {
        let mut bytes = batch.bytes.as_slice();
        assert!(bytes.len() <= 2 * (self.bucket_bytes_max + 100), "{} bytes in one batch", bytes.len());
        assert!(!batch.items.is_empty() && batch.items.len() <= 40);
        assert_eq!((batch.ticket.count, batch.ticket.bytes), (batch.items.len(), bytes.len()));
        for asked in &batch.items {
            assert!(!std::mem::replace(&mut self.is_sent[asked.number], true), "{asked:?} left twice");
            let (own, rest) = bytes.split_at(asked.bytes);
            assert!(own.iter().all(|byte| *byte == asked.number as u8), "bytes and items differ at {asked:?}");
            bytes = rest;
            let last = self.last_of_caller[asked.caller as usize].replace(asked.number);
            assert!(last < Some(asked.number), "{asked:?} left behind {last:?} of its caller");
        }
        assert!(bytes.is_empty());
        self.out.push_back(batch.ticket);
        self.batcher.recycle(batch.bytes, batch.items);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schedule_keeps_deadlines_order_and_every_request(
        policy in prop::sample::select(POLICIES.to_vec()),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        World::new(policy).run(&steps);
    }
}

#[test]
fn an_idle_bucket_with_one_request_is_flushed_at_its_deadline() {
    let patient = [
        PolicyConfig::Edf(EdfConfig::default()),
        PolicyConfig::Fixed(FixedConfig::pipelined(900_000)),
        PolicyConfig::Fixed(FixedConfig::stop_and_wait(900_000)),
        PolicyConfig::Stout(StoutConfig { interval_ms_start: 400.0, ..STOUT }),
    ];
    for policy in patient {
        let mut batcher = Batcher::new(BatcherConfig { policy, ..BatcherConfig::default() }, 0);
        batcher.push(50, 1, Qos::Within { us: 10_000 }, (), |bytes| bytes.extend_from_slice(b"PING\r\n")).unwrap();
        let send_by_us = 50 + 10_000 - batcher.estimate_us(1, 6);
        assert_eq!(batcher.deadline_us(), Some(send_by_us), "{policy:?}");
        assert!(batcher.due(send_by_us - 1).is_none());
        assert_eq!(batcher.due(send_by_us).unwrap().items.len(), 1);
        assert_eq!(batcher.deadline_us(), None);
    }
}

#[test]
fn what_is_urgent_leaves_alone_and_the_callers_own_requests_go_before_it() {
    let config =
        BatcherConfig { policy: PolicyConfig::Fixed(FixedConfig::pipelined(400_000)), ..BatcherConfig::default() };
    let mut batcher = Batcher::new(config, 0);
    let push = |batcher: &mut Batcher<u32>, caller, qos, item| {
        batcher.push(1, caller, qos, item, |bytes| bytes.push(item as u8)).unwrap();
    };
    // From here on callers are known.
    push(&mut batcher, 9, Qos::Single, 0);
    assert_eq!(batcher.due(1).unwrap().items, [0]);
    push(&mut batcher, 1, Qos::Batch, 1);
    push(&mut batcher, 2, Qos::Single, 2);
    assert_eq!(batcher.due(1).unwrap().items, [2], "another caller's requests are not hurried");
    push(&mut batcher, 1, Qos::Single, 3);
    let both = batcher.due(1).unwrap();
    assert_eq!((both.items, both.bytes), (vec![1, 3], vec![1, 3]), "one write, the earlier request first");
    push(&mut batcher, 3, Qos::Single, 4);
    push(&mut batcher, 3, Qos::Batch, 5);
    push(&mut batcher, 4, Qos::Batch, 6);
    assert_eq!(batcher.due(1).unwrap().items, [4, 5], "what follows the urgent one of its caller joins it");
    assert!(batcher.due(1).is_none());
}

#[test]
fn relaxed_requests_ride_along_where_that_delays_nobody() {
    let config = BatcherConfig { policy: PolicyConfig::Edf(EdfConfig::default()), ..BatcherConfig::default() };
    let with_known_callers = || {
        let mut batcher = Batcher::new(config, 0);
        batcher.push(0, 300, Qos::Single, 300, |bytes| bytes.push(0)).unwrap();
        batcher.due(0).unwrap();
        batcher
    };
    let mut batcher = with_known_callers();
    for item in 0..100 {
        batcher.push(0, item, Qos::Batch, item, |bytes| bytes.push(0)).unwrap();
    }
    batcher.push(0, 200, Qos::Within { us: 5000 }, 200, |bytes| bytes.push(0)).unwrap();
    let send_by_us = batcher.deadline_us().unwrap();
    assert_eq!(send_by_us, 5000 - batcher.estimate_us(1, 1));
    assert_eq!(batcher.due(send_by_us).unwrap().items, [200], "with the others it would be late");
    batcher.push(send_by_us, 200, Qos::Within { us: 10 }, 201, |bytes| bytes.push(0)).unwrap();
    assert_eq!(batcher.due(send_by_us).unwrap().items, [201]);
    assert_eq!(batcher.waiting_items(), 100);

    let mut batcher = with_known_callers();
    (0..10).for_each(|item| batcher.push(0, item, Qos::Batch, item, |bytes| bytes.push(0)).unwrap());
    batcher.push(0, 200, Qos::Within { us: 5000 }, 200, |bytes| bytes.push(0)).unwrap();
    let batch = batcher.due(batcher.deadline_us().unwrap()).unwrap();
    assert_eq!((batch.items[0], batch.items.len()), (200, 11), "ten more cost less than the reserve");
}

#[test]
fn a_full_bucket_leaves_at_once_and_a_destination_that_is_behind_takes_nothing_more() {
    let bounds = BatchBounds {
        items_max: 10,
        bytes_max: 1000,
        waiting_bytes_max: 1500,
        in_flight_batches_max: 3,
        ..BatchBounds::default()
    };
    let mut batcher = Batcher::new(BatcherConfig { bounds, ..BatcherConfig::default() }, 0);
    let push = |batcher: &mut Batcher<u32>, len: usize| {
        batcher.push(0, 1, Qos::Batch, 7, |bytes| bytes.resize(bytes.len() + len, 0))
    };
    push(&mut batcher, 1).unwrap();
    assert_eq!(batcher.due(0).unwrap().items.len(), 1);
    (0..9).for_each(|_| push(&mut batcher, 1).unwrap());
    assert!(batcher.due(0).is_none(), "one is out");
    push(&mut batcher, 1).unwrap();
    assert_eq!(batcher.due(0).unwrap().items.len(), 10, "full by count");
    push(&mut batcher, 1000).unwrap();
    assert_eq!(batcher.due(0).unwrap().items.len(), 1, "full by bytes");
    push(&mut batcher, 1500).unwrap();
    assert!(batcher.due(0).is_none() && batcher.deadline_us().is_none(), "as much is out as may be");
    assert_eq!(push(&mut batcher, 1), Err(Refused(7)));
    assert_eq!(batcher.waiting_items(), 1);
}

#[test]
fn a_destination_with_too_much_work_takes_nothing_more() {
    let mut batcher: Batcher<()> = Batcher::new(BatcherConfig::default(), 0);
    for count in (1..50).cycle().take(200) {
        batcher.learn(count, 10 * count, 1000 * count as u64);
    }
    let taken = (0..1000).take_while(|_| batcher.push(0, 1, Qos::Batch, (), |bytes| bytes.push(0)).is_ok()).count();
    // 0.3 s of a millisecond each.
    assert!((270..=330).contains(&taken), "{taken}");
}

#[test]
fn after_a_change_of_route_neither_old_answers_nor_the_first_new_one_are_learned_from() {
    let mut batcher: Batcher<()> = Batcher::new(BatcherConfig::default(), 0);
    let send = |batcher: &mut Batcher<()>, now_us| {
        batcher.push(now_us, 1, Qos::Batch, (), |bytes| bytes.push(0)).unwrap();
        batcher.due(now_us).unwrap().ticket
    };
    let answered = |ticket| BatchAnswer { ticket, outcome: BatchOutcome::Answered };
    let assumed_us = batcher.estimate_us(1, 1);
    let old = send(&mut batcher, 0);
    batcher.reset(10);
    let first = send(&mut batcher, 20);
    batcher.answered(90_000, answered(old));
    assert_eq!((batcher.batches_in_flight(), batcher.estimate_us(1, 1)), (1, assumed_us));
    batcher.answered(90_020, answered(first));
    assert_eq!((batcher.batches_in_flight(), batcher.estimate_us(1, 1)), (0, assumed_us));
    let second = send(&mut batcher, 100_000);
    batcher.answered(190_000, answered(second));
    let learned_us = batcher.estimate_us(1, 1);
    assert!(learned_us > 50_000);
    let third = send(&mut batcher, 200_000);
    batcher.answered(400_000, BatchAnswer { ticket: third, outcome: BatchOutcome::TimedOut });
    assert_eq!(batcher.estimate_us(1, 1), learned_us, "a timeout is no latency");
}

#[test]
fn vectors_come_back() {
    let mut batcher: Batcher<u32> = Batcher::new(BatcherConfig::default(), 0);
    let mut addresses = Vec::new();
    for round in 0..6 {
        batcher.push(round, 1, Qos::Batch, 1, |bytes| bytes.extend_from_slice(&[0; 100])).unwrap();
        let batch = batcher.due(round).unwrap();
        addresses.push(batch.bytes.as_ptr());
        batcher.answered(round, BatchAnswer { ticket: batch.ticket, outcome: BatchOutcome::Answered });
        batcher.recycle(batch.bytes, batch.items);
    }
    addresses.dedup();
    addresses.sort_unstable();
    addresses.dedup();
    assert!(addresses.len() <= 2, "{addresses:?}");
}
