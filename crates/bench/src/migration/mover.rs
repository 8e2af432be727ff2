//! The source's mover: brings all pairs to the destination, at a given pace whatever the way.

use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

use super::end::{End, Migration};
use super::way::Way;
use super::wire::{self, Head, Value};

/// Pairs that go together.
const BATCH: u32 = 100;

/// A migration under way.
struct Mover<'a> {
    end: &'a End,
    stream: TcpStream,
    migration: &'a Migration,
    begun: Instant,
    sent: u64,
}

impl End {
    /// Brings everything to the destination; returns when that serves everything.
    pub(super) fn migrate(&self, migration: &Migration) -> io::Result<()> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, migration.destination))?;
        stream.set_nodelay(true)?;
        let mut mover = Mover { end: self, stream, migration, begun: Instant::now(), sent: 0 };
        let keys = {
            let mut state = self.state();
            state.way = migration.way;
            state.pairs.len() as u32
        };
        let pieces = if migration.way == Way::Pieces { migration.pieces } else { 1 };
        for piece in cut(0..keys, keys.div_ceil(pieces.max(1))) {
            for batch in cut(piece.clone(), BATCH) {
                mover.keep_pace(&batch);
                match migration.way {
                    Way::Stopped => mover.stop_and_copy(batch)?,
                    _ => mover.copy(batch)?,
                }
            }
            mover.switch(piece.end)?;
        }
        Ok(())
    }
}

impl Mover<'_> {
    /// Waits until the next batch is due.
    fn keep_pace(&mut self, batch: &Range<u32>) {
        let due = self.begun + Duration::from_secs_f64(self.sent as f64 / self.migration.pairs_per_second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        self.sent += batch.len() as u64;
    }

    /// A batch, and what has changed of those before it.
    fn copy(&mut self, batch: Range<u32>) -> io::Result<()> {
        let pairs = {
            let mut state = self.end.state();
            state.shipped = batch.end;
            let changed = std::mem::take(&mut state.changed);
            state.pairs_of(batch.chain(changed))
        };
        self.send(&pairs, self.end.state().tokens_per_pair)
    }

    /// A batch that nobody serves while it goes: who waits for the other end serves nobody else either, as a server of one thread.
    fn stop_and_copy(&mut self, batch: Range<u32>) -> io::Result<()> {
        let mut state = self.end.state();
        let begun = Instant::now();
        let pairs = state.pairs_of(batch.clone());
        self.send(&pairs, state.tokens_per_pair)?;
        self.ask(Head { kind: wire::SWITCH, way: 0, number: batch.end }, &[])?;
        state.cursor = batch.end;
        self.end.bucket.block(begun.elapsed());
        Ok(())
    }

    /// From now on the destination serves what is below `end`.
    fn switch(&mut self, end: u32) -> io::Result<()> {
        let (pairs, tokens) = {
            let mut state = self.end.state();
            state.sealed = end;
            let changed = std::mem::take(&mut state.changed);
            (state.pairs_of(changed.into_iter()), state.tokens_per_pair)
        };
        self.send(&pairs, tokens)?;
        self.ask(Head { kind: wire::SWITCH, way: 0, number: end }, &[])?;
        self.end.state().cursor = end;
        self.end.awaited.notify_all();
        Ok(())
    }

    fn send(&mut self, pairs: &[(u32, Value)], tokens_per_pair: f64) -> io::Result<()> {
        self.end.bucket.spend(pairs.len() as f64 * tokens_per_pair);
        self.ask(Head { kind: wire::COPIES, way: 0, number: pairs.len() as u32 }, &wire::pairs_bytes(pairs))
    }

    fn ask(&mut self, head: Head, rest: &[u8]) -> io::Result<()> {
        wire::write(&mut self.stream, head, rest)?;
        match Head::read(&mut self.stream)?.kind {
            wire::DONE => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// `range` in parts of at most `length`.
fn cut(range: Range<u32>, length: u32) -> impl Iterator<Item = Range<u32>> {
    let end = range.end;
    range.step_by(length.max(1) as usize).map(move |first| first..end.min(first.saturating_add(length)))
}
