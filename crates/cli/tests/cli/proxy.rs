//! `zerohop proxy` before a node: what a client sets it reads back, and what goes wrong is said.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use ports::PortBlock;
use rustix::process::Signal;

use crate::process::{Run, Scratch, Server, run};

fn before(store: &Server, more: &[&str]) -> Server {
    let address = format!("127.0.0.1:{}", store.port);
    Server::start(&[&["proxy", &address, "--port", "0"], more].concat())
}

#[test]
fn clients_are_served_through_it_on_both_backends() {
    let store = Server::serve(&[]);
    for io in ["epoll", "auto"] {
        let proxy = before(&store, &["--io", io, "--cores", "2"]);
        assert!(proxy.said.contains(&format!(", before 127.0.0.1:{}\n", store.port)), "{}", proxy.said);
        assert_eq!(proxy.ask(&["set", "through", io]), "OK");
        assert_eq!([store.ask(&["get", "through"]), proxy.ask(&["get", "through"])], [io, io]);
        assert_eq!(proxy.ask(&["zh.qos", "10ms"]), "OK");
        let refused = run(&["cli", "-p", &proxy.port.to_string(), "zh.qos", "soon"]);
        assert!(refused.code == 1 && refused.output.contains("500us, 10ms or 1s"), "{}", refused.output);
        assert_eq!(proxy.stop(Signal::TERM).0, Some(0));
    }
}

#[test]
fn a_store_that_is_gone_is_named_and_one_that_is_back_is_used() {
    let store = Server::serve(&[]);
    let proxy = before(&store, &[]);
    assert_eq!(proxy.ask(&["set", "a", "1"]), "OK");
    let address = format!("127.0.0.1:{}", store.port);
    let block = store.kill_for_another().unwrap();
    let port = proxy.port.to_string();
    let gone = run(&["cli", "-p", &port, "get", "a"]);
    assert!(
        gone.code == 1 && gone.output.contains(&address) && gone.output.contains("not carried out"),
        "{}",
        gone.output
    );
    let _store = Server::serve_on(block, &[]);
    // It dials again after a second at most.
    while run(&["cli", "-p", &port, "set", "a", "2"]).code != 0 {
        std::thread::yield_now();
    }
    assert_eq!(proxy.ask(&["get", "a"]), "2");
}

#[test]
fn of_writes_that_wait_only_the_newest_reaches_the_store() {
    const WRITERS: usize = 20;
    let store = Server::serve(&[]);
    let proxy = before(&store, &["--collapse", "doc:"]);
    // Until the proxy knows the store it takes nobody's writes.
    assert_eq!(proxy.ask(&["ping"]), "PONG");
    assert_eq!(store.ask(&["client", "pause", "600000", "write"]), "OK");
    let mut writers: Vec<Line> = (0..WRITERS).map(|_| Line::to(&format!("127.0.0.1:{}", proxy.port))).collect();
    for (number, writer) in writers.iter_mut().enumerate() {
        // The proxy answers the first one itself, in the moment in which it takes the second one.
        writer.0.write_all(format!("CLIENT GETNAME\r\nSET doc:1 {number}\r\n").as_bytes()).unwrap();
        assert_eq!(writer.line(), "$-1");
    }
    assert_eq!(store.ask(&["client", "unpause"]), "OK");
    assert!(writers.iter_mut().all(|writer| writer.line() == "+OK"));
    // Its version counts the writes of the slot.
    let value_and_version = store.ask(&["zh.get", "doc:1"]);
    let lines: Vec<&str> = value_and_version.lines().map(str::trim).collect();
    assert_eq!(lines, [(WRITERS - 1).to_string().as_str(), "2"], "the first one and the newest");
}

