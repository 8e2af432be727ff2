//! The measured window: one clock for all threads, and what each thread saw within it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Instant;

use hdrhistogram::Histogram;

use super::scan::Tally;

/// Longest latency that is told apart from longer ones.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Shared by the threads of a run: the clock, the window, the counters the coordinator reads while they work.
#[derive(Debug)]
pub struct Window {
    epoch: Instant,
    start_ns: AtomicU64,
    end_ns: AtomicU64,
    stop: AtomicBool,
    completed: Vec<AtomicU64>,
    /// Threads that are at an end, and who waits for them.
    ended: AtomicUsize,
    owner: Thread,
}

impl Window {
    /// A window that has not opened, for `threads` generator threads. The thread that makes it is the one that waits for them.
    pub fn new(threads: usize) -> Window {
        Window {
            epoch: Instant::now(),
            start_ns: AtomicU64::new(u64::MAX),
            end_ns: AtomicU64::new(u64::MAX),
            stop: AtomicBool::new(false),
            completed: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            ended: AtomicUsize::new(0),
            owner: std::thread::current(),
        }
    }

    /// Nanoseconds since the run began.
    pub fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Opens the window now.
    pub fn open(&self) -> u64 {
        let now = self.now_ns();
        self.start_ns.store(now, Ordering::Release);
        now
    }

    /// Opens the window now unless another thread has.
    pub fn open_first(&self) {
        let now = self.now_ns();
        // The other thread's moment is as good.
        self.start_ns.compare_exchange(u64::MAX, now, Ordering::AcqRel, Ordering::Acquire).ok();
    }

    /// Closes the window now.
    pub fn close(&self) -> u64 {
        let now = self.now_ns();
        self.end_ns.store(now, Ordering::Release);
        now
    }

    /// Tells the threads to finish what is in flight and return.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether the threads were told to finish.
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Whether the window has opened.
    pub fn opened(&self) -> bool {
        self.start_ns.load(Ordering::Acquire) != u64::MAX
    }

    /// Whether a request that started at `at_ns` belongs to the window.
    pub fn covers(&self, at_ns: u64) -> bool {
        at_ns >= self.start_ns.load(Ordering::Relaxed) && at_ns < self.end_ns.load(Ordering::Relaxed)
    }

    /// Where the window begins and ends; `u64::MAX` while it does not.
    pub fn span_ns(&self) -> (u64, u64) {
        (self.start_ns.load(Ordering::Acquire), self.end_ns.load(Ordering::Acquire))
    }

    /// Says that one of the threads is at an end, and wakes the owner.
    pub fn note_ended(&self) {
        self.ended.fetch_add(1, Ordering::AcqRel);
        self.owner.unpark();
    }

    /// Threads that are at an end.
    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::Acquire)
    }

    /// Publishes how many replies thread `thread` has seen since the run began.
    pub fn publish(&self, thread: usize, completed: u64) {
        self.completed[thread].store(completed, Ordering::Relaxed);
    }

    /// Replies seen by all threads since the run began.
    pub fn completed(&self) -> u64 {
        self.completed.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

/// What one thread saw within the window.
#[derive(Clone, Debug)]
pub struct Observations {
    /// Replies within the window.
    pub replies: u64,
    /// Errors and misses among them.
    pub tally: Tally,
    /// Errors and misses before the window and behind it.
    pub outside: Tally,
    /// When the last reply came that the thread had to measure, if their number is bounded; nanoseconds of the run's clock.
    pub last_ns: Option<u64>,
    /// Latency of every measured request, nanoseconds.
    pub latency_ns: Histogram<u64>,
    /// Open loop: intended starts within the window that were never sent.
    pub unsent: u64,
    /// Open loop: how far behind its schedule the thread was at the end of the window, nanoseconds.
    pub behind_ns: u64,
    /// CPU time of the thread, nanoseconds.
    pub thread_cpu_ns: u64,
}

impl Observations {
    /// Nothing seen yet.
    pub fn new() -> Observations {
        let latency_ns =
            Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("1 ns to 60 s in 3 digits is a valid shape");
        Observations {
            replies: 0,
            last_ns: None,
            latency_ns,
            tally: Tally::default(),
            outside: Tally::default(),
            unsent: 0,
            behind_ns: 0,
            thread_cpu_ns: 0,
        }
    }

    /// Adds `requests` of the same latency.
    pub fn record(&mut self, latency_ns: u64, requests: u32) {
        self.latency_ns.saturating_record_n(latency_ns.max(1), u64::from(requests));
    }

    /// Adds what another thread saw; percentiles come from merged histograms, never from averages.
    pub fn merge(&mut self, other: &Observations) {
        self.replies += other.replies;
        self.last_ns = self.last_ns.max(other.last_ns);
        self.latency_ns.add(&other.latency_ns).expect("both histograms have the same shape");
        self.tally.merge(&other.tally);
        self.outside.merge(&other.outside);
        self.unsent += other.unsent;
        self.behind_ns = self.behind_ns.max(other.behind_ns);
        self.thread_cpu_ns += other.thread_cpu_ns;
    }
}

impl Default for Observations {
    fn default() -> Observations {
        Observations::new()
    }
}
