//! The load generator against the servers of this crate: real sockets, no verdict about time.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::time::Duration;

use bench::fan_out::route::Route;
use bench::fan_out::store::{self, Canned};
use bench::fan_out::{Way, serve};
use bench::load::plan::{Dialect, LoadPlan, OpenLoop, Operation, Stop, Target};
use bench::load::{self, Report};
use bench::null::{Backend, FixedReply, NullPlan};
use rustix::process::{Pid, Signal, kill_process};

/// A null server in a thread that lives as long as the test process; `None` where the kernel forbids the backend.
fn null_server(backend: Backend, reply: FixedReply) -> Option<Target> {
    let (ready, is_ready) = mpsc::channel();
    let plan =
        NullPlan { backend, port: 0, request_bytes: reply.default_request_bytes(), reply, log: None, long: None };
    std::thread::spawn(move || {
        let ended = bench::null::run(&plan, |port| ready.send(port).unwrap());
        eprintln!("{backend:?}: {ended:?}");
    });
    is_ready.recv().ok().map(|port| Target::Tcp(format!("127.0.0.1:{port}")))
}

fn store() -> Target {
    let (ready, is_ready) = mpsc::channel();
    std::thread::spawn(move || bench::thread_per_request::run(0, |port| ready.send(port).unwrap()));
    Target::Tcp(format!("127.0.0.1:{}", is_ready.recv().unwrap()))
}

fn plan(target: Target, operation: Operation, requests: u64) -> LoadPlan {
    let mut plan = LoadPlan::new(target);
    plan.mix = vec![(1, operation)];
    plan.keys.count = 100;
    plan.connections = 4;
    plan.warm_up = Duration::ZERO;
    plan.stop = Stop::Requests(requests);
    plan.server_pid = Some(std::process::id());
    plan
}

fn run(plan: &LoadPlan) -> Report {
    load::run(plan).unwrap()
}

#[test]
fn exactly_the_requests_asked_for_are_answered_by_both_null_servers() {
    for backend in [Backend::Epoll, Backend::Uring] {
        for (reply, operation) in [(FixedReply::Get, Operation::Get), (FixedReply::Set, Operation::Set)] {
            let Some(target) = null_server(backend, reply) else {
                assert_ne!(backend, Backend::Epoll, "epoll is everywhere");
                println!("io_uring is forbidden here: only epoll was tested");
                return;
            };
            for pipeline in [1, 16, 300] {
                let mut plan = plan(target.clone(), operation.clone(), 5_000);
                plan.pipeline = pipeline;
                let report = run(&plan);
                assert_eq!((report.requests, report.errors), (5_000, 0), "{backend:?} {operation:?} {pipeline}");
                let latency = report.latency_us.unwrap();
                assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.max);
                assert_eq!(report.server.map(|cost| cost.pid), Some(std::process::id()));
            }
        }
    }
}

#[test]
fn replies_larger_than_any_buffer_are_counted() {
    let target = null_server(Backend::Epoll, FixedReply::Get).unwrap();
    let mut plan = plan(target, Operation::Get, 40_000);
    plan.connections = 1;
    plan.pipeline = 10_000;
    assert_eq!(run(&plan).requests, 40_000);
}

#[test]
fn what_was_preloaded_is_found_and_what_was_not_is_missed() {
    let mut plan = plan(store(), Operation::Get, 500);
    assert_eq!(run(&plan).misses, 500);
    plan.preload = true;
    let report = run(&plan);
    assert_eq!((report.misses, report.errors), (0, 0));
}

/// One letter of `proc_pid_stat(5)`: what the process does.
fn state(child: &Child) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    stat[stat.rfind(')').unwrap() + 2..].chars().next().unwrap()
}

/// Sends it, and waits until the process does that, or has ended.
fn send(child: &Child, signal: Signal, then: char) {
    kill_process(Pid::from_child(child), signal).unwrap();
    while ![then, 'Z'].contains(&state(child)) {
        std::thread::yield_now();
    }
}

