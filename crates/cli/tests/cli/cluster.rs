//! Three processes as one store: founded, joined, killed, come back.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use ports::PortBlock;
use rustix::process::Signal;

use crate::process::{PATIENCE, Scratch, Server, run};

const KEYS: usize = 100;
/// Of a machine that does much else: a node that is not heard of for so long is one that was killed.
const LEASE_MS: &str = "2000";

/// Three nodes that say they are on different machines.
pub struct Three {
    scratch: Scratch,
    token: String,
    /// Of each node.
    cores: [u16; 3],
    nodes: Vec<Option<Server>>,
}

impl Three {
    pub fn new() -> Three {
        Three::of_cores([1; 3])
    }

    /// With so many cores each.
    pub fn of_cores(cores: [u16; 3]) -> Three {
        let scratch = Scratch::new();
        let (directory, first_cores) = (scratch.at("0"), cores[0].to_string());
        let first = ["--dir", &directory, "--machine", "m0", "--cluster", "new", "--lease-ms", LEASE_MS];
        let first = Server::serve(&[&first[..], &["--cores", &first_cores]].concat());
        let token = first.said.split_once("--token ").unwrap().1.split_whitespace().next().unwrap().to_owned();
        let mut three = Three { scratch, token, cores, nodes: vec![Some(first), None, None] };
        for number in 1..3 {
            let address = format!("127.0.0.1:{}", three.node(0).port);
            let (directory, machine) = (three.scratch.at(&number.to_string()), format!("m{number}"));
            let cores = cores[number].to_string();
            let told = ["--dir", &directory, "--machine", &machine, "--join", &address, "--token", &three.token];
            three.nodes[number] = Some(Server::serve(&[&told[..], &["--cores", &cores]].concat()));
        }
        three
    }

    /// Nodes that came to be one store some other way.
    pub fn of_nodes(scratch: Scratch, cores: [u16; 3], nodes: [Server; 3]) -> Three {
        Three { scratch, token: String::new(), cores, nodes: nodes.map(Some).into() }
    }

    /// The ports of all cores of the nodes that are up.
    fn ports(&self) -> Vec<u16> {
        let nodes = self.nodes.iter().zip(self.cores).filter_map(|(node, cores)| Some((node.as_ref()?.port, cores)));
        nodes.flat_map(|(port, cores)| (1..=cores).map(move |core| port + core)).collect()
    }

    /// The same from a list of hosts that each of them is given, the last one first.
    pub fn of_hosts() -> Three {
        let scratch = Scratch::new();
        let blocks: Vec<PortBlock> = (0..3).map(|_| PortBlock::take().unwrap()).collect();
        let hosts: Vec<String> = blocks.iter().map(|block| format!("127.0.0.1:{}", block.first())).collect();
        let (list, secret) = (scratch.at("hosts"), scratch.at("token"));
        std::fs::write(&list, hosts.join("\n")).unwrap();
        std::fs::write(&secret, "00112233445566778899aabbccddeeff\n").unwrap();
        let mut nodes = Vec::new();
        for (number, block) in blocks.into_iter().enumerate().rev() {
            let (directory, machine) = (scratch.at(&number.to_string()), format!("m{number}"));
            let told = ["--dir", &directory, "--machine", &machine, "--hosts", &list, "--token-file", &secret];
            nodes.insert(0, Some(Server::serve_on(block, &[&told[..], &["--lease-ms", LEASE_MS]].concat())));
        }
        Three { scratch, token: String::new(), cores: [1; 3], nodes }
    }

    pub fn node(&self, number: usize) -> &Server {
        self.nodes[number].as_ref().unwrap()
    }

    /// Everything has two copies, and everybody has a share.
    pub fn await_whole(&self) {
        let size = format!("cluster_size:{}", self.cores.iter().sum::<u16>());
        self.await_state("three nodes with a share", |told| told.contains(&size) && has_two_copies(told));
        // Two copies of everything outlive any node; the table needs two of three managers to say so.
        self.await_managers(3);
    }

