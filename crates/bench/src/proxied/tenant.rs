//! A tenant: somebody who asks little, and wants each reply soon.

use std::net::SocketAddr;
use std::time::Duration;

use super::pace::Pace;
use super::talk::{Talk, encode, encode_value};

/// What it reads.
const KEY: &[u8] = b"tenant";
const VALUE: &[u8] = &[b't'; 100];

/// One connection of it.
pub struct Tenant {
    talk: Talk,
    request: Vec<u8>,
    reply: Vec<u8>,
    pace: Pace,
}

impl Tenant {
    /// A connection that asks at this pace. `class` is told to whoever understands it.
    ///
    /// # Errors
    /// When the server does not take it.
    pub fn begin(address: SocketAddr, class: Option<&str>, pace: Pace) -> Result<Tenant, String> {
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
        Ok(Tenant { talk, request, reply, pace })
    }

    /// Asks when it is time to, and tells how long the reply took.
    ///
    /// # Errors
    /// When it is not answered, or otherwise than it has to be.
    pub fn turn(&mut self) -> Result<Duration, String> {
        let begun = self.pace.wait();
        self.talk.exchange(&self.request, &self.reply)?;
        Ok(begun.elapsed())
    }
}
