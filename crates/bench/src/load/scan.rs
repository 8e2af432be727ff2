//! Finds where replies end, keeping nothing of them: the generator pays for one scan, not for a parse.

use super::plan::Dialect;

/// Longest header line that is kept while it is incomplete, bytes (errors are lines too).
const LINE_BYTES_MAX: usize = 64 << 10;

/// What was seen in replies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Error replies.
    pub errors: u64,
    /// Text of the first error.
    pub first_error: Option<String>,
    /// Replies that said "no such key".
    pub misses: u64,
}

impl Tally {
    /// Adds what another saw.
    pub fn merge(&mut self, other: &Tally) {
        self.errors += other.errors;
        self.misses += other.misses;
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
    }
}

/// The server did not speak the dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAReply(pub String);

/// The state of one connection between two reads.
#[derive(Clone, Debug)]
pub struct Scanner {
    dialect: Dialect,
    /// Bytes of the current body still to come, its CR LF included.
    body_left: usize,
    /// Elements of the current reply still to come.
    elements_left: u64,
    /// The current element is out of band (a push), so it answers no request.
    push: bool,
    /// memcached: a value was seen since the last END.
    value_seen: bool,
    /// Start of a header line whose end has not arrived.
    partial: Vec<u8>,
}

impl Scanner {
    /// A scanner at the start of a connection.
    pub fn new(dialect: Dialect) -> Scanner {
        Scanner { dialect, body_left: 0, elements_left: 1, push: false, value_seen: false, partial: Vec::new() }
    }

    /// Takes the next bytes of the connection; returns how many replies they completed.
    pub fn feed(&mut self, bytes: &[u8], tally: &mut Tally) -> Result<u64, NotAReply> {
        self.feed_at_most(bytes, u64::MAX, tally).map(|(replies, _)| replies)
    }

    /// As [`Scanner::feed`], but stops behind so many replies; returns the bytes that are left, too.
    pub fn feed_at_most<'a>(
        &mut self,
        bytes: &'a [u8],
        at_most: u64,
        tally: &mut Tally,
    ) -> Result<(u64, &'a [u8]), NotAReply> {
        let mut rest = bytes;
        let mut replies = 0;
        while !rest.is_empty() && replies < at_most {
            if self.body_left > 0 {
                let taken = self.body_left.min(rest.len());
                rest = &rest[taken..];
                self.body_left -= taken;
                if self.body_left == 0 && self.dialect != Dialect::Memcached {
                    replies += self.element_ended();
                }
                continue;
            }
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.partial.extend_from_slice(rest);
                if self.partial.len() > LINE_BYTES_MAX {
                    return Err(not_a_reply(&self.partial));
                }
                rest = &[];
                break;
            };
            let (line, after) = rest.split_at(end + 1);
            rest = after;
            replies += if self.partial.is_empty() {
                self.header(line, tally)?
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.header(&whole, tally)?
            };
        }
        Ok((replies, rest))
    }

    fn header(&mut self, line: &[u8], tally: &mut Tally) -> Result<u64, NotAReply> {
        match self.dialect {
            Dialect::Memcached => self.memcached_header(line, tally),
            Dialect::Resp2 | Dialect::Resp3 => self.resp_header(line, tally),
        }
    }

    fn resp_header(&mut self, line: &[u8], tally: &mut Tally) -> Result<u64, NotAReply> {
        let kind = line[0];
        match kind {
            b'+' | b':' | b',' | b'#' | b'(' => return Ok(self.element_ended()),
            b'_' => {
                tally.misses += 1;
                return Ok(self.element_ended());
            }
            b'-' => {
                note_error(tally, &line[1..]);
                return Ok(self.element_ended());
            }
            _ => {}
        }
        let Some(number) = number_of(&line[1..]) else { return Err(not_a_reply(line)) };
        match kind {
            b'$' | b'*' if number < 0 => {
                tally.misses += 1;
                return Ok(self.element_ended());
            }
            _ if number < 0 => return Err(not_a_reply(line)),
            b'$' | b'=' => self.body_left = number as usize + 2,
            b'!' => {
                note_error(tally, b"(bulk error)");
                self.body_left = number as usize + 2;
            }
            b'*' | b'~' => return Ok(self.aggregate(number as u64)),
            b'%' => return Ok(self.aggregate(2 * number as u64)),
            b'>' => {
                self.push = true;
                return Ok(self.aggregate(number as u64));
            }
            // Attributes come before the element they belong to.
            b'|' => self.elements_left += 2 * number as u64,
            _ => return Err(not_a_reply(line)),
        }
        Ok(0)
    }

    fn memcached_header(&mut self, line: &[u8], tally: &mut Tally) -> Result<u64, NotAReply> {
        if line.starts_with(b"VALUE ") {
            let bytes = line.split(|byte| *byte == b' ').nth(3).and_then(number_of);
            let Some(bytes) = bytes else { return Err(not_a_reply(line)) };
            self.body_left = bytes as usize + 2;
            self.value_seen = true;
            return Ok(0);
        }
        if line.starts_with(b"END") {
            tally.misses += u64::from(!self.value_seen);
            self.value_seen = false;
            return Ok(1);
        }
        if line.starts_with(b"ERROR") || line.starts_with(b"CLIENT_ERROR") || line.starts_with(b"SERVER_ERROR") {
            note_error(tally, line);
            return Ok(1);
        }
        if line.starts_with(b"STORED") || line.starts_with(b"NOT_STORED") {
            return Ok(1);
        }
        Err(not_a_reply(line))
    }

    fn aggregate(&mut self, elements: u64) -> u64 {
        self.elements_left += elements;
        self.element_ended()
    }

    fn element_ended(&mut self) -> u64 {
        self.elements_left -= 1;
        if self.elements_left > 0 {
            return 0;
        }
        self.elements_left = 1;
        u64::from(!std::mem::take(&mut self.push))
    }
}

