//! What one caller alone costs, and what it is told.

use std::time::Duration;

use super::puppet::Puppet;
use zerohop::Client;
use zerohop::client::{Error, Reply, Traffic};

#[test]
fn a_lonely_request_is_one_write_and_one_read() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    for number in 1..=100 {
        assert_eq!(client.incr("n", 1).wait().unwrap(), number);
    }
    assert_eq!(client.traffic(), Traffic { requests: 100, writes: 100, reads: 100 });
}

#[test]
fn typed_commands_and_any_other_say_what_they_were_answered() {
    let puppet = Puppet::new();
    let client = Client::open(&format!("redis://{}", puppet.address)).unwrap();
    assert_eq!(client.get("a").wait().unwrap(), None);
    client.set("a", [0u8, 13, 10, 255]).wait().unwrap();
    assert_eq!(client.get(b"a").wait().unwrap(), Some(vec![0, 13, 10, 255]));
    client.set_for("b", "1", Duration::from_secs(9)).wait().unwrap();
    assert_eq!(client.mget(["a", "c", "b"]).wait().unwrap(), [Some(vec![0, 13, 10, 255]), None, Some(b"1".to_vec())]);
    assert_eq!(client.command("ECHO").arg(12).wait().unwrap(), Reply::BulkString(b"12".to_vec()));
    assert_eq!(client.command("ECHO").arg("12").query::<u32>().wait().unwrap(), 12);
    let error = client.command("PING").wait().unwrap_err();
    assert!(matches!(&error, Error::Server(error) if error.code() == "ERR" && error.text() == "ERR what?"));
    let error = client.get("a").wait().map(drop).and(client.command("GET").arg("a").query::<String>().wait());
    assert!(matches!(error, Err(Error::Unexpected { wanted: "UTF-8 text", .. })));
}

#[test]
fn what_would_hold_the_connection_is_not_sent() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    let error = client.command("BLPOP").args(["list", "0"]).wait().unwrap_err();
    assert!(error.to_string().contains("BLPOP") && error.to_string().contains("a connection of your own"), "{error}");
    assert_eq!(puppet.connections(), 0);
}

#[test]
fn values_of_any_size_go_to_and_fro() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    for bytes in [0, 1, 65_535, 65_536, 300_000, 9_000_000] {
        let value: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        client.set("long", &value).wait().unwrap();
        assert!(client.get("long").wait().unwrap() == Some(value), "{bytes}");
    }
}
