//! SIGUSR2: the binary of a proxy was replaced, and a new process takes over while clients work. Nobody's connection ends.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use io::handover::Bridge;
use ports::PortBlock;
use rustix::process::{Pid, Signal, kill_process};

use crate::process::{PATIENCE, Scratch, Server, eventually, zerohop};

const BINARY: &str = env!("CARGO_BIN_EXE_zerohop");

/// A proxy and those that take over from it, whose words all come on one pipe.
struct Generations {
    scratch: Scratch,
    first: Child,
    lines: BufReader<ChildStdout>,
    processes: Vec<u32>,
    port: u16,
}

impl Generations {
    fn start(arguments: &[&str], manager: Option<&str>) -> Generations {
        let scratch = Scratch::new();
        put_binary(&scratch);
        let mut command = Command::new(scratch.at("zerohop"));
        command.env_clear().args(arguments).envs(manager.map(|place| ("NOTIFY_SOCKET", place)));
        let mut first = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(first.stdout.take().unwrap());
        let processes = vec![first.id()];
        let mut generations = Generations { scratch, first, lines, processes, port: 0 };
        let ready = generations.line_with(&["ready on 127.0.0.1:"]);
        let port = ready[0].split_once("ready on 127.0.0.1:").unwrap().1;
        generations.port = port.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        generations
    }

    /// Reads until each of these was said, in whatever order; those lines.
    fn line_with(&mut self, words: &[&str]) -> Vec<String> {
        let mut found = vec![String::new(); words.len()];
        while found.iter().any(String::is_empty) {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "they all ended before {words:?} was said");
            if let Some(number) = words.iter().position(|words| line.contains(words)) {
                found[number] = line;
            }
        }
        found
    }

    fn signal(&self) {
        let newest = Pid::from_raw(*self.processes.last().unwrap() as i32).unwrap();
        kill_process(newest, Signal::USR2).unwrap();
    }

    /// The binary is replaced, and a process of the new one takes over.
    fn upgrade(&mut self) {
        put_binary(&self.scratch);
        self.signal();
        let said = self.line_with(&["has taken over", "ready on "]);
        let process = said[0].split("process ").nth(1).unwrap().split(',').next().unwrap();
        self.processes.push(process.parse().unwrap());
    }

    /// What is said where nobody takes over.
    fn refused(&mut self) -> String {
        self.signal();
        self.line_with(&["everything stays as it was"]).remove(0)
    }

    fn connect(&self) -> Line {
        Line::to(self.port)
    }
}

impl Drop for Generations {
    fn drop(&mut self) {
        // Those that are gone are gone.
        for &process in &self.processes[1..] {
            if !is_gone(process) {
                kill_process(Pid::from_raw(process as i32).unwrap(), Signal::KILL).ok();
            }
        }
        self.first.kill().ok();
        self.first.wait().ok();
    }
}

/// A new file in the place of the old one, as a package does it.
fn put_binary(scratch: &Scratch) {
    let new = scratch.at("zerohop.new");
    // A link has nobody who still writes to it when it is started.
    symlink(BINARY, &new).unwrap();
    fs::rename(new, scratch.at("zerohop")).unwrap();
}

/// Whether a process has ended, whoever is to be told so.
fn is_gone(process: u32) -> bool {
    match fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'),
        Err(_) => true,
    }
}

struct Line(TcpStream, BufReader<TcpStream>);

impl Line {
    fn to(port: u16) -> Line {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("no connect is ever refused");
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Line(stream.try_clone().unwrap(), BufReader::new(stream))
    }

    fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.1.read_line(&mut line).unwrap() > 0, "the connection was closed");
        line.trim_end().to_owned()
    }

    fn ask(&mut self, text: &str) -> String {
        self.say(&format!("{text}\r\n"));
        self.line()
    }
}

/// Asks for one more as long as it may, `ahead` at a time; how many there are.
fn count_up(port: u16, key: &str, ahead: u64, counted: &AtomicU64, is_over: &AtomicBool) {
    let mut line = Line::to(port);
    let request = format!("*2\r\n$4\r\nINCR\r\n${}\r\n{key}\r\n", key.len()).repeat(ahead as usize);
    while !is_over.load(Ordering::Relaxed) {
        line.say(&request);
        for _ in 0..ahead {
            let number = counted.load(Ordering::Relaxed) + 1;
            assert_eq!(line.line(), format!(":{number}"), "each is carried out once");
            counted.store(number, Ordering::Relaxed);
        }
    }
}

