//! Servers that are not there, say nothing, or say no; and children of fork.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::puppet::{Puppet, in_vain};
use zerohop::Client;
use zerohop::client::Error;

#[test]
fn nobody_there_is_said_with_the_address_and_later_found() {
    // Bound, and never listened on by anybody else meanwhile: connections are refused.
    let block = ports_taken();
    let client = Client::open(&block.0).unwrap();
    let error = client.set("a", "b").wait().unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&block.0) && error.to_string().contains("not carried out"), "{error}");
    // It is not dialed again at once, and says so without a wait.
    assert!(matches!(client.set("a", "b").wait(), Err(Error::Unreachable { .. })));
}

/// An address at which nobody listens: its port is that of a connection that is there.
fn ports_taken() -> (String, std::net::TcpStream, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (stream.local_addr().unwrap().to_string(), stream, listener)
}

#[test]
fn a_refused_login_is_quoted() {
    let puppet = Puppet::new();
    let client = Client::open(&format!("redis://:wrong@{}", puppet.address)).unwrap();
    for _ in 0..3 {
        let error = client.get("a").wait().unwrap_err();
        assert!(matches!(&error, Error::Refused { error, .. } if error.code() == "WRONGPASS"), "{error}");
    }
    assert_eq!(puppet.count("GET"), 0);
}

#[test]
fn who_waits_in_vain_is_told_and_his_late_reply_is_nobody_elses() {
    let puppet = Puppet::new();
    let client = Client::options().timeout(Duration::from_secs(600)).open(&puppet.address).unwrap();
    client.set("a", "of a").wait().unwrap();
    client.set("b", "of b").wait().unwrap();
    puppet.hold();
    let error = client.get("a").timeout(Duration::from_millis(10)).wait().unwrap_err();
    let after = Duration::from_millis(10);
    assert_eq!(error, Error::TimedOut { address: puppet.address.clone(), after });
    std::thread::scope(|scope| {
        let second = scope.spawn(|| client.get("b").wait());
        puppet.saw("GET");
        puppet.go_on();
        assert_eq!(second.join().unwrap().unwrap(), Some(b"of b".to_vec()));
    });
    assert_eq!(client.get("a").wait().unwrap(), Some(b"of a".to_vec()));
    assert_eq!(puppet.connections(), 1);
}

#[test]
fn a_connection_on_which_nobody_answers_is_left() {
    let in_time = Duration::from_secs(600);
    let (puppet, client) = in_vain(|time| {
        let puppet = Puppet::new();
        let client = Client::options().timeout(time).open(&puppet.address).unwrap();
        client.set("a", "1").timeout(in_time).wait().unwrap();
        puppet.hold();
        assert!(matches!(client.incr("a", 1).wait(), Err(Error::TimedOut { .. })));
        (client.traffic().requests == 2).then_some((puppet, client))
    });
    puppet.saw("INCRBY");
    puppet.go_on();
    let patient = client.get("a").timeout(in_time).wait();
    assert_eq!(patient.unwrap(), Some(b"2".to_vec()));
    assert_eq!(puppet.connections(), 2);
}

#[test]
fn who_is_in_a_hurry_does_not_stand_behind_who_is_not() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    client.set("a", "1").wait().unwrap();
    puppet.hold();
    std::thread::scope(|scope| {
        let relaxed = scope.spawn(|| client.get("relaxed").wait());
        let first = puppet.saw("relaxed");
        // On a connection of its own, because it is in a hurry.
        let hurried = scope.spawn(|| client.get("hurried").within(Duration::from_millis(1)).wait());
        assert_ne!(puppet.saw("hurried"), first);
        // Behind the batch that is out, because that is what its time allows.
        let bounded = scope.spawn(|| client.get("bounded").within(Duration::from_millis(20)).wait());
        assert_eq!(puppet.saw("bounded"), first);
        puppet.go_on();
        for caller in [relaxed, hurried, bounded] {
            assert_eq!(caller.join().unwrap().unwrap(), None);
        }
    });
}

#[test]
fn a_child_of_fork_has_a_connection_of_its_own() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    assert_eq!(client.incr("n", 1).wait().unwrap(), 1);
    let told = io::fork::in_child(|| {
        let counts = [client.incr("n", 10).wait(), client.incr("n", 10).wait()];
        u8::from(matches!(counts, [Ok(11), Ok(21)]))
    });
    assert_eq!(told, Some(1));
    assert_eq!(client.incr("n", 1).wait().unwrap(), 22);
    assert_eq!(puppet.connections(), 2);
}

/// Whether those who wait in the test below are to give up.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

#[test]
fn who_reads_and_who_sleeps_are_interrupted_and_replies_stay_their_owners() {
    let puppet = Puppet::new();
    let options = Client::options().timeout(Duration::from_secs(60));
    let client = options.interrupted_by(|| IS_INTERRUPTED.load(Ordering::Relaxed)).open(&puppet.address).unwrap();
    puppet.hold();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| client.incr("first", 1).wait());
        puppet.saw("first");
        let second = scope.spawn(|| client.incr("second", 1).wait());
        while client.traffic().requests < 2 {
            std::thread::yield_now();
        }
        IS_INTERRUPTED.store(true, Ordering::Relaxed);
        assert_eq!(first.join().unwrap(), Err(Error::Interrupted));
        assert_eq!(second.join().unwrap(), Err(Error::Interrupted));
    });
    IS_INTERRUPTED.store(false, Ordering::Relaxed);
    puppet.go_on();
    // Their replies come first, on the same connection.
    assert_eq!(client.incr("third", 1).wait(), Ok(1));
    assert_eq!((client.incr("first", 1).wait(), puppet.connections()), (Ok(2), 1));
}
