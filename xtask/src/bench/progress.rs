//! Shows how far a comparison is: one changing line on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// How often a line is printed where lines cannot be replaced.
const PRINT_EVERY: Duration = Duration::from_secs(20);

/// How far one cell is.
pub struct Progress {
    cell: String,
    total: usize,
    began: Instant,
    printed: Instant,
    on_terminal: bool,
}

impl Progress {
    /// `cell` takes `total` steps.
    pub fn new(cell: &str, total: usize) -> Progress {
        let now = Instant::now();
        Progress { cell: cell.to_owned(), total, began: now, printed: now, on_terminal: stderr().is_terminal() }
    }

    /// `done` steps are behind.
    pub fn show(&mut self, done: usize) {
        if !self.on_terminal && self.printed.elapsed() < PRINT_EVERY {
            return;
        }
        self.printed = Instant::now();
        let left = self.began.elapsed().as_secs_f64() / done.max(1) as f64 * (self.total - done) as f64;
        let (start, end) = if self.on_terminal { ("\r", "\x1b[K") } else { ("", "\n") };
        eprint!("{start}  {}: {done} of {}, {left:.0} s left{end}", self.cell, self.total);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.on_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
