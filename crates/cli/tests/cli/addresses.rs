//! A node is its directory: where it listens is what it said last, and one process runs on it.

use ports::PortBlock;
use rustix::process::Signal;

use crate::cluster::Three;
use crate::process::{Scratch, Server, eventually, run};

const LEASE_MS: &str = "500";

/// What `status` says of the nodes: number, address, state.
fn nodes(asked: &Server) -> Vec<(String, String, String)> {
    let said = run(&["cluster", "status", "-p", &(asked.port + 1).to_string()]).output;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows = said.lines().map(words).filter(|words| words.len() > 3 && words[0].parse::<u32>().is_ok());
    rows.map(|words| (words[0].clone(), words[1].clone(), words[3].clone())).collect()
}

fn address(node: &Server) -> String {
    format!("127.0.0.1:{}", node.port)
}

/// Whether both serve by one table, each with a share.
fn are_whole(one: &Server, other: &Server) -> bool {
    let info = |node: &Server| run(&["cli", "-p", &(node.port + 1).to_string(), "cluster", "info"]).output;
    let is_so =
        |told: &String| ["cluster_state:ok", "cluster_size:2", "degraded:0"].iter().all(|line| told.contains(line));
    let version = |told: &String| told.lines().find(|line| line.contains("zh_table_version")).map(str::to_owned);
    let all = [one, other].map(info);
    all.iter().all(is_so) && version(&all[0]) == version(&all[1])
}

/// With two nodes the first alone decides, and the other one asks it where it was: nobody but the first can say that it is elsewhere.
#[test]
fn who_decides_alone_is_found_again_at_another_port() {
    let scratch = Scratch::new();
    let directory = scratch.at("0");
    let first = Server::serve(&["--dir", &directory, "--machine", "m0", "--cluster", "new", "--lease-ms", LEASE_MS]);
    let token = first.said.split_once("--token ").unwrap().1.split_whitespace().next().unwrap().to_owned();
    let joins = ["--machine", "m1", "--join", &address(&first), "--token", &token];
    let second = Server::serve(&[&["--dir", &scratch.at("1")][..], &joins].concat());
    eventually("two nodes have a share", || are_whole(&first, &second));
    first.kill();
    let first = Server::serve(&["--dir", &directory, "--machine", "m0"]);
    eventually("both serve again", || are_whole(&first, &second));
    for asked in [&first, &second] {
        let up = |number: &str, node| (number.to_owned(), address(node), "up".to_owned());
        assert_eq!(nodes(asked), [up("1", &first), up("2", &second)]);
    }
}

/// Each of two has the address of the other one, which is down when it comes.
#[test]
fn nodes_that_changed_places_are_who_they_were() {
    let mut three = Three::new();
    three.await_whole();
    three.write("first");
    let number_at = |three: &Three, number| {
        let known = nodes(three.node(0));
        let here = known.iter().find(|(_, at, state)| *at == address(three.node(number)) && state == "up");
        here.unwrap_or_else(|| panic!("{known:?}")).0.clone()
    };
    let before = [1, 2].map(|number| number_at(&three, number));
    let blocks = [three.kill(1), three.kill(2)];
    let [one, other]: [PortBlock; 2] = blocks;
    three.start(1, other);
    three.start(2, one);
    three.await_whole();
    three.expect("first");
    assert_eq!([1, 2].map(|number| number_at(&three, number)), before);
    assert_eq!(nodes(three.node(0)).len(), 3);
}

/// A directory with all its files, as an operator would copy it.
fn copy(from: &str, to: &str) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), std::path::Path::new(to).join(entry.file_name())).unwrap();
    }
}

/// Two processes of one directory, whose starts have one number. Nobody but the other node could say so: with two nodes one alone decides.
#[test]
fn of_two_processes_of_one_directory_the_second_ends() {
    let scratch = Scratch::new();
    let directories = ["0", "1", "copy"].map(|name| scratch.at(name));
    let first =
        Server::serve(&["--dir", &directories[0], "--machine", "m0", "--cluster", "new", "--lease-ms", LEASE_MS]);
    let token = first.said.split_once("--token ").unwrap().1.split_whitespace().next().unwrap().to_owned();
    let joins = ["--machine", "m1", "--join", &address(&first), "--token", &token];
    let second = Server::serve(&[&["--dir", &directories[1]][..], &joins].concat());
    eventually("two nodes have a share", || are_whole(&first, &second));
    let (code, block) = first.stop_for_another(Signal::TERM);
    assert_eq!(code, Some(0));
    copy(&directories[0], &directories[2]);
    let first = Server::serve_on(block, &["--dir", &directories[0], "--machine", "m0"]);
    eventually("both serve again", || are_whole(&first, &second));
    let elsewhere = PortBlock::take().unwrap();
    let port = elsewhere.first().to_string();
    for _ in 0..2 {
        // The second time its start has a later number, and it knows itself what it is.
        let ended = run(&["serve", "--port", &port, "--dir", &directories[2], "--machine", "m0"]);
        assert!(
            ended.code == 1 && ended.errors.contains("this directory is an older copy of a node's"),
            "{} {}",
            ended.code,
            ended.errors
        );
    }
    let up = |number: &str, node| (number.to_owned(), address(node), "up".to_owned());
    assert_eq!(nodes(&second), [up("1", &first), up("2", &second)]);
    eventually("both serve still", || are_whole(&first, &second));
}
