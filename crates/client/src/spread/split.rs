//! One request's keys by their slots.

use base::Slot;
use base::limits::SPLIT_PART_BYTES_MAX;
use placement::slot_of;
use wire::Arguments;
use wire::request::{encode_count, encode_word};

/// Keys for which a share has room from the beginning.
const PLACES_FORESEEN: usize = 64;
/// About what a word has beside its bytes on the wire.
const WORD_BYTES: usize = 16;

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

/// Keys of one request for one holder, of any of its slots.
#[derive(Debug, PartialEq, Eq)]
pub struct Share<N> {
    /// Who holds them.
    pub holder: N,
    /// Which of the request's keys they are.
    pub places: Vec<u32>,
    /// The first one's slot.
    first: Slot,
    /// Whether they are of several slots.
    pub has_several_slots: bool,
    bytes: usize,
}

/// Keys of a request with their slots, in its order, if one node could neither carry it out as it is nor refuse it: its
/// keys are every `step` arguments from the first one on.
pub fn with_slots(arguments: Arguments<'_>, step: usize) -> Option<Vec<(Slot, u32)>> {
    let count = (arguments.len() - 1) / step;
    if count < 2 || !(arguments.len() - 1).is_multiple_of(step) {
        return None;
    }
    let key = |place: u32| &arguments[1 + place as usize * step];
    let first = slot_of(key(0));
    if (1..count as u32).all(|place| slot_of(key(place)) == first) {
        return None;
    }
    Some((0..count as u32).map(|place| (slot_of(key(place)), place)).collect())
}

/// Who is asked for which keys of a request that asks for nothing else, up to [`SPLIT_PART_BYTES_MAX`] bytes at once.
pub fn shares<N: Copy + PartialEq>(
    arguments: Arguments<'_>,
    with_slots: &[(Slot, u32)],
    holder: impl Fn(Slot) -> N,
) -> Vec<Share<N>> {
    let mut shares: Vec<Share<N>> = Vec::new();
    for &(slot, place) in with_slots {
        let (to, bytes) = (holder(slot), arguments[1 + place as usize].len());
        // Of one holder's shares only the last one has room.
        let share = shares.iter_mut().rfind(|share| share.holder == to);
        let Some(share) = share.filter(|share| share.bytes + bytes <= SPLIT_PART_BYTES_MAX) else {
            let mut places = Vec::with_capacity(with_slots.len().min(PLACES_FORESEEN));
            places.push(place);
            shares.push(Share { holder: to, places, first: slot, has_several_slots: false, bytes });
            continue;
        };
        share.bytes += bytes;
        share.places.push(place);
        share.has_several_slots |= slot != share.first;
    }
    shares
}

/// Parts of such a request. Keys of one slot stay in one part and in their order, up to [`SPLIT_PART_BYTES_MAX`] bytes.
pub fn split(arguments: Arguments<'_>, step: usize) -> Option<Vec<Part>> {
    split_as(&arguments[0], arguments, step)
}

/// The same, of a request that goes by another name where it is of one slot.
pub fn split_as(name: &[u8], arguments: Arguments<'_>, step: usize) -> Option<Vec<Part>> {
    let mut by_slot = with_slots(arguments, step)?;
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
        let places: Vec<u32> = part.iter().map(|(_, place)| *place).collect();
        parts.push(Part { slot, request: request_for(name, arguments, step, &places), places });
        rest = behind;
    }
    Some(parts)
}

/// A request by that name for these of another one's keys.
pub fn request_for(name: &[u8], arguments: Arguments<'_>, step: usize, places: &[u32]) -> Vec<u8> {
    let words = || {
        let of_keys = places.iter().flat_map(|&place| (0..step).map(move |at| 1 + place as usize * step + at));
        std::iter::once(name).chain(of_keys.map(|at| &arguments[at]))
    };
    let bytes: usize = words().map(|word| word.len() + WORD_BYTES).sum();
    let mut request = Vec::with_capacity(bytes + WORD_BYTES);
    encode_count(1 + places.len() * step, &mut request);
    words().for_each(|word| encode_word(word, &mut request));
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;
    use wire::request::encode;
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
    fn every_key_is_in_one_share_of_its_holder() {
        let mut rng = Rng::new(12);
        let holder = |slot: Slot| slot.number() % 3;
        for _ in 0..300 {
            let tags = 1 + rng.below(40);
            let keys: Vec<Vec<u8>> = (0..2 + rng.below(40))
                .map(|_| {
                    [format!("{{{}}}", rng.below(tags)).as_bytes(), &vec![b'x'; rng.below(4000) as usize]].concat()
                })
                .collect();
            let words: Vec<&[u8]> = std::iter::once(&b"MGET"[..]).chain(keys.iter().map(Vec::as_slice)).collect();
            let shares =
                with_arguments(&words, |arguments| Some(shares(arguments, &with_slots(arguments, 1)?, holder)));
            let Some(shares) = shares else { continue };
            let mut seen: Vec<u32> = Vec::new();
            for share in &shares {
                let slots: Vec<Slot> = share.places.iter().map(|&place| slot_of(&keys[place as usize])).collect();
                assert!(slots.iter().all(|&slot| holder(slot) == share.holder));
                assert_eq!(share.has_several_slots, slots.iter().any(|&slot| slot != slots[0]));
                let bytes: usize = share.places.iter().map(|&place| keys[place as usize].len()).sum();
                assert!(bytes <= SPLIT_PART_BYTES_MAX || share.places.len() == 1);
                seen.extend(&share.places);
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
