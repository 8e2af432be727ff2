//! Requests whose parts are at several nodes: what has been answered, until all is.

use base::ConnectionId;
use client::spread::{Answered, Gathering, join};
use wire::Protocol;

/// One request.
struct Gather {
    of: Asked,
    gathering: Gathering,
    protocol: Protocol,
    /// Parts that are not answered.
    owed: usize,
    parts: Vec<(About, Vec<u8>)>,
}

/// What a part is about.
pub(crate) struct About {
    /// The request's keys by their places.
    pub places: Vec<u32>,
    /// They are of several slots, each of which may be said to be elsewhere.
    pub is_merged: bool,
}

impl About {
    fn one_slot(places: Vec<u32>) -> About {
        About { places, is_merged: false }
    }
}

/// Whose request it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub caller: ConnectionId,
    /// Its number among the caller's.
    pub number: u64,
    /// When.
    pub asked_us: u64,
}

/// All of one core. Each part is answered once, whatever becomes of its caller, so each place becomes free again.
#[derive(Default)]
pub(crate) struct Gathers {
    places: Vec<Option<Gather>>,
    free: Vec<usize>,
}

impl Gathers {
    /// A request whose parts are about these keys; at least one part. Its number.
    pub fn begin(&mut self, of: Asked, gathering: Gathering, protocol: Protocol, parts: Vec<About>) -> u32 {
        let parts: Vec<(About, Vec<u8>)> = parts.into_iter().map(|about| (about, Vec::new())).collect();
        let gather = Gather { of, gathering, protocol, owed: parts.len(), parts };
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(gather);
        place as u32
    }

    /// Whose request it is.
    pub fn caller(&self, gather: u32) -> ConnectionId {
        self.places[gather as usize].as_ref().expect("a part of it is not answered").of.caller
    }

    /// Whether a part that is not answered is of several slots.
    pub fn is_merged(&self, gather: u32, part: u32) -> bool {
        let gather = self.places.get(gather as usize).and_then(Option::as_ref);
        gather.is_some_and(|gather| gather.parts[part as usize].0.is_merged)
    }

    /// Keys of a part, each of the pieces by their places in it, are asked for elsewhere: by which numbers they are answered. The
    /// part is about the others from now on.
    pub fn take_out(&mut self, gather: u32, part: u32, pieces: &[&[u32]]) -> Vec<u32> {
        let gather = self.places[gather as usize].as_mut().expect("a part of it is not answered");
        let whole = std::mem::take(&mut gather.parts[part as usize].0.places);
        let is_out = |place: usize| pieces.iter().any(|piece| piece.contains(&(place as u32)));
        let rest = whole.iter().enumerate().filter(|(place, _)| !is_out(*place)).map(|(_, &key)| key).collect();
        gather.parts[part as usize].0 = About::one_slot(rest);
        let first = gather.parts.len() as u32;
        let keys = |piece: &&[u32]| piece.iter().map(|&place| whole[place as usize]).collect();
        gather.owed += pieces.len();
        gather.parts.extend(pieces.iter().map(|piece| (About::one_slot(keys(piece)), Vec::new())));
        (first..gather.parts.len() as u32).collect()
    }

    /// A part's reply; with the last one, whose request it was and the reply to that.
    pub fn answer(&mut self, gather: u32, part: u32, reply: &[u8]) -> Option<(Asked, Vec<u8>)> {
        let place = &mut self.places[gather as usize];
        let gather_now = place.as_mut().expect("a part is answered once");
        gather_now.parts[part as usize].1 = reply.to_vec();
        gather_now.owed -= 1;
        if gather_now.owed > 0 {
            return None;
        }
        let Gather { of, gathering, protocol, parts, .. } = place.take().expect("it was just there");
        self.free.push(gather as usize);
        let answers: Vec<Answered<'_>> =
            parts.iter().map(|(about, reply)| Answered { places: &about.places, reply }).collect();
        Some((of, join(gathering, &answers, protocol)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_with_its_last_part_and_its_place_is_used_again() {
        let mut gathers = Gathers::default();
        let of = |number| Asked { caller: ConnectionId { index: 1, generation: 1 }, number, asked_us: 5 };
        let begin = |gathers: &mut Gathers, number| {
            let parts = [vec![1], vec![0, 2]].map(About::one_slot);
            gathers.begin(of(number), Gathering::Elements, Protocol::Resp2, parts.into())
        };
        let (first, second) = (begin(&mut gathers, 1), begin(&mut gathers, 2));
        assert_eq!(gathers.answer(second, 1, b"*2\r\n:0\r\n:2\r\n"), None);
        assert_eq!(gathers.answer(first, 0, b"*1\r\n:7\r\n"), None);
        assert_eq!(gathers.answer(second, 0, b"*1\r\n:1\r\n"), Some((of(2), b"*3\r\n:0\r\n:1\r\n:2\r\n".to_vec())));
        assert_eq!(begin(&mut gathers, 3), second);
        assert_eq!(gathers.answer(first, 1, b"-ERR x\r\n").unwrap().1, b"*3\r\n-ERR x\r\n:7\r\n-ERR x\r\n");
    }

    #[test]
    fn what_is_elsewhere_is_answered_there_and_the_rest_of_its_part_here() {
        let mut gathers = Gathers::default();
        let of = Asked { caller: ConnectionId { index: 1, generation: 1 }, number: 1, asked_us: 5 };
        let parts = vec![About::one_slot(vec![2]), About { places: vec![3, 0, 1], is_merged: true }];
        let gather = gathers.begin(of, Gathering::Elements, Protocol::Resp2, parts);
        assert!(gathers.is_merged(gather, 1) && !gathers.is_merged(gather, 0));
        assert_eq!(gathers.take_out(gather, 1, &[&[1], &[0]]), [2, 3]);
        assert_eq!(gathers.answer(gather, 1, b"*1\r\n:1\r\n"), None);
        assert_eq!(gathers.answer(gather, 0, b"*1\r\n:2\r\n"), None);
        assert_eq!(gathers.answer(gather, 3, b"*1\r\n:3\r\n"), None);
        let whole = gathers.answer(gather, 2, b"*1\r\n:0\r\n");
        assert_eq!(whole, Some((of, b"*4\r\n:0\r\n:1\r\n:2\r\n:3\r\n".to_vec())));
    }
}
