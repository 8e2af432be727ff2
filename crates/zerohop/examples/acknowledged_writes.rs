//! What the tests kill: makes the changes of a sequence, and prints the number of each that is done.
//!
//! `acknowledged_writes DIRECTORY interval|commit FIRST`. When the disk is full it prints `full: ` and the error, waits for a line,
//! and tries the same change again until it is done.

use std::io::Write;

use zerohop::{Durability, Error, Store};

#[allow(dead_code, reason = "the test that starts this program uses the rest")]
#[path = "../tests/zerohop/sequence.rs"]
mod sequence;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, durability, first] = &words[..] else {
        return Err("acknowledged_writes DIRECTORY interval|commit FIRST".into());
    };
    let durability = if durability == "commit" { Durability::Commit } else { Durability::Interval };
    let store = Store::options().durability(durability).checkpoint_bytes(100_000).open(directory)?;
    let mut output = std::io::stdout();
    let mut was_full = false;
    let mut number: u64 = first.parse()?;
    loop {
        match sequence::perform(&store, number) {
            Ok(()) => {
                writeln!(output, "{number}")?;
                number += 1;
            }
            Err(error @ Error::DiskFull(_)) if !was_full => {
                was_full = true;
                writeln!(output, "full: {error}")?;
                std::io::stdin().read_line(&mut String::new())?;
            }
            // Until the store has tried to go on.
            Err(Error::DiskFull(_)) => std::thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
    }
}