fn note_error(tally: &mut Tally, text: &[u8]) {
    tally.errors += 1;
    if tally.first_error.is_none() {
        let shown = &text[..text.len().min(200)];
        tally.first_error = Some(String::from_utf8_lossy(shown).trim_end().to_string());
    }
}

fn not_a_reply(line: &[u8]) -> NotAReply {
    NotAReply(String::from_utf8_lossy(&line[..line.len().min(60)]).trim_end().to_string())
}

/// The decimal number that ends at CR; at most 2^40, so that sums of two never overflow.
fn number_of(text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"\r\n")?;
    let (negative, digits) = match digits.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, digits),
    };
    if digits.is_empty() || digits.len() > 12 {
        return None;
    }
    let mut number = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESP: &[u8] = b"+OK\r\n:12\r\n$-1\r\n$5\r\nhello\r\n*2\r\n$1\r\na\r\n*-1\r\n-ERR no\r\n%1\r\n+k\r\n*0\r\n\
        >2\r\n+message\r\n$3\r\na\nb\r\n|1\r\n+ttl\r\n:3\r\n+after\r\n_\r\n$0\r\n\r\n*2\r\n-MOVED 1\r\n*1\r\n:1\r\n";
    const RESP_REPLIES: u64 = 11;

    fn scan(dialect: Dialect, pieces: &[&[u8]]) -> (u64, Tally) {
        let mut scanner = Scanner::new(dialect);
        let mut tally = Tally::default();
        let replies =
            pieces.iter().map(|piece| scanner.feed(piece, &mut tally).expect("well-formed replies")).sum::<u64>();
        (replies, tally)
    }

    #[test]
    fn replies_are_counted_wherever_the_bytes_are_cut() {
        let whole = scan(Dialect::Resp3, &[RESP]);
        assert_eq!(whole.0, RESP_REPLIES);
        assert_eq!((whole.1.errors, whole.1.misses), (2, 3));
        assert_eq!(whole.1.first_error.as_deref(), Some("ERR no"));
        for cut in 0..RESP.len() {
            assert_eq!(scan(Dialect::Resp3, &[&RESP[..cut], &RESP[cut..]]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = RESP.chunks(1).collect();
        assert_eq!(scan(Dialect::Resp3, &bytes), whole);
    }

    #[test]
    fn what_lies_behind_so_many_replies_is_left() {
        let whole = scan(Dialect::Resp3, &[RESP]);
        for at_most in 1..=RESP_REPLIES {
            let (mut scanner, mut tally) = (Scanner::new(Dialect::Resp3), Tally::default());
            let (replies, left) = scanner.feed_at_most(RESP, at_most, &mut tally).expect("well-formed replies");
            assert_eq!(replies, at_most);
            let behind = scanner.feed(left, &mut tally).expect("well-formed replies");
            assert_eq!((replies + behind, tally), whole, "cut behind {at_most}");
        }
    }

    #[test]
    fn memcached_replies_are_counted_wherever_the_bytes_are_cut() {
        let text: &[u8] = b"VALUE k 0 4\r\nE\r\nD\r\nEND\r\nEND\r\nSTORED\r\nSERVER_ERROR out of memory\r\n";
        let whole = scan(Dialect::Memcached, &[text]);
        assert_eq!((whole.0, whole.1.misses, whole.1.errors), (4, 1, 1));
        for cut in 0..text.len() {
            assert_eq!(scan(Dialect::Memcached, &[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_not_a_reply_is_refused_with_its_text() {
        let mut tally = Tally::default();
        let refused = Scanner::new(Dialect::Resp2).feed(b"HTTP/1.1 400 Bad Request\r\n", &mut tally);
        assert_eq!(refused, Err(NotAReply("HTTP/1.1 400 Bad Request".into())));
        assert!(Scanner::new(Dialect::Resp2).feed(b"$12x\r\n", &mut tally).is_err());
        assert!(Scanner::new(Dialect::Resp2).feed(b"$9999999999999\r\n", &mut tally).is_err());
    }
}
