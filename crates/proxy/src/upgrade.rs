//! From one process of a proxy to the next: listeners first, then, when the new one is ready, callers as they come to rest.
//!
//! ```text
//!   old ── hello, a message for each listener's socket ──► new: reads its configuration
//!   old ◄──────────────── ready, or why not ───────────── new: has all that it needs, and takes nobody yet
//!   old ── go ──► new: takes connections               any end before this word: the old one serves on, and has lost nothing
//!   old: takes those that wait at its listeners, and no more; hands over who is at rest; ends with its last caller
//! ```

use crate::config::Place;
use crate::handover::{HANDOVER_VERSION, Inherits, Of, hello, read_answer, read_hello, ready, refused};
use base::limits::{CORES_MAX, HANDOVER_READY_MS_MAX, PROXY_LISTENERS_MAX};
use base::street::Door;
use io::Listener;
use io::handover::{Bridge, Message, set_standard_input};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The word after which the old process takes no more connections.
const GO: &[u8] = b"go";

const PATIENCE: Duration = Duration::from_millis(HANDOVER_READY_MS_MAX);

/// Sockets of a place, from which several cores may take connections.
pub(crate) type Bound = (Inherits, Vec<Listener>);

/// What a process gets from the one that it takes over from.
pub struct Inherited {
    bridge: Bridge,
    sockets: Vec<(Inherits, OwnedFd)>,
    /// What the other process speaks.
    version: u32,
}

impl Inherited {
    /// Hears what there is. The bridge is this process's standard input, which becomes that of the other process.
    ///
    /// # Errors
    /// The other process says something else, or is gone; if it is there it was told.
    pub fn receive(bridge: Bridge) -> Result<Inherited, String> {
        let mut inherited = Inherited { bridge, sockets: Vec::new(), version: HANDOVER_VERSION };
        match inherited.hear() {
            Ok(()) => Ok(inherited),
            Err(problem) => {
                inherited.refuse(&problem);
                Err(problem)
            }
        }
    }

    fn hear(&mut self) -> Result<(), String> {
        self.bridge.set_patience(Some(PATIENCE)).map_err(|error| error.to_string())?;
        let Message { bytes, descriptor } = self.next()?;
        let (version, sockets) = read_hello(&bytes).ok_or("what it is to take over from is no proxy")?;
        self.version = version;
        if !(1..=HANDOVER_VERSION).contains(&version) {
            return Err(format!(
                "the running proxy hands over by version {version} and this one takes over by version {HANDOVER_VERSION}: restart it instead"
            ));
        }
        if sockets > CORES_MAX * PROXY_LISTENERS_MAX + 1 {
            return Err(format!("{sockets} listeners are more than a proxy has"));
        }
        if let Some(input) = &descriptor {
            set_standard_input(input).map_err(|error| error.to_string())?;
        }
        for _ in 0..sockets {
            let Message { bytes, descriptor } = self.next()?;
            let told = Inherits::decode(&bytes).zip(descriptor);
            self.sockets.push(told.ok_or("one of the listeners that it is to take over is none")?);
        }
        Ok(())
    }

    fn next(&self) -> Result<Message, String> {
        match self.bridge.receive() {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err("the proxy that it is to take over from has ended".to_owned()),
            Err(error) => Err(format!("the proxy that it is to take over from does not say what there is: {error}")),
        }
    }

    /// This process does not take over.
    pub fn refuse(&self, reason: &str) {
        // One that is gone needs no answer.
        self.bridge.send(&refused(reason), None).ok();
    }

    /// The sockets of a place, if the other process listened there.
    pub(crate) fn take(&mut self, of: Of, place: &Place) -> Option<Bound> {
        let (first, _) = self.sockets.iter().find(|(what, _)| what.of == of && what.place == *place)?;
        let first = first.clone();
        let mut rest = Vec::new();
        let mut taken = Vec::new();
        for (what, socket) in self.sockets.drain(..) {
            match what == first {
                true => taken.push(inherited(socket, place)),
                false => rest.push((what, socket)),
            }
        }
        self.sockets = rest;
        Some((first, taken))
    }

    /// All is there that this process needs: it takes connections once this returns.
    ///
    /// # Errors
    /// The other process does not want that any more.
    pub(crate) fn take_over(self) -> Result<Bridge, String> {
        let failed = |error: std::io::Error| format!("the proxy that it is to take over from is gone: {error}");
        self.bridge.send(&ready(self.version), None).map_err(failed)?;
        let Message { bytes, .. } = self.next()?;
        if bytes != GO {
            return Err("the proxy that it is to take over from does not say go".to_owned());
        }
        self.bridge.set_patience(None).map_err(failed)?;
        Ok(self.bridge)
    }
}

fn inherited(socket: OwnedFd, place: &Place) -> Listener {
    match place {
        Place::Tcp(_) => Listener::inherited(socket, None, Door::Standalone),
        Place::Unix(path) => Listener::inherited(socket, Some(path), Door::Standalone),
    }
}

/// Offers all listeners to the process at the other end, and says go when it is ready.
///
/// # Errors
/// Why it does not take over: then nothing has changed.
pub(crate) fn offer(bridge: &Bridge, version: u32, listeners: &[Bound]) -> Result<(), String> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::WouldBlock => format!("it was not ready within {} s", PATIENCE.as_secs()),
        _ => format!("it ended before it was ready ({error})"),
    };
    bridge.set_patience(Some(PATIENCE)).map_err(failed)?;
    let count = listeners.iter().map(|(_, sockets)| sockets.len()).sum();
    bridge.send_standard_input(&hello(version, count)).map_err(failed)?;
    for (what, sockets) in listeners {
        for socket in sockets {
            bridge.send(&what.encode(), Some(socket.socket())).map_err(failed)?;
        }
    }
    match bridge.receive().map_err(failed)? {
        Some(Message { bytes, .. }) => read_answer(version, &bytes)?,
        None => return Err("it ended before it was ready".to_owned()),
    }
    bridge.send(GO, None).map_err(failed)
}
