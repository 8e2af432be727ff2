//! The bulk of the keys: overwritten without end so that logs grow and runs are made, and each of them judged all the same.
//!
//! A key's value follows from its version, so that a book of twelve bytes per key is enough.

use std::collections::VecDeque;

use base::rng::{Rng, mix};

use crate::reply::{Reply, show};

/// Longest value, bytes.
const VALUE_BYTES_MAX: u64 = 2000;

/// What one key of the bulk may hold.
#[derive(Clone, Copy, Debug, Default)]
struct Versions {
    /// Last promised, or found at a restart; 0 is nothing.
    acknowledged: u32,
    /// Last sent before that restart: what was not found then must not come back.
    lost: u32,
    /// Last sent.
    sent: u32,
}

/// The keys of one client of the bulk.
#[derive(Clone, Debug)]
pub struct Stripe {
    client: usize,
    keys: Vec<Versions>,
    promises_later: bool,
    /// Keys of acknowledged versions that are not promised yet, in order.
    replied: VecDeque<usize>,
    /// Acknowledged versions that are promised, or were given up at a restart.
    promised: u64,
}

impl Stripe {
    /// `keys` keys of client `client` that hold nothing yet.
    pub fn new(client: usize, keys: usize, promises_later: bool) -> Stripe {
        let keys = vec![Versions::default(); keys];
        Stripe { client, keys, promises_later, replied: VecDeque::new(), promised: 0 }
    }

    /// How many keys it has.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// The name of a key.
    pub fn name(&self, key: usize) -> Vec<u8> {
        format!("bulk:{}:{key}", self.client).into_bytes()
    }

    fn value(&self, key: usize, version: u32) -> Vec<u8> {
        let drawn = mix((self.client as u64) << 56 ^ (key as u64) << 32 ^ u64::from(version));
        let mut value = format!("{}.{key}.{version};", self.client).into_bytes();
        value.resize(value.len() + (drawn % VALUE_BYTES_MAX) as usize, b'a' + (drawn >> 32) as u8 % 26);
        value
    }

    /// Draws a key, notes its next version and returns key, name and value; before any byte of it is sent.
    pub fn send(&mut self, rng: &mut Rng) -> (usize, Vec<u8>, Vec<u8>) {
        let key = rng.below(self.keys.len() as u64) as usize;
        self.keys[key].sent += 1;
        (key, self.name(key), self.value(key, self.keys[key].sent))
    }

    /// Notes that one more version of the key was acknowledged, in the order in which they were sent; returns how many were.
    pub fn acknowledge(&mut self, key: usize) -> u64 {
        self.replied.push_back(key);
        let acknowledged = self.promised + self.replied.len() as u64;
        if !self.promises_later {
            self.promise(acknowledged);
        }
        acknowledged
    }

    /// So many acknowledged versions must be found from now on.
    pub fn promise(&mut self, count: u64) {
        while self.promised < count {
            let Some(key) = self.replied.pop_front() else { return };
            self.promised += 1;
            let versions = &mut self.keys[key];
            versions.acknowledged = versions.acknowledged.max(versions.lost) + 1;
        }
    }

    /// What is not promised by now will never be: it was acknowledged too shortly before the end.
    pub fn give_up(&mut self) {
        self.promised += self.replied.drain(..).count() as u64;
    }

    /// Holds the reply to GET after a restart against what may be, and notes it.
    ///
    /// # Errors
    /// What must not be.
    pub fn settle(&mut self, key: usize, reply: &Reply) -> Result<(), String> {
        let versions = self.keys[key];
        let found = match reply {
            Reply::Nil => Some(0),
            Reply::Bulk(value) => version_of(value).filter(|version| *value == self.value(key, *version)),
            _ => None,
        };
        let is_possible = |version: u32| {
            let first_unknown = versions.acknowledged.max(versions.lost) + 1;
            version == versions.acknowledged || (first_unknown..=versions.sent).contains(&version)
        };
        let Some(version) = found.filter(|version| is_possible(*version)) else {
            let shown = match reply {
                Reply::Bulk(value) => show(value),
                other => format!("{other:?}"),
            };
            let Versions { acknowledged, sent, .. } = versions;
            let name = show(&self.name(key));
            return Err(format!("{name} holds {shown}; acknowledged is version {acknowledged}, last sent {sent}"));
        };
        self.keys[key] = Versions { acknowledged: version, lost: versions.sent, sent: versions.sent };
        Ok(())
    }

