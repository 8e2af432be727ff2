//! Zerohop itself as the pair of ends: slots that one node serves go to one that has nothing of them, by the product's own orders. What
//! a node serves is bounded at its clients, who share a bucket for each.

use std::collections::BTreeMap;
use std::sync::Arc;

use placement::slot_of;

use super::bucket::Bucket;
use super::wire::VALUE_BYTES;
use super::workers::Access;
use crate::cluster::Store;
use crate::cluster::standing::Standing;
use crate::cluster::store::await_whole;
use crate::cluster::zerohop::Zerohop;
use crate::load::control::Reply;
use crate::moves::client::Client as ClusterClient;
use crate::moves::keys::pieces;
use crate::moves::order;

const NAME_BYTES: usize = 4;
/// Requests on their way together where nothing is measured.
const PIPELINE: usize = 200;

/// A stretch of slots, both ends in it.
pub type Stretch = (u16, u16);

/// What all clients know.
struct Shared {
    names: Vec<[u8; NAME_BYTES]>,
    buckets: BTreeMap<u16, Bucket>,
}

/// See the module.
pub struct Product {
    store: Zerohop,
    shared: Arc<Shared>,
    slots: Vec<Stretch>,
    ends: [u16; 2],
    fills: u64,
}

/// A client of it.
pub struct Client {
    client: ClusterClient,
    shared: Arc<Shared>,
    corrections: u64,
}

impl Product {
    /// With `keys` keys to be set, all in slots that one node serves and another one has nothing of.
    ///
    /// # Errors
    /// When there are none, or the store is not whole.
    pub fn new(store: Zerohop, keys: u32) -> Result<Product, String> {
        await_whole(&store)?;
        let ports = store.ports();
        let standing = store.standing().ok_or("the store does not tell who has what")?;
        let (ends, slots) = choose(&standing, &ports).ok_or("every node has something of all slots of every other")?;
        let names = names(&slots, keys);
        if names.len() < keys as usize {
            return Err(format!("names of four bytes are {} in these slots", names.len()));
        }
        let buckets = ports.iter().map(|port| (*port, Bucket::new(1.0))).collect();
        Ok(Product { store, shared: Arc::new(Shared { names, buckets }), slots, ends, fills: 0 })
    }

    /// Its name, with its version, and how many slots move.
    pub fn name(&self) -> String {
        let slots: u32 = self.slots.iter().map(|(first, last)| u32::from(last - first) + 1).sum();
        format!("{}, {}, {slots} slots move", self.store.name(), self.store.shape())
    }

    /// Who serves the slots now, and who is to have them next.
    fn direction(&self) -> Result<(u16, u16), String> {
        await_whole(&self.store)?;
        let standing = self.store.standing().ok_or("the store does not tell who has what")?;
        let from = standing.members(self.slots[0].0).first().copied().ok_or("nobody serves the slots")?;
        let to = if from == self.ends[0] { self.ends[1] } else { self.ends[0] };
        let is_free =
            |slot: u16| standing.members(slot).first() == Some(&from) && !standing.members(slot).contains(&to);
        match self.slots.iter().all(|(first, last)| (*first..=*last).all(is_free)) {
            true => Ok((from, to)),
            false => Err(format!("the node on port {to} has copies of slots that are to go there")),
        }
    }

    /// Bounds both ends, and sets every key to a number that it never had; clients, and that number.
    ///
    /// # Errors
    /// What the store refuses.
    pub fn begin(&mut self, (source, destination): (f64, f64), workers: usize) -> Result<(Vec<Client>, u64), String> {
        let (from, _) = self.direction()?;
        self.fills += 1;
        let first = self.fills << 32;
        let client = |_| {
            let client = ClusterClient::new(from)?;
            Ok(Client { client, shared: Arc::clone(&self.shared), corrections: 0 })
        };
        let mut clients = (0..workers).map(client).collect::<Result<Vec<_>, String>>()?;
        std::thread::scope(|scope| {
            let fill = |(place, client): (usize, &'_ mut Client)| client.fill((place, workers), first);
            let threads: Vec<_> = clients.iter_mut().enumerate().map(|one| scope.spawn(move || fill(one))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("a worker does not panic"))
        })?;
        for (port, bucket) in &self.shared.buckets {
            bucket.set_rate(if *port == from { source } else { destination });
        }
        Ok((clients, first))
    }

    /// Moves all slots, ordered in so many pieces one after the other; returns when the last is done.
    ///
    /// # Errors
    /// What the store refuses, or that it called a move off.
    pub fn migrate(&self, count: u32) -> Result<(), String> {
        let (from, to) = self.direction()?;
        match order::in_pieces(from, to, &cut(&self.slots, count))? {
            order::End::Done => Ok(()),
            order::End::CalledOff => Err("the store called off a move".to_owned()),
        }
    }

    /// Bounds nobody any more.
    pub fn unbind(&self) {
        self.shared.buckets.values().for_each(|bucket| bucket.set_rate(1e9));
    }
}

impl Client {
    fn request(&mut self, key: u32, words: &[&str]) -> Result<Reply, String> {
        let slot = slot_of(&self.shared.names[key as usize]).number();
        let token = |client: &Client| {
            let bucket = client.shared.buckets.get(&client.client.port_of(slot));
            bucket.into_iter().for_each(Bucket::take);
        };
        token(self);
        let (result, hops) = self.client.request(slot, words);
        for _ in 0..hops.moved + hops.asked {
            self.corrections += 1;
            token(self);
        }
        result.map_err(|trouble| format!("{trouble:?}"))
    }

