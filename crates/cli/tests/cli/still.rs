//! A node of three that is stopped, not ended: nobody hears a word from it, and no connection breaks. What is built on the library, and
//! who asks through the proxy, goes on as soon as the others have its slots.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use zerohop::Client;
use zerohop::client::{Error, Reply};
use zerohop::serve::{Ask, Handler, Options, Refusal, Taken, Turn};

use crate::cluster::Three;
use crate::library;
use crate::process::{PATIENCE, Server};

const CALLERS: usize = 6;
/// Of each caller: some on every node.
const KEYS: usize = 30;

/// A node that stands still until this is dropped.
struct Still(Pid);

impl Still {
    fn new(three: &Three, node: usize) -> Still {
        let process = Pid::from_raw(three.node(node).process_id().cast_signed()).unwrap();
        kill_process(process, Signal::STOP).unwrap();
        Still(process)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).ok();
    }
}

/// What became of one addition.
enum Told {
    Sum(i64),
    /// It may have been carried out.
    Unknown,
    /// A node that may not serve it at the moment said so.
    Refused,
}

impl Told {
    fn of(result: Result<i64, Error>, what: &str) -> Told {
        match result {
            Ok(sum) => Told::Sum(sum),
            Err(Error::Unknown { .. }) => Told::Unknown,
            Err(Error::Server(_)) => Told::Refused,
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

/// Adds one to a key, in one of several ways by number.
type Add<'a> = Box<dyn FnMut(usize, &str) -> Told + 'a>;

/// What is known of one key: additions that were acknowledged, and those of which nobody knows.
#[derive(Clone, Copy, Default)]
struct Known {
    done: i64,
    unknown: i64,
}

impl Known {
    fn expect(self, sum: i64, what: &str) {
        let Known { done, unknown } = self;
        assert!((done..=done + unknown).contains(&sum), "{what} is {sum}, with {done} done and {unknown} unknown");
    }
}

/// How far all callers are.
#[derive(Default)]
struct Stage {
    /// Those that have been answered by every node.
    begun: AtomicUsize,
    is_still: AtomicBool,
    /// Those that have had every one of their keys acknowledged since a node stood still.
    whole: AtomicUsize,
    /// Somebody failed.
    ends: AtomicBool,
}

struct EndOnPanic<'a>(&'a Stage);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        self.0.ends.fetch_or(std::thread::panicking(), Ordering::AcqRel);
    }
}

/// A caller adds to its keys until all others, too, are whole; what it knows of them, and how long it waited at most.
fn live(caller: usize, stage: &Stage, add: &mut Add<'_>) -> (Vec<Known>, Duration) {
    let _end = EndOnPanic(stage);
    let (mut known, mut longest) = (vec![Known::default(); KEYS], Duration::ZERO);
    let (mut round, mut is_whole) = (0, false);
    while stage.whole.load(Ordering::Acquire) < CALLERS && !stage.ends.load(Ordering::Acquire) {
        let (is_still, mut missed) = (stage.is_still.load(Ordering::Acquire), 0);
        for (number, known) in known.iter_mut().enumerate() {
            let (name, begun) = (format!("{caller}:{number}"), Instant::now());
            match add(round + number, &name) {
                Told::Sum(sum) => {
                    known.done += 1;
                    known.expect(sum, &name);
                }
                Told::Unknown => known.unknown += 1,
                Told::Refused => missed += 1,
            }
            longest = longest.max(begun.elapsed());
        }
        stage.begun.fetch_add(usize::from(round == 0), Ordering::AcqRel);
        round += 1;
        if is_still && missed == 0 && !std::mem::replace(&mut is_whole, true) {
            stage.whole.fetch_add(1, Ordering::AcqRel);
        }
    }
    (known, longest)
}

