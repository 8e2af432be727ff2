//! Requests that are awaited, on no runtime at all.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use super::puppet::{Puppet, in_vain};
use zerohop::Client;
use zerohop::client::Error;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn futures_and_threads_share_the_connection() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    std::thread::scope(|scope| {
        for caller in 0..16 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..300i64 {
                    let (key, count) = (format!("n:{caller}"), format!("count:{caller}"));
                    let value = format!("{caller} {round}").into_bytes();
                    if (caller + round as usize).is_multiple_of(3) {
                        client.set(&key, &value).wait().unwrap();
                    } else {
                        block_on(client.set(&key, &value)).unwrap();
                    }
                    if (caller + round as usize).is_multiple_of(5) {
                        assert_eq!(client.get(&key).wait().unwrap(), Some(value));
                    } else {
                        assert_eq!(block_on(client.get(&key)).unwrap(), Some(value));
                    }
                    let incr = client.incr(count, 1).within(Duration::from_millis(5));
                    assert_eq!(block_on(incr).unwrap(), round + 1);
                }
            });
        }
    });
    assert!(puppet.connections() <= 2);
}

#[test]
fn a_future_that_is_dropped_leaves_its_reply_to_nobody() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    for key in ["a", "b", "c"] {
        client.set(key, format!("of {key}")).wait().unwrap();
    }
    puppet.hold();
    let mut first = Box::pin(client.get("a"));
    let mut second = Box::pin(client.get("b"));
    let nobody = &mut Context::from_waker(Waker::noop());
    assert!(first.as_mut().poll(nobody).is_pending() && second.as_mut().poll(nobody).is_pending());
    puppet.saw("a");
    drop(first);
    puppet.go_on();
    assert_eq!(block_on(second).unwrap(), Some(b"of b".to_vec()));
    assert_eq!(block_on(client.get("c")).unwrap(), Some(b"of c".to_vec()));
    assert_eq!(client.get("a").wait().unwrap(), Some(b"of a".to_vec()));
}

#[test]
fn what_nobody_waits_for_is_not_asked_again() {
    let puppet = Puppet::new();
    let client = Client::options().unbatched().open(&puppet.address).unwrap();
    assert_eq!(block_on(client.get("before")).unwrap(), None);
    puppet.hold();
    let nobody = &mut Context::from_waker(Waker::noop());
    let mut wanted = Box::pin(client.mget(["wanted"]));
    let mut dropped = Box::pin(client.mget(["dropped"]));
    assert!(wanted.as_mut().poll(nobody).is_pending() && dropped.as_mut().poll(nobody).is_pending());
    puppet.saw("wanted");
    puppet.saw("dropped");
    drop(dropped);
    puppet.lose();
    puppet.go_on();
    assert_eq!(block_on(wanted).unwrap(), [None]);
    assert_eq!((puppet.count("wanted"), puppet.count("dropped")), (2, 1));
}

/// So many tasks that were answered together: one more leaves alone, they gather behind it.
fn answer_together(puppet: &Puppet, client: &Client, tasks: usize) {
    puppet.hold();
    let nobody = &mut Context::from_waker(Waker::noop());
    let mut calls: Vec<_> = (0..=tasks).map(|_| Box::pin(client.get("a"))).collect();
    calls.iter_mut().for_each(|call| assert!(call.as_mut().poll(nobody).is_pending()));
    puppet.go_on();
    calls.into_iter().for_each(|call| assert_eq!(block_on(call).unwrap(), None));
}

#[test]
fn tasks_that_were_answered_together_ask_again_in_one_write() {
    const TASKS: usize = 7;
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    // What is gathered is sent by somebody else when this thread is held up in between: then there is a next round.
    let is_one_write = (0..1000).any(|_| {
        answer_together(&puppet, &client, TASKS);
        let nobody = &mut Context::from_waker(Waker::noop());
        let before = client.traffic();
        let mut again: Vec<_> = (0..TASKS).map(|_| Box::pin(client.get("a"))).collect();
        again.iter_mut().for_each(|call| assert!(call.as_mut().poll(nobody).is_pending()));
        again.into_iter().for_each(|call| assert_eq!(block_on(call).unwrap(), None));
        client.traffic().writes - before.writes == 1
    });
    assert!(is_one_write, "the first one always sends alone");
}

#[test]
fn a_task_that_gathers_and_is_gone_holds_nobody_up() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    let nobody = &mut Context::from_waker(Waker::noop());
    for is_dropped in [false, true, false] {
        answer_together(&puppet, &client, 5);
        let mut gatherer = Box::pin(client.get("gathers"));
        assert!(gatherer.as_mut().poll(nobody).is_pending());
        let other = client.get("waits");
        match is_dropped {
            true => drop(gatherer),
            false => std::mem::forget(gatherer),
        }
        assert_eq!(block_on(other).unwrap(), None);
    }
}

#[test]
fn a_thread_is_not_held_up_by_a_task_that_asks_no_more() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    let nobody = &mut Context::from_waker(Waker::noop());
    assert_eq!(block_on(client.get("before")).unwrap(), None);
    for round in 0..20 {
        puppet.hold();
        let mut task = Box::pin(client.get(format!("task:{round}")));
        assert!(task.as_mut().poll(nobody).is_pending());
        puppet.saw(&format!("task:{round}"));
        let asked = client.traffic().requests;
        std::thread::scope(|scope| {
            // It waits behind the task's request, and would be due together with the next one of the task.
            let thread = scope.spawn(|| client.get("thread").wait());
            while client.traffic().requests == asked {
                std::thread::yield_now();
            }
            puppet.go_on();
            assert_eq!(thread.join().unwrap().unwrap(), None, "round {round}");
        });
        assert_eq!(block_on(task).unwrap(), None);
    }
}

#[test]
fn who_awaits_in_vain_is_told_so() {
    let puppet = Puppet::new();
    let client = Client::open(&puppet.address).unwrap();
    puppet.hold();
    in_vain(|after| {
        let error = block_on(client.get("a").timeout(after)).unwrap_err();
        assert_eq!(error, Error::TimedOut { address: puppet.address.clone(), after });
        (client.traffic().requests > 0).then_some(())
    });
    puppet.saw_times("GET", client.traffic().requests as usize);
    puppet.go_on();
    puppet.cut_after(1);
    assert!(matches!(block_on(client.incr("a", 1)), Err(Error::Unknown { .. })));
    // Nobody gives a future's connection up but for a reason: this one is a new one.
    assert_eq!(block_on(client.incr("a", 1)).unwrap(), 2);
}

#[test]
fn calls_can_be_sent_to_other_threads() {
    fn is_send<T: Send>(_: T) {}
    let client = Client::open("127.0.0.1:1").unwrap();
    is_send(client.get("a"));
    let owned = client.clone();
    is_send(async move { owned.get("a").await });
}
