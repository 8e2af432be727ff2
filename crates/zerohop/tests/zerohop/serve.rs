//! A handler on real reactors, io_uring where there is one and epoll, before a server that does what a test wants.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::client::puppet::Puppet;
use zerohop::client::{Error, Reply};
use zerohop::serve::{Ask, Handler, Options, Refusal, Server, Taken, Turn};

/// A line of keys is answered by a line of their values; `key=value` sets one.
struct Lines;

impl Handler for Lines {
    type Connection = ();
    type Request = Vec<String>;

    fn connected(&mut self) {}

    fn read(&mut self, _connection: &mut (), bytes: &[u8], turn: &mut Turn<'_>) -> Taken<Vec<String>> {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return Taken::Incomplete };
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        for word in text.split(' ') {
            turn.ask(match word.split_once('=') {
                Some((key, value)) => Ask::set(key, value),
                None => Ask::get(word),
            });
        }
        Taken::Asked { bytes: end + 1, request: vec![String::new(); text.split(' ').count()] }
    }

    fn reply(&mut self, results: &mut Vec<String>, ask: usize, reply: Result<Reply, Error>) {
        results[ask] = match reply {
            Ok(Reply::BulkString(value)) => String::from_utf8_lossy(&value).into_owned(),
            other => format!("{other:?}"),
        };
    }

    fn complete(&mut self, results: &mut Vec<String>, turn: &mut Turn<'_>) {
        turn.answer().extend_from_slice(format!("{}\n", results.join(" ")).as_bytes());
    }

    fn refuse(&mut self, refusal: Refusal, answer: &mut Vec<u8>) {
        answer.extend_from_slice(format!("{refusal}\n").as_bytes());
    }
}

fn start(puppet: &Puppet, is_epoll: bool) -> Server {
    let options = Options::new(&puppet.address).unwrap().cores(2);
    let options = if is_epoll { options.epoll() } else { options };
    options.start("127.0.0.1:0", |_core| Lines).unwrap()
}

fn connect(server: &Server) -> BufReader<TcpStream> {
    BufReader::new(TcpStream::connect(server.address()).unwrap())
}

fn say(client: &mut BufReader<TcpStream>, text: &str) {
    client.get_mut().write_all(text.as_bytes()).unwrap();
}

fn line(client: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    line
}

/// Requests of a client at the same time, and asks of each: more bytes than are received at once.
const PIPELINE: usize = 10;
const WIDTH: usize = 300;

fn ask(number: usize) -> String {
    format!("{}\n", vec![format!("k{number}"); WIDTH].join(" "))
}

#[test]
fn answers_are_each_connections_own_on_both_reactors() {
    for is_epoll in [false, true] {
        let puppet = Puppet::new();
        let server = start(&puppet, is_epoll);
        assert!(!is_epoll || server.backend() == "epoll");
        let mut clients: Vec<BufReader<TcpStream>> = (0..20).map(|_| connect(&server)).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            say(client, &format!("k{number}={number}\n"));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(line(client), "Ok(Okay)\n");
            say(client, &ask(number).repeat(PIPELINE));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let mut left = PIPELINE;
            while left > 0 {
                let answer = line(client);
                if answer == format!("{}\n", Refusal::Busy) {
                    // By a store that this machine has no time for.
                    say(client, &ask(number));
                    continue;
                }
                assert_eq!(answer, format!("{}\n", vec![number.to_string(); WIDTH].join(" ")));
                left -= 1;
            }
        }
        server.handle().shut_down();
        server.wait().unwrap();
    }
}

/// What was asked before the end is answered before the threads end.
#[test]
fn a_server_ends_behind_its_last_answer() {
    for is_epoll in [false, true] {
        let puppet = Puppet::new();
        let server = start(&puppet, is_epoll);
        let mut client = connect(&server);
        puppet.hold();
        say(&mut client, "a b\n");
        puppet.saw("b");
        server.handle().shut_down();
        puppet.go_on();
        assert_eq!(line(&mut client), "Ok(Nil) Ok(Nil)\n");
        server.wait().unwrap();
        assert_eq!(line(&mut client), "");
    }
}

/// A connection that is lost with a write on its way, and what the store was asked since.
#[test]
fn a_write_that_was_on_its_way_is_unknown_and_not_sent_twice() {
    let puppet = Puppet::new();
    let server = start(&puppet, false);
    let mut client = connect(&server);
    puppet.cut_after(1);
    say(&mut client, "a=1\n");
    assert_eq!(line(&mut client), format!("Err(Unknown {{ address: {:?} }})\n", puppet.address));
    say(&mut client, "a\n");
    assert_eq!(line(&mut client), "1\n");
    assert_eq!(puppet.count("SET"), 1);
}

/// A store that does not know the server's password is asked again by the next request, and says so again.
#[test]
fn a_login_that_is_refused_is_every_keys_error() {
    let puppet = Puppet::new();
    let options = Options::new(&format!("redis://:word@{}", puppet.address)).unwrap();
    let server = options.start("127.0.0.1:0", |_core| Lines).unwrap();
    let mut client = connect(&server);
    for _ in 0..2 {
        say(&mut client, "a b\n");
        let answer = line(&mut client);
        assert_eq!(answer.matches("Err(Refused").count(), 2, "{answer}");
    }
    assert_eq!(puppet.count("GET"), 0);
}

#[test]
fn what_cannot_begin_is_said() {
    let nowhere = Options::new("redis://h/x").unwrap_err();
    assert!(matches!(nowhere, Error::Address { .. }));
    let options = Options::new("127.0.0.1:1").unwrap();
    let wrong = options.clone().start("nonsense", |_core| Lines).unwrap_err();
    assert!(matches!(wrong, Error::Address { .. }), "{wrong}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let wrong = options.start(&taken.local_addr().unwrap().to_string(), |_core| Lines).unwrap_err();
    assert!(matches!(wrong, Error::System(_)), "{wrong}");
}