    /// Until so many nodes decide together.
    fn await_managers(&self, count: usize) {
        let (begun, port) = (Instant::now(), self.ports()[0].to_string());
        let mut last = String::new();
        while begun.elapsed() < PATIENCE {
            last = run(&["cluster", "status", "-p", &port]).output;
            let managers = last.lines().find_map(|line| line.split_once("; managers "));
            if managers.is_some_and(|(_, numbers)| numbers.split(',').count() == count) {
                return;
            }
            std::thread::yield_now();
        }
        panic!("{count} managers were never seen: {last}");
    }

    /// A node that somebody else looks after from now on.
    pub fn take(&mut self, number: usize) -> Server {
        self.nodes[number].take().unwrap()
    }

    /// Kills a node as a crash would.
    pub fn kill(&mut self, number: usize) -> PortBlock {
        self.nodes[number].take().unwrap().kill_for_another().unwrap()
    }

    /// Starts it again, where it was or elsewhere.
    pub fn start(&mut self, number: usize, block: PortBlock) {
        let (directory, cores) = (self.scratch.at(&number.to_string()), self.cores[number].to_string());
        self.nodes[number] = Some(Server::serve_on(block, &["--dir", &directory, "--cores", &cores]));
    }

    /// What a cluster client is answered: redirected until somebody serves the key.
    pub fn ask(&self, words: &[&str]) -> String {
        let begun = Instant::now();
        let mut ports = self.ports();
        let mut last = String::new();
        while begun.elapsed() < PATIENCE {
            let port = ports[0].to_string();
            let run = run(&[&["cli", "-p", &port], words].concat());
            last = format!("{}{}", run.output.trim_end(), run.errors.trim_end());
            match last.split_once("MOVED ").and_then(|(_, rest)| rest.rsplit_once(':')) {
                Some((_, port)) => ports.insert(0, port.trim().parse().unwrap()),
                None if run.code == 0 && !last.contains("CLUSTERDOWN") => return last,
                None => {
                    ports.rotate_left(1);
                    // A client that was told that nobody serves asks somebody else, and not at once.
                    std::thread::yield_now();
                }
            }
            let alive = self.ports();
            ports.retain(|port| alive.contains(port));
            ports.dedup();
            if ports.is_empty() {
                ports = alive;
            }
        }
        panic!("{words:?} was never answered: {last}");
    }

    fn await_state(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        let mut last = String::new();
        while begun.elapsed() < PATIENCE {
            let all: Vec<String> = self.nodes.iter().flatten().map(|node| told(node, "info")).collect();
            if all.iter().all(|told| is_so(told)) {
                return;
            }
            last = all.join("\n");
            std::thread::yield_now();
        }
        panic!("{what} never happened:\n{last}");
    }

    pub fn write(&self, round: &str) {
        for key in 0..KEYS {
            assert_eq!(self.ask(&["set", &format!("key:{key}"), &format!("{round}:{key}")]), "OK");
        }
    }

    pub fn expect(&self, round: &str) {
        for key in 0..KEYS {
            assert_eq!(self.ask(&["get", &format!("key:{key}")]), format!("{round}:{key}"));
        }
    }
}

fn told(node: &Server, form: &str) -> String {
    run(&["cli", "-p", &(node.port + 1).to_string(), "cluster", form]).output
}

fn has_two_copies(told: &str) -> bool {
    told.contains("cluster_state:ok") && told.contains("cluster_slots_degraded:0")
}

/// Slots go from the first node to those that joined it, while somebody writes; then the first one is not needed.
#[test]
fn nodes_that_join_take_their_share_while_clients_write() {
    let mut three = Three::new();
    let shares = |told: &str| told.contains("cluster_size:3") && has_two_copies(told);
    let mut round = 0;
    let begun = Instant::now();
    while !three.nodes.iter().flatten().all(|node| shares(&told(node, "info"))) {
        assert!(begun.elapsed() < PATIENCE, "{}", told(three.node(0), "nodes"));
        round += 1;
        three.write(&round.to_string());
    }
    three.expect(&round.to_string());
    three.kill(0);
    three.expect(&round.to_string());
    for node in three.nodes.iter_mut().filter_map(Option::take) {
        assert_eq!(node.stop(Signal::TERM).0, Some(0));
    }
}

