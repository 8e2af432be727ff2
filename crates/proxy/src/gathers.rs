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
    parts: Vec<(Vec<u32>, Vec<u8>)>,
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
    pub fn begin(&mut self, of: Asked, gathering: Gathering, protocol: Protocol, parts: Vec<Vec<u32>>) -> u32 {
        let parts: Vec<(Vec<u32>, Vec<u8>)> = parts.into_iter().map(|places| (places, Vec::new())).collect();
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
        let answers: Vec<Answered<'_>> = parts.iter().map(|(places, reply)| Answered { places, reply }).collect();
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
            gathers.begin(of(number), Gathering::Elements, Protocol::Resp2, vec![vec![1], vec![0, 2]])
        };
        let (first, second) = (begin(&mut gathers, 1), begin(&mut gathers, 2));
        assert_eq!(gathers.answer(second, 1, b"*2\r\n:0\r\n:2\r\n"), None);
        assert_eq!(gathers.answer(first, 0, b"*1\r\n:7\r\n"), None);
        assert_eq!(gathers.answer(second, 0, b"*1\r\n:1\r\n"), Some((of(2), b"*3\r\n:0\r\n:1\r\n:2\r\n".to_vec())));
        assert_eq!(begin(&mut gathers, 3), second);
        assert_eq!(gathers.answer(first, 1, b"-ERR x\r\n").unwrap().1, b"*3\r\n-ERR x\r\n:7\r\n-ERR x\r\n");
    }
}