#[test]
fn a_preload_that_stood_still_goes_on() {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_load-generator"))
        .args(["--target", &server.local_addr().unwrap().to_string(), "--keys", "1", "--requests", "1", "--preload"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Whoever asks for something else, which process this is, does without.
    let preloads = server.incoming().map(Result::unwrap).find_map(|mut stream| {
        let mut begin = [0; 13];
        stream.read_exact(&mut begin).unwrap();
        begin.ends_with(b"SET\r\n").then_some(stream)
    });
    for _ in 0..3 {
        send(&child, Signal::STOP, 'T');
        send(&child, Signal::CONT, 'S');
    }
    // It asks no further: what it says then is about this, and not about the signals.
    drop(preloads);
    drop(server);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    assert!(said.contains("preload") && !said.contains("Interrupted"), "{said}");
}

#[test]
fn errors_are_counted_and_the_first_is_shown() {
    let words = ["PING"].map(String::from).to_vec();
    let report = run(&plan(store(), Operation::Custom(words), 10));
    assert_eq!(report.errors, 10);
    assert_eq!(report.first_error.as_deref(), Some("ERR this baseline knows GET and SET only"));
    assert!(report.to_string().contains("ERRORS      10 of 10, first: ERR this baseline"));
}

#[test]
fn errors_and_misses_of_the_warm_up_are_counted_apart() {
    let words = ["PING"].map(String::from).to_vec();
    for (operation, stop) in [
        (Operation::Custom(words.clone()), Stop::Requests(50)),
        (Operation::Custom(words), Stop::After(Duration::from_millis(20))),
        (Operation::Get, Stop::Requests(50)),
        (Operation::Get, Stop::After(Duration::from_millis(20))),
    ] {
        let mut plan = plan(store(), operation.clone(), 1);
        (plan.stop, plan.warm_up, plan.pipeline) = (stop, Duration::from_millis(20), 4);
        let report = run(&plan);
        let counted = (report.errors, report.misses);
        let all = if operation == Operation::Get { (0, report.requests) } else { (report.requests, 0) };
        assert_eq!(counted, all, "{report}");
        assert_eq!(report.first_error.is_some(), report.errors + report.errors_outside > 0);
    }
}

#[test]
fn a_server_that_wants_a_password_ends_the_run_at_its_first_reply() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = Target::Tcp(listener.local_addr().unwrap().to_string());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // One reply, and then never another.
            std::thread::spawn(move || {
                stream.read_exact(&mut [0; 10]).unwrap();
                stream.write_all(b"-NOAUTH Authentication required.\r\n").unwrap();
                // How it ends is the client's affair.
                stream.read_to_end(&mut Vec::new()).ok();
            });
        }
    });
    let refused = |change: fn(&mut LoadPlan)| {
        let mut plan = plan(target.clone(), Operation::Get, 1_000);
        change(&mut plan);
        load::run(&plan).unwrap_err()
    };
    let changes: [fn(&mut LoadPlan); 4] =
        [|_| (), |plan| plan.preload = true, |plan| plan.cluster = true, |plan| plan.dialect = Dialect::Resp3];
    for change in changes {
        let problem = refused(change);
        assert!(problem.contains("--password-env") && problem.contains("NOAUTH"), "{problem}");
    }
}

#[test]
fn an_open_loop_sends_what_was_offered() {
    let target = null_server(Backend::Epoll, FixedReply::Get).unwrap();
    for (poisson, spins) in [(true, true), (false, true), (true, false)] {
        let mut plan = plan(target.clone(), Operation::Get, 2_000);
        plan.open_loop = Some(OpenLoop { per_second: 20_000.0, poisson, spins });
        let report = run(&plan);
        assert_eq!(report.requests, 2_000);
        let offered = report.offered.unwrap();
        assert_eq!((offered.per_second, offered.unsent), (20_000.0, 0));
        assert!(report.littles_law.is_none());
    }
}

#[test]
fn a_bounded_number_behind_a_warm_up_is_that_number() {
    let target = null_server(Backend::Epoll, FixedReply::Get).unwrap();
    for (threads, requests) in [(1, 1000), (3, 1000), (3, 1)] {
        let mut plan = plan(target.clone(), Operation::Get, requests);
        (plan.threads, plan.pipeline, plan.warm_up) = (threads, 16, Duration::from_millis(10));
        assert_eq!(run(&plan).requests, requests, "{threads} threads");
    }
}

