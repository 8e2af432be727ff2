//! The admin port as collectors, probes and hostile clients meet it.

mod reader;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use ports::PortBlock;
use rustix::process::Signal;

use crate::connection::Client;
use crate::process::{PATIENCE, Scratch, Server, run};
use reader::{Family, read};

/// `host:port` of the admin port, from the line that says it.
fn address(said: &str) -> String {
    let (_, rest) = said.split_once("http://").expect("it says where the admin port is");
    rest.split_once("/metrics").unwrap().0.to_owned()
}

/// An HTTP answer: status, head, body.
fn get(address: &str, path: &str, headers: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("a whole head");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length = format!("\r\nContent-Length: {}", body.len());
    assert!(head.contains(&length), "the body is whole: {head}");
    (status, head.to_owned(), body.to_owned())
}

/// The rows of docs/metrics.md: name of the lines, kind, labels, field of INFO.
fn page() -> Vec<(String, String, Vec<String>, Option<String>)> {
    let page = include_str!("../../../../docs/metrics.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let words = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    rows.map(|row| {
        let cells: Vec<&str> = row.split(" | ").collect();
        let (name, kind) = (words(cells[0]).remove(0), cells[1].to_owned());
        (name, kind, words(cells[2]), words(cells[cells.len() - 1]).pop())
    })
    .collect()
}

impl Client {
    /// Fields of INFO that are numbers.
    fn info(&mut self) -> BTreeMap<String, f64> {
        let text = self.ask("INFO everything");
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
    }
}

fn scrape(address: &str) -> BTreeMap<String, Family> {
    let (status, head, body) = get(address, "/metrics", "");
    assert_eq!(status, 200);
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    read(&body, false)
}

#[test]
fn what_a_collector_reads_is_the_page_and_equals_info() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    let server = Server::serve(&["--dir", &data, "--cores", "2", "--admin-port", "0"]);
    let address = address(&server.said);
    let mut client = Client::new(server.port);
    for number in 0..20 {
        client.ask(&format!("SET key{number} value EX 1000"));
        client.ask(&format!("GET key{number}"));
        client.ask(&format!("GET none{number}"));
        client.ask(&format!("GET none{number}"));
    }
    assert!(client.ask("NONSENSE").starts_with("-ERR unknown command"));
    let before = client.info();
    let first = scrape(&address);
    let after = client.info();
    let page = page();
    assert!(page.len() > 80, "the page was found");
    assert_eq!(first.len(), page.len(), "every metric of the page, and no other");
    let mut compared = 0;
    for (name, kind, labels, info) in &page {
        let family = first.get(name).unwrap_or_else(|| panic!("{name} is not there"));
        assert_eq!(&family.kind, kind, "{name}");
        assert!(family.samples.keys().all(|sample| sample.iter().map(|(label, _)| label).eq(labels)), "{name}");
        assert!(!family.samples.is_empty() || may_be_empty(name), "{name} has no lines");
        // What the requests for INFO themselves take differs between them and the scrape.
        let Some(info) = info.as_ref().filter(|info| before.contains_key(*info) && *info != "used_memory") else {
            continue;
        };
        let (least, most) = (before[info].min(after[info]), before[info].max(after[info]));
        let sum: f64 = family.samples.values().sum();
        assert!((least..=most).contains(&sum), "{name} is {sum}, and {info} was {least} to {most}");
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
    let of = |name: &str, label: &str| {
        let samples = first[name].samples.iter();
        samples
            .filter(|(labels, _)| labels.iter().any(|(_, value)| value == label))
            .map(|(_, value)| *value)
            .sum::<f64>()
    };
    assert_eq!(of("zerohop_keys", "0"), 20.0);
    assert_eq!(of("zerohop_keys_expiring", "0"), 20.0);
    assert!(of("zerohop_execute_commands_total", "get") >= 60.0);
    assert_eq!(of("zerohop_reply_errors_total", "0") + of("zerohop_reply_errors_total", "1"), 1.0);
    assert_eq!(of("zerohop_execute_hits_total", "0") + of("zerohop_execute_hits_total", "1"), 20.0);

    client.ask("GET key1");
    let second = scrape(&address);
    for (name, family) in first.iter().filter(|(_, family)| family.kind == "counter") {
        for (labels, value) in &family.samples {
            let now = second[name].samples.get(labels).unwrap_or_else(|| panic!("{name} {labels:?} went away"));
            assert!(now >= value, "{name} {labels:?} fell from {value} to {now}");
        }
    }
    let requests =
        |scrape: &BTreeMap<String, Family>| scrape["zerohop_execute_requests_total"].samples.values().sum::<f64>();
    assert!(requests(&second) > requests(&first));
    let (_, head, body) =
        get(&address, "/metrics", "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.4\r\n");
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    let open = read(&body, true);
    assert!(open.keys().eq(second.keys()), "both formats have the same");
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
}

