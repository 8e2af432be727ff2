//! One request's keys by their slots.

use base::Slot;
use base::limits::SPLIT_PART_BYTES_MAX;
use placement::slot_of;
use wire::Arguments;
use wire::request::encode;

/// The same command for some of the keys, all of one slot.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// Theirs.
    pub slot: Slot,
    /// Which of the request's keys they are, in rising order.
    pub places: Vec<u32>,
    /// As it goes on the wire.
    pub request: Vec<u8>,
}

/// Parts of a request whose keys are every `step` arguments from the first one on; `None` if one node can carry it out as it is,
/// or has to refuse it. Keys of one slot stay in one part and in their order, up to [`SPLIT_PART_BYTES_MAX`] bytes.
pub fn split(arguments: Arguments<'_>, step: usize) -> Option<Vec<Part>> {
    let count = (arguments.len() - 1) / step;
    if count < 2 || !(arguments.len() - 1).is_multiple_of(step) {
        return None;
    }
    let key = |place: u32| &arguments[1 + place as usize * step];
    let first = slot_of(key(0));
    if (1..count as u32).all(|place| slot_of(key(place)) == first) {
        return None;
    }
    let mut by_slot: Vec<(Slot, u32)> = (0..count as u32).map(|place| (slot_of(key(place)), place)).collect();
    by_slot.sort_unstable();
    let bytes = |place: u32| (0..step).map(|at| arguments[1 + place as usize * step + at].len()).sum::<usize>();
    let mut parts = Vec::new();
    let mut rest = &by_slot[..];
    while let Some(&(slot, _)) = rest.first() {
        let mut part_bytes = 0;
        let belongs = |&(other, place): &(Slot, u32)| {
            part_bytes += bytes(place);
            other == slot && part_bytes <= SPLIT_PART_BYTES_MAX
        };
        let length = rest.iter().copied().take_while(belongs).count().max(1);
        let (part, behind) = rest.split_at(length);
        parts.push(encoded(arguments, step, slot, part.iter().map(|(_, place)| *place).collect()));
        rest = behind;
    }
    Some(parts)
}

fn encoded(arguments: Arguments<'_>, step: usize, slot: Slot, places: Vec<u32>) -> Part {
    let mut words: Vec<&[u8]> = vec![&arguments[0]];
    for &place in &places {
        let from = 1 + place as usize * step;
        words.extend((from..from + step).map(|at| &arguments[at]));
    }
    let mut request = Vec::new();
    encode(words.iter().copied(), &mut request);
    Part { slot, places, request }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;
    use wire::{ParseLimits, Parsed, parse};

    fn with_arguments<R>(words: &[&[u8]], then: impl FnOnce(Arguments<'_>) -> R) -> R {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        encode(words.iter().copied(), &mut bytes);
        assert!(matches!(parse(&bytes, 0, &mut spans, &ParseLimits::AUTHENTICATED), Parsed::Request { .. }));
        then(Arguments::new(&bytes, &spans))
    }

    fn words_of(request: &[u8]) -> Vec<Vec<u8>> {
        let mut spans = Vec::new();
        assert!(matches!(parse(request, 0, &mut spans, &ParseLimits::AUTHENTICATED), Parsed::Request { .. }));
        Arguments::new(request, &spans).iter().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn every_key_is_in_one_part_of_its_slot_in_its_order() {
        let mut rng = Rng::new(11);
        for round in 0..300 {
            let step = 1 + round % 2;
            let keys: Vec<Vec<u8>> = (0..2 + rng.below(40))
                .map(|_| {
                    let key = format!("{{{}}}{}", rng.below(12), rng.below(1000));
                    [key.as_bytes(), &vec![b'x'; rng.below(6000) as usize]].concat()
                })
                .collect();
            let mut words: Vec<&[u8]> = vec![b"MSET"];
            keys.iter().for_each(|key| words.extend([key, &b"value"[..]].into_iter().take(step)));
            let Some(parts) = with_arguments(&words, |arguments| split(arguments, step)) else {
                assert!(keys.iter().all(|key| slot_of(key) == slot_of(&keys[0])));
                continue;
            };
            let mut seen: Vec<u32> = Vec::new();
            for part in &parts {
                let own = words_of(&part.request);
                assert!(own[0] == b"MSET" && part.places.is_sorted() && own.len() == 1 + part.places.len() * step);
                for (place, key) in part.places.iter().zip(own[1..].chunks(step)) {
                    assert!(key[0] == keys[*place as usize] && slot_of(&key[0]) == part.slot);
                }
                let is_small = part.request.len() <= SPLIT_PART_BYTES_MAX + 64 * part.places.len();
                assert!(part.places.len() == 1 || is_small, "{}", part.request.len());
                seen.extend(&part.places);
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..keys.len() as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_one_node_can_answer_or_refuse_is_left_whole() {
        for (words, step) in [
            (&[b"MGET".as_slice(), b"a"][..], 1),
            (&[b"MGET", b"{a}1", b"{a}2"], 1),
            (&[b"MSET", b"a", b"1", b"b"], 2),
            (&[b"MGET"], 1),
        ] {
            assert_eq!(with_arguments(words, |arguments| split(arguments, step)), None);
        }
    }
}
