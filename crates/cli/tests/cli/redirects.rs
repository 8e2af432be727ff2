//! `zerohop cli -c` among nodes that lie (AT-21): it goes to members only, not for ever, and tells its password to nobody else.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::process::{Run, zerohop};

const PASSWORD: &str = "only-for-members";

/// A node that says what it is told to say: CLUSTER NODES has its own answers, everything else but AUTH the others. The last answer
/// of each is said again and again.
struct Liar {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

type Answers = Arc<Mutex<(VecDeque<String>, VecDeque<String>)>>;

impl Liar {
    fn on(listener: TcpListener, nodes: &[&str], replies: &[&str]) -> Liar {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let answers: Answers = Arc::new(Mutex::new((owned(nodes), owned(replies))));
        let (port, heard) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
        let hears = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answers, hears) = (Arc::clone(&answers), Arc::clone(&hears));
                thread::spawn(move || serve(stream, &answers, &hears));
            }
        });
        Liar { port, heard }
    }

    fn heard(&self, word: &str) -> usize {
        self.heard.lock().unwrap().iter().filter(|request| request.starts_with(word)).count()
    }
}

fn serve(stream: TcpStream, answers: &Answers, heard: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    while let Some(words) = request(&mut stream) {
        heard.lock().unwrap().push(words.clone());
        let mut answers = answers.lock().unwrap();
        let (nodes, replies) = &mut *answers;
        let reply = match words.split(' ').next().unwrap() {
            "AUTH" => "+OK\r\n".to_owned(),
            "CLUSTER" => {
                let text = next(nodes);
                format!("${}\r\n{text}\r\n", text.len())
            }
            _ => next(replies) + "\r\n",
        };
        if stream.get_mut().write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

fn next(answers: &mut VecDeque<String>) -> String {
    if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() }
}

/// The words of the next request, with spaces between them.
fn request(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let number = |stream: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        line.trim_end().get(1..)?.parse::<usize>().ok()
    };
    let count = number(stream)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut word = vec![0; number(stream)? + 2];
        stream.read_exact(&mut word).ok()?;
        words.push(String::from_utf8(word[..word.len() - 2].to_vec()).unwrap());
    }
    Some(words.join(" "))
}

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// As CLUSTER NODES has them.
fn listed(ports: &[u16]) -> String {
    ports.iter().map(|port| format!("id{port} 127.0.0.1:{port}@1 master - 0 0 1 connected\n")).collect()
}

fn moved(port: u16) -> String {
    format!("-MOVED 7 127.0.0.1:{port}")
}

fn get(port: u16, lines: Option<&str>) -> Run {
    let port = port.to_string();
    let mut words = vec!["cli", "-c", "-p", &port];
    words.extend(lines.is_none().then_some(["get", "k"]).into_iter().flatten());
    let mut command = zerohop(&words);
    command.env("REDISCLI_AUTH", PASSWORD);
    let Some(lines) = lines else { return command.output().unwrap().into() };
    let pipe = std::process::Stdio::piped;
    let mut child = command.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// Where nobody is to come: whoever does is noted before anything is said to them, and sent away.
struct Trap {
    port: u16,
    visits: Arc<AtomicUsize>,
}

impl Trap {
    fn new() -> Trap {
        let (listener, port) = listener();
        let visits = Arc::new(AtomicUsize::new(0));
        let noted = Arc::clone(&visits);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                noted.fetch_add(1, Ordering::SeqCst);
                drop(stream);
            }
        });
        Trap { port, visits }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

#[test]
fn a_member_is_followed_and_gets_the_password() {
    let ((first, here), (second, there)) = (listener(), listener());
    let first = Liar::on(first, &[&listed(&[here, there])], &[&moved(there)]);
    let second = Liar::on(second, &["nobody"], &["$1\r\nv"]);
    let run = get(here, None);
    assert_eq!((run.code, run.output.as_str()), (0, "v\n"), "{}", run.errors);
    assert_eq!(second.heard(&format!("AUTH {PASSWORD}")), 1);
    assert_eq!((second.heard("GET") + second.heard("get"), first.port), (1, here));
}

#[test]
fn who_is_no_member_is_not_even_connected_to() {
    let (trap, (first, here)) = (Trap::new(), listener());
    let first = Liar::on(first, &[&listed(&[here])], &[&moved(trap.port)]);
    let run = get(first.port, None);
    assert!(run.code == 1 && run.errors.contains("does not know as a member"), "{}{}", run.output, run.errors);
    assert_eq!(trap.visits(), 0);
    assert!(!format!("{}{}", run.output, run.errors).contains(PASSWORD));
}

/// A member that lies may say of anybody that it is a member: who was named is asked, and nobody else.
#[test]
fn what_a_member_says_of_members_does_not_count() {
    let (trap, (first, here), (second, there)) = (Trap::new(), listener(), listener());
    let first = Liar::on(first, &[&listed(&[here, there])], &[&moved(there)]);
    let second = Liar::on(second, &[&listed(&[here, there, trap.port])], &[&moved(trap.port)]);
    let run = get(first.port, None);
    assert!(run.code == 1 && run.errors.contains("does not know as a member"), "{}{}", run.output, run.errors);
    assert_eq!(trap.visits(), 0);
    assert_eq!(second.heard("CLUSTER"), 0);
}

/// Nowhere to go: it is an error as any other.
#[test]
fn what_is_no_redirect_is_shown() {
    let trap = Trap::new();
    let places = [format!("ASK 7 127.0.0.1:{}", trap.port), "MOVED 7 127.0.0.1:0".to_owned()];
    let wrong = ["MOVED", "MOVED 7", "MOVED 7 127.0.0.1", "MOVED 7 127.0.0.1:65536", "MOVED 7 127.0.0.1:-1"];
    for text in places.iter().map(String::as_str).chain(wrong) {
        let (first, here) = listener();
        Liar::on(first, &[&listed(&[here, trap.port])], &[&format!("-{text}")]);
        let run = get(here, None);
        assert_eq!((run.code, run.output.trim_end()), (1, text), "{}", run.errors);
    }
    assert_eq!(trap.visits(), 0);
}

#[test]
fn two_that_send_it_to_each_other_are_left_after_six_redirects() {
    let ((first, here), (second, there)) = (listener(), listener());
    let all = listed(&[here, there]);
    let (first, second) = (Liar::on(first, &[&all], &[&moved(there)]), Liar::on(second, &[&all], &[&moved(here)]));
    let run = get(here, None);
    assert!(run.code == 1 && run.errors.contains("redirected 6 times"), "{}{}", run.output, run.errors);
    assert_eq!((first.heard("get"), second.heard("get")), (4, 3), "six redirects are seven requests");
}

/// Who joined since is a member as well: the server that was named is asked again.
#[test]
fn who_joined_meanwhile_is_found() {
    let ((first, here), (second, there)) = (listener(), listener());
    let (before, after) = (listed(&[here]), listed(&[here, there]));
    let replies = [moved(here), "$1\r\na".to_owned(), moved(there)];
    let first = Liar::on(first, &[&before, &after], &[&replies[0], &replies[1], &replies[2]]);
    let _second = Liar::on(second, &["nobody"], &["$1\r\nb"]);
    let run = get(first.port, Some("get k\nget k\n"));
    assert_eq!((run.code, run.output.as_str()), (0, "a\nb\n"), "{}", run.errors);
    assert_eq!(first.heard("CLUSTER"), 2);
}
