//! Every key once more, when all is whole and nobody else asks: what was acknowledged is judged by these reads.

use std::thread;
use std::time::Duration;

use super::client::{Client, Stage};
use super::history::{Answer, Operation, What};

/// Tries for one of them: on a busy machine a node may lose its lease at any moment, and be whole again soon.
const TRIES: usize = 3000;
const PAUSE: Duration = Duration::from_millis(20);

/// Reads every key, as client `number`.
pub(crate) fn last_reads(stage: &Stage<'_>, keys: &[String], (number, seed): (usize, u64)) -> Vec<Operation> {
    let mut client = Client::new(stage, number, seed);
    let mut done = Vec::new();
    for key in keys {
        for _ in 0..TRIES {
            let what = if key.starts_with("c:") { What::Count } else { What::Read };
            let operation = client.perform(key.clone(), what);
            let is_answered = matches!(operation.answer, Answer::Number(_) | Answer::Value(_));
            done.push(operation);
            if is_answered {
                break;
            }
            thread::sleep(PAUSE);
        }
    }
    done
}
