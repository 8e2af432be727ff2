//! What a proxy's connections are sealed with: those of callers where a listener says so, and those to the store.

use crate::config::ProxyConfig;
use crate::standing::Word;
use base::street::Machine;
use io::clock::Clock;
use io::{CoreConfig, Mailbox, run_core};
use tls::{Dials, KeyError, KeyFiles, Keys, Layer};

/// See the module; what nobody asks for is `None`.
#[derive(Clone)]
pub(crate) struct Ciphers {
    /// Callers'.
    keys: Option<Keys>,
    /// Those to the store.
    dials: Option<Dials>,
}

impl Ciphers {
    /// Reads the files that a configuration names.
    pub fn read(config: &ProxyConfig) -> Result<Ciphers, String> {
        let keys = config.tls.as_ref().map(|files| Keys::read(files, unix_s()).map_err(told));
        let dials = config.upstream.tls.as_ref().map(|tls| Dials::read(&tls.files, tls.name.as_deref()));
        Ok(Ciphers { keys: keys.transpose()?, dials: dials.transpose()? })
    }

    /// Reads the files for callers again, for those who come from now on; whether there are any. Faults change nothing.
    pub fn read_again(&self, files: Option<&KeyFiles>) -> Result<bool, String> {
        match (&self.keys, files) {
            (Some(keys), Some(files)) => keys.read_again(files, unix_s()).map(|()| true).map_err(told),
            _ => Ok(false),
        }
    }

    /// Runs a core until it is stopped, with a layer around its machine if anything is sealed.
    pub fn run<M: Machine<Message = Word>>(
        self,
        street: CoreConfig,
        machine: M,
        mailbox: Mailbox<Word>,
    ) -> Result<(), String> {
        let ended = match (self.keys, self.dials) {
            (None, None) => run_core(street, machine, mailbox).map(drop),
            (keys, dials) => run_core(street, Layer::between(machine, keys, dials), mailbox).map(drop),
        };
        ended.map_err(|error| error.to_string())
    }
}

fn unix_s() -> i64 {
    (Clock::new().now().unix_ms / 1000) as i64
}

fn told(KeyError { which, reason }: KeyError) -> String {
    format!("{}: {reason}", which.setting())
}