#[test]
fn several_threads_share_the_requests() {
    let target = null_server(Backend::Epoll, FixedReply::Set).unwrap();
    let mut plan = plan(target, Operation::Set, 10_001);
    plan.threads = 3;
    assert_eq!(run(&plan).requests, 10_001);
}

#[test]
fn whoever_dials_and_preloads_stays_on_the_cpus_of_the_generators() {
    let target = null_server(Backend::Epoll, FixedReply::Set).unwrap();
    let mut plan = plan(target, Operation::Set, 10);
    plan.pin_cpus = vec![0];
    let cpus = std::thread::spawn(move || {
        run(&plan);
        rustix::thread::sched_getaffinity(None).unwrap()
    });
    let cpus = cpus.join().unwrap();
    assert!(cpus.is_set(0) && cpus.count() == 1);
}

#[test]
fn a_plan_that_cannot_work_is_refused_in_words() {
    let target = Target::Tcp("127.0.0.1:1".into());
    let refused = |change: fn(&mut LoadPlan)| {
        let mut plan = plan(target.clone(), Operation::Get, 1);
        change(&mut plan);
        load::run(&plan).unwrap_err()
    };
    assert!(refused(|plan| plan.keys.bytes = 3).contains("--key-bytes"));
    assert!(refused(|plan| plan.pipeline = 0).contains("pipeline"));
    assert!(refused(|plan| plan.stop = Stop::Requests(0)).contains("--requests 0"));
    assert!(refused(|plan| plan.stop = Stop::After(Duration::ZERO)).contains("--duration 0"));
    assert!(refused(|plan| plan.value_bytes = RangeInclusive::new(9, 3)).contains("--value-bytes 9-3"));
    assert!(refused(|plan| plan.mix = vec![(0, Operation::Get)]).contains("weights"));
    assert!(refused(|_| ()).contains("cannot connect to 127.0.0.1:1"));
}

/// The port of a gateway before a store of four instances with values of so many bytes. Both live as long as the test process.
fn gateway(way: Way, value_bytes: usize, block: &ports::PortBlock) -> u16 {
    let route = Route { first_port: block.first(), instances: 4 };
    let canned = Canned { route, value_bytes: Arc::new(AtomicUsize::new(value_bytes)), delay: Duration::ZERO };
    let (ready, is_ready) = mpsc::channel();
    std::thread::spawn(move || store::serve(canned, || ready.send(()).unwrap()).unwrap());
    is_ready.recv().unwrap();
    let port = block.first() + 4;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    std::thread::spawn(move || serve(way, listener, route).unwrap());
    port
}

#[test]
fn every_way_of_a_gateway_answers_each_key_with_its_value_in_the_order_of_the_request() {
    for way in ["threads", "pool", "on-demand", "split-1", "split-2", "split-4"] {
        // More than a socket takes at once.
        const VALUE_BYTES: usize = 200_000;
        let block = ports::PortBlock::take().unwrap();
        let port = gateway(way.parse().unwrap(), VALUE_BYTES, &block);
        let mut clients: Vec<TcpStream> =
            (0..3).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap()).collect();
        for round in 0..3 {
            let key = |client: usize, place: usize| format!("{{{place}}}:{client}:{round}:{:06}", place * place);
            for (number, client) in clients.iter_mut().enumerate() {
                let keys = (0..20).map(|place| key(number, place)).map(|key| format!("${}\r\n{key}\r\n", key.len()));
                write!(client, "*21\r\n$4\r\nMGET\r\n{}", keys.collect::<String>()).unwrap();
            }
            for (number, client) in clients.iter_mut().enumerate() {
                let value = |place: usize| {
                    let key = key(number, place);
                    let rest = "x".repeat(VALUE_BYTES - key.len());
                    format!("${VALUE_BYTES}\r\n{key}{rest}\r\n")
                };
                let expected = format!("*20\r\n{}", (0..20).map(value).collect::<String>());
                let mut answer = vec![0; expected.len()];
                client.read_exact(&mut answer).unwrap();
                assert!(answer == expected.as_bytes(), "{way}, client {number}, round {round}");
            }
        }
    }
}
