//! The connection over which an operator speaks.

use wire::reply_parse::Value;

use super::standing::Standing;
use crate::client::connection::{Connection, Target};

/// See the module.
pub struct Operator {
    connection: Connection,
}

impl Operator {
    /// Connects.
    ///
    /// # Errors
    /// Why it does not work, for people.
    pub fn open(target: &Target) -> Result<Operator, String> {
        Ok(Operator { connection: Connection::open(target)? })
    }

    /// Any command; an error of the node is one.
    ///
    /// # Errors
    /// What the node answers, without the code that only programs read; or that the connection broke.
    pub fn call(&mut self, words: &[&str]) -> Result<Value, String> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        match self.connection.call(&words)? {
            Value::Error(text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                Err(text.strip_prefix("ERR ").map_or(text.clone(), str::to_owned))
            }
            value => Ok(value),
        }
    }

    /// `ZH.CLUSTER` with these words.
    ///
    /// # Errors
    /// As [`Operator::call`].
    pub fn order(&mut self, words: &[&str]) -> Result<(), String> {
        self.call(&[&["ZH.CLUSTER"], words].concat()).map(drop)
    }

    /// How the cluster stands, as it came.
    ///
    /// # Errors
    /// As [`Operator::call`].
    pub fn status_reply(&mut self) -> Result<Value, String> {
        self.call(&["ZH.CLUSTER", "STATUS"])
    }

    /// How the cluster stands.
    ///
    /// # Errors
    /// As [`Operator::call`]; and when the node answers in words of another version.
    pub fn status(&mut self) -> Result<Standing, String> {
        read(&self.status_reply()?)
    }
}

/// How the cluster stands, by the reply.
///
/// # Errors
/// When the node answers in words of another version.
pub fn read(reply: &Value) -> Result<Standing, String> {
    let problem = "the node answers ZH.CLUSTER STATUS in words that this version does not know";
    Standing::of(reply).ok_or_else(|| problem.to_owned())
}
