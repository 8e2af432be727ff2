//! A batch that left: whose replies are owed, and the bytes of its requests for whoever has to send one again.

use crate::batch::BatchTicket;

/// What is known of a request by its length.
pub(crate) trait Length: Copy {
    /// Of the encoded request, bytes.
    fn bytes(&self) -> usize;
}

/// A batch whose replies are owed.
pub(crate) struct Out<I> {
    number: u64,
    items: Vec<I>,
    answered: usize,
    /// Its requests, once the street gave them back.
    buffer: Option<Vec<u8>>,
    /// Where in it the next request that is owed a reply begins.
    at: usize,
    ticket: BatchTicket,
    /// When its first reply came.
    first_us: u64,
}

impl<I: Length> Out<I> {
    /// The batch of that number has left.
    pub fn new(number: u64, items: Vec<I>, ticket: BatchTicket) -> Out<I> {
        Out { number, items, answered: 0, buffer: None, at: 0, ticket, first_us: 0 }
    }

    /// Which it is.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Replies that are owed.
    #[inline]
    pub fn owed(&self) -> usize {
        self.items.len() - self.answered
    }

    /// The street sent it.
    pub fn keep(&mut self, buffer: Vec<u8>) {
        self.buffer = Some(buffer);
    }

    /// Whose reply came now, and its request if that is known.
    #[inline]
    pub fn next(&mut self, now_us: u64) -> (I, Option<&[u8]>) {
        if self.answered == 0 {
            self.first_us = now_us;
        }
        self.take_next()
    }

    fn take_next(&mut self) -> (I, Option<&[u8]>) {
        let (item, begin) = (self.items[self.answered], self.at);
        self.answered += 1;
        self.at += item.bytes();
        (item, self.buffer.as_ref().map(|buffer| &buffer[begin..self.at]))
    }

    /// Those whose replies are owed.
    pub fn items_owed(&self) -> &[I] {
        &self.items[self.answered..]
    }

    /// Each of those, with its request if that is known.
    pub fn each_owed(&mut self, mut look: impl FnMut(&mut I, &[u8])) {
        let Some(buffer) = &self.buffer else { return };
        let mut rest = &buffer[self.at..];
        for item in &mut self.items[self.answered..] {
            let (request, behind) = rest.split_at(item.bytes());
            rest = behind;
            look(item, request);
        }
    }

    /// The last reply was there: what the batcher wants to know, what can be used again, and when the first one was there.
    pub fn end(self) -> (BatchTicket, Option<Vec<u8>>, Vec<I>, u64) {
        (self.ticket, self.buffer, self.items, self.first_us)
    }

    /// The connection was lost: what is owed, with the requests where they are known.
    pub fn lost(mut self) -> Vec<(I, Option<Vec<u8>>)> {
        let mut lost = Vec::with_capacity(self.owed());
        while self.owed() > 0 {
            let (item, request) = self.take_next();
            let request = request.map(<[u8]>::to_vec);
            lost.push((item, request));
        }
        lost
    }
}
