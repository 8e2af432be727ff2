//! A tenant: somebody who asks little, and wants each reply soon.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::talk::{Talk, encode, encode_value};

/// What it reads.
const KEY: &[u8] = b"tenant";
const VALUE: &[u8] = &[b't'; 100];

/// One connection of it.
pub struct Tenant {
    talk: Talk,
    request: Vec<u8>,
    reply: Vec<u8>,
    due: Instant,
    every: Duration,
}

impl Tenant {
    /// A connection that asks `every` so often, from `first` on. `class` is told to whoever understands it.
    ///
    /// # Errors
    /// When the server does not take it.
    pub fn begin(address: SocketAddr, class: Option<&str>, first: Instant, every: Duration) -> Result<Tenant, String> {
        let mut talk = Talk::dial(address)?;
        let mut words = Vec::new();
        if let Some(class) = class {
            encode(&[b"ZH.QOS", class.as_bytes()], &mut words);
            talk.exchange(&words, b"+OK\r\n")?;
            words.clear();
        }
        encode(&[b"SET", KEY, VALUE], &mut words);
        talk.exchange(&words, b"+OK\r\n")?;
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        encode(&[b"GET", KEY], &mut request);
        encode_value(VALUE, &mut reply);
        Ok(Tenant { talk, request, reply, due: first, every })
    }

    /// Asks when it is time to, and tells how long the reply took. That counts from when it was asked; or from when it should have been,
    /// if it could not be asked then because the one before was not answered: who answers slowly is not asked less for that.
    ///
    /// # Errors
    /// When it is not answered, or otherwise than it has to be.
    pub fn turn(&mut self) -> Result<Duration, String> {
        let wait = self.due.saturating_duration_since(Instant::now());
        let begun = if wait.is_zero() {
            self.due
        } else {
            sleep(wait);
            // What the system takes to wake this thread is nobody's answer.
            Instant::now()
        };
        self.due += self.every;
        self.talk.exchange(&self.request, &self.reply)?;
        Ok(begun.elapsed())
    }
}
