//! One connection of the search's own: questions in one write, and what is answered.

use super::words::Answer;
use base::ConnectionId;
use base::limits::SENTINEL_REPLY_BYTES_MAX;
use base::street::Effect;
use wire::reply_parse::parse_reply;

/// See the module.
pub(super) struct Line {
    token: u64,
    pub address: String,
    connection: Option<ConnectionId>,
    received: Vec<u8>,
    pub is_sending: bool,
}

/// It cannot be understood, or says too much.
pub(super) struct Nonsense;

impl Line {
    /// Begins to dial.
    pub fn dial(token: u64, address: String, effects: &mut Vec<Effect>) -> Line {
        effects.push(Effect::Dial { token, address: address.clone() });
        Line { token, address, connection: None, received: Vec::new(), is_sending: false }
    }

    /// Whether this dial is its.
    pub fn is_dialed_by(&self, token: u64) -> bool {
        self.connection.is_none() && self.token == token
    }

    /// Whether this connection is its.
    #[inline]
    pub fn has(&self, connection: ConnectionId) -> bool {
        self.connection == Some(connection)
    }

    /// Somebody answered, and is asked.
    pub fn begin(&mut self, connection: ConnectionId, questions: Vec<u8>, effects: &mut Vec<Effect>) {
        self.connection = Some(connection);
        self.ask(questions, effects);
    }

    /// Sends; the send before is done.
    pub fn ask(&mut self, questions: Vec<u8>, effects: &mut Vec<Effect>) {
        let connection = self.connection.expect("who asks is connected");
        self.is_sending = true;
        effects.push(Effect::Send { connection, buffer: questions });
    }

    /// Takes bytes; the answers that are whole by now.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Answer>, Nonsense> {
        self.received.extend_from_slice(bytes);
        let mut answers = Vec::new();
        let mut start = 0;
        while let Some((value, length)) = parse_reply(&self.received[start..]).map_err(|_| Nonsense)? {
            answers.push(Answer::of(value));
            start += length;
        }
        self.received.drain(..start);
        match self.received.len() > SENTINEL_REPLY_BYTES_MAX {
            true => Err(Nonsense),
            false => Ok(answers),
        }
    }

    /// It is of no use any more. A dial that is under way is closed when it ends.
    pub fn end(self, effects: &mut Vec<Effect>) {
        effects.extend(self.connection.map(|connection| Effect::Close { connection }));
    }
}