#[test]
fn the_store_lists_for_whom_connections_are_and_callers_read_of_themselves_what_they_would_directly() {
    let store = Server::serve(&[]);
    let proxy = before(&store, &[]);
    let mut caller = Line::to(&format!("127.0.0.1:{}", proxy.port));
    let (peer, local) = (caller.0.local_addr().unwrap(), caller.0.peer_addr().unwrap());
    caller.0.write_all(b"CLIENT SETNAME me\r\nCLIENT SETINFO LIB-NAME lines\r\nGET a\r\nCLIENT INFO\r\n").unwrap();
    assert_eq!([0; 3].map(|_| caller.line()), ["+OK", "+OK", "$-1"]);
    caller.line();
    let info = caller.line();
    assert!(info.contains(&format!(" addr={peer} laddr={local} ")) && info.contains(" name=me "), "{info}");
    assert!(info.contains(" cmd=client|info ") && info.contains(" lib-name=lines lib-ver="), "{info}");
    let list = store.ask(&["client", "list"]);
    let is_there = |label: &str| list.lines().any(|line| line.contains(&format!(" lib-name={label} lib-ver=")));
    assert!(is_there(&format!("zerohop-proxy({peer};lines)")), "{list}");
    assert!(is_there(&format!("zerohop-proxy(1-caller;{peer})")), "{list}");
    // In the list its own line is as in the list of who is connected directly; those of others are the store's.
    caller.0.write_all(b"CLIENT LIST\r\nPING\r\n").unwrap();
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line| line != "+PONG") {
        lines.push(caller.line());
    }
    let own = lines.iter().find(|line| line.contains("cmd=client|list")).unwrap();
    assert!(own.contains(&format!(" addr={peer} ")) && own.contains(" lib-name=lines "), "{own}");
    assert!(lines.iter().any(|line| line.contains(" lib-name=zerohop-proxy(1-caller;")), "{lines:?}");
}

/// A connection that stays, and speaks lines.
struct Line(TcpStream, BufReader<TcpStream>);

