//! One node's executor: tasks, timers and chance of a library that thinks it is asynchronous, run to rest by one call.
//!
//! ```text
//!  run(now) ─► timers due ─► [ pick a ready task by the seed ─► poll ]* ─► nothing ready ─► next_deadline()
//! ```
//!
//! Nothing here reads a clock, starts a thread or draws from the system: the caller says what time it is, and the seed
//! says which of the ready tasks is polled next. So the same library runs inside a tick of the product and inside the
//! simulator.

#![expect(clippy::disallowed_types, reason = "a waker must be able to cross threads, though none of ours does")]

pub mod channel;
pub mod runtime;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Wake, Waker};

use base::rng::{Rng, mix};

/// Polls of one run after which a task is taken for one that spins.
const POLLS_MAX: u64 = 1_000_000;

type Task = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Shared>>> = const { RefCell::new(None) };
}

/// The tasks of one node.
pub struct Host {
    shared: Rc<Shared>,
}

/// What tasks, timers and channels of one node reach.
pub struct Shared {
    state: RefCell<State>,
    ready: Arc<Mutex<Vec<u64>>>,
}

struct State {
    now_ns: u64,
    next_task: u64,
    next_timer: u64,
    tasks: BTreeMap<u64, Slot>,
    timers: BTreeMap<(u64, u64), Waker>,
    /// The library's chance and the executor's are two streams: a further draw of one moves nothing in the other.
    library_rng: Rng,
    order_rng: Rng,
    in_order: bool,
    polls: u64,
    order_hash: u64,
}

struct Slot {
    /// `None` while it is being polled.
    task: Option<Task>,
    waker: Waker,
    queued: Arc<AtomicBool>,
}

struct TaskWaker {
    id: u64,
    queued: Arc<AtomicBool>,
    ready: Arc<Mutex<Vec<u64>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            lock(&self.ready).push(self.id);
        }
    }
}

fn lock(ready: &Mutex<Vec<u64>>) -> MutexGuard<'_, Vec<u64>> {
    ready.lock().expect("nobody panics while it holds the list")
}

impl Host {
    /// An executor whose chance is `seed`. `in_order` polls tasks in the order in which they became ready, as a product
    /// would; otherwise the seed decides.
    pub fn new(seed: u64, in_order: bool) -> Host {
        let state = State {
            now_ns: 0,
            next_task: 0,
            next_timer: 0,
            tasks: BTreeMap::new(),
            timers: BTreeMap::new(),
            library_rng: Rng::new(mix(seed ^ 1)),
            order_rng: Rng::new(mix(seed ^ 2)),
            in_order,
            polls: 0,
            order_hash: 0,
        };
        Host { shared: Rc::new(Shared { state: RefCell::new(state), ready: Arc::default() }) }
    }

    /// Add a task; it is polled by the next [`Host::run`].
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.shared.spawn(Box::pin(task));
    }

    /// The node's clock is `now_ns`: fire what is due and poll until nobody is ready.
    pub fn run(&self, now_ns: u64) {
        let _entered = Entered::enter(&self.shared);
        self.shared.advance(now_ns);
        let mut polls = 0;
        while let Some(id) = self.shared.next_ready() {
            self.shared.poll(id);
            polls += 1;
            assert!(polls < POLLS_MAX, "a task spins: {POLLS_MAX} polls and time stands still");
        }
    }

    /// When a timer is due next, by the node's clock.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.shared.state.borrow().timers.keys().next().map(|(deadline_ns, _)| *deadline_ns)
    }

    /// How often tasks were polled, and the hash of the order in which they were.
    pub fn polls(&self) -> (u64, u64) {
        let state = self.shared.state.borrow();
        (state.polls, state.order_hash)
    }
}

impl Drop for Host {
    /// Tasks may look at the clock, cancel timers and spawn others while they are dropped.
    fn drop(&mut self) {
        let _entered = Entered::enter(&self.shared);
        loop {
            let tasks = std::mem::take(&mut self.shared.state.borrow_mut().tasks);
            if tasks.is_empty() {
                break;
            }
            drop(tasks);
        }
        self.shared.state.borrow_mut().timers.clear();
    }
}

impl Shared {
    /// The node that is being run. The library reaches it by functions without arguments, so it must be somewhere.
    fn current() -> Rc<Shared> {
        Shared::try_current().expect("the library is entered by Host::run only")
    }

    fn try_current() -> Option<Rc<Shared>> {
        CURRENT.with(|current| current.borrow().clone())
    }

    fn spawn(&self, task: Task) {
        let mut state = self.state.borrow_mut();
        let id = state.next_task;
        state.next_task += 1;
        let queued = Arc::new(AtomicBool::new(true));
        let waker = TaskWaker { id, queued: queued.clone(), ready: self.ready.clone() };
        state.tasks.insert(id, Slot { task: Some(task), waker: Waker::from(Arc::new(waker)), queued });
        lock(&self.ready).push(id);
    }

    fn advance(&self, now_ns: u64) {
        let mut due = Vec::new();
        {
            let mut state = self.state.borrow_mut();
            assert!(now_ns >= state.now_ns, "the node's clock never goes back");
            state.now_ns = now_ns;
            while let Some(entry) = state.timers.first_entry().filter(|entry| entry.key().0 <= now_ns) {
                due.push(entry.remove());
            }
        }
        due.into_iter().for_each(Waker::wake);
    }

    fn next_ready(&self) -> Option<u64> {
        let mut ready = lock(&self.ready);
        if ready.is_empty() {
            return None;
        }
        let mut state = self.state.borrow_mut();
        if state.in_order {
            return Some(ready.remove(0));
        }
        let at = state.order_rng.below(ready.len() as u64) as usize;
        Some(ready.swap_remove(at))
    }

    fn poll(&self, id: u64) {
        let (mut task, waker) = {
            let mut state = self.state.borrow_mut();
            state.polls += 1;
            state.order_hash = mix(state.order_hash ^ id ^ (state.now_ns << 8));
            let Some(slot) = state.tasks.get_mut(&id) else { return };
            slot.queued.store(false, Ordering::Relaxed);
            (slot.task.take().expect("a task is polled by one run at a time"), slot.waker.clone())
        };
        let done = task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let mut state = self.state.borrow_mut();
        if !done {
            state.tasks.get_mut(&id).expect("only its end removes a task").task = Some(task);
            return;
        }
        state.tasks.remove(&id);
        // What a task owns may reach this state while it is dropped.
        drop(state);
        drop(task);
    }

    fn now_ns(&self) -> u64 {
        self.state.borrow().now_ns
    }

    fn add_timer(&self, deadline_ns: u64, waker: Waker) -> (u64, u64) {
        let mut state = self.state.borrow_mut();
        let key = (deadline_ns, state.next_timer);
        state.next_timer += 1;
        state.timers.insert(key, waker);
        key
    }

    fn change_timer(&self, key: (u64, u64), waker: &Waker) {
        if let Some(known) = self.state.borrow_mut().timers.get_mut(&key) {
            known.clone_from(waker);
        }
    }

    fn remove_timer(&self, key: (u64, u64)) {
        self.state.borrow_mut().timers.remove(&key);
    }

    fn draw(&self) -> u64 {
        self.state.borrow_mut().library_rng.next_u64()
    }
}

/// While it lives, this node is the current one.
struct Entered;

impl Entered {
    fn enter(shared: &Rc<Shared>) -> Entered {
        CURRENT.with(|current| {
            let before = current.replace(Some(shared.clone()));
            assert!(before.is_none(), "one node runs at a time");
        });
        Entered
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with(|current| current.replace(None));
    }
}