    fn name(&self, key: u32) -> String {
        String::from_utf8_lossy(&self.shared.names[key as usize]).into_owned()
    }

    /// Sets the keys of the worker of this place, of so many, to `number`.
    fn fill(&mut self, (place, workers): (usize, usize), number: u64) -> Result<(), String> {
        let keys: Vec<u32> = (place..self.shared.names.len()).step_by(workers).map(|key| key as u32).collect();
        let value = value(number);
        for piece in pieces(keys.len(), PIPELINE) {
            let mut by_port: BTreeMap<u16, Vec<Vec<String>>> = BTreeMap::new();
            for key in &keys[piece] {
                let slot = slot_of(&self.shared.names[*key as usize]).number();
                let words = vec!["SET".to_owned(), self.name(*key), value.clone()];
                by_port.entry(self.client.port_of(slot)).or_default().push(words);
            }
            for (port, requests) in by_port {
                let replies = self.client.pipeline(port, requests.iter().map(Vec::as_slice))?;
                let refused = replies.iter().find(|reply| reply.text() != Some("OK"));
                refused.map_or(Ok(()), |reply| Err(format!("a key is not set: {reply:?}")))?;
            }
        }
        Ok(())
    }
}

impl Access for Client {
    fn get(&mut self, key: u32) -> Result<u64, String> {
        let reply = self.request(key, &["GET", &self.name(key)])?;
        Ok(reply.text().and_then(|text| text.split_once(':')?.0.parse().ok()).unwrap_or(0))
    }

    fn set(&mut self, key: u32, number: u64) -> Result<(), String> {
        self.request(key, &["SET", &self.name(key), &value(number)]).map(drop)
    }

    fn corrections(&self) -> u64 {
        self.corrections
    }
}

/// `number:xxx…`.
fn value(number: u64) -> String {
    format!("{:x<VALUE_BYTES$}", format!("{number}:"))
}

/// The two nodes between which most slots can go to one that has no copy of them, and half of these slots: who serves none is no part of
/// a whole store any more.
fn choose(standing: &Standing, ports: &[u16]) -> Option<([u16; 2], Vec<Stretch>)> {
    let ways = ports.iter().flat_map(|from| ports.iter().map(move |to| [*from, *to]));
    let slots = |[from, to]: [u16; 2]| -> Vec<Stretch> {
        let is_it = |members: &[u16]| members.first() == Some(&from) && !members.contains(&to);
        standing
            .chains
            .iter()
            .filter(|(_, _, members)| is_it(members))
            .map(|(first, last, _)| (*first, *last))
            .collect()
    };
    let count = |slots: &[Stretch]| slots.iter().map(|(first, last)| u32::from(last - first) + 1).sum::<u32>();
    let (ends, slots) = ways.map(|ends| (ends, slots(ends))).max_by_key(|(_, slots)| count(slots))?;
    let mut left = (count(&slots) / 2) as u16;
    let half = slots.into_iter().map_while(|(first, last)| {
        let taken = left.min(last - first + 1);
        left -= taken;
        (taken > 0).then(|| (first, first + taken - 1))
    });
    Some((ends, half.collect())).filter(|(_, half): &(_, Vec<Stretch>)| !half.is_empty())
}

/// `stretches` in about `count` pieces of the same length, in their order; none is of two stretches.
fn cut(stretches: &[Stretch], count: u32) -> Vec<Stretch> {
    let total: u32 = stretches.iter().map(|(first, last)| u32::from(last - first) + 1).sum();
    let length = total.div_ceil(count.max(1)).max(1);
    let piece = |(first, last): &Stretch| {
        let last = *last;
        (*first..=last)
            .step_by(length as usize)
            .map(move |first| (first, u32::from(last).min(u32::from(first) + length - 1) as u16))
    };
    stretches.iter().flat_map(piece).collect()
}

/// The first `count` names of four letters and digits whose slots are among these.
fn names(slots: &[Stretch], count: u32) -> Vec<[u8; NAME_BYTES]> {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let name = |number: usize| [0, 1, 2, 3].map(|place: u32| LETTERS[number / 62usize.pow(place) % 62]);
    let is_in = |name: &[u8; NAME_BYTES]| {
        let slot = slot_of(name).number();
        slots.iter().any(|(first, last)| (*first..=*last).contains(&slot))
    };
    (0..62usize.pow(4)).map(name).filter(is_in).take(count as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_where_nothing_is_of_them() {
        let chains = vec![(0, 99, vec![1, 2]), (100, 399, vec![1, 3]), (400, 599, vec![2, 1]), (600, 700, vec![1, 3])];
        let standing = Standing { leader: None, chains };
        assert_eq!(choose(&standing, &[1, 2, 3]), Some(([1, 2], vec![(100, 299)])), "half of 401");
        assert_eq!(choose(&standing, &[1]), None);
    }

    #[test]
    fn pieces_have_every_slot_once() {
        assert_eq!(cut(&[(0, 9), (20, 24)], 4), [(0, 3), (4, 7), (8, 9), (20, 23), (24, 24)]);
        assert_eq!(cut(&[(0, 16383)], 1), [(0, 16383)]);
    }

    #[test]
    fn names_are_different_and_in_their_slots() {
        let names = names(&[(0, 99), (16_000, 16_383)], 5000);
        let mut all = names.clone();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5000);
        assert!(names.iter().map(|name| slot_of(name).number()).all(|slot| !(100..16_000).contains(&slot)));
        assert_eq!((value(7).len(), &value(7)[..3]), (VALUE_BYTES, "7:x"));
    }
}
