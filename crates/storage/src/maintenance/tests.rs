//! Shares, bytes, phases, permits and alarms, each alone.

use std::collections::VecDeque;

use super::backlog::Backlog;
use super::bucket::Bucket;
use super::phase::Phase;
use super::*;
use crate::log::LogIdentity;

#[test]
fn who_is_alone_gets_what_it_wants_and_nobody_less_than_its_floor() {
    assert_eq!(share(1000, [0, 300, 0, 0, 0]), [0, 300, 0, 0, 0]);
    assert_eq!(share(1000, [2000, 2000, 2000, 10, 0]), [1000 - 2 * FLOOR_WORK - 10, FLOOR_WORK, FLOOR_WORK, 10, 0]);
    assert_eq!(share(1000, [0, 500, 500, 500, 0]), [0, 500, 1000 - 500 - FLOOR_WORK, FLOOR_WORK, 0]);
    let mut random = base::rng::Rng::new(7);
    for _ in 0..1000 {
        let wants = [(); CLASS_COUNT].map(|()| random.below(3) as u32 * random.below(700) as u32);
        let grants = share(TICK_WORK, wants);
        let (granted, wanted) = (grants.iter().sum::<u32>(), wants.iter().sum::<u32>());
        assert_eq!(granted, wanted.min(TICK_WORK), "{wants:?}: {grants:?}");
        let floors = grants.iter().zip(wants).all(|(grant, want)| *grant >= want.min(FLOOR_WORK) && *grant <= want);
        assert!(floors, "{wants:?}: {grants:?}");
        // Nobody has more than its floor while somebody more urgent lacks something.
        let lacks = (0..CLASS_COUNT).find(|class| grants[*class] < wants[*class]).unwrap_or(CLASS_COUNT);
        assert!(grants.iter().skip(lacks + 1).all(|grant| *grant <= FLOOR_WORK), "{wants:?}: {grants:?}");
    }
}

#[test]
fn steps_are_counted_and_those_that_were_cut_short() {
    let mut scheduler = Scheduler::default();
    scheduler.step(TICK_WORK, [0; CLASS_COUNT]);
    scheduler.step(TICK_WORK, [0, 100, 0, 0, 0]);
    assert_eq!(scheduler.granted(Class::Checkpoint), 100);
    scheduler.step(TICK_WORK, [TICK_WORK, 100, 0, 0, 0]);
    assert_eq!(scheduler.granted(Class::Eviction), TICK_WORK - FLOOR_WORK);
    assert_eq!(scheduler.done(Class::Checkpoint), Done { steps: 2, shortened: 1 });
    assert_eq!(scheduler.done(Class::Reclaim), Done::default());
}

#[test]
fn a_bucket_lets_its_rate_through_and_no_more() {
    let mut bucket = Bucket::new(1_000_000, 1000);
    let (mut now_us, mut sum) = (5, 0);
    while now_us < 1_000_000 {
        if bucket.is_open(now_us) {
            bucket.take(300, now_us);
            sum += 300;
            now_us += 1;
        } else {
            assert!(bucket.opens_at_us() > now_us);
            now_us = bucket.opens_at_us();
            assert!(bucket.is_open(now_us), "at {now_us}");
        }
    }
    // A byte each microsecond, the burst, and the last piece.
    assert!((1_000_000..=1_001_300).contains(&sum), "{sum}");
    // What was not used is not kept, and a clock that stands still, or jumps, breaks nothing.
    bucket.take(0, u64::MAX);
    bucket.take(2000, u64::MAX);
    assert!(!bucket.is_open(5) && !bucket.is_open(u64::MAX));
    assert_eq!(bucket.opens_at_us(), u64::MAX);
}

#[test]
fn what_could_not_wait_is_not_paid_for_later() {
    let mut bucket = Bucket::new(1_000_000, 1000);
    (0..100).for_each(|_| bucket.take(300, 5));
    assert_eq!((bucket.is_open(5), bucket.opens_at_us()), (false, 306), "a piece, however many went before it");
}

fn phase(store: u8, core: u16, cores: u16) -> Phase {
    Phase::new(&LogIdentity { store_id: [store; 16], incarnation: 1, core, cores })
}

