//! Reads of runs beside the core, where no driver does them: a few threads that each wait for the disk, past the page cache.
//!
//! Past it, because what is read goes into the store's memory: kept twice it would count twice under a limit of the process's
//! group. A record of a few hundred bytes costs the disk a block anyway.
//!
//! A read costs one wake-up: the threads sleep on one condition. With a channel under a lock each read woke a second thread, only
//! for it to wait in the first one's place.

use crate::disk_thread::Wake;
use crate::run_read::{Job, OpenRuns, read};
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Threads of one core: reads that a disk works on at once. Disks of our time give more to who asks for more: one was seen at
/// 19,000 direct reads a second for 8 threads, 44,000 for 32, and 53,000 for 64.
const THREADS: usize = 32;
/// Memory that a thread keeps for the next read, bytes: more than the longest record takes.
const KEPT_BYTES_MAX: usize = 96 << 10;

/// What became of it.
pub(crate) type Done = (u64, Result<Vec<u8>, String>);

/// What waits for a thread.
#[derive(Default)]
struct Todo {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job: whom nobody waits for is not called.
    sleeping: usize,
    is_over: bool,
}

#[derive(Default)]
struct TodoList {
    todo: Mutex<Todo>,
    changed: Condvar,
}

impl TodoList {
    fn add(&self, job: Job) {
        let mut todo = lock(&self.todo);
        todo.jobs.push_back(job);
        let is_awaited = todo.sleeping > 0;
        drop(todo);
        if is_awaited {
            self.changed.notify_one();
        }
    }

    /// The next job, in order; `None` when there are no more to come.
    fn next(&self) -> Option<Job> {
        let mut todo = lock(&self.todo);
        loop {
            if let Some(job) = todo.jobs.pop_front() {
                return Some(job);
            }
            if todo.is_over {
                return None;
            }
            todo.sleeping += 1;
            todo = self.changed.wait(todo).unwrap_or_else(PoisonError::into_inner);
            todo.sleeping -= 1;
        }
    }

    fn end(&self) {
        lock(&self.todo).is_over = true;
        self.changed.notify_all();
    }
}

/// The core's end of the threads; a machine bounds how many reads are under way.
pub(crate) struct RunReaders {
    todo: Arc<TodoList>,
    results: Receiver<Done>,
    threads: Vec<JoinHandle<()>>,
    in_flight: usize,
}

impl RunReaders {
    pub fn start(core: u16, wake: &Wake, open: &OpenRuns) -> io::Result<RunReaders> {
        let (done, results) = channel();
        let mut readers = RunReaders { todo: Arc::default(), results, threads: Vec::new(), in_flight: 0 };
        for number in 0..THREADS {
            let (todo, done) = (Arc::clone(&readers.todo), done.clone());
            let (open, wake) = (open.clone(), Arc::clone(wake));
            let thread = Builder::new().name(format!("read-{core}-{number}"));
            readers.threads.push(thread.spawn(move || serve(&todo, &done, &open, &wake))?);
        }
        Ok(readers)
    }

    pub fn submit(&mut self, job: Job) {
        self.todo.add(job);
        self.in_flight += 1;
    }

    /// The next result, if there is one.
    pub fn result(&mut self) -> Option<Done> {
        if self.in_flight == 0 {
            return None;
        }
        match self.results.try_recv() {
            Ok(done) => {
                self.in_flight -= 1;
                Some(done)
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }
}

impl Drop for RunReaders {
    fn drop(&mut self) {
        self.todo.end();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                eprintln!("zerohop: a reader thread panicked");
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(todo: &TodoList, done: &Sender<Done>, open: &OpenRuns, wake: &Wake) {
    let mut memory = Vec::new();
    while let Some(job) = todo.next() {
        let read = open.get(&job.path).and_then(|file| read(&file, &job, &mut memory));
        if memory.len() > KEPT_BYTES_MAX {
            memory = Vec::new();
        }
        let read = read.map_err(|error| job.failure(&error));
        if done.send((job.token, read)).is_err() {
            return;
        }
        wake();
    }
}
