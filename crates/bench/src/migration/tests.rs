//! Every way on two real ends in this process: no verdict about time, but every key says what it should.

use std::net::{Ipv4Addr, TcpListener};

use super::subject::Pair;
use super::workers::Access;
use super::*;

/// Two ends that live as long as the test process, on ports next to each other, and the first of these.
fn ends() -> (Pair, u16) {
    loop {
        let source = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = source.local_addr().expect("it is bound").port();
        let Some(Ok(destination)) = port.checked_add(1).map(|next| TcpListener::bind((Ipv4Addr::LOCALHOST, next)))
        else {
            continue;
        };
        for listener in [source, destination] {
            std::thread::spawn(move || end::serve(listener).map_err(|error| eprintln!("an end: {error}")));
        }
        return (Pair::of(port), port);
    }
}

const PLAN: Plan = Plan {
    keys: 20_000,
    workers: 8,
    per_second: 20_000.0,
    length: Duration::from_millis(400),
    copying: 0.1,
    pieces: 20,
    orders: 1,
    steady: Duration::from_millis(50),
};

#[test]
fn every_way_brings_all_keys_and_no_answer_is_old() {
    let (mut pair, source) = ends();
    for arm in Arm::OF_PAIR {
        for write_percent in [0, 50] {
            let cell = Cell { write_percent, budget_percent: 70, load_percent: None };
            let seen = run(&mut pair, arm, cell, &PLAN).expect("it migrates");
            assert!(seen.failed.is_empty() && seen.wrong == 0, "{seen:?}");
            // Who comes later is told once where everything is.
            let mut late = pair::Client::new(source, source + 1).expect("they listen");
            for key in [0, PLAN.keys - 1] {
                assert!(late.get(key).is_ok_and(|number| number > 0), "{seen:?}");
                assert_eq!(late.corrections(), 1, "{seen:?}");
            }
        }
    }
}

#[test]
fn what_is_set_in_the_moment_of_a_switch_is_not_lost() {
    let mut pair = ends().0;
    // So many SETs that some meet each switch.
    let plan =
        Plan { per_second: 1e6, length: Duration::from_millis(40), workers: 32, keys: 2_000, copying: 0.0, ..PLAN };
    let cell = Cell { write_percent: 100, budget_percent: 100, load_percent: None };
    for _ in 0..10 {
        let seen = run(&mut pair, Arm::SourceBased, cell, &plan).expect("it migrates");
        assert!(seen.failed.is_empty() && seen.wrong == 0, "{seen:?}");
    }
}

/// Keys in memory; every SET from the tenth on is forgotten if it is forgetful.
struct Memory {
    numbers: Vec<u64>,
    sets: u64,
    is_forgetful: bool,
}

impl Access for Memory {
    fn get(&mut self, key: u32) -> Result<u64, String> {
        Ok(self.numbers[key as usize])
    }

    fn set(&mut self, key: u32, number: u64) -> Result<(), String> {
        self.sets += 1;
        if !self.is_forgetful || self.sets < 10 {
            self.numbers[key as usize] = number;
        }
        Ok(())
    }

    fn corrections(&self) -> u64 {
        0
    }
}

/// Requests of two workers until there were so many, what was called wrong meanwhile and afterwards, and the most that a beat of 2,000 a second allows.
fn memory(is_forgetful: bool, mix: Mix, until: usize) -> (usize, [u64; 2], f64) {
    let began = Instant::now();
    let access = |_| Memory { numbers: vec![5; 100], sets: 0, is_forgetful };
    let (mut requests, mut wrong, mut starts) = (0, [0; 2], 0);
    while requests < until {
        let running = workers::start((0..2).map(access).collect(), 100, 5, mix);
        starts += 1;
        let (mut workers, notes) = running.stop();
        requests += notes.iter().map(|notes| notes.samples.len()).sum::<usize>();
        wrong[0] += notes.iter().map(|notes| notes.wrong).sum::<u64>();
        wrong[1] += workers.iter_mut().map(workers::Worker::audit).sum::<u64>();
    }
    // Both may ask in the moment in which they are started.
    (requests, wrong, began.elapsed().as_secs_f64() * 2000.0 + 2.0 * f64::from(starts))
}

#[test]
fn what_is_forgotten_is_seen() {
    let mix = |write_percent| Mix { write_percent, per_second: None };
    assert_eq!(memory(false, mix(50), 1000).1, [0, 0]);
    assert!(memory(true, mix(50), 1000).1[0] > 0);
    assert!(memory(true, mix(100), 1000).1[1] > 0, "nobody reads before the end");
}

#[test]
fn who_asks_in_a_beat_is_not_asked_for_more() {
    let mix = Mix { write_percent: 10, per_second: Some(2000.0) };
    let (requests, _, most) = memory(false, mix, 100);
    assert!(requests as f64 <= most, "{requests} are more than {most}");
}

#[test]
fn no_model_is_of_who_is_not_saturated() {
    let cell = Cell { write_percent: 10, budget_percent: 100, load_percent: Some(10) };
    let seen = run(&mut ends().0, Arm::Cursor, cell, &PLAN).expect("it migrates");
    assert!(seen.failed.is_empty() && seen.wrong == 0 && seen.model_per_second.is_none(), "{seen:?}");
}
