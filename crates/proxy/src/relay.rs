//! A caller and its own connection as one: what comes from either goes to the other, unread.

use crate::guard::Guard;
use base::ConnectionId;
use base::limits::OUTPUT_PAUSE_BYTES;
use base::street::Effect;

/// The way up; the way down is the caller's output.
#[derive(Debug)]
pub(crate) struct Relay {
    /// The connection to the upstream.
    pub upstream: ConnectionId,
    waiting: Vec<u8>,
    is_sending: bool,
    is_caller_paused: bool,
    /// So many first lines are replies to what the caller did not ask.
    lines_to_skip: usize,
    /// Not read while the caller does not read.
    pub is_upstream_paused: bool,
    /// Its requests are looked at all the same.
    pub guard: Option<Box<Guard>>,
}

impl Relay {
    /// Nothing is on its way; `is_sending`: a send of before is not done.
    pub fn new(upstream: ConnectionId, is_sending: bool) -> Relay {
        Relay {
            upstream,
            waiting: Vec::new(),
            is_sending,
            is_caller_paused: false,
            lines_to_skip: 0,
            is_upstream_paused: false,
            guard: None,
        }
    }

    /// Bytes of the caller, which is not read any more while too many wait.
    pub fn up(&mut self, caller: ConnectionId, bytes: &[u8], effects: &mut Vec<Effect>) {
        self.waiting.extend_from_slice(bytes);
        self.go_on(effects);
        if self.waiting.len() > OUTPUT_PAUSE_BYTES && !self.is_caller_paused {
            self.is_caller_paused = true;
            effects.push(Effect::PauseReceive { connection: caller });
        }
    }

    /// The next one of the first replies, a line, is not the caller's.
    pub fn skip_line(&mut self) {
        self.lines_to_skip += 1;
    }

    /// What of the upstream's bytes is the caller's.
    pub fn down<'a>(&mut self, mut bytes: &'a [u8]) -> Option<&'a [u8]> {
        while self.lines_to_skip > 0 {
            let end = bytes.iter().position(|&byte| byte == b'\n')?;
            self.lines_to_skip -= 1;
            bytes = &bytes[end + 1..];
        }
        Some(bytes).filter(|rest| !rest.is_empty())
    }

    /// The last send upstream is done.
    pub fn sent(&mut self, caller: ConnectionId, effects: &mut Vec<Effect>) {
        self.is_sending = false;
        self.go_on(effects);
        if self.is_caller_paused && self.waiting.is_empty() {
            self.is_caller_paused = false;
            effects.push(Effect::ResumeReceive { connection: caller });
        }
    }

    /// Whether something waits for the street to have sent what it was handed.
    pub fn awaits_sent(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn go_on(&mut self, effects: &mut Vec<Effect>) {
        if !self.is_sending && !self.waiting.is_empty() {
            self.is_sending = true;
            effects.push(Effect::Send { connection: self.upstream, buffer: std::mem::take(&mut self.waiting) });
        }
    }
}
