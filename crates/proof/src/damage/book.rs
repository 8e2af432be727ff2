//! A store of which everything is known: each write was acknowledged by a sync before the next one was sent.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::tail::Tail;
use crate::connection::{Connection, encode};
use crate::process::{Server, copy_directory};
use crate::reply::{Reply, decode, show};

/// Keys of the load, a few of them long.
const KEYS: usize = 3000;
/// Of the second load.
const CHANGED: usize = 300;
/// Requests written before their replies are read, when comparing.
const WINDOW: usize = 256;
/// Bytes of a value that lies in blocks.
const LONG_BYTES: usize = 300_000;

/// A store's keys and values.
type Values = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the store holds.
pub(super) struct Book {
    /// After all writes.
    values: Values,
    /// The writes that are in the last log, oldest first: the key, and what it held before.
    writes: Vec<(Vec<u8>, Vec<u8>)>,
    tail: Tail,
}

impl Book {
    /// Leaves a stopped store at `old`, and one at `model` that was killed after more was written.
    pub(super) fn make(zerohop: &str, old: &Path, model: &Path) -> io::Result<Book> {
        let mut values = Values::new();
        fs::create_dir(old)?;
        let mut server = start(zerohop, old)?;
        write(&server, &mut values, (0..KEYS).map(|number| (number, 0)))?;
        server.terminate()?;
        server.wait_until_ended(std::time::Duration::from_secs(60))?;
        drop(server);
        copy_directory(old, model)?;
        let mut server = start(zerohop, model)?;
        let writes = write(&server, &mut values, (0..CHANGED).map(|number| (number * 7, 1)))?;
        server.kill()?;
        let keys: Vec<&[u8]> = writes.iter().map(|(name, _)| name.as_slice()).collect();
        let tail = Tail::read(model, &keys)?;
        Ok(Book { values, writes, tail })
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// What a store must hold that opens with these files; and how many acknowledged writes that is short of, because nothing
    /// in the files tells of them.
    pub(super) fn expected(&self, files: &BTreeMap<String, Vec<u8>>) -> (Values, usize) {
        let kept = self.tail.kept(files.get(self.tail.name()).map(Vec::as_slice));
        (self.after(kept), self.writes.len() - kept)
    }

    /// The values after the first `kept` writes of the last log.
    fn after(&self, kept: usize) -> Values {
        let mut values = self.values.clone();
        values.extend(self.writes.iter().skip(kept).rev().cloned());
        values
    }
}

/// One request at a time, so that every one has log groups of its own and all but the last are promised by a later one.
/// Returns the keys in this order, each with what it held before.
fn write(
    server: &Server,
    values: &mut Values,
    writes: impl Iterator<Item = (usize, usize)>,
) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut connection = server.connect()?;
    let mut befores = Vec::new();
    for (number, generation) in writes {
        let (name, value) = (name_of(number), value_of(number, generation));
        let answer = connection.call(&[b"SET", &name, &value])?;
        if answer != b"+OK\r\n" {
            return Err(io::Error::other(format!("SET answers {}", show(&answer))));
        }
        let before = values.insert(name.clone(), value).unwrap_or_default();
        befores.push((name, before));
    }
    Ok(befores)
}

/// Whether a store holds exactly `values`.
///
/// # Errors
/// Says which key does not.
pub(super) fn compare(values: &Values, mut connection: Connection) -> io::Result<()> {
    let count = connection.call_line("DBSIZE")?;
    if count != format!(":{}\r\n", values.len()).into_bytes() {
        return Err(io::Error::other(format!("{} keys became {}", values.len(), show(&count))));
    }
    let all: Vec<_> = values.iter().collect();
    for window in all.chunks(WINDOW) {
        let mut request = Vec::new();
        window.iter().for_each(|(name, _)| encode(&[b"GET", name.as_slice()], &mut request));
        connection.write(&request)?;
        for (name, value) in window {
            let raw = connection.read_reply()?;
            match decode(&raw) {
                Ok(Some((Reply::Bulk(found), _))) if found == **value => {}
                Ok(Some((Reply::Bulk(_), _))) => {
                    return Err(io::Error::other(format!("{} is not what was acknowledged", show(name))));
                }
                _ => return Err(io::Error::other(format!("{} answers {}", show(name), show(&raw)))),
            }
        }
    }
    Ok(())
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
