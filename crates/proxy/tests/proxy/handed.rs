//! Callers in random lives whose proxy is replaced by another process meanwhile: what each hears is what it would hear from the store
//! itself, whichever of the two it was with, and for whatever reason it stayed.

use crate::lives::{CALLERS, World, compare, life};
use crate::store::Store;
use crate::street::{Street, upstream};
use base::ConnectionId;
use base::rng::Rng;
use base::street::HandOver;
use proxy::{Classes, PolicyConfig, ProxyMachine};

/// The process that takes over, and the one it takes over from.
struct Both {
    old: World,
    new: World,
    store: Store,
    /// The callers, as the old process knows them, and as the new one does.
    clients: Vec<(ConnectionId, Option<ConnectionId>)>,
    heard: Vec<Vec<u8>>,
}

impl Both {
    fn new() -> Both {
        let store = upstream(vec!["store:6379".to_owned()], PolicyConfig::SelfClocked, 100);
        let mut successor = ProxyMachine::new(store, Classes::default(), 8);
        successor.inherit(vec![(0, 0)]);
        let mut old = World::new(Street::new(PolicyConfig::SelfClocked), "10.0.0.1");
        let clients = (0..CALLERS).map(|_| (old.street.client(), None)).collect();
        let new = World::new(Street::of(successor), "10.0.0.2");
        Both { old, new, store: Store::of_today(), clients, heard: vec![Vec::new(); CALLERS] }
    }

    fn send(&mut self, caller: usize, bytes: &[u8]) {
        match self.clients[caller] {
            (_, Some(there)) => self.new.street.arrive(there, bytes),
            (here, None) => self.old.street.arrive(here, bytes),
        }
    }

    /// A moment of both; how many bytes somebody heard.
    fn step(&mut self, rng: &mut Rng) -> usize {
        self.old.step(&mut self.store, rng);
        self.old.street.tick();
        self.new.step(&mut self.store, rng);
        let before: usize = self.heard.iter().map(Vec::len).sum();
        for ((here, there), heard) in self.clients.iter().zip(&mut self.heard) {
            heard.extend(self.old.street.take(*here));
            heard.extend(there.map(|there| self.new.street.take(there)).unwrap_or_default());
        }
        for (connection, state, unread) in std::mem::take(&mut self.old.street.handed) {
            let there = self.new.street.arrives(state);
            self.new.street.arrive(there, &unread);
            let (_, place) = self.clients.iter_mut().find(|(here, _)| *here == connection).expect("a caller");
            assert!(place.replace(there).is_none(), "it went once already");
        }
        self.heard.iter().map(Vec::len).sum::<usize>() - before
    }
}

/// What each heard, how many went over, and whether the old process has ended.
fn replaced(seed: u64, lives: &[Vec<u8>]) -> (Vec<Vec<u8>>, usize, bool) {
    let mut rng = Rng::new(seed);
    let mut both = Both::new();
    let mut unsent: Vec<&[u8]> = lives.iter().map(Vec::as_slice).collect();
    let leaves_at = 1 + rng.below(20);
    let (mut quiet, mut round) = (0, 0);
    while quiet < 400 {
        (quiet, round) = (quiet + 1, round + 1);
        if round == leaves_at {
            both.old.street.leave();
        }
        both.old.street.way = if rng.chance(1, 4) { HandOver::Full } else { HandOver::Gone };
        let caller = rng.below(lives.len() as u64) as usize;
        if !unsent[caller].is_empty() {
            let (now, later) = unsent[caller].split_at(1 + rng.below(unsent[caller].len().min(200) as u64) as usize);
            both.send(caller, now);
            unsent[caller] = later;
            quiet = 0;
        }
        if both.step(&mut rng) > 0 {
            quiet = 0;
        }
    }
    let moved = both.clients.iter().filter(|(_, there)| there.is_some()).count();
    (both.heard, moved, both.old.street.has_stopped)
}

#[test]
fn each_caller_hears_what_the_store_itself_would_say_while_another_process_takes_over() {
    let (mut moved_of_all, mut ended) = (0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let lives: Vec<Vec<u8>> = (0..CALLERS).map(|caller| life(&mut rng, caller)).collect();
        let (heard, moved, has_ended) = replaced(seed, &lives);
        compare(seed, &lives, &heard);
        assert_eq!(has_ended, moved == CALLERS, "seed {seed}: {moved} of {CALLERS} went");
        moved_of_all += moved;
        ended += usize::from(has_ended);
    }
    assert!(moved_of_all > 300 && ended > 0, "{moved_of_all} went, {ended} processes ended");
}

#[test]
fn who_cannot_go_because_nobody_is_there_any_more_is_served_on() {
    let mut both = Both::new();
    let mut rng = Rng::new(1);
    both.old.street.way = HandOver::Nobody;
    both.old.street.leave();
    both.send(0, b"SET a 1\r\nGET a\r\n");
    for _ in 0..200 {
        both.step(&mut rng);
    }
    assert_eq!(both.heard[0], b"+OK\r\n$1\r\n1\r\n");
    both.send(0, b"GET a\r\n");
    for _ in 0..200 {
        both.step(&mut rng);
    }
    assert_eq!(both.heard[0], b"+OK\r\n$1\r\n1\r\n$1\r\n1\r\n");
    assert!(!both.old.street.has_stopped && both.clients.iter().all(|(_, there)| there.is_none()));
}