    /// How many of its keys hold something, once it is settled.
    pub fn present(&self) -> u64 {
        self.keys.iter().filter(|versions| versions.acknowledged > 0).count() as u64
    }
}

/// `client.key.version;…` -> version
fn version_of(value: &[u8]) -> Option<u32> {
    let head = value.split(|byte| *byte == b';').next()?;
    std::str::from_utf8(head).ok()?.rsplit('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Reply, Stripe};
    use base::rng::Rng;

    fn stripe_at(acknowledged: usize, sent: usize) -> Stripe {
        let (mut stripe, mut rng) = (Stripe::new(1, 1, false), Rng::new(1));
        (0..sent).for_each(|_| drop(stripe.send(&mut rng)));
        for count in 1..=acknowledged {
            assert_eq!(stripe.acknowledge(0), count as u64);
        }
        stripe
    }

    fn holds(stripe: &Stripe, version: u32) -> Reply {
        Reply::Bulk(stripe.value(0, version))
    }

    #[test]
    fn a_version_between_the_acknowledged_and_the_sent_one_is_right() {
        for (version, is_right) in [(0, false), (1, false), (2, true), (3, true), (4, true), (5, false)] {
            let mut stripe = stripe_at(2, 4);
            let reply = if version == 0 { Reply::Nil } else { holds(&stripe, version) };
            assert_eq!(stripe.settle(0, &reply).is_ok(), is_right, "version {version}");
        }
        assert!(stripe_at(0, 1).settle(0, &Reply::Nil).is_ok());
    }

    #[test]
    fn what_is_promised_later_may_be_lost_until_then() {
        let mut stripe = Stripe { promises_later: true, ..stripe_at(0, 4) };
        assert_eq!((1..=3).map(|_| stripe.acknowledge(0)).collect::<Vec<_>>(), [1, 2, 3]);
        stripe.promise(2);
        stripe.give_up();
        for (version, is_right) in [(1, false), (2, true), (3, true), (4, true)] {
            let reply = holds(&stripe, version);
            assert_eq!(stripe.clone().settle(0, &reply).is_ok(), is_right, "version {version}");
        }
        let reply = holds(&stripe, 2);
        stripe.settle(0, &reply).unwrap();
        drop(stripe.send(&mut Rng::new(1)));
        assert_eq!(stripe.acknowledge(0), 4, "counted on behind what was given up");
    }

    #[test]
    fn a_value_that_nobody_wrote_is_wrong() {
        let mut stripe = stripe_at(1, 1);
        let mut value = stripe.value(0, 1);
        value.push(b'x');
        assert!(stripe.settle(0, &Reply::Bulk(value)).is_err());
        assert!(stripe.settle(0, &Reply::Bulk(Vec::new())).is_err());
        assert!(stripe.settle(0, &Reply::Error(b"WRONGTYPE".to_vec())).is_err());
    }

    #[test]
    fn what_a_restart_did_not_show_must_not_come_back() {
        let mut stripe = stripe_at(2, 4);
        let found = holds(&stripe, 3);
        stripe.settle(0, &found).unwrap();
        assert_eq!(stripe.present(), 1);
        let cut = holds(&stripe, 4);
        assert!(stripe.clone().settle(0, &cut).is_err(), "version 4 was cut");
        drop(stripe.send(&mut Rng::new(1)));
        assert!(stripe.clone().settle(0, &cut).is_err(), "version 4 was cut, 5 is sent");
        assert!(stripe.clone().settle(0, &found).is_ok(), "5 is not acknowledged");
        stripe.acknowledge(0);
        assert!(stripe.clone().settle(0, &found).is_err(), "5 is acknowledged");
        let last = holds(&stripe, 5);
        assert!(stripe.settle(0, &last).is_ok());
    }
}