#[test]
fn what_was_acknowledged_outlives_two_nodes_in_turn() {
    outlives_two_nodes_in_turn(Three::new(), [1; 3]);
}

/// Each of them comes back with another number of cores.
#[test]
fn what_was_acknowledged_outlives_two_nodes_of_several_cores() {
    outlives_two_nodes_in_turn(Three::of_cores([2, 3, 2]), [3, 1, 2]);
}

fn outlives_two_nodes_in_turn(mut three: Three, cores_then: [u16; 3]) {
    three.await_state("that everything has two copies", has_two_copies);
    three.write("first");
    let block = three.kill(0);
    three.expect("first");
    three.write("second");
    three.cores[0] = cores_then[0];
    three.start(0, block);
    three.expect("second");
    three.await_state("that everything has two copies again", has_two_copies);
    let block = three.kill(1);
    three.expect("second");
    three.write("third");
    three.cores[1] = cores_then[1];
    three.start(1, block);
    three.expect("third");
    for node in &mut three.nodes {
        let (code, said) = node.take().unwrap().stop(Signal::TERM);
        assert_eq!(code, Some(0), "{said}");
    }
}

/// One connection of a cluster client, kept.
struct Client(BufReader<TcpStream>);

impl Client {
    fn of(node: &Server) -> Client {
        Client::at(node.port + 1)
    }

    fn at(port: u16) -> Client {
        Client(BufReader::new(TcpStream::connect(("127.0.0.1", port)).unwrap()))
    }

    /// What a request in words is answered, an array's elements with spaces between them.
    fn ask(&mut self, request: &str) -> String {
        self.0.get_mut().write_all(format!("{request}\r\n").as_bytes()).unwrap();
        self.reply()
    }

    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let line = line.trim_end().to_owned();
        match (line.as_bytes()[0], line[1..].parse::<i64>()) {
            (b'*', Ok(count)) => (0..count).map(|_| self.reply()).collect::<Vec<_>>().join(" "),
            (b'$', Ok(0..)) => {
                let mut text = String::new();
                self.0.read_line(&mut text).unwrap();
                text.trim_end().to_owned()
            }
            _ => line,
        }
    }
}

#[test]
fn copies_are_counted_named_and_read() {
    let mut three = Three::new();
    three.await_state("that everything is shared and copied", |told| {
        let is_so = |line: &str| told.contains(line);
        has_two_copies(told) && is_so("cluster_size:3") && is_so("zh_moves:0") && is_so("zh_slots_filling:0")
    });
    let mut clients: Vec<Client> = three.nodes.iter().flatten().map(Client::of).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.ask("READONLY"), "+OK"));
    let begun = Instant::now();
    for key in 0..KEYS {
        let first = (0..3).find(|number| clients[*number].ask(&format!("SET key:{key} {key}")) == "+OK").unwrap();
        assert_eq!(clients[first].ask("WAIT 1 0"), ":1");
        assert!(clients[first].ask("WAIT 2 1") == ":1" && clients[first].ask("ROLE").starts_with("master :"));
        // One of the other two has a copy, and says what is in it as soon as its first told it that it may.
        let holder = loop {
            let said: Vec<String> = clients.iter_mut().map(|client| client.ask(&format!("GET key:{key}"))).collect();
            let shows = |number: &usize| !said[*number].starts_with('-');
            assert!((0..3).filter(shows).all(|number| said[number] == key.to_string()), "{said:?}");
            if let Some(holder) = (0..3).filter(|number| *number != first).find(shows) {
                break holder;
            }
            assert!(begun.elapsed() < PATIENCE, "{said:?}");
        };
        assert!(clients[holder].ask(&format!("SET key:{key} other")).starts_with("-MOVED "));
    }
    assert_eq!(clients[0].ask("WAITAOF 0 1 0").split_once(' ').map(|(_, copies)| copies), Some(":1"));
    for node in three.nodes.iter_mut().filter_map(Option::take) {
        assert_eq!(node.stop(Signal::TERM).0, Some(0));
    }
}

