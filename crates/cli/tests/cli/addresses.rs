//! A node is its directory: where it listens is what it said last.

use ports::PortBlock;

use crate::cluster::Three;
use crate::process::{Scratch, Server, run};

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

/// With two nodes the first alone decides, and the other one asks it where it was: nobody but the first can say that it is elsewhere.
#[test]
fn who_decides_alone_is_found_again_at_another_port() {
    let scratch = Scratch::new();
    let directory = scratch.at("0");
    let first = Server::serve(&["--dir", &directory, "--machine", "m0", "--cluster", "new", "--lease-ms", LEASE_MS]);
    let token = first.said.split_once("--token ").unwrap().1.split_whitespace().next().unwrap().to_owned();
    let joins = ["--machine", "m1", "--join", &address(&first), "--token", &token];
    let second = Server::serve(&[&["--dir", &scratch.at("1")][..], &joins].concat());
    let is_whole = |first: &Server| {
        let info = |node: &Server| run(&["cli", "-p", &(node.port + 1).to_string(), "cluster", "info"]).output;
        let is_so = |told: &String| told.contains("cluster_state:ok") && told.contains("cluster_size:2");
        [first, &second].map(info).iter().all(is_so)
    };
    crate::process::eventually("two nodes have a share", || is_whole(&first));
    first.kill();
    let first = Server::serve(&["--dir", &directory, "--machine", "m0"]);
    crate::process::eventually("both serve again", || is_whole(&first));
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
