//! A server of an application's own protocol, on the threads that talk to the store: what a request asks for is fetched from all
//! nodes at once, and each part of it can fail by itself.
//!
//! An application implements [`Handler`]: bytes of a connection in, [asks](Ask) to the store out, replies in, bytes of the answer
//! out. It sees no socket, no thread and no clock. Around it [`Server`] runs one thread per core; each has a handler, connections
//! of clients and connections to the store of its own, and what many clients ask at the same time travels in few writes.
//!
//! A protocol of one line per request, which names keys, and one line of lengths per answer:
//!
//! ```no_run
//! use zerohop::client::{Error, Reply};
//! use zerohop::serve::{Ask, Handler, Options, Refusal, Taken, Turn};
//!
//! struct Lengths;
//!
//! impl Handler for Lengths {
//!     type Connection = ();
//!     type Request = Vec<String>;
//!
//!     fn connected(&mut self) {}
//!
//!     fn read(&mut self, _: &mut (), bytes: &[u8], turn: &mut Turn<'_>) -> Taken<Vec<String>> {
//!         let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return Taken::Incomplete };
//!         let keys = bytes[..end].split(|&byte| byte == b' ');
//!         let lengths = keys.map(|key| { turn.ask(Ask::get(key)); String::new() }).collect();
//!         Taken::Asked { bytes: end + 1, request: lengths }
//!     }
//!
//!     fn reply(&mut self, lengths: &mut Vec<String>, ask: usize, reply: Result<Reply, Error>) {
//!         lengths[ask] = match reply {
//!             Ok(Reply::BulkString(value)) => value.len().to_string(),
//!             Ok(_) => "nothing".to_owned(),
//!             Err(error) => format!("({error})"),
//!         };
//!     }
//!
//!     fn complete(&mut self, lengths: &mut Vec<String>, turn: &mut Turn<'_>) {
//!         turn.answer().extend_from_slice(format!("{}\n", lengths.join(" ")).as_bytes());
//!     }
//!
//!     fn refuse(&mut self, refusal: Refusal, answer: &mut Vec<u8>) {
//!         answer.extend_from_slice(format!("refused: {refusal}\n").as_bytes());
//!     }
//! }
//!
//! # fn main() -> Result<(), zerohop::client::Error> {
//! let server = Options::new("redis://127.0.0.1:6379")?.cores(2).start("127.0.0.1:7007", |_core| Lengths)?;
//! server.wait()?;
//! # Ok(())
//! # }
//! ```
//!
//! `docs/internals/fan-out.md` of the repository has the order of work and all bounds; a server of HTTP is the example
//! `http_fan_out`.
//!
//! Inside: `machine` is one core's tick, `reading` and `finishing` its two halves; `connection` one client; `requests` what is on
//! its way; `upstream` the lanes, `following` what becomes of `MOVED` and `ASK`, `reports` what is said of silent nodes; `server` the
//! threads around it.

mod ask;
mod connection;
mod finishing;
mod following;
mod handler;
mod machine;
mod options;
mod reading;
mod reports;
mod requests;
mod server;
#[cfg(test)]
mod tests;
mod turn;
mod upstream;

pub use ask::Ask;
pub use handler::{Handler, Refusal, Taken};
pub use options::Options;
pub use server::{Handle, Server};
pub use turn::Turn;