#[test]
fn phases_spread_and_keep_the_mean() {
    let stride = 1_000_000;
    let mut firsts: Vec<u64> = (0..4).map(|core| phase(1, core, 4).first(stride)).collect();
    firsts.sort_unstable();
    assert!(
        firsts.windows(2).all(|pair| (stride / 4 - 1..=stride / 4 + 1).contains(&(pair[1] - pair[0]))),
        "{firsts:?}"
    );
    assert!(firsts.iter().all(|first| (1..=stride).contains(first)), "{firsts:?}");
    let one = phase(1, 0, 2);
    let strides: Vec<u64> = (0..10_000).map(|run| one.next(stride, run)).collect();
    assert!(strides.iter().all(|bytes| (stride * 4 / 5..=stride * 6 / 5).contains(bytes)));
    let mean = strides.iter().sum::<u64>() / strides.len() as u64;
    assert!(mean.abs_diff(stride) < stride / 100, "{mean}");
    assert!(
        strides.iter().any(|bytes| *bytes < stride * 17 / 20) && strides.iter().any(|bytes| *bytes > stride * 23 / 20)
    );
    // Another core and another node draw otherwise; the same one draws the same again.
    for other in [phase(1, 1, 2), phase(2, 0, 2)] {
        let same = (0..1000).filter(|run| other.next(stride, *run) == one.next(stride, *run)).count();
        assert!(same < 10, "{same} strides of 1000 are alike");
    }
    assert_eq!(phase(1, 0, 2).next(stride, 77), one.next(stride, 77));
    assert!((1..=3).all(|tiny| one.next(tiny, 1) >= 1 && one.first(tiny) <= tiny));
}

/// Whoever waits gets one in the end, and never are there more than the cap.
#[test]
fn permits_never_exceed_the_cap_and_go_to_who_waits_longest() {
    let mut random = base::rng::Rng::new(3);
    for logs in [1usize, 2, 3, 8, 64] {
        let mut permits = Permits::new(logs);
        let (mut holding, mut asked) = (Vec::new(), VecDeque::new());
        let mut alarmed = false;
        for _ in 0..5000 {
            let log = random.below(logs as u64) as u16;
            match random.below(10) {
                0..5 if !holding.contains(&log) && !asked.contains(&log) => {
                    permits.note(log, Notice::Ask);
                    asked.push_back(log);
                }
                5..9 => {
                    permits.note(log, Notice::GiveBack);
                    holding.retain(|held| *held != log);
                    asked.retain(|asking| *asking != log);
                }
                9 if random.below(50) == 0 => {
                    alarmed = !alarmed;
                    permits.note(0, Notice::Alarm(alarmed));
                }
                _ => {}
            }
            let cap = if alarmed { logs } else { (logs / 2).max(1) };
            let before = holding.len();
            while let Some(log) = permits.grant() {
                assert_eq!(Some(log), asked.pop_front(), "in the order of asking");
                holding.push(log);
            }
            assert_eq!(permits.in_use().0 as usize, holding.len());
            assert!(holding.len() <= cap.max(before), "{} of {cap}", holding.len());
            assert!(asked.is_empty() || holding.len() >= cap, "somebody waits for nothing");
        }
    }
}

#[test]
fn three_periods_of_growing_debt_are_an_alarm() {
    let mut backlog = Backlog::default();
    let look = |backlog: &mut Backlog, period: u64, debt: u64| backlog.look(debt * 100, period * 100, 100);
    let debts = [1, 2, 2, 3, 4];
    let changed = debts.iter().enumerate().any(|(period, debt)| look(&mut backlog, period as u64, *debt));
    assert!(!changed && !backlog.is_alarmed(), "it did not grow three times in a row");
    // Looks within a period do not count.
    (0..10).for_each(|more| assert!(!backlog.look(401 + more, 401 + more, 100)));
    assert!(look(&mut backlog, 6, 5) && backlog.is_alarmed());
    assert!(!look(&mut backlog, 7, 3) && backlog.is_alarmed(), "less is not enough");
    assert!(backlog.look(99, 701, 100) && !backlog.is_alarmed(), "at once");
    assert_eq!(backlog.alarms(), 1);
}
