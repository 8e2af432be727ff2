//! Everything that happened, as text: two runs of a seed must write the same bytes.

use std::fmt::{Arguments, Write};

/// The text.
#[derive(Default)]
pub struct Trace {
    text: String,
    prints: bool,
}

impl Trace {
    /// A trace that also prints its lines if asked.
    pub fn new(prints: bool) -> Trace {
        Trace { text: String::new(), prints }
    }

    /// A line; `now_us` is the world's time.
    pub fn note(&mut self, now_us: u64, line: Arguments) {
        let begin = self.text.len();
        writeln!(self.text, "{:>9}.{:03} {line}", now_us / 1000, now_us % 1000).expect("memory takes text");
        if self.prints {
            print!("{}", &self.text[begin..]);
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }
}
