//! A batch that left: whose replies are owed, and the bytes of its requests for whoever has to send one again.

use std::vec::IntoIter;

/// What is known of a request by its length, bytes.
pub(crate) trait Length {
    /// Of the encoded request.
    fn bytes(&self) -> usize;
}

/// A batch whose replies are owed.
pub(crate) struct Out<I> {
    number: u64,
    items: IntoIter<I>,
    /// Its requests, once the street gave them back.
    buffer: Option<Vec<u8>>,
    /// Where in it the next request that is owed a reply begins.
    at: usize,
    bytes: usize,
    count: usize,
    sent_us: u64,
}

/// What is left of a batch when its last reply is there.
pub(crate) struct Answered {
    pub sent_us: u64,
    pub bytes: usize,
    pub count: usize,
    pub buffer: Option<Vec<u8>>,
}

impl<I: Length> Out<I> {
    /// The batch of that number left now.
    pub fn new(number: u64, items: Vec<I>, bytes: usize, sent_us: u64) -> Out<I> {
        let count = items.len();
        Out { number, items: items.into_iter(), buffer: None, at: 0, bytes, count, sent_us }
    }

    /// Which it is.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Replies that are owed.
    #[inline]
    pub fn owed(&self) -> usize {
        self.items.len()
    }

    /// The street sent it.
    pub fn keep(&mut self, buffer: Vec<u8>) {
        self.buffer = Some(buffer);
    }

    /// Whose reply comes next, and its request if that is known.
    #[inline]
    pub fn next(&mut self) -> (I, Option<&[u8]>) {
        let item = self.items.next().expect("a batch with nothing owed is gone");
        let begin = self.at;
        self.at += item.bytes();
        (item, self.buffer.as_ref().map(|buffer| &buffer[begin..self.at]))
    }

    /// The last reply was there.
    pub fn end(self) -> Answered {
        Answered { sent_us: self.sent_us, bytes: self.bytes, count: self.count, buffer: self.buffer }
    }

    /// The connection was lost: what is owed, with the requests where they are known.
    pub fn lost(mut self) -> Vec<(I, Option<Vec<u8>>)> {
        let mut lost = Vec::with_capacity(self.owed());
        while self.owed() > 0 {
            let (item, request) = self.next();
            let request = request.map(<[u8]>::to_vec);
            lost.push((item, request));
        }
        lost
    }
}