/// Port P of a node of several cores: what one of them has hops, what all of them have is added up, and what would need them
/// together is sent to who can.
#[test]
fn the_port_for_everybody_hops_between_cores() {
    let mut three = Three::of_cores([3, 2, 1]);
    three.await_whole();
    let mut plain = three.nodes.iter().flatten().map(|node| Client::at(node.port)).collect::<Vec<_>>();
    let (mut served, mut instances) = (vec![0; 3], std::collections::BTreeSet::new());
    for key in 0..KEYS {
        let said = plain[0].ask(&format!("SET key:{key} {key}"));
        let at = match said.rsplit_once(':') {
            Some((_, port)) => {
                let port: u16 = port.parse().unwrap();
                assert!(!(1..=3).contains(&(port - three.node(0).port)), "its own slots hop: {said}");
                instances.insert(port);
                (1..3).find(|number| port > three.node(*number).port && port <= three.node(*number).port + 2).unwrap()
            }
            None => 0,
        };
        if at > 0 {
            assert_eq!(plain[at].ask(&format!("SET key:{key} {key}")), "+OK");
        }
        served[at] += 1;
        assert_eq!(plain[at].ask(&format!("GET key:{key}")), key.to_string());
    }
    assert_eq!(instances.len(), 3, "{instances:?}");
    for (client, served) in plain.iter_mut().zip(&served) {
        assert_eq!(client.ask("DBSIZE"), format!(":{served}"));
        assert_eq!(client.ask("KEYS key:*").split(' ').count(), *served);
        assert!(client.ask("RANDOMKEY").starts_with("key:"));
        let (mut cursor, mut scanned) = ("0".to_owned(), 0);
        loop {
            let said = client.ask(&format!("SCAN {cursor} COUNT 20"));
            let mut words = said.split(' ').filter(|word| !word.is_empty());
            cursor = words.next().unwrap().to_owned();
            scanned += words.count();
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(scanned, *served);
    }
    let keys = plain[0].ask("KEYS key:*");
    assert!(plain[0].ask(&format!("MGET {keys}")).starts_with("-CROSSSLOT "));
    plain[0].ask("MULTI");
    let told: Vec<String> = keys.split(' ').map(|key| plain[0].ask(&format!("GET {key}"))).collect();
    let own = format!(":{}", three.node(0).port + 1);
    assert!(
        told.iter().all(|said| said == "+QUEUED" || (said.starts_with("-MOVED ") && said.len() > own.len())),
        "{told:?}"
    );
    assert!(told.iter().any(|said| said == "+QUEUED") && told.iter().any(|said| said.starts_with("-MOVED ")));
    assert!(plain[0].ask("DBSIZE").starts_with("-ERR ") && plain[0].ask("EXEC").starts_with("-EXECABORT "));
    assert!(plain[0].ask("WAIT 1 0").starts_with("-ERR WAIT on this port"));
    // What was sent before is done before, on whatever core.
    let sent: String = keys.split(' ').map(|key| format!("SET {key} again\r\n")).collect();
    assert_eq!(plain[0].ask(&format!("{sent}FLUSHALL\r\nDBSIZE")), "+OK");
    let rest: Vec<String> = (0..=served[0]).map(|_| plain[0].reply()).collect();
    assert!(rest[..served[0]].iter().all(|said| said == "+OK") && rest[served[0]] == ":0", "{rest:?}");
    let left: Vec<String> = plain.iter_mut().map(|client| client.ask("DBSIZE")).collect();
    assert_eq!(left, [":0".to_owned(), format!(":{}", served[1]), format!(":{}", served[2])]);
    for node in three.nodes.iter_mut().filter_map(Option::take) {
        assert_eq!(node.stop(Signal::TERM).0, Some(0));
    }
}

#[test]
fn a_wrong_token_and_settings_that_make_no_cluster_are_refused() {
    let scratch = Scratch::new();
    let first = Server::serve(&["--dir", &scratch.at("0"), "--cluster", "new"]);
    let (address, other) = (format!("127.0.0.1:{}", first.port), scratch.at("1"));
    let token = "0".repeat(32);
    let refused = run(&["serve", "--port", "0", "--dir", &other, "--join", &address, "--token", &token]);
    assert!(refused.code != 0 && refused.errors.contains("the token is not this cluster's"), "{}", refused.errors);
    for (arguments, reason) in [
        (&["--cluster", "new"][..], "give `dir`"),
        (&["--join", &address, "--dir", &other], "needs the `token`"),
        (&["--cluster", "new", "--join", &address, "--dir", &other], "exclude each other"),
        (&["--cluster", "old", "--dir", &other], "give new"),
    ] {
        let refused = run(&[&["serve", "--port", "0"], arguments].concat());
        assert!(refused.code != 0 && refused.errors.contains(reason), "{arguments:?}: {}", refused.errors);
    }
    // A key of its own would hide what others have.
    let alone = Server::serve(&["--dir", &other]);
    assert_eq!(alone.ask(&["set", "mine", "1"]), "OK");
    assert_eq!(alone.stop(Signal::TERM).0, Some(0));
    let told = first.said.split_once("--token ").unwrap().1.split_whitespace().next().unwrap();
    let refused = run(&["serve", "--port", "0", "--dir", &other, "--join", &address, "--token", told]);
    assert!(refused.code != 0 && refused.errors.contains("this directory holds 1 keys"), "{}", refused.errors);
}

/// It opens everything between nodes.
#[test]
fn a_founder_takes_the_token_that_it_is_given() {
    let scratch = Scratch::new();
    let (given, file) = ("0123456789abcdef".repeat(2), scratch.at("token"));
    std::fs::write(&file, format!("{given}\n")).unwrap();
    let first =
        Server::serve(&["--dir", &scratch.at("0"), "--machine", "m0", "--cluster", "new", "--token-file", &file]);
    let address = format!("127.0.0.1:{}", first.port);
    assert!(first.said.contains(&format!("--token {given}")), "{}", first.said);
    let second =
        Server::serve(&["--dir", &scratch.at("1"), "--machine", "m1", "--join", &address, "--token-file", &file]);
    assert!(second.said.contains("ready"), "{}", second.said);
}

#[test]
fn the_token_stands_in_the_line_to_join_with_and_nowhere_else() {
    let scratch = Scratch::new();
    let first = Server::serve(&["--dir", &scratch.at("0"), "--machine", "m0", "--cluster", "new"]);
    let token = first.said.split_once("--token ").unwrap().1.split_whitespace().next().unwrap().to_owned();
    let (address, file) = (format!("127.0.0.1:{}", first.port), scratch.at("token"));
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let joins = ["--machine", "m1", "--join", &address, "--token-file", &file];
    let second = Server::serve(&[&["--dir", &scratch.at("1")][..], &joins].concat());
    let readers = std::fs::metadata(scratch.path().join("0/cluster")).unwrap().mode() & 0o077;
    assert_eq!(readers, 0, "its owner alone reads the file");
    let mut shown = Vec::new();
    // Somebody else's token, one that is none, and somebody who is no node.
    for wrong in ["0".repeat(32), token[..31].to_owned()] {
        let arguments = ["serve", "--port", "0", "--dir", &scratch.at("2"), "--join", &address, "--token", &wrong];
        let refused = run(&arguments);
        assert_ne!(refused.code, 0);
        shown.push(refused.output + &refused.errors);
    }
    run(&["cli", "-p", &(first.port + 10_000).to_string(), "ping"]);
    for arguments in [&["--join", &address, "--token", &token][..], &["--join", &address, "--token-file", &file]] {
        let printed = run(&[&["serve", "--print-config", "--dir", &scratch.at("3")], arguments].concat());
        assert_eq!(printed.code, 0, "{}", printed.errors);
        shown.push(printed.output + &printed.errors);
    }
    for node in [&first, &second] {
        for words in [
            &["info", "everything"][..],
            &["config", "get", "*"],
            &["cluster", "info"],
            &["cluster", "nodes"],
            &["cluster", "shards"],
            &["client", "list"],
            &["memory", "stats"],
            &["debug", "object", "x"],
        ] {
            let port = (node.port + 1).to_string();
            let run = run(&[&["cli", "-p", &port], words].concat());
            shown.push(run.output + &run.errors);
        }
        let command_line = format!("/proc/{}/cmdline", node.process_id());
        shown.push(String::from_utf8_lossy(&std::fs::read(command_line).unwrap()).into_owned());
    }
    assert!(shown.iter().any(|text| text.contains("maxmemory")), "something was shown");
    for node in [second, first] {
        let said = node.said.clone();
        shown.extend(said.lines().filter(|line| !line.starts_with("others join with: ")).map(str::to_owned));
        shown.push(node.stop_and_tell(Signal::TERM));
    }
    assert!(shown.iter().any(|text| text.contains("between nodes was ended")), "a stranger is named");
    let bare: String = token.chars().filter(|digit| *digit != '0').collect();
    for text in shown {
        let text = text.to_ascii_lowercase();
        assert!(!text.contains(&token) && !text.contains(&bare) && !text.contains(&token[..16]), "{text}");
    }
}

#[test]
fn nodes_that_are_given_a_list_of_hosts_become_one_store_in_any_order() {
    let mut three = Three::of_hosts();
    three.await_whole();
    three.write("1");
    three.expect("1");
    // Its list says as before that it founds; its directory knows better.
    let hosts = three.scratch.at("hosts");
    let secret = three.scratch.at("token");
    let directory = three.scratch.at("0");
    let block = three.kill(0);
    three.nodes[0] = Some(Server::serve_on(block, &["--dir", &directory, "--hosts", &hosts, "--token-file", &secret]));
    three.await_whole();
    three.expect("1");
    let elsewhere =
        run(&["serve", "--dir", &three.scratch.at("3"), "--hosts", &hosts, "--token-file", &secret, "--port", "1"]);
    assert!(
        elsewhere.code != 0 && elsewhere.errors.contains("none of them has port 1: give `port`"),
        "{}",
        elsewhere.errors
    );
}

/// The list says that it founds. There is something already, in which it had a part.
#[test]
fn a_founder_that_lost_its_directory_does_not_found_again() {
    let mut three = Three::of_hosts();
    three.await_whole();
    three.write("1");
    let [hosts, secret, directory] = ["hosts", "token", "0"].map(|name| three.scratch.at(name));
    let told = ["--dir", &directory, "--machine", "m0", "--hosts", &hosts, "--token-file", &secret];
    let block = three.kill(0);
    std::fs::remove_dir_all(&directory).unwrap();
    let port = block.first().to_string();
    let refused = run(&[&["serve", "--port", &port], &told[..]].concat());
    let is_told = refused.errors.contains("has this address") && refused.errors.contains("cluster remove");
    assert!(refused.code == 1 && is_told, "{} {}{}", refused.code, refused.output, refused.errors);
    let number = refused.errors.split_once("in: node ").unwrap().1.split_whitespace().next().unwrap().to_owned();
    let asked = (three.node(1).port + 1).to_string();
    crate::process::eventually("it is taken out", || {
        run(&["cluster", "remove", &number, "--abandon", "-p", &asked]).code == 0
    });
    std::fs::remove_dir_all(&directory).unwrap();
    three.nodes[0] = Some(Server::serve_on(block, &told));
    three.await_whole();
    three.expect("1");
}