/// Stops a node under callers, and looks at what they were told and what became of it.
fn stop_under<'a>(three: &Three, node: usize, callers: impl Fn() -> Add<'a> + Sync) {
    let stage = Stage::default();
    let all: Vec<(Vec<Known>, Duration)> = std::thread::scope(|scope| {
        let (stage, callers) = (&stage, &callers);
        let caller = |number| move || live(number, stage, &mut callers());
        let begun: Vec<_> = (0..CALLERS).map(|number| scope.spawn(caller(number))).collect();
        while stage.begun.load(Ordering::Acquire) < CALLERS && !stage.ends.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let _still = Still::new(three, node);
        stage.is_still.store(true, Ordering::Release);
        begun.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    // Nobody waited for the end of a connection, or of his time.
    let longest = all.iter().map(|(_, longest)| *longest).max().unwrap();
    assert!(longest < PATIENCE / 4, "somebody waited for {longest:?}");
    let straggler = Client::options().timeout(PATIENCE).open(&place_of(three)).unwrap();
    let mut unknown = 0;
    for (caller, (known, _)) in all.iter().enumerate() {
        for (number, known) in known.iter().enumerate() {
            let name = format!("{caller}:{number}");
            known.expect(sum_of(&straggler, &name), &name);
            unknown += known.unknown;
        }
    }
    // A caller has one addition on its way: what it asks later did not leave, or goes elsewhere.
    assert!(unknown <= 4 * CALLERS as i64, "{unknown} additions of which nobody knows");
}

/// Asks until it is told: the node is back, and who has its slots may not serve them for a moment.
fn sum_of(client: &Client, name: &str) -> i64 {
    let begun = Instant::now();
    loop {
        match client.command("GET").arg(name).query::<String>().wait() {
            Ok(sum) => return sum.parse().unwrap(),
            Err(Error::Server(refusal)) => assert!(begun.elapsed() < PATIENCE, "{name}: {refusal}"),
            Err(error) => panic!("{name}: {error}"),
        }
        std::thread::yield_now();
    }
}

fn place_of(three: &Three) -> String {
    format!("127.0.0.1:{}", three.node(0).port + 1)
}

#[test]
fn callers_of_the_library_leave_a_node_that_stands_still() {
    let three = Three::new();
    three.await_whole();
    let client = Client::options().timeout(PATIENCE).open(&place_of(&three)).unwrap();
    stop_under(&three, 2, || {
        let client = client.clone();
        Box::new(move |way, key| Told::of(library::add(&client, way, key), key))
    });
}

/// A line with a key is answered by a line with the sum after one more.
struct Sums;

impl Handler for Sums {
    type Connection = ();
    type Request = String;

    fn connected(&mut self) {}

    fn read(&mut self, _connection: &mut (), bytes: &[u8], turn: &mut Turn<'_>) -> Taken<String> {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return Taken::Incomplete };
        turn.ask(Ask::command("INCR").arg(&bytes[..end]).timeout(PATIENCE));
        Taken::Asked { bytes: end + 1, request: String::new() }
    }

    fn reply(&mut self, answer: &mut String, _ask: usize, reply: Result<Reply, Error>) {
        *answer = match reply {
            Ok(Reply::Int(sum)) => sum.to_string(),
            Err(Error::Unknown { .. }) => "unknown".to_owned(),
            Err(Error::Server(_)) => "refused".to_owned(),
            other => format!("{other:?}"),
        };
    }

    fn complete(&mut self, answer: &mut String, turn: &mut Turn<'_>) {
        turn.answer().extend_from_slice(format!("{answer}\n").as_bytes());
    }

    fn refuse(&mut self, refusal: Refusal, answer: &mut Vec<u8>) {
        answer.extend_from_slice(format!("{refusal}\n").as_bytes());
    }
}

#[test]
fn callers_of_what_is_built_on_serve_leave_a_node_that_stands_still() {
    let three = Three::new();
    three.await_whole();
    let server = Options::new(&place_of(&three)).unwrap().cores(2).start("127.0.0.1:0", |_core| Sums).unwrap();
    stop_under(&three, 1, || {
        let mut stream = BufReader::new(TcpStream::connect(server.address()).unwrap());
        stream.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        Box::new(move |_, key| {
            stream.get_mut().write_all(format!("{key}\n").as_bytes()).unwrap();
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            match line.trim_end() {
                "unknown" => Told::Unknown,
                "refused" => Told::Refused,
                sum => Told::Sum(sum.parse().unwrap_or_else(|_| panic!("{key}: {line}"))),
            }
        })
    });
}

#[test]
fn callers_of_the_proxy_leave_a_node_that_stands_still() {
    let three = Three::new();
    three.await_whole();
    let proxy = Server::start(&["proxy", &place_of(&three), "--port", "0"]);
    let connect = || {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        BufReader::new(stream)
    };
    stop_under(&three, 2, || {
        let mut stream = connect();
        Box::new(move |_, key| {
            stream.get_mut().write_all(format!("INCR {key}\r\n").as_bytes()).unwrap();
            let mut line = String::new();
            // Whose addition nobody knows of is closed, as by a direct connection that is lost.
            if stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                return match line.trim_end().strip_prefix(':') {
                    Some(sum) => Told::Sum(sum.parse().unwrap()),
                    None => {
                        assert!(line.starts_with('-'), "{key}: {line}");
                        Told::Refused
                    }
                };
            }
            stream = connect();
            Told::Unknown
        })
    });
}
