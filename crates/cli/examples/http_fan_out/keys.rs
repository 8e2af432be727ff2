//! What is answered: each key with its value, with null if there is none, or with what went wrong with it.

use crate::head::{self, Head, Status};
use serde_json::{Value, json};
use zerohop::client::{Error, Reply};
use zerohop::serve::{Ask, Handler, Refusal, Taken, Turn};

/// The application. It keeps nothing beside its requests.
pub struct Keys;

/// A request for keys.
pub struct Wanted {
    keys: Vec<String>,
    /// For each key its member of the answer.
    found: Vec<Value>,
    /// Keys that failed.
    failed: usize,
    stays: bool,
}

impl Handler for Keys {
    type Connection = ();
    type Request = Wanted;

    fn connected(&mut self) {}

    fn read(&mut self, _connection: &mut (), bytes: &[u8], turn: &mut Turn<'_>) -> Taken<Wanted> {
        match head::read(bytes) {
            Head::Partial => Taken::Incomplete,
            Head::Keys { bytes, keys, stays } => {
                for key in &keys {
                    turn.ask(Ask::get(key));
                }
                if !stays {
                    turn.close();
                }
                let found = vec![Value::Null; keys.len()];
                Taken::Asked { bytes, request: Wanted { keys, found, failed: 0, stays } }
            }
            Head::Refused { bytes: whole, status, problem } => {
                head::write(status, whole.is_some(), &problem_text(problem), turn.answer());
                if whole.is_none() {
                    turn.close();
                }
                Taken::Answered { bytes: whole.unwrap_or(bytes.len()) }
            }
        }
    }

    fn reply(&mut self, wanted: &mut Wanted, ask: usize, reply: Result<Reply, Error>) {
        let key = &wanted.keys[ask];
        wanted.found[ask] = match reply {
            Ok(Reply::BulkString(value)) => match String::from_utf8(value) {
                Ok(text) => json!({ "key": key, "value": text }),
                Err(other) => json!({ "key": key, "hex": hexadecimal(other.as_bytes()) }),
            },
            Ok(_) => json!({ "key": key, "value": null }),
            Err(error) => {
                wanted.failed += 1;
                json!({ "key": key, "error": error.to_string() })
            }
        };
    }

    fn complete(&mut self, wanted: &mut Wanted, turn: &mut Turn<'_>) {
        let status = if wanted.failed == wanted.keys.len() { Status::BadGateway } else { Status::Ok };
        let body = json!({ "keys": std::mem::take(&mut wanted.found) });
        head::write(status, wanted.stays, &body.to_string(), turn.answer());
    }

    fn refuse(&mut self, refusal: Refusal, answer: &mut Vec<u8>) {
        let status = match refusal {
            Refusal::TooWide => Status::BadRequest,
            Refusal::TooLong => Status::HeadTooLong,
            Refusal::Slow => Status::Timeout,
            Refusal::Busy | Refusal::Connections | Refusal::Ending => Status::Unavailable,
        };
        head::write(status, !refusal.closes(), &problem_text(&refusal.to_string()), answer);
    }
}

fn problem_text(problem: &str) -> String {
    json!({ "error": problem }).to_string()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
