//! Connections to other nodes. Each is made on a thread of its own, which ends with it: looking a name up may take seconds, and a
//! host that is gone answers nothing; neither stops the core, or another dial.

use crate::connect::connect;
use crate::doorbell::Doorbell;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

/// Dials of one core that may be under way; one more is told at once that nobody answered.
const DIALS_MAX: usize = 64;
/// How long an address may take to answer, its name's look-up included.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// What became of a dial: its number, and the socket if somebody answered, or why not.
type Ended = (u64, Result<OwnedFd, String>);

/// The dials of one core.
pub(crate) struct Dialer {
    doorbell: Arc<Doorbell>,
    done: SyncSender<Ended>,
    results: Receiver<Ended>,
    under_way: usize,
    /// Those that were not even begun.
    refused: VecDeque<(u64, String)>,
}

impl Dialer {
    /// Rings when there is a result.
    pub fn new(doorbell: Arc<Doorbell>) -> Dialer {
        let (done, results) = sync_channel(DIALS_MAX);
        Dialer { doorbell, done, results, under_way: 0, refused: VecDeque::new() }
    }

    /// Begins to dial `host:port` or `unix:/path`.
    pub fn dial(&mut self, token: u64, address: String) {
        let (done, doorbell) = (self.done.clone(), Arc::clone(&self.doorbell));
        let work = move || {
            // A channel that is gone: so is its core.
            done.send((token, connect(&address, ANSWER_MAX).map_err(|error| error.to_string()))).ok();
            doorbell.ring();
        };
        let begun = match self.under_way < DIALS_MAX {
            true => Builder::new().name("zerohop-dial".to_owned()).spawn(work).map_err(|error| error.to_string()),
            false => Err(format!("{DIALS_MAX} connections are being opened already")),
        };
        match begun {
            Ok(_) => self.under_way += 1,
            Err(reason) => self.refused.push_back((token, reason)),
        }
    }

    /// Whether [`Dialer::ended`] has something to say without anybody ringing.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// The next dial that is over.
    pub fn ended(&mut self) -> Option<Ended> {
        if let Some((token, reason)) = self.refused.pop_front() {
            return Some((token, Err(reason)));
        }
        let ended = (self.under_way > 0).then(|| self.results.try_recv().ok()).flatten()?;
        self.under_way -= 1;
        Some(ended)
    }
}
