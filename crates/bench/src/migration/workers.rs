//! Clients that ask one request after the other, as fast as they are answered or in a steady beat. Each key has one worker, who knows
//! what it has to say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::rng::Rng;

/// A way to the keys.
pub trait Access: Send {
    /// The number in the value of a key; 0 if there is none.
    ///
    /// # Errors
    /// Why nobody tells.
    fn get(&mut self, key: u32) -> Result<u64, String>;
    /// Sets a key to a value with a number.
    ///
    /// # Errors
    /// Why that may not be done.
    fn set(&mut self, key: u32, number: u64) -> Result<(), String>;
    /// How often it was told to ask somewhere else, or again, so far.
    fn corrections(&self) -> u64;
}

/// What they ask.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Requests in a hundred that are SETs.
    pub write_percent: u32,
    /// Requests a second of all of them together; without it as fast as they are answered.
    pub per_second: Option<f64>,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Since it was sent, or due.
    pub took: Duration,
}

/// What one worker saw.
#[derive(Default)]
pub struct Notes {
    /// Answered requests, in order.
    pub samples: Vec<Sample>,
    /// Others, by what was said.
    pub failed: BTreeMap<String, u64>,
    /// Answers that are not what was set last.
    pub wrong: u64,
    /// Corrections while it ran.
    pub corrections: u64,
}

/// Workers that ask. They end when this is stopped, or dropped.
pub struct Running<A> {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(Worker<A>, Notes)>>,
}

/// One of them.
pub struct Worker<A> {
    access: A,
    place: u32,
    workers: u32,
    /// What its keys say: the key of place `index` is `index * workers + place`. `None`: nobody told what became of a SET.
    numbers: Vec<Option<u64>>,
    first: u64,
    rng: Rng,
}

/// Begins to ask for keys `0..keys`, all of which say `first`.
pub fn start<A: Access + 'static>(accesses: Vec<A>, keys: u32, first: u64, mix: Mix) -> Running<A> {
    let end = Arc::new(AtomicBool::new(false));
    let (workers, begun) = (accesses.len() as u32, Instant::now());
    let beat = mix.per_second.map(|per_second| Duration::from_secs_f64(f64::from(workers) / per_second));
    let run = |(place, access): (u32, A)| {
        let numbers = vec![Some(first); keys.saturating_sub(place).div_ceil(workers) as usize];
        let rng = Rng::new(u64::from(place) + 1);
        let mut worker = Worker { access, place, workers, numbers, first, rng };
        let end = Arc::clone(&end);
        std::thread::spawn(move || {
            let mut notes = Notes::default();
            let mut due = begun + beat.unwrap_or_default().mul_f64(f64::from(place) / f64::from(workers));
            while !end.load(Ordering::Relaxed) {
                match beat {
                    Some(beat) => {
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        worker.ask(due, mix.write_percent, &mut notes);
                        due += beat;
                    }
                    None => worker.ask(Instant::now(), mix.write_percent, &mut notes),
                }
            }
            notes.corrections = worker.access.corrections();
            (worker, notes)
        })
    };
    Running { threads: (0..).zip(accesses).map(run).collect(), end }
}

impl<A> Running<A> {
    /// Ends them when each has its answer.
    pub fn stop(mut self) -> (Vec<Worker<A>>, Vec<Notes>) {
        self.end.store(true, Ordering::Relaxed);
        self.threads.drain(..).map(|thread| thread.join().expect("a worker does not panic")).unzip()
    }
}

impl<A> Drop for Running<A> {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

impl<A: Access> Worker<A> {
    fn ask(&mut self, from: Instant, write_percent: u32, notes: &mut Notes) {
        let index = self.rng.below(self.numbers.len() as u64) as usize;
        let key = index as u32 * self.workers + self.place;
        let known = self.numbers[index];
        let done = match known {
            Some(number) if self.rng.below(100) < u64::from(write_percent) => {
                // Not done for all that is known, until it is answered.
                self.numbers[index] = None;
                self.access.set(key, number + 1).map(|()| self.numbers[index] = Some(number + 1))
            }
            _ => self.access.get(key).map(|number| {
                notes.wrong += u64::from(known.is_some_and(|known| known != number));
                // What stands there now stays.
                self.numbers[index] = Some(number);
            }),
        };
        match done {
            Ok(()) => notes.samples.push(Sample { at: Instant::now(), took: from.elapsed() }),
            Err(text) => *notes.failed.entry(text).or_default() += 1,
        }
    }

    /// Reads every key that it has set; how many do not say what they should, or nothing.
    pub fn audit(&mut self) -> u64 {
        let mut wrong = 0;
        for (index, known) in self.numbers.iter().enumerate() {
            let Some(known) = known.filter(|known| *known != self.first) else { continue };
            wrong += u64::from(self.access.get(index as u32 * self.workers + self.place) != Ok(known));
        }
        wrong
    }
}