impl Line {
    fn to(address: &str) -> Line {
        let stream = TcpStream::connect(address).unwrap();
        Line(stream.try_clone().unwrap(), BufReader::new(stream))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What its class is called.
    fn class(&mut self) -> String {
        self.0.write_all(b"ZH.QOS\r\n").unwrap();
        let mut lines = Vec::new();
        for _ in 0..11 {
            lines.push(self.line());
        }
        lines.swap_remove(4)
    }
}

#[test]
fn a_file_says_who_is_in_which_class_and_is_read_again_while_callers_are_there() {
    let (store, scratch, block) = (Server::serve(&[]), Scratch::new(), PortBlock::take().unwrap());
    let (path, port) = (scratch.at("proxy.toml"), block.first());
    let write = |begin: &str, end: &str| {
        let text = format!(
            "upstream = [\"127.0.0.1:{}\"]\n{begin}\n[[listener]]\naddress = \"127.0.0.1:{port}\"\n{end}",
            store.port
        );
        fs::write(&path, text).unwrap();
    };
    write("cores = 2", "class = \"fast\"\n[classes]\nfast = { within = \"1ms\" }\n");
    let checked = run(&["proxy", "--config", &path, "--check"]);
    assert_eq!((checked.code, checked.output), (0, format!("{path} is fine\n")));
    let mut proxy = Server::start(&["proxy", "--config", &path]);
    assert_eq!(proxy.ask(&["set", "a", "1"]), "OK");
    let mut line = Line::to(&format!("127.0.0.1:{port}"));
    assert_eq!(line.class(), "1000us");

    write("cores = 2", "class = \"slow\"\n[classes]\nslow = { within = \"50ms\" }\n");
    let said = proxy.tell(Signal::HUP);
    assert_eq!(said, format!("SIGHUP: {path} was read again; changed: classes\n"));
    // Its core takes the order with its next tick, which may be the one of this request.
    while line.class() == "1000us" {}
    assert_eq!(line.class(), "50000us", "the connection is the same");
    assert!(proxy.tell(Signal::HUP).ends_with("nothing changed\n"));

    write("cores = 3", "");
    let said = proxy.tell(Signal::HUP);
    assert!(said.contains("everything stays as it was") && said.contains("cores cannot change"), "{said}");
    write("coers = 3", "");
    let said = proxy.tell(Signal::HUP);
    assert!(said.contains("everything stays as it was") && said.contains(&path), "{said}");
    assert_eq!(line.class(), "50000us");
    assert_eq!(proxy.ask(&["get", "a"]), "1");

    let checked = run(&["proxy", "--config", &path, "--check"]);
    assert!(checked.code == 2 && checked.errors.contains("unknown field `coers`"), "{}", checked.errors);
    let both = run(&["proxy", "127.0.0.1:1", "--config", &path]);
    assert!(both.code == 2 && both.errors.contains("--config"), "{}", both.errors);
    let missing = run(&["proxy", "--config", "/no/such/file"]);
    assert!(missing.code == 2 && missing.errors.contains("/no/such/file"), "{}", missing.errors);
}

#[test]
fn what_it_cannot_do_it_says_with_the_fix() {
    let wrong = run(&["proxy", "localhost"]);
    assert!(wrong.code == 2 && wrong.errors.contains("127.0.0.1:6379"), "{}", wrong.errors);
    let wrong = run(&["proxy", "127.0.0.1:6379", "--within", "soon"]);
    assert!(wrong.code == 2 && wrong.errors.contains("10ms"), "{}", wrong.errors);
    let store = Server::serve(&[]);
    let taken = run(&["proxy", "127.0.0.1:1", "--port", &store.port.to_string()]);
    assert!(taken.code == 1 && taken.errors.contains("--port"), "{}", taken.errors);
}

#[test]
fn it_is_tried_before_a_store_without_a_trace_and_both_ways_are_told() {
    let store = Server::serve(&[]);
    let url = format!("redis://127.0.0.1:{}", store.port);
    let Run { code, output, errors } = run(&["proxy", "--try", &url, "--json"]);
    assert_eq!(code, 0, "{output}{errors}");
    let tried: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert!(tried["ok"] == true && tried["store_process"].as_str().unwrap().contains("zerohop"), "{tried}");
    let [direct, proxied] = [0, 1].map(|way| &tried["ways"][way]);
    assert_eq!([&direct["way"], &proxied["way"]], ["directly", "through zerohop proxy"]);
    for way in [direct, proxied] {
        let latency = &way["latency"];
        let times = ["requests", "p50_us", "p99_us"].map(|key| latency[key].as_u64().unwrap());
        assert!(times.iter().all(|number| *number > 0) && way["store_cpu_us"].as_f64().unwrap() > 0.0, "{way}");
    }
    assert!(direct["proxy_cpu_us"].is_null() && proxied["proxy_cpu_us"].as_f64().unwrap() > 0.0, "{tried}");

    let Run { code, output, errors } = run(&["proxy", "--try", &url]);
    assert_eq!(code, 0, "{output}{errors}");
    let words = |begin: &str| {
        let row = output.lines().find(|line| line.starts_with(begin));
        row.unwrap_or_else(|| panic!("{begin:?} is not in {output}")).split_whitespace().count()
    };
    assert_eq!(["   ", "  directly ", "  through zerohop proxy "].map(words), [7, 9, 12], "{output}");
    assert!(output.contains("\nThe store is zerohop (pid "), "{output}");
    assert_eq!(store.ask(&["dbsize"]), "0");
    let asked = store.ask(&["info", "commandstats"]);
    let known = ["ping", "get", "command", "dbsize", "info", "cluster|nodes", "client|setinfo"]
        .map(|name| format!("cmdstat_{name}:"));
    let others: Vec<&str> = asked.lines().filter(|line| line.starts_with("cmdstat_")).collect();
    assert!(others.iter().all(|line| known.iter().any(|known| line.starts_with(known))), "{asked}");
    assert!(asked.contains("cmdstat_get:"), "{asked}");
    assert_eq!(field(&store.ask(&["info", "stats"]), "keyspace_hits"), "0");
}

/// The value of a line of INFO.
fn field<'a>(info: &'a str, name: &str) -> &'a str {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} is not in {info}")).trim()
}

#[test]
fn what_cannot_be_tried_is_said() {
    let block = PortBlock::take().unwrap();
    let address = format!("127.0.0.1:{}", block.first());
    let nobody = run(&["proxy", "--try", &address]);
    assert!(nobody.code == 1 && nobody.errors.contains(&format!("cannot reach {address}")), "{}", nobody.errors);
    for arguments in [["--try", "--port", "7"].as_slice(), &["--json"]] {
        let wrong = run(&[&["proxy", &address], arguments].concat());
        assert!(wrong.code == 2 && wrong.errors.contains("--try"), "{}", wrong.errors);
    }
}
