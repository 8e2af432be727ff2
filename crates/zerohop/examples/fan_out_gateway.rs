//! What `cargo x bench fan-out` measures of `zerohop::serve`: MGET over all instances of a cluster, and nothing else of RESP.
//!
//! `fan_out_gateway STORE LISTEN uring|epoll`

use std::process::ExitCode;
use zerohop::client::{Error, Reply};
use zerohop::serve::{Ask, Handler, Options, Refusal, Taken, Turn};

/// The application.
struct Gateway;

/// Values by the places of their keys.
type Values = Vec<Result<Option<Vec<u8>>, Error>>;

impl Handler for Gateway {
    type Connection = ();
    type Request = Values;

    fn connected(&mut self) {}

    fn read(&mut self, _connection: &mut (), bytes: &[u8], turn: &mut Turn<'_>) -> Taken<Values> {
        match words(bytes) {
            Some((words, end)) if words.len() > 1 && words[0].eq_ignore_ascii_case(b"MGET") => {
                words[1..].iter().for_each(|key| _ = turn.ask(Ask::get(key)));
                Taken::Asked { bytes: end, request: vec![Ok(None); words.len() - 1] }
            }
            Some((_, end)) => {
                turn.answer().extend_from_slice(b"-ERR this gateway knows MGET only\r\n");
                Taken::Answered { bytes: end }
            }
            None => Taken::Incomplete,
        }
    }

    fn reply(&mut self, values: &mut Values, ask: usize, reply: Result<Reply, Error>) {
        values[ask] = reply.map(|reply| if let Reply::BulkString(value) = reply { Some(value) } else { None });
    }

    fn complete(&mut self, values: &mut Values, turn: &mut Turn<'_>) {
        let answer = turn.answer();
        answer.extend_from_slice(format!("*{}\r\n", values.len()).as_bytes());
        for value in values {
            match value {
                Ok(Some(value)) => {
                    answer.extend_from_slice(format!("${}\r\n", value.len()).as_bytes());
                    answer.extend_from_slice(value);
                    answer.extend_from_slice(b"\r\n");
                }
                Ok(None) => answer.extend_from_slice(b"$-1\r\n"),
                Err(error) => answer.extend_from_slice(format!("-ERR {error}\r\n").as_bytes()),
            }
        }
    }

    fn refuse(&mut self, refusal: Refusal, answer: &mut Vec<u8>) {
        answer.extend_from_slice(format!("-ERR {refusal}\r\n").as_bytes());
    }
}

/// The words of the request that `bytes` begins with, and its length; `None` while it is not whole.
fn words(bytes: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let mut at = 0;
    let number = |at: &mut usize| -> Option<usize> {
        let end = *at + bytes[*at..].iter().position(|byte| *byte == b'\n')?;
        let digits = std::str::from_utf8(&bytes[*at + 1..end - 1]).ok()?;
        *at = end + 1;
        digits.parse().ok()
    };
    let count = number(&mut at)?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let length = number(&mut at)?;
        words.push(bytes.get(at..at + length)?);
        at += length + 2;
    }
    (at <= bytes.len()).then_some((words, at))
}

fn run() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().unwrap_or_else(|| "127.0.0.1:6379".to_owned());
    let listen = arguments.next().unwrap_or_else(|| "127.0.0.1:7007".to_owned());
    let options = Options::new(&store)?;
    let options = if arguments.next().as_deref() == Some("epoll") { options.epoll() } else { options };
    let server = options.start(&listen, |_core| Gateway)?;
    println!("{} ({})", server.address(), server.backend());
    server.wait()
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
