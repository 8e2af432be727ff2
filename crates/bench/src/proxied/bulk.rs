//! A bulk job: a connection that writes and reads values as quickly as it is answered, many requests ahead.

use std::net::SocketAddr;

use super::talk::{Talk, encode, encode_value};

/// Keys of each connection: more than fit a processor's caches for all of them, less than anybody's memory.
const KEYS: usize = 500;

/// Requests of a bulk job, and the replies to them.
struct Pipeline {
    count: u64,
    requests: Vec<u8>,
    replies: Vec<u8>,
}

/// One connection of it.
pub struct Bulk {
    talk: Talk,
    /// All its keys in turn; each has the other half written.
    pipelines: Vec<Pipeline>,
    next: usize,
}

impl Bulk {
    /// Connection `number`, whose keys are there when this returns.
    ///
    /// # Errors
    /// When the server does not take them.
    pub fn begin(address: SocketAddr, number: usize, ahead: usize, value_bytes: usize) -> Result<Bulk, String> {
        let value = vec![b'v'; value_bytes];
        let key = |key: usize| format!("bulk:{number}:{key}").into_bytes();
        let keys: Vec<usize> = (0..KEYS).collect();
        let fills = keys.chunks(ahead).map(|keys| pipeline(keys.iter().map(|at| (true, key(*at))), &value));
        let mut talk = Talk::dial(address)?;
        for Pipeline { requests, replies, .. } in fills {
            talk.exchange(&requests, &replies)?;
        }
        // Every second request writes.
        let turns = keys.chunks(ahead);
        let pipelines = turns.map(|keys| pipeline(keys.iter().map(|at| (at % 2 == 0, key(*at))), &value)).collect();
        Ok(Bulk { talk, pipelines, next: 0 })
    }

    /// Sends the next requests and waits for all their replies; how many they are.
    ///
    /// # Errors
    /// When they are not answered, or otherwise than they have to be.
    pub fn turn(&mut self) -> Result<u64, String> {
        let Pipeline { count, requests, replies } = &self.pipelines[self.next];
        self.next = (self.next + 1) % self.pipelines.len();
        self.talk.exchange(requests, replies)?;
        Ok(*count)
    }
}

fn pipeline(keys: impl Iterator<Item = (bool, Vec<u8>)>, value: &[u8]) -> Pipeline {
    let mut pipeline = Pipeline { count: 0, requests: Vec::new(), replies: Vec::new() };
    for (writes, key) in keys {
        pipeline.count += 1;
        match writes {
            true => {
                encode(&[b"SET", &key, value], &mut pipeline.requests);
                pipeline.replies.extend_from_slice(b"+OK\r\n");
            }
            false => {
                encode(&[b"GET", &key], &mut pipeline.requests);
                encode_value(value, &mut pipeline.replies);
            }
        }
    }
    pipeline
}
