//! Every key once more, when all is whole and nobody else asks: what was acknowledged is judged by these reads.

use std::thread;
use std::time::Duration;

use super::client::Client;
use super::history::{Answer, Operation, What};

/// Tries for one of them: on a busy machine a node may lose its lease at any moment, and be whole again soon.
const TRIES: usize = 3000;
const PAUSE: Duration = Duration::from_millis(20);

/// Reads every key, as that client.
pub(crate) fn last_reads(mut client: Client<'_>, keys: &[String]) -> Vec<Operation> {
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
