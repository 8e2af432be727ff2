//! A store of which everything is known: each write was acknowledged by a sync before the next one was sent.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::copy;
use crate::connection::{Connection, encode};
use crate::process::Server;
use crate::reply::{Reply, decode, show};

/// Keys of the load, a few of them long.
const KEYS: usize = 3000;
/// Of the second load.
const CHANGED: usize = 300;
/// Requests written before their replies are read, when comparing.
const WINDOW: usize = 256;
/// Bytes of a value that lies in blocks.
const LONG_BYTES: usize = 300_000;

/// What the store holds.
pub(super) struct Book {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The key of the last write, and what it held before: no later write promised that one.
    last: (Vec<u8>, Vec<u8>),
}

impl Book {
    /// Leaves a stopped store at `old`, and one at `model` that was killed after more was written.
    pub(super) fn make(zerohop: &str, old: &Path, model: &Path) -> io::Result<Book> {
        let mut book = Book { values: BTreeMap::new(), last: (Vec::new(), Vec::new()) };
        fs::create_dir(old)?;
        let mut server = start(zerohop, old)?;
        book.write(&server, (0..KEYS).map(|number| (number, 0)))?;
        server.terminate()?;
        server.wait_until_ended(std::time::Duration::from_secs(60))?;
        drop(server);
        copy(old, model)?;
        let mut server = start(zerohop, model)?;
        book.write(&server, (0..CHANGED).map(|number| (number * 7, 1)))?;
        server.kill()?;
        Ok(book)
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// One request at a time, so that every one has a log group of its own and all but the last are promised by a later one.
    fn write(&mut self, server: &Server, writes: impl Iterator<Item = (usize, usize)>) -> io::Result<()> {
        let mut connection = server.connect()?;
        for (number, generation) in writes {
            let (name, value) = (name_of(number), value_of(number, generation));
            let answer = connection.call(&[b"SET", &name, &value])?;
            if answer != b"+OK\r\n" {
                return Err(io::Error::other(format!("SET answers {}", show(&answer))));
            }
            let before = self.values.insert(name.clone(), value).unwrap_or_default();
            self.last = (name, before);
        }
        Ok(())
    }

    /// Whether a store has all of it; with a torn tail the last write may be missing.
    ///
    /// # Errors
    /// Says which key is not as it was written.
    pub(super) fn compare(&self, mut connection: Connection, is_torn: bool) -> io::Result<()> {
        let count = connection.call_line("DBSIZE")?;
        if count != format!(":{}\r\n", self.values.len()).into_bytes() {
            return Err(io::Error::other(format!("{} keys became {}", self.values.len(), show(&count))));
        }
        let all: Vec<_> = self.values.iter().collect();
        for window in all.chunks(WINDOW) {
            let mut request = Vec::new();
            window.iter().for_each(|(name, _)| encode(&[b"GET", name.as_slice()], &mut request));
            connection.write(&request)?;
            for (name, value) in window {
                let raw = connection.read_reply()?;
                let found = match decode(&raw) {
                    Ok(Some((Reply::Bulk(found), _))) => found,
                    _ => return Err(io::Error::other(format!("{} answers {}", show(name), show(&raw)))),
                };
                let is_before = is_torn && **name == self.last.0 && found == self.last.1;
                if found != **value && !is_before {
                    return Err(io::Error::other(format!("{} is not what was acknowledged", show(name))));
                }
            }
        }
        Ok(())
    }
}

fn start(zerohop: &str, directory: &Path) -> io::Result<Server> {
    Server::start_zerohop(zerohop, &["--durability", "commit", "--cores", "1"], Some(directory))
}

fn name_of(number: usize) -> Vec<u8> {
    format!("key:{number:05}").into_bytes()
}

/// Every key and generation has bytes of its own, so that one found elsewhere is noticed.
fn value_of(number: usize, generation: usize) -> Vec<u8> {
    let text = format!("value {number} of generation {generation};");
    let bytes = if number % 500 == 7 { LONG_BYTES } else { 60 + number % 200 };
    text.bytes().cycle().take(bytes).collect()
}
