//! Where a reply ends, found without reading any byte of it twice: a client's stream comes in pieces of any size.

use crate::reply_parse::{MalformedReply, Stop, skip_one};

/// How far the reply at the beginning of a buffer is understood.
///
/// [`skip_reply`](crate::reply_parse::skip_reply) begins anew with each piece, which for an aggregate of a million elements is quadratic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyScan {
    /// Bytes that are understood, from the reply's beginning.
    at: usize,
    /// Values that are still to come.
    pending: usize,
}

impl Default for ReplyScan {
    fn default() -> ReplyScan {
        ReplyScan { at: 0, pending: 1 }
    }
}

impl ReplyScan {
    /// Goes on with the reply whose bytes so far are `bytes`, those of earlier calls included: how many bytes it takes, once it is
    /// whole; the next call begins with the next reply.
    ///
    /// # Errors
    /// [`MalformedReply`] for bytes that no continuation makes a reply.
    #[inline]
    pub fn advance(&mut self, bytes: &[u8]) -> Result<Option<usize>, MalformedReply> {
        while self.pending > 0 {
            match skip_one(bytes, self.at) {
                Ok((at, inner)) => {
                    self.at = at;
                    // An announced number is believed only as far as values come: nothing is allocated by it.
                    self.pending = (self.pending - 1).checked_add(inner).ok_or(MalformedReply)?;
                }
                Err(Stop::Incomplete) => return Ok(None),
                Err(Stop::Malformed) => return Err(MalformedReply),
            }
        }
        let whole = self.at;
        *self = ReplyScan::default();
        Ok(Some(whole))
    }

    /// Whether a reply has begun that is not whole.
    pub fn is_midway(&self) -> bool {
        *self != ReplyScan::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply_parse::skip_reply;

    const REPLIES: &[&[u8]] = &[
        b"+OK\r\n",
        b"$5\r\nhe\r\nl\r\n",
        b"*3\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n%1\r\n+k\r\n~2\r\n_\r\n#t\r\n",
        b"*0\r\n",
        b"*-1\r\n",
        b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n",
        b"-ERR x\r\n",
    ];

    #[test]
    fn every_split_ends_where_the_whole_does() {
        let stream = REPLIES.concat();
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let (mut scan, mut start, mut ends) = (ReplyScan::default(), 0, Vec::new());
                for end in [first, second, stream.len()] {
                    while let Some(bytes) = scan.advance(&stream[start..end]).expect("replies") {
                        start += bytes;
                        ends.push(bytes);
                    }
                }
                assert_eq!(ends, REPLIES.iter().map(|reply| reply.len()).collect::<Vec<_>>(), "{first} {second}");
                assert!(!scan.is_midway());
            }
        }
    }

    #[test]
    fn agrees_with_the_one_that_begins_anew() {
        for reply in REPLIES {
            for end in 0..=reply.len() {
                assert_eq!(ReplyScan::default().advance(&reply[..end]), skip_reply(&reply[..end]));
            }
        }
        assert!(ReplyScan::default().advance(b"$x\r\n").is_err());
        assert!(ReplyScan::default().advance(b"hello\r\n").is_err());
    }
}
