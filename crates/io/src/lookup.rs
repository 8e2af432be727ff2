//! What a host name stands for. The system's look-up has no time limit that could be set, so each is made on a thread of its own,
//! which whoever asked does not wait for longer than it wants to.

use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use base::limits::LOOKUPS_MAX;

/// Look-ups that are under way.
pub(crate) struct Lookups {
    under_way: AtomicUsize,
}

/// Those of this process.
pub(crate) static LOOKUPS: Lookups = Lookups::new();

impl Lookups {
    pub const fn new() -> Lookups {
        Lookups { under_way: AtomicUsize::new(0) }
    }

    /// The addresses of `host:port`, in the order in which they are to be tried: at least one. What is an address already is not
    /// looked up.
    ///
    /// # Errors
    /// The system's words, or that it took longer than `answer_max`, or that too many names are being looked up already.
    pub fn addresses(&'static self, name: &str, answer_max: Duration) -> Result<Vec<SocketAddr>> {
        match name.parse() {
            Ok(address) => Ok(vec![address]),
            Err(_) => self.addresses_by(name, answer_max, |name| Ok(name.to_socket_addrs()?.collect())),
        }
    }

    /// The same, asking somebody else than the system.
    pub fn addresses_by(
        &'static self,
        name: &str,
        answer_max: Duration,
        look_up: impl FnOnce(&str) -> Result<Vec<SocketAddr>> + Send + 'static,
    ) -> Result<Vec<SocketAddr>> {
        let (told, answer) = sync_channel(1);
        let place = self.take_place().ok_or_else(|| {
            Error::new(ErrorKind::WouldBlock, format!("{LOOKUPS_MAX} names are being looked up already"))
        })?;
        let asked = name.to_owned();
        Builder::new().name("zerohop-lookup".to_owned()).spawn(move || {
            let found = look_up(&asked);
            drop(place);
            // Nobody there any more: it took too long.
            told.send(found).ok();
        })?;
        let found = answer.recv_timeout(answer_max).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                Error::new(ErrorKind::TimedOut, format!("looking its name up took more than {answer_max:?}"))
            }
            RecvTimeoutError::Disconnected => Error::other("looking its name up broke off"),
        })??;
        match found.is_empty() {
            true => Err(Error::new(ErrorKind::NotFound, "its name has no address")),
            false => Ok(found),
        }
    }

    fn take_place(&'static self) -> Option<Place> {
        let taken = self
            .under_way
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < LOOKUPS_MAX).then_some(count + 1));
        taken.is_ok().then_some(Place(self))
    }
}

/// One of [`LOOKUPS_MAX`] places, until it is dropped.
struct Place(&'static Lookups);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Instant;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn an_address_is_itself_and_a_name_has_some() {
        let lookups: &'static Lookups = Box::leak(Box::new(Lookups::new()));
        for address in ["127.0.0.1:7", "[::1]:7"] {
            assert_eq!(lookups.addresses(address, Duration::ZERO).unwrap(), [address.parse().unwrap()]);
        }
        let found = lookups.addresses("localhost:7", PATIENCE).unwrap();
        assert!(!found.is_empty() && found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
        let none = lookups.addresses_by("nobody:7", PATIENCE, |_| Ok(Vec::new())).unwrap_err();
        assert!(none.to_string().contains("no address"), "{none}");
        assert!(lookups.addresses("no port", PATIENCE).is_err());
    }

    #[test]
    fn a_name_that_nobody_answers_for_is_not_waited_for_and_takes_a_place_until_it_is() {
        let lookups: &'static Lookups = Box::leak(Box::new(Lookups::new()));
        let mut answers = Vec::new();
        for _ in 0..LOOKUPS_MAX {
            let (answer, asked) = channel::<()>();
            let stuck = move |_: &str| {
                asked.recv().ok();
                Ok(Vec::new())
            };
            let error = lookups.addresses_by("slow:7", Duration::ZERO, stuck).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            answers.push(answer);
        }
        let error = lookups.addresses("localhost:7", PATIENCE).unwrap_err();
        assert!(error.to_string().contains("being looked up already"), "{error}");
        answers.clear();
        // Those that were stuck end one after the other.
        let end = Instant::now() + PATIENCE;
        while let Err(error) = lookups.addresses("localhost:7", PATIENCE) {
            assert!(Instant::now() < end, "{error}");
            std::thread::yield_now();
        }
    }
}