/// Lines that a node on its own, or one that has no reason, does not have.
fn may_be_empty(name: &str) -> bool {
    ["zerohop_cluster_", "zerohop_replicate_", "zerohop_commit_last_sync", "zerohop_backup_lease_end"]
        .iter()
        .any(|start| name.starts_with(start))
}

#[test]
fn a_node_that_works_says_so_and_a_taken_port_is_named() {
    let server = Server::up(&["--ephemeral", "--admin-port", "0"]);
    let address = address(&server.said);
    assert_eq!(get(&address, "/healthz", "").2, "ok\n");
    let (status, head, body) = get(&address, "/healthz", "Accept: application/json\r\n");
    assert!(head.contains("Content-Type: application/json"));
    assert_eq!((status, body.as_str()), (200, "{\"ok\":true,\"reasons\":[]}\n"));
    assert_eq!(get(&address, "/livez", "").0, 200);
    assert!(get(&address, "/", "").2.contains("href=\"/metrics\""));
    assert_eq!(get(&address, "/other", "").0, 404);

    let block = PortBlock::take().unwrap();
    let port = address.rsplit_once(':').unwrap().1;
    let first = block.first().to_string();
    for what in [&["serve"][..], &["up", "--ephemeral"]] {
        let refused = run(&[what, &["--port", &first, "--admin-port", port]].concat());
        assert_eq!(refused.code, 1, "{}", refused.output);
        let told = format!("cannot listen on 127.0.0.1:{port}: it is taken by zerohop (pid {})", server.process_id());
        assert!(refused.errors.contains(&told) && refused.errors.contains("with --admin-port"), "{}", refused.errors);
    }
    let own = run(&["serve", "--port", &first, "--admin-port", &first]);
    assert_eq!(own.code, 2);
    assert!(own.errors.contains("clients of this node connect to"), "{}", own.errors);
}

