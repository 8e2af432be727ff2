//! Many threads on one connection: everybody gets his own, in his order, also when connections are cut under them.

use std::time::Duration;

use super::puppet::Puppet;
use zerohop::Client;
use zerohop::client::Error;

/// A machine that stands still for seconds decides nothing here.
fn patient(puppet: &Puppet) -> Client {
    Client::options().timeout(Duration::from_secs(60)).open(&puppet.address).unwrap()
}

/// What one thread counted.
#[derive(Default)]
struct Counted {
    done: i64,
    unknown: i64,
    lost: i64,
}

/// Adds to its own counter, and writes and reads what only it can have written.
fn live(client: &Client, caller: usize, rounds: usize) -> Counted {
    let (mut counted, mut last) = (Counted::default(), 0);
    for round in 0..rounds {
        match client.incr(format!("count:{caller}"), 1).wait() {
            Ok(count) => {
                counted.done += 1;
                assert!(
                    count > last && count <= counted.done + counted.unknown,
                    "caller {caller}: {count} after {last}"
                );
                last = count;
            }
            Err(Error::Unknown { .. }) => counted.unknown += 1,
            Err(Error::Unreachable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        let (key, value) = (format!("value:{caller}"), format!("{caller} in {round}").into_bytes());
        let is_set = match client.set(&key, &value).within(Duration::from_millis(5 * (round as u64 % 5))).wait() {
            Ok(()) => true,
            Err(Error::Unknown { .. } | Error::Unreachable { .. }) => false,
            Err(error) => panic!("{error}"),
        };
        match client.get(&key).wait() {
            Ok(got) if is_set => assert_eq!(got, Some(value)),
            Ok(got) => assert!(got.is_none_or(|got| got.starts_with(format!("{caller} in ").as_bytes()))),
            Err(Error::Lost { .. }) => counted.lost += 1,
            Err(Error::Unreachable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    counted
}

#[test]
fn sixty_four_threads_get_their_own_in_their_order() {
    let puppet = Puppet::new();
    let client = patient(&puppet);
    std::thread::scope(|scope| {
        for caller in 0..64 {
            let client = client.clone();
            scope.spawn(move || assert_eq!(live(&client, caller, 200).done, 200));
        }
    });
    assert_eq!(puppet.value("count:63"), Some(b"200".to_vec()));
    let traffic = client.traffic();
    assert_eq!(traffic.requests, 64 * 200 * 3);
    assert!(traffic.writes < traffic.requests && puppet.connections() <= 2, "{traffic:?}");
}

#[test]
fn connections_that_are_cut_swap_nothing_and_do_nothing_twice() {
    let puppet = Puppet::new();
    let client = patient(&puppet);
    let counted: Vec<Counted> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..32).map(|caller| (client.clone(), caller)).collect();
        let all: Vec<_> =
            all.into_iter().map(|(client, caller)| scope.spawn(move || live(&client, caller, 300))).collect();
        let mut cuts = 0;
        while !all.iter().all(|caller| caller.is_finished()) {
            cuts += 1;
            puppet.cut_after(100 + 37 * (cuts % 20));
            while puppet.is_about_to_cut() && !all.iter().all(|caller| caller.is_finished()) {
                std::thread::yield_now();
            }
        }
        all.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    for (caller, Counted { done, unknown, .. }) in counted.iter().enumerate() {
        let value = puppet.value(&format!("count:{caller}")).unwrap();
        let value: i64 = std::str::from_utf8(&value).unwrap().parse().unwrap();
        assert!((*done..=done + unknown).contains(&value), "{caller}: {done} + {unknown} unknown became {value}");
    }
    assert!(counted.iter().map(|counted| counted.unknown).sum::<i64>() > 0, "nothing was cut");
    assert!(puppet.connections() > 10);
}

#[test]
fn long_values_of_many_threads_do_not_stop_each_other() {
    let puppet = Puppet::new();
    let client = patient(&puppet);
    std::thread::scope(|scope| {
        for caller in 0..12u8 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..10 {
                    let (key, value) = (format!("long:{caller}"), vec![caller * 16 + round; 2_000_000]);
                    client.set(&key, &value).wait().unwrap();
                    assert!(client.get(&key).wait().unwrap() == Some(value));
                }
            });
        }
    });
}

#[test]
fn who_reads_for_others_hands_it_on_when_it_goes() {
    let puppet = Puppet::new();
    let client = patient(&puppet);
    for round in 0..50 {
        let asked = client.traffic().requests;
        puppet.hold();
        std::thread::scope(|scope| {
            let (client, puppet) = (&client, &puppet);
            let first = scope.spawn(move || client.incr("first", 1).wait());
            puppet.saw_times("first", round + 1);
            // They sleep, because the first one reads, and nobody comes after them.
            let others = [(); 2].map(|()| scope.spawn(move || client.incr("other", 1).wait()));
            while client.traffic().requests < asked + 3 {
                std::thread::yield_now();
            }
            puppet.go_on();
            assert_eq!(first.join().unwrap(), Ok(round as i64 + 1));
            others.into_iter().for_each(|other| assert!(other.join().unwrap().is_ok()));
        });
    }
}
