//! A generator between a window and a server that both do what a test says.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use super::*;
use crate::load::keys::KeyChooser;
use crate::load::plan::{Dialect, Target};

struct Lab {
    window: Arc<Window>,
    server: UnixStream,
    thread: JoinHandle<Result<Observations, String>>,
}

impl Lab {
    /// With one connection.
    fn start(plan: &LoadPlan, budget: Option<u64>, window: Window) -> Lab {
        let (ours, server) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let window = Arc::new(window);
        let requests = Requests::new(plan, KeyChooser::new(&plan.keys), 1);
        let connections = vec![Connection::new(ours.into(), Dialect::Resp2, None)];
        let generator = Generator::new(plan, 0, Arc::clone(&window), requests, connections, budget).unwrap();
        Lab { window, server, thread: std::thread::spawn(move || generator.run()) }
    }

    /// Takes one `GET` with a key of 15 bytes.
    fn take_request(&mut self) {
        self.server.read_exact(&mut [0; "*2\r\n$3\r\nGET\r\n$15\r\nkey:00000000000\r\n".len()]).unwrap();
    }

    fn reply(&mut self, text: &str) {
        self.server.write_all(text.as_bytes()).unwrap();
    }

    fn observed(self) -> Observations {
        self.thread.join().unwrap().unwrap()
    }
}

fn plan(per_second: Option<f64>) -> LoadPlan {
    let open_loop = per_second.map(|per_second| OpenLoop { per_second, poisson: true, spins: true });
    LoadPlan { open_loop, connections: 1, ..LoadPlan::new(Target::Tcp("nobody dials it".into())) }
}

#[test]
fn starts_that_the_warm_up_left_behind_are_not_silent_about_the_window() {
    let mut lab = Lab::start(&plan(Some(1e12)), None, Window::new(1));
    lab.take_request();
    let opened_ns = lab.window.open();
    while lab.window.close() == opened_ns {}
    lab.window.stop();
    lab.reply("+OK\r\n");
    let seen = lab.observed();
    assert!(seen.unsent > 0 && seen.behind_ns > 0, "{} {}", seen.unsent, seen.behind_ns);
    assert!(seen.latency_ns.is_empty(), "the only request belongs to the warm-up");
}

#[test]
fn a_bounded_number_of_late_starts_is_late() {
    let window = Window::new(1);
    window.open();
    let mut lab = Lab::start(&plan(Some(1e12)), Some(2), window);
    lab.take_request();
    lab.reply("+OK\r\n");
    lab.take_request();
    lab.reply("+OK\r\n");
    let seen = lab.observed();
    assert!(seen.behind_ns > 0);
    assert_eq!((seen.unsent, seen.latency_ns.len()), (0, 2));
}

#[test]
fn a_bounded_number_of_replies_is_measured_to_its_last_one_and_not_to_the_end_of_the_thread() {
    let plan = LoadPlan { pipeline: 4, ..plan(None) };
    let mut lab = Lab::start(&plan, Some(3), Window::new(1));
    (0..4).for_each(|_| lab.take_request());
    lab.window.open();
    // Four were in flight: three of them are the measured replies, and as many requests more were sent.
    lab.reply(&"+OK\r\n".repeat(4));
    (0..3).for_each(|_| lab.take_request());
    let sent_ns = lab.window.now_ns();
    lab.reply(&"+OK\r\n".repeat(3));
    let seen = lab.observed();
    assert_eq!((seen.replies, seen.latency_ns.len()), (3, 3));
    assert!(seen.last_ns.unwrap() <= sent_ns);
}

#[test]
fn a_thread_that_has_nothing_to_measure_still_warms_up() {
    // With gaps, in which nothing is in flight.
    let mut lab = Lab::start(&plan(Some(100.0)), Some(0), Window::new(1));
    for _ in 0..3 {
        lab.take_request();
        lab.reply("+OK\r\n");
    }
    lab.take_request();
    lab.window.open();
    lab.reply("+OK\r\n");
    let seen = lab.observed();
    assert_eq!((seen.replies, seen.last_ns, seen.latency_ns.len()), (0, None, 0));
}

#[test]
fn starts_that_nobody_made_count_from_the_beginning_of_the_window() {
    let left = |next_ns| Schedule { mean_gap_ns: 10.0, poisson: true, next_ns }.left_within(1_000.0, 2_000.0);
    assert_eq!(left(20.0), 100, "still in the warm-up");
    assert_eq!((left(1_000.0), left(1_500.0), left(1_995.0)), (100, 50, 1));
    assert_eq!((left(2_000.0), left(3_000.0)), (0, 0), "nothing was due");
    let unopened = Schedule { mean_gap_ns: 10.0, poisson: true, next_ns: 20.0 };
    assert_eq!(unopened.left_within(u64::MAX as f64, 2_000.0), 0);
}

#[test]
fn no_sleep_lasts_beyond_the_next_start_even_rounded_up_to_a_millisecond() {
    for until_due_ns in [0, 1, SPIN_NS, 999_999, 1_000_000, 1_059_999, 1_060_000, 2_500_000, 49_999_999, 1 << 40] {
        let sleep_ns = sleep_before(until_due_ns);
        let rounded_up_ns = sleep_ns.div_ceil(NS_PER_MS) * NS_PER_MS;
        assert!(rounded_up_ns == 0 || rounded_up_ns + SPIN_NS <= until_due_ns, "{until_due_ns}: {sleep_ns}");
        assert!(until_due_ns - rounded_up_ns.min(until_due_ns) < NS_PER_MS + SPIN_NS || sleep_ns == SLEEP_NS_MAX);
    }
}
