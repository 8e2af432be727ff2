//! Requests whose replies are asked for later.

use super::puppet::Puppet;
use zerohop::Client;
use zerohop::client::{Error, Reply};

#[test]
fn tickets_and_completions_give_each_reply_once() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    let tickets: Vec<_> = (1..=1000).map(|_| client.incr("n", 1).submit().unwrap()).collect();
    let mut left = tickets.into_iter();
    for (number, ticket) in (1..=500).zip(left.by_ref()) {
        assert_eq!(ticket.number() + 1, number as u64);
        assert_eq!(ticket.wait().unwrap().unwrap(), number);
    }
    let rest: Vec<_> = left.collect();
    let mut completions = Vec::new();
    while completions.len() < 500 {
        client.poll(&mut completions);
        std::thread::yield_now();
    }
    let numbers: Vec<u64> = completions.iter().map(|completion| completion.number).collect();
    assert_eq!(numbers, (500..1000).collect::<Vec<u64>>());
    for completion in completions {
        assert_eq!(completion.reply, Ok(Reply::Int(completion.number as i64 + 1)));
    }
    for ticket in rest {
        assert!(ticket.try_take().is_none());
        assert!(ticket.wait().is_none(), "a reply is given once");
    }
}

#[test]
fn replies_that_nobody_takes_have_a_bound_that_says_what_to_do() {
    let puppet = Puppet::new();
    let client = Client::options().unclaimed_max(10).open(&puppet.address).unwrap();
    let tickets: Vec<_> = (0..10).map(|_| client.incr("n", 1).submit().unwrap()).collect();
    let error = client.incr("n", 1).submit().unwrap_err();
    assert!(matches!(error, Error::Unclaimed { most: 10 }) && error.to_string().contains("Client::poll"), "{error}");
    // Others ask as before.
    assert_eq!(client.get("other").wait().unwrap(), None);
    for ticket in tickets {
        ticket.wait().unwrap().unwrap();
    }
    assert_eq!(client.incr("n", 1).submit().unwrap().wait().unwrap().unwrap(), 11);
}

#[test]
fn tickets_outlive_their_client_with_an_error() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    client.set("a", "1").wait().unwrap();
    puppet.hold();
    let sent = client.incr("a", 1).submit().unwrap();
    let waiting = client.incr("a", 1).submit().unwrap();
    drop(client);
    assert_eq!(sent.wait(), Some(Err(Error::Closed)));
    assert_eq!(waiting.wait(), Some(Err(Error::Closed)));
}