/// Whoever works stops with this, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the admin port answers.
fn health(port: u16) -> String {
    let mut collector = TcpStream::connect(("127.0.0.1", port)).unwrap();
    collector.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    collector.read_to_string(&mut answer).unwrap();
    answer
}

/// Waits until each of these counted on by 50.
fn progress<'a>(counters: impl Iterator<Item = &'a AtomicU64> + Clone) {
    let now = || counters.clone().map(|counter| counter.load(Ordering::Relaxed));
    let before: Vec<u64> = now().collect();
    eventually("progress of everybody", || now().zip(&before).all(|(now, before)| now > before + 50));
}

#[test]
fn three_upgrades_in_a_row_and_nobody_notices() {
    const COUNTERS: usize = 12;
    for io in ["epoll", "auto"] {
        let (store, block) = (Server::serve(&[]), PortBlock::take().unwrap());
        let (address, admin) = (format!("127.0.0.1:{}", store.port), block.first());
        let arguments = ["proxy", &address, "--port", "0", "--cores", "2", "--io", io, "--admin-port"];
        let mut proxy = Generations::start(&[&arguments[..], &[&admin.to_string()]].concat(), None);

        let [mut held, mut blocked, mut relayed, mut half, mut named] = [(); 5].map(|()| proxy.connect());
        assert_eq!([held.ask("MULTI"), held.ask("INCR held")], ["+OK", "+QUEUED"]);
        blocked.say("BLPOP list 0\r\n");
        assert_eq!(relayed.ask("CLIENT REPLY ON"), "+OK");
        assert_eq!(half.ask("PING"), "+PONG");
        half.say("*2\r\n$4\r\nECHO\r\n$4\r\nha");
        assert_eq!([named.ask("SELECT 3"), named.ask("CLIENT SETNAME worker"), named.ask("ZH.QOS 5ms")], ["+OK"; 3]);

        let counted: Vec<AtomicU64> = (0..COUNTERS).map(|_| AtomicU64::new(0)).collect();
        let (connected, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            for (number, counted) in counted.iter().enumerate() {
                let (port, is_over) = (proxy.port, &is_over);
                let ahead = if number % 3 == 0 { 50 } else { 1 };
                scope.spawn(move || count_up(port, &format!("key{number}"), ahead, counted, is_over));
            }
            let (port, connected, is_over) = (proxy.port, &connected, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(Line::to(port).ask("PING"), "+PONG");
                    connected.fetch_add(1, Ordering::Relaxed);
                }
            });
            let over = Over(is_over);
            for _ in 0..3 {
                proxy.upgrade();
                progress(counted.iter().chain([connected]));
            }
            drop(over);
        });
        for (number, counted) in counted.iter().enumerate() {
            let stored = store.ask(&["get", &format!("key{number}")]);
            assert_eq!(stored, counted.load(Ordering::Relaxed).to_string());
        }

        // Those that could not go are where they were, until they can.
        assert!(proxy.first.try_wait().unwrap().is_none(), "its clients are there");
        assert_eq!([held.ask("INCR held"), held.ask("EXEC"), held.line(), held.line()], ["+QUEUED", "*2", ":1", ":2"]);
        assert_eq!(proxy.connect().ask("RPUSH list a"), ":1");
        assert_eq!([0; 5].map(|_| blocked.line()), ["*2", "$4", "list", "$1", "a"]);
        half.say("lf\r\n");
        assert_eq!([half.line(), half.line()], ["$4", "half"]);
        assert_eq!([named.ask("CLIENT GETNAME"), named.line()], ["$6", "worker"]);
        assert_eq!(named.ask("SET where three"), "+OK");
        assert_eq!(store.ask(&["-n", "3", "get", "where"]), "three");
        assert_eq!(relayed.ask("PING"), "+PONG");
        drop(relayed);
        assert_eq!(proxy.first.wait().unwrap().code(), Some(0), "its last client has left");
        for process in proxy.processes[1..3].iter().copied() {
            eventually("the end of a process that nobody needs", || is_gone(process));
        }
        for line in [&mut held, &mut blocked, &mut half, &mut named] {
            assert_eq!(line.ask("PING"), "+PONG");
        }
        let answer = health(admin);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

