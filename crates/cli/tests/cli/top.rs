//! `zerohop top` before a real proxy, whose store answers when the test lets it, and before a node.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::process::{PATIENCE, Server, eventually, run};

/// `host:port` of the admin port, from the line that says it.
fn admin(server: &Server) -> String {
    let (_, rest) = server.said.split_once("admin: http://").expect("it says where the admin port is");
    rest.split_once('/').unwrap().0.to_owned()
}

/// What `top --json` says of the first source.
fn look(address: &str) -> serde_json::Value {
    let seen = run(&["top", address, "--json"]);
    assert_eq!(seen.code, 0, "{}", seen.errors);
    serde_json::from_str::<serde_json::Value>(&seen.output).unwrap()["sources"][0].take()
}

/// Reads from a connection until something is there, all of it.
fn read_until(stream: &mut TcpStream, end: &[u8]) {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(end) {
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
}

/// A store with one command, which is no cluster, says so when it is asked.
const ABOUT_STORE: &[u8] = b"*1\r\n*7\r\n$4\r\nping\r\n:-1\r\n*1\r\n+fast\r\n:0\r\n:0\r\n:0\r\n*0\r\n\
                             $17\r\ncluster_enabled:0\r\n-ERR This instance has cluster support disabled\r\n";

#[test]
fn a_deadline_that_is_missed_is_seen() {
    let store = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = store.local_addr().unwrap().to_string();
    let proxy = Server::start(&["proxy", &to, "--port", "0", "--admin-port", "0", "--within", "1us"]);
    let mut client = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"PING\r\n").unwrap();

    // It is asked what it is, and then, on the lane of those in a hurry, what the client asked.
    let accept = || {
        let (stream, _) = store.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let mut lanes = vec![accept()];
    read_until(&mut lanes[0], b"CLUSTER\r\n$5\r\nNODES\r\n");
    lanes[0].write_all(ABOUT_STORE).unwrap();
    lanes.push(accept());
    read_until(&mut lanes[1], b"PING\r\n");

    // It is answered when it has been seen waiting for longer than it may.
    let address = admin(&proxy);
    let waiting = || {
        let class = look(&address)["classes"][0].take();
        (class["outstanding"].as_f64(), class["oldest_seconds"].as_f64() > Some(0.000_001))
    };
    eventually("a request that is late", || waiting() == (Some(1.0), true));
    assert_eq!(look(&address)["classes"][0]["late"].as_f64(), Some(0.0));
    lanes[1].write_all(b"+PONG\r\n").unwrap();
    read_until(&mut client, b"+PONG\r\n");

    let seen = run(&["top", &address, "--once"]);
    assert_eq!((seen.code, seen.errors.as_str()), (0, ""));
    let lines: Vec<Vec<&str>> = seen.output.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(seen.output.starts_with(&format!("{address}: healthy, since its start ")), "{}", seen.output);
    assert_eq!((lines[1][0], lines[2][0], lines[3][0], lines[4][0]), ("class", "default", "destination", to.as_str()));
    assert!(seen.output.contains(" 0.0 %     1        0           0       -\n"), "{}", seen.output);
    assert!(!seen.output.contains('\x1b'), "no colours where there is no terminal");
}

#[test]
fn a_node_shows_its_cores() {
    let node = Server::serve(&["--admin-port", "0", "--cores", "2"]);
    assert_eq!(node.ask(&["set", "a", "1"]), "OK");
    let seen = look(&admin(&node));
    assert_eq!(seen["cores"].as_array().unwrap().len(), 2);
    assert!(
        seen["cores"]
            .as_array()
            .unwrap()
            .iter()
            .all(|core| core["up"] == true && core["memory_bytes"].as_f64() > Some(0.0))
    );
    let requests = |core: &serde_json::Value| core["requests_per_second"].as_f64().unwrap();
    assert!(seen["cores"].as_array().unwrap().iter().map(requests).sum::<f64>() > 0.0, "{seen}");
    let text = run(&["top", &admin(&node), "--once"]).output;
    assert!(text.contains("  core  health  requests/s"), "{text}");
}

#[test]
fn a_wrong_address_is_said_with_the_fix() {
    let node = Server::serve(&[]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let redis = format!("127.0.0.1:{}", node.port);
    for (address, parts) in [
        (closed.as_str(), ["cannot read http://", "refused", "--admin-port"]),
        ("127.0.0.1", ["cannot read", "HOST:PORT", "--admin-port"]),
        (&redis, ["", "admin port", "--admin-port"]),
    ] {
        let seen = run(&["top", address, "--once"]);
        assert_eq!((seen.code, seen.output.as_str()), (1, ""), "{address}");
        assert!(parts.iter().all(|part| seen.errors.contains(part)), "{address}: {}", seen.errors);
    }
    // One that is there is shown, whatever becomes of the others.
    let proxy = Server::start(&["proxy", &redis, "--port", "0", "--admin-port", "0"]);
    let seen = run(&["top", &closed, &admin(&proxy), "--once"]);
    assert!(seen.code == 0 && seen.output.contains(&format!("{closed}: not reached\n")), "{}", seen.output);
    assert!(seen.output.contains("healthy"), "{}", seen.output);
}
