//! A protocol for tests: a request is a line of a name and keys, an answer a line of the name and what became of each key.

use crate::client::{Error, Reply};
use crate::serve::{Ask, Handler, Refusal, Taken, Turn};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the handler was called for, in order.
pub type Journal = Arc<Mutex<Vec<String>>>;

/// See the module. Words of a request that are no keys: `close` ends the connection behind the answer, `hello` is answered at once,
/// `soon` asks for what follows within a millisecond, `brief` waits a millisecond for it and `long` an hour, `then:KEY` asks in a
/// second round.
#[derive(Default)]
pub struct Lines {
    pub journal: Journal,
}

#[derive(Default)]
pub struct Line {
    name: String,
    then: Option<String>,
    results: Vec<String>,
}

impl Lines {
    fn note(&self, what: String) {
        self.journal.lock().expect("no test panics with it").push(what);
    }
}

impl Handler for Lines {
    type Connection = u32;
    type Request = Line;

    fn connected(&mut self) -> u32 {
        0
    }

    fn read(&mut self, requests: &mut u32, bytes: &[u8], turn: &mut Turn<'_>) -> Taken<Line> {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
            // Forgotten.
            turn.ask(Ask::get("forgotten"));
            turn.answer().extend_from_slice(b"forgotten");
            return Taken::Incomplete;
        };
        *requests += 1;
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut words = text.split(' ');
        let mut line = Line { name: words.next().unwrap_or_default().to_owned(), ..Line::default() };
        self.note(format!("read {}", line.name));
        let (mut is_soon, mut timeout) = (false, None);
        for word in words {
            match word {
                "close" => turn.close(),
                "soon" => is_soon = true,
                "brief" => timeout = Some(Duration::from_millis(1)),
                "long" => timeout = Some(Duration::from_secs(3600)),
                "hello" => {
                    turn.answer().extend_from_slice(format!("hello {requests}\n").as_bytes());
                    return Taken::Answered { bytes: end + 1 };
                }
                _ if word.starts_with("then:") => line.then = Some(word["then:".len()..].to_owned()),
                key => {
                    let ask = if key.starts_with("set:") { Ask::set(key, "v") } else { Ask::get(key) };
                    let ask = if is_soon { ask.within(Duration::from_millis(1)) } else { ask };
                    let number = turn.ask(match timeout {
                        Some(time) => ask.timeout(time),
                        None => ask,
                    });
                    assert_eq!(number, line.results.len());
                    line.results.push(String::new());
                }
            }
        }
        Taken::Asked { bytes: end + 1, request: line }
    }

    fn reply(&mut self, line: &mut Line, ask: usize, reply: Result<Reply, Error>) {
        self.note(format!("reply {} {ask}", line.name));
        assert!(line.results[ask].is_empty(), "one reply to each ask");
        line.results[ask] = match reply {
            Ok(Reply::BulkString(value)) => String::from_utf8(value).expect("values of tests are text"),
            Ok(Reply::Nil) => "nil".to_owned(),
            Ok(reply) => format!("{reply:?}"),
            Err(error) => format!("({error:?})"),
        };
    }

    fn complete(&mut self, line: &mut Line, turn: &mut Turn<'_>) {
        self.note(format!("complete {}", line.name));
        if let Some(key) = line.then.take() {
            let number = turn.ask(Ask::get(key.as_str()));
            assert_eq!(number, line.results.len());
            return line.results.push(String::new());
        }
        let words: Vec<&str> =
            std::iter::once(line.name.as_str()).chain(line.results.iter().map(String::as_str)).collect();
        turn.answer().extend_from_slice(format!("{}\n", words.join(" ")).as_bytes());
    }

    fn refuse(&mut self, refusal: Refusal, answer: &mut Vec<u8>) {
        answer.extend_from_slice(format!("refused {refusal:?}\n").as_bytes());
    }
}