#[test]
fn one_that_does_not_start_changes_nothing_and_whoever_watches_is_told_of_the_one_that_does() {
    let (store, scratch, block) = (Server::serve(&[]), Scratch::new(), PortBlock::take().unwrap());
    let (path, place) = (scratch.at("proxy.toml"), scratch.at("manager"));
    let manager = UnixDatagram::bind(&place).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = || {
        let mut bytes = [0; 100];
        let count = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    };
    let write = |more: &str| {
        let listener = format!("[[listener]]\naddress = \"127.0.0.1:{}\"\n", block.first());
        fs::write(&path, format!("upstream = [\"127.0.0.1:{}\"]\n{more}\n{listener}", store.port)).unwrap();
    };
    write("cores = 1");
    let mut proxy = Generations::start(&["proxy", "--config", &path], Some(&place));
    assert_eq!(told(), "READY=1");
    let mut line = proxy.connect();
    assert_eq!(line.ask("SET a 1"), "+OK");

    write("coers = 2");
    let said = proxy.refused();
    assert!(said.contains(&path) && said.contains("TOML parse error at line 2"), "{said}");
    assert_eq!([line.ask("INCR a"), proxy.connect().ask("INCR a")], [":2", ":3"]);

    write("cores = 2");
    let program = proxy.scratch.at("zerohop");
    fs::remove_file(&program).unwrap();
    let said = proxy.refused();
    assert!(said.contains(&program) && said.contains("No such file"), "{said}");
    symlink("/bin/false", &program).unwrap();
    let said = proxy.refused();
    assert!(said.contains("ended before it was ready"), "{said}");
    assert_eq!([line.ask("INCR a"), proxy.connect().ask("INCR a")], [":4", ":5"]);

    fs::remove_file(&program).unwrap();
    proxy.upgrade();
    assert_eq!(told(), format!("MAINPID={}", proxy.processes[1]));
    assert_eq!(proxy.first.wait().unwrap().code(), Some(0));
    assert_eq!([line.ask("INCR a"), proxy.connect().ask("INCR a")], [":6", ":7"]);
}

#[test]
fn users_of_the_proxys_own_stay_who_they_are_and_the_stores_new_password_is_read() {
    let (scratch, block) = (Scratch::new(), PortBlock::take().unwrap());
    let [path, users, password] = ["proxy.toml", "users.acl", "password"].map(|name| scratch.at(name));
    fs::write(&password, "geheim\n").unwrap();
    let store = Server::serve(&["--requirepass-file", &password]);
    let own = format!("aclfile = \"{users}\"\n[upstream-login]\npassword-file = \"{password}\"");
    let listener = format!("[[listener]]\naddress = \"127.0.0.1:{}\"\n", block.first());
    fs::write(&path, format!("upstream = [\"127.0.0.1:{}\"]\n{own}\n{listener}", store.port)).unwrap();
    let of_ann = "user default off\nuser ann on >pw ~a +@all\n";
    fs::write(&users, format!("{of_ann}user bob on >pw ~* +@all\n")).unwrap();
    let mut proxy = Generations::start(&["proxy", "--config", &path], None);
    let [mut ann, mut bob, mut nobody] = [proxy.connect(), proxy.connect(), proxy.connect()];
    assert_eq!([ann.ask("AUTH ann pw"), bob.ask("AUTH bob pw"), ann.ask("SET a 1")], ["+OK", "+OK", "+OK"]);
    let no_login = "-NOAUTH Authentication required.";
    assert_eq!(nobody.ask("GET a"), no_login);

    let mut operator = Line::to(store.port);
    assert_eq!([operator.ask("AUTH geheim"), operator.ask("CONFIG SET requirepass anew")], ["+OK", "+OK"]);
    fs::write(&password, "anew\n").unwrap();
    fs::write(&users, of_ann).unwrap();
    proxy.upgrade();
    assert_eq!(proxy.first.wait().unwrap().code(), Some(0));
    assert_eq!(ann.ask("INCR a"), ":2");
    assert_eq!([ann.ask("GET b"), nobody.ask("GET a")], ["-NOPERM No permissions to access a key", no_login]);
    assert_eq!([ann.ask("ACL WHOAMI"), ann.line()], ["$3", "ann"]);
    assert_eq!(bob.1.read(&mut [0]).unwrap_or(0), 0, "bob is gone");
}

#[test]
fn another_version_of_the_handover_is_refused_by_both_sides() {
    let (old, new) = Bridge::pair().unwrap();
    let mut child = zerohop(&["proxy", "127.0.0.1:1", "--port", "0"])
        .env("ZEROHOP_PROXY_TAKES_OVER", "1")
        .stdin(new.into_stdio())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    old.send(b"ZHUP\xff\0\0\0", None).unwrap();
    let answer = old.receive().unwrap().unwrap().bytes;
    assert!(String::from_utf8_lossy(&answer).starts_with("nothe running proxy hands over by version 255"));
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(errors.contains("version 255") && errors.contains("restart it instead"), "{errors}");
}
