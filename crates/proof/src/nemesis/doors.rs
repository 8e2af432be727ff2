//! How a cluster is reached from outside: its doors, what is answered there, and how patient one has to be.

use std::io;
use std::time::Duration;

use super::ground::Ground;
use crate::connection::Connection;
use crate::reply::{Reply, decode};

/// How long a node may take for an answer to the harness.
const ANSWER_WITHIN: Duration = Duration::from_millis(1000);

/// Where clients may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Door {
    /// Or the place of a gate, behind all nodes.
    pub(crate) node: usize,
    /// 0: the port of the standalone personality, behind which all cores of the node are; from 1 on the instances' own.
    pub(crate) offset: u16,
}

impl Door {
    /// The one to all of a node.
    pub(crate) fn plain(node: usize) -> Door {
        Door { node, offset: 0 }
    }

    /// The one to an instance.
    pub(crate) fn of_core(node: usize, core: u16) -> Door {
        Door { node, offset: 1 + core }
    }
}

/// See the module.
pub(crate) struct Doors {
    pub(crate) ground: Ground,
    /// Instances of each node.
    pub(crate) cores: u16,
    /// How much slower than processes on this machine the nodes may be: all patience is so much longer.
    pub(crate) slowness: u32,
}

impl Doors {
    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.ground.nodes()
    }

    /// What one of patience is for these nodes.
    pub(crate) fn patience(&self, of_processes: Duration) -> Duration {
        of_processes * self.slowness
    }

    /// What is answered to words.
    ///
    /// # Errors
    /// When nothing is.
    pub(crate) fn ask(&self, door: Door, words: &[&str]) -> io::Result<Reply> {
        let patience = self.patience(ANSWER_WITHIN);
        let mut connection = Connection::open_within(&self.ground.address(door), patience)?;
        ask(&mut connection, words)
    }

    /// The same, if it is text.
    pub(crate) fn told(&self, door: Door, words: &[&str]) -> Option<String> {
        match self.ask(door, words) {
            Ok(Reply::Bulk(text) | Reply::Status(text)) => Some(String::from_utf8_lossy(&text).into_owned()),
            _ => None,
        }
    }
}

/// Sends words and reads what is answered.
///
/// # Errors
/// As [`Connection::read_reply`].
pub(crate) fn ask(connection: &mut Connection, words: &[&str]) -> io::Result<Reply> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    connection.write_words(&words)?;
    next_reply(connection)
}

/// Reads the next answer.
///
/// # Errors
/// As [`Connection::read_reply`].
pub(crate) fn next_reply(connection: &mut Connection) -> io::Result<Reply> {
    let decoded = decode(&connection.read_reply()?)
        .map_err(|malformed| io::Error::new(io::ErrorKind::InvalidData, malformed.to_string()))?;
    Ok(decoded.expect("a whole reply was read").0)
}
