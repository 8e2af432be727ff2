//! Threads or tasks of one program that share a client, each of which checks that it gets its own values.
//!
//! `cargo run --release -p zerohop --example client_load -- 127.0.0.1:6379 threads 64 5` (or `tasks`): callers, seconds.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use zerohop::Client;
use zerohop::client::Error;

/// Keys of one caller; with its number 15 bytes long.
const KEYS: u64 = 1000;
const VALUE_BYTES: usize = 132;

fn key(caller: u64, number: u64) -> String {
    format!("load:{caller:04}:{:05}", number % KEYS)
}

fn value(caller: u64, number: u64) -> Vec<u8> {
    let mut value = format!("{caller}:{number}:").into_bytes();
    value.resize(VALUE_BYTES, b'x');
    value
}

fn check(caller: u64, number: u64, got: Option<Vec<u8>>) {
    assert_eq!(got, Some(value(caller, number)), "caller {caller} got what is not its own");
}

/// One caller's loop with threads: a SET and a GET of it, until it is told to end.
fn blocking(client: &Client, caller: u64, ends: &AtomicBool) -> Result<u64, Error> {
    let mut number = 0;
    while !ends.load(Ordering::Relaxed) {
        client.set(key(caller, number), value(caller, number)).wait()?;
        check(caller, number, client.get(key(caller, number)).wait()?);
        number += 1;
    }
    Ok(number * 2)
}

/// The same as a task.
async fn awaited(client: &Client, caller: u64, ends: &AtomicBool, done: &AtomicU64) -> Result<(), Error> {
    let mut number = 0;
    while !ends.load(Ordering::Relaxed) {
        client.set(key(caller, number), value(caller, number)).await?;
        check(caller, number, client.get(key(caller, number)).await?);
        number += 1;
        done.fetch_add(2, Ordering::Relaxed);
    }
    Ok(())
}

/// Runs tasks on the calling thread, which sleeps when none of them is to be polled.
#[derive(Default)]
struct Ready {
    tasks: Mutex<Vec<usize>>,
    some: Condvar,
}

struct TaskWaker {
    task: usize,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut tasks = self.ready.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.push(self.task);
        if tasks.len() == 1 {
            self.ready.some.notify_one();
        }
    }
}

fn run_all<F: Future<Output = Result<(), Error>>>(tasks: Vec<F>) -> Result<(), Error> {
    let ready = Arc::new(Ready::default());
    let mut tasks: Vec<Option<Pin<Box<F>>>> = tasks.into_iter().map(|task| Some(Box::pin(task))).collect();
    let wakers: Vec<Waker> =
        (0..tasks.len()).map(|task| Arc::new(TaskWaker { task, ready: Arc::clone(&ready) }).into()).collect();
    let mut due: Vec<usize> = (0..tasks.len()).collect();
    let mut left = tasks.len();
    while left > 0 {
        for task in due.drain(..) {
            let Some(future) = &mut tasks[task] else { continue };
            if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&wakers[task])) {
                result?;
                tasks[task] = None;
                left -= 1;
            }
        }
        let mut waiting = ready.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.is_empty() && left > 0 {
            waiting = ready.some.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut *waiting, &mut due);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, form, callers, seconds] = &words[..] else {
        return Err("say: ADDRESS threads|tasks CALLERS SECONDS".into());
    };
    let (callers, seconds): (u64, f64) = (callers.parse()?, seconds.parse()?);
    let (client, ends, done) = (Client::open(address)?, AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    let cpu_before = cpu();
    std::thread::scope(|scope| -> Result<(), Error> {
        let (client, ends, done) = (&client, &ends, &done);
        let clock = scope.spawn(move || {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            ends.store(true, Ordering::Relaxed);
        });
        if form == "tasks" {
            run_all((0..callers).map(|caller| awaited(client, caller, ends, done)).collect())?;
        } else {
            let all: Vec<_> = (0..callers).map(|caller| scope.spawn(move || blocking(client, caller, ends))).collect();
            for caller in all {
                done.fetch_add(caller.join().expect("no caller panics")?, Ordering::Relaxed);
            }
        }
        clock.join().expect("it only sleeps");
        Ok(())
    })?;
    let (took, cpu, done) = (begun.elapsed().as_secs_f64(), cpu() - cpu_before, done.into_inner());
    let traffic = client.traffic();
    println!(
        "{done} requests, {:.0}/s; {:.2} us of this program's CPU each; {:.1} requests per write, {:.1} per read",
        done as f64 / took,
        cpu * 1e6 / done as f64,
        traffic.requests as f64 / traffic.writes as f64,
        traffic.requests as f64 / traffic.reads as f64,
    );
    Ok(())
}

/// Processor time of this process, seconds.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
