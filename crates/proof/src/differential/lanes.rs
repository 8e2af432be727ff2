//! Lanes: pairs of connections to every server, on which batches of sequences run in step.
//!
//! ```text
//! lane 0   connection 0  ──[ seq 1, seq 2 a ]──────────────[ seq 2 c, seq 3 ]──►   to target and judges alike
//!          connection 1  ────────────────────[ seq 2 b ]─────────────────────►
//!                         segment 0           segment 1     segment 2
//! ```
//! A segment is written at once and its replies are read before the next begins, so the order between the two
//! connections of a sequence is certain without waiting between single commands.

use std::io;

use crate::connection::{Connection, encode};
use crate::model::Model;
use crate::sequence::{Judge, Sequence};

/// The servers of one run.
#[derive(Clone, Debug)]
pub struct Servers {
    /// Nodes of the server under test; one when it is standalone.
    pub targets: Vec<String>,
    /// Redis 7.0.
    pub redis: String,
    /// A newer Valkey.
    pub valkey: Option<String>,
}

/// The replies to one sequence; both end at the step where a connection failed.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    /// What the judge says, step by step.
    pub expected: Vec<Vec<u8>>,
    /// What the server under test says.
    pub actual: Vec<Vec<u8>>,
    /// Why a step has no reply.
    pub failure: Option<String>,
}

/// Two connections to the target and to each judge.
pub struct Lane {
    /// Which node of a cluster it talks to.
    pub node: usize,
    speaks_resp3: bool,
    target: [Connection; 2],
    redis: [Connection; 2],
    valkey: Option<[Connection; 2]>,
}

/// A run of steps on one connection: (sequence, step) each.
pub struct Segment {
    connection: usize,
    steps: Vec<(usize, usize)>,
}

impl Lane {
    /// Opens all connections of a lane to `node`.
    ///
    /// # Errors
    /// Those of connecting.
    pub fn open(servers: &Servers, node: usize, speaks_resp3: bool) -> io::Result<Lane> {
        let pair = |address: &str| -> io::Result<[Connection; 2]> {
            let mut pair = [Connection::open(address)?, Connection::open(address)?];
            if speaks_resp3 {
                for connection in &mut pair {
                    connection.call_line("HELLO 3")?;
                }
            }
            Ok(pair)
        };
        Ok(Lane {
            node,
            speaks_resp3,
            target: pair(&servers.targets[node])?,
            redis: pair(&servers.redis)?,
            valkey: servers.valkey.as_deref().map(pair).transpose()?,
        })
    }

    /// Whether its connections speak RESP3.
    pub fn speaks_resp3(&self) -> bool {
        self.speaks_resp3
    }

    /// Replaces the connections after a failure.
    ///
    /// # Errors
    /// Those of connecting.
    pub fn reopen(&mut self, servers: &Servers) -> io::Result<()> {
        *self = Lane::open(servers, self.node, self.speaks_resp3)?;
        Ok(())
    }

    /// Writes one segment to the target and to the judges concerned.
    fn send(&mut self, segment: &Segment, sequences: &[Sequence]) -> io::Result<()> {
        let (mut target, mut redis, mut valkey) = (Vec::new(), Vec::new(), Vec::new());
        for (sequence, step) in &segment.steps {
            let sequence = &sequences[*sequence];
            let from = target.len();
            encode(&sequence.steps[*step].arguments, &mut target);
            match sequence.judge {
                Judge::Redis => redis.extend_from_slice(&target[from..]),
                Judge::Valkey => valkey.extend_from_slice(&target[from..]),
                Judge::Model => {}
            }
        }
        self.redis[segment.connection].write(&redis)?;
        if let Some(connections) = &mut self.valkey {
            connections[segment.connection].write(&valkey)?;
        }
        self.target[segment.connection].write(&target)
    }

    /// Reads the judges' replies to a segment, then the target's.
    fn receive(
        &mut self,
        segment: &Segment,
        sequences: &[Sequence],
        models: &mut [Model],
        replies: &mut [Replies],
    ) -> Result<(), (usize, String)> {
        for (sequence, step) in &segment.steps {
            let step = &sequences[*sequence].steps[*step];
            let expected = match sequences[*sequence].judge {
                Judge::Redis => self.redis[segment.connection].read_reply(),
                Judge::Valkey => match &mut self.valkey {
                    Some(connections) => connections[segment.connection].read_reply(),
                    None => Err(io::Error::other("a sequence for Valkey without a Valkey")),
                },
                Judge::Model => Ok(models[*sequence].execute(&step.arguments, self.speaks_resp3)),
            };
            replies[*sequence].expected.push(expected.map_err(|error| (*sequence, format!("judge: {error}")))?);
        }
        for (sequence, _) in &segment.steps {
            let actual = self.target[segment.connection].read_reply();
            replies[*sequence].actual.push(actual.map_err(|error| (*sequence, format!("target: {error}")))?);
        }
        Ok(())
    }
}

/// Cuts sequences into segments: neighbours on the same connection go together.
fn segments_of(sequences: &[Sequence]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for (index, sequence) in sequences.iter().enumerate() {
        for (step_index, step) in sequence.steps.iter().enumerate() {
            match segments.last_mut() {
                Some(last) if last.connection == step.connection => last.steps.push((index, step_index)),
                _ => segments.push(Segment { connection: step.connection, steps: vec![(index, step_index)] }),
            }
        }
    }
    segments
}

/// Runs one batch of sequences on each lane and returns the replies to each.
///
/// # Errors
/// Only when a failed lane cannot be opened again.
pub fn run(lanes: &mut [Lane], batches: &[Vec<Sequence>], servers: &Servers) -> io::Result<Vec<Vec<Replies>>> {
    let segments: Vec<Vec<Segment>> = batches.iter().map(|batch| segments_of(batch)).collect();
    let mut replies: Vec<Vec<Replies>> = batches.iter().map(|batch| vec![Replies::default(); batch.len()]).collect();
    let mut models: Vec<Vec<Model>> = batches.iter().map(|batch| vec![Model::default(); batch.len()]).collect();
    let mut failed = vec![false; lanes.len()];
    let most = segments.iter().map(Vec::len).max().unwrap_or(0);
    for round in 0..most {
        for (index, lane) in lanes.iter_mut().enumerate() {
            let Some(segment) = segments[index].get(round).filter(|_| !failed[index]) else { continue };
            // A server that has closed is noticed at the missing reply, which names the sequence.
            drop(lane.send(segment, &batches[index]));
        }
        for (index, lane) in lanes.iter_mut().enumerate() {
            let Some(segment) = segments[index].get(round).filter(|_| !failed[index]) else { continue };
            let result = lane.receive(segment, &batches[index], &mut models[index], &mut replies[index]);
            if let Err((sequence, failure)) = result {
                replies[index][sequence].failure = Some(failure);
                failed[index] = true;
            }
        }
    }
    for (lane, _) in lanes.iter_mut().zip(&failed).filter(|(_, failed)| **failed) {
        lane.reopen(servers)?;
    }
    Ok(replies)
}
