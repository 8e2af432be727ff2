//! The example `http_fan_out` as a process of its own before real nodes: whole answers, parts that fail, and clients that are slow,
//! many at once, or wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};
use zerohop::Client;

use crate::cluster::Three;
use crate::process::{PATIENCE, Server, eventually};

/// The example, which Cargo builds beside these tests unless it is told to build or run some of them only.
fn example() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("examples/http_fan_out");
    assert!(path.exists(), "build it first: cargo build -p cli --example http_fan_out");
    path
}

/// The example before a store; ends with the test.
struct Web {
    child: Child,
    address: String,
    /// Kept, so that it can say more.
    _lines: BufReader<ChildStdout>,
}

impl Web {
    fn before(port: u16, cores: usize) -> Web {
        let mut command = Command::new(example());
        // Port 0 is any that nobody has; it is never given back while this test uses it.
        command.args([&format!("127.0.0.1:{port}"), "127.0.0.1:0", &cores.to_string()]);
        let mut child = command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let address = line.split_once("http://").unwrap().1.split_once('/').unwrap().0.to_owned();
        Web { child, address, _lines: lines }
    }

    fn connect(&self) -> Browser {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Browser { stream: BufReader::new(stream) }
    }

    /// Status and body of one request on a connection of its own.
    fn get(&self, target: &str) -> (u16, Value) {
        let mut browser = self.connect();
        browser.send(&format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        let answer = browser.answer();
        assert!(browser.has_ended());
        answer
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A connection of a client of HTTP.
struct Browser {
    stream: BufReader<TcpStream>,
}

impl Browser {
    fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The next answer: status and body.
    fn answer(&mut self) -> (u16, Value) {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let begin = head.len();
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "it ended within {head:?}");
            if let Some(value) = head[begin..].strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap().parse().unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    fn has_ended(&mut self) -> bool {
        self.stream.read_to_end(&mut Vec::new()).unwrap() == 0
    }
}

fn request(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")
}

#[test]
fn keys_are_fetched_and_missing_ones_are_null() {
    let node = Server::serve(&["--cores", "2"]);
    node.ask(&["SET", "a", "1"]);
    node.ask(&["SET", "b c", "\"two\""]);
    node.ask(&["RPUSH", "list", "x"]);
    let web = Web::before(node.port, 2);
    let (status, body) = web.get("/keys?k=a&k=b+c&k=none&k=list&k=%61");
    let wrong = body["keys"][3]["error"].as_str().unwrap().to_owned();
    assert!(wrong.contains("WRONGTYPE"), "{wrong}");
    let expected = json!({ "keys": [
        { "key": "a", "value": "1" },
        { "key": "b c", "value": "\"two\"" },
        { "key": "none", "value": null },
        { "key": "list", "error": wrong },
        { "key": "a", "value": "1" },
    ]});
    assert_eq!((status, body), (200, expected));
    // Bytes that are no text.
    let client = Client::open(&format!("127.0.0.1:{}", node.port)).unwrap();
    client.set("bytes", vec![0u8, 255]).wait().unwrap();
    assert_eq!(web.get("/keys?k=bytes").1["keys"][0], json!({ "key": "bytes", "hex": "00ff" }));
}

/// Requests that come in pieces, many at once and half, on the same thread.
#[test]
fn slow_clients_and_pipelines_do_not_disturb_each_other() {
    let node = Server::serve(&[]);
    node.ask(&["SET", "a", "1"]);
    let web = Web::before(node.port, 1);
    let (mut half, mut many) = (web.connect(), web.connect());
    let text = request("/keys?k=a&k=half");
    let (first, rest) = text.split_at(17);
    half.send(first);
    let count = 300;
    many.send(&(0..count).map(|number| request(&format!("/keys?k=a&k={number}"))).collect::<String>());
    for number in 0..count {
        let (status, body) = many.answer();
        assert_eq!((status, &body["keys"][1]["key"]), (200, &json!(number.to_string())));
    }
    for byte in rest.chars() {
        half.send(&byte.to_string());
    }
    assert_eq!(half.answer().1["keys"][0]["value"], json!("1"));
    // The half of a request, and no more: the others go on.
    half.send(first);
    many.send(&request("/keys?k=a"));
    assert_eq!(many.answer().0, 200);
}

#[test]
fn what_is_wrong_is_said_with_its_status() {
    let node = Server::serve(&[]);
    let web = Web::before(node.port, 1);
    let mut browser = web.connect();
    let keys = |count: usize| format!("/keys?{}", "k=a&".repeat(count));
    // The connection goes on behind these.
    for (text, status) in [
        (request("/keys"), 400),
        (request("/keys?k=%zz"), 400),
        (request("/keys?k=%ff"), 400),
        (request(&keys(1001)), 400),
        (request("/other"), 404),
        (request(&keys(1000)), 200),
    ] {
        browser.send(&text);
        let (said, body) = browser.answer();
        assert_eq!(said, status, "{text:.40}");
        assert!(said == 200 || body["error"].is_string());
    }
    // And ends behind these.
    let long = "x".repeat(20_000);
    for (text, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("DELETE /keys?k=a HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 405),
        ("GET /keys?k=a HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET /keys?k=a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde".to_owned(), 400),
        ("GET /keys?k=a HTTP/1.0\r\n\r\n".to_owned(), 200),
        (format!("GET /keys?k={long}"), 431),
        (format!("GET /keys HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65)), 431),
    ] {
        let mut browser = web.connect();
        browser.send(&text);
        assert_eq!(browser.answer().0, status, "{text:.40}");
        // What it had not read may make the system end the connection at once.
        assert!(browser.stream.read_to_end(&mut Vec::new()).is_ok_and(|rest| rest == 0) || long.len() < text.len());
    }
}

/// The only node is killed, and comes back at its place.
#[test]
fn a_store_that_is_killed_fails_key_by_key() {
    let node = Server::serve(&[]);
    let port = node.port;
    let web = Web::before(port, 1);
    let mut browser = web.connect();
    browser.send(&request("/keys?k=a"));
    assert_eq!(browser.answer().0, 200);
    let block = node.kill_for_another().unwrap();
    browser.send(&request("/keys?k=a&k=b"));
    let (status, body) = browser.answer();
    assert_eq!(status, 502, "{body}");
    for (number, key) in ["a", "b"].into_iter().enumerate() {
        let told = &body["keys"][number];
        assert!(told["key"] == key && told["error"].as_str().is_some_and(|text| text.contains("127.0.0.1")), "{body}");
    }
    let node = Server::serve_on(block, &[]);
    eventually("an answer of the node that came back", || web.get("/keys?k=a").0 == 200);
    assert_eq!(node.stop(Signal::TERM).0, Some(0));
}

/// Of three nodes one is killed. What the others have is answered all the time; its keys are errors, and then come back.
#[test]
fn a_cluster_that_loses_a_node_answers_in_part() {
    let mut three = Three::new();
    three.await_whole();
    let port = three.node(0).port + 1;
    let client = Client::open(&format!("127.0.0.1:{port}")).unwrap();
    let keys: Vec<String> = (0..30).map(|number| format!("key:{number}")).collect();
    for key in &keys {
        client.set(key, format!("value of {key}")).wait().unwrap();
    }
    let web = Web::before(port, 1);
    let target = format!("/keys?{}", keys.iter().map(|key| format!("k={key}&")).collect::<String>());
    // How many were found; none is taken for missing, and no value is another's.
    let found = || {
        let (status, body) = web.get(&target);
        let told = body["keys"].as_array().unwrap();
        assert!((status == 200 || status == 502) && told.len() == keys.len(), "{body}");
        for (one, key) in told.iter().zip(&keys) {
            assert_eq!(&one["key"], key);
            assert!(one["error"].is_string() || one["value"] == format!("value of {key}"), "{one}");
        }
        told.iter().filter(|one| one["value"].is_string()).count()
    };
    assert_eq!(found(), keys.len());
    three.take(1).kill();
    let begun = Instant::now();
    let mut counts = Vec::new();
    while counts.last() != Some(&keys.len()) || !counts.iter().any(|&count| count < keys.len()) {
        assert!(begun.elapsed() < PATIENCE, "{counts:?}");
        counts.push(found());
    }
    let in_part = counts.iter().filter(|&&count| (1..keys.len()).contains(&count)).count();
    assert!(in_part > 0, "{counts:?}");
}