#[test]
fn what_the_page_shows_is_what_a_reader_gets() {
    let page = include_str!("../../../../docs/cli.md").split("### The admin port").nth(1).unwrap();
    let block = page.split("```console\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let server = Server::serve(&["--admin-port", "0"]);
    let address = address(&server.said);
    let mut client = Client::new(server.port);
    client.ask("SET k v");
    client.ask("GET k");
    let mut commands = 0;
    for piece in block.split("$ curl -s ").skip(1) {
        let (command, shown) = piece.split_once('\n').unwrap();
        let (request, prefix) = command.split_once(" | grep ^").unwrap_or((command, ""));
        let (header, url) = match request.strip_prefix("-H \"").and_then(|rest| rest.split_once("\" ")) {
            Some((header, url)) => (format!("{header}\r\n"), url),
            None => (String::new(), request),
        };
        let path = url.strip_prefix("http://127.0.0.1:9121").unwrap();
        let (_, _, body) = get(&address, path, &header);
        let lines: String = body.split_inclusive('\n').filter(|line| line.starts_with(prefix)).collect();
        assert_eq!(lines, shown, "{command}");
        commands += 1;
    }
    assert_eq!(commands, 5);
}

#[test]
fn half_requests_on_a_hundred_connections_harm_nobody() {
    let server = Server::serve(&["--admin-port", "0"]);
    let address = address(&server.said);
    let mut held: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for stream in &mut held {
        // Those that were ended already say so.
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: ").ok();
    }
    let mut client = Client::new(server.port);
    assert!(client.ask("SET k v").starts_with("+OK"));
    assert_eq!(get(&address, "/healthz", "").2, "ok\n");
    // The first one has been there longest.
    held[0].set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(held[0].read(&mut [0; 16]).unwrap_or(0), 0, "nobody keeps a place for ever");
    let ended = scrape(&address)["zerohop_admin_connections_ended_total"].samples.values().sum::<f64>();
    assert!(ended >= 84.0, "{ended}");
    let mut long = TcpStream::connect(&address).unwrap();
    long.set_read_timeout(Some(PATIENCE)).unwrap();
    long.write_all(format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(8 << 10)).as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(long).read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 431 "), "{line}");
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
}

/// Asks until the health is as wanted; what it says then.
fn await_health(address: &str, wanted: u16) -> String {
    let begun = Instant::now();
    loop {
        let (status, _, body) = get(address, "/healthz", "");
        if status == wanted {
            return body;
        }
        assert!(begun.elapsed() < PATIENCE, "{wanted} never came: {body}");
    }
}

#[test]
fn a_node_without_a_lease_says_so_until_it_has_one_again() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.at("1"), scratch.at("2"));
    let block = PortBlock::take().unwrap();
    let there = format!("127.0.0.1:{}", block.first());
    // Nobody is there to let it in.
    let token = "0123456789abcdef0123456789abcdef";
    let told = ["--dir", &two, "--machine", "m2", "--join", &there, "--token", token, "--admin-port", "0"];
    let stranger = Server::serve(&told);
    let said = await_health(&address(&stranger.said), 503);
    assert!(
        said.contains("core 0 has no table of the cluster yet") && said.contains("has let this one in yet"),
        "{said}"
    );
    stranger.kill();

    let told = ["--dir", &one, "--machine", "m1", "--cluster", "new", "--lease-ms", "2000", "--admin-port", "0"];
    let first = Server::serve_on(block, &told);
    let token = first.said.split_once("--token ").unwrap().1.split_whitespace().next().unwrap().to_owned();
    assert_eq!(await_health(&address(&first.said), 200), "ok\n");
    let told = ["--dir", &two, "--machine", "m2", "--join", &there, "--token", &token, "--admin-port", "0"];
    let second = Server::serve(&told);
    let address = address(&second.said);
    assert_eq!(await_health(&address, 200), "ok\n");
    // A node serves as soon as it has a table and a lease; who leads its manager may hear a moment later.
    let begun = Instant::now();
    let numbers = loop {
        let numbers = scrape(&address);
        if !numbers["zerohop_cluster_leader_node"].samples.is_empty() {
            break numbers;
        }
        assert!(begun.elapsed() < PATIENCE, "nobody leads");
    };
    let value = |name: &str| numbers[name].samples.values().sum::<f64>();
    assert_eq!((value("zerohop_cluster_node"), value("zerohop_cluster_lease")), (2.0, 1.0));
    assert_eq!((value("zerohop_cluster_leads"), value("zerohop_cluster_leader_node")), (0.0, 1.0));
    assert_eq!(value("zerohop_cluster_nodes"), 2.0);
    // Only the first one votes: without it there are no leases.
    let block = first.kill_for_another().unwrap();
    let said = await_health(&address, 503);
    assert!(said.contains("core 0 has no lease"), "{said}");
    assert_eq!(get(&address, "/livez", "").0, 200, "all of it still runs");
    assert_eq!(scrape(&address)["zerohop_cluster_lease"].samples.values().sum::<f64>(), 0.0);
    let _first = Server::serve_on(block, &["--dir", &one]);
    assert_eq!(await_health(&address, 200), "ok\n");
}

#[test]
fn nodes_of_one_up_have_admin_ports_of_their_own() {
    let scratch = Scratch::new();
    let (block, admin) = (PortBlock::take().unwrap(), PortBlock::take().unwrap());
    let (first, port) = (admin.first(), block.first().to_string());
    let up = |directory: &str| {
        ["up", "--nodes", "2", "--port", &port, "--dir", directory, "--admin-port", &first.to_string()]
            .map(str::to_owned)
    };
    // Somebody has the second one's: it is an error that says so, and nothing is left running.
    let taken = TcpListener::bind(("127.0.0.1", first + 1)).unwrap();
    let told = up(&scratch.at("first"));
    let refused = run(&told.each_ref().map(String::as_str));
    assert_eq!(refused.code, 1);
    let text = format!("cannot listen on 127.0.0.1:{}: it is taken", first + 1);
    assert!(refused.errors.contains(&text), "{}", refused.errors);
    drop(taken);
    let told = up(&scratch.at("second"));
    let up = Server::start(&told.each_ref().map(String::as_str));
    for port in [first, first + 1] {
        let address = format!("127.0.0.1:{port}");
        assert!(up.said.contains(&format!("http://{address}/metrics and /healthz")), "{}", up.said);
        assert_eq!(await_health(&address, 200), "ok\n");
    }
    assert_eq!(up.stop(Signal::TERM).0, Some(0));
}
