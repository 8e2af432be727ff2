//! Every harm that one byte of a log can come to: a file that was cut off, or harmed where it was synced, is refused, and of the
//! rest a part without gaps is read.

use base::rng::Rng;
use consensus::format::log_file::{LogFile, Record, read};

use crate::sample::{self, LogSample, OWNER};

/// Cut at every byte and change every byte of some logs; what was wrong, if anything was.
pub fn find_misread(seeds: u64) -> Result<(), String> {
    for seed in 0..seeds {
        let sample = sample::log(&mut Rng::new(seed), 5);
        for at in 0..sample.bytes.len() {
            if read(&sample.bytes[..at], &OWNER).is_ok() {
                return Err(format!("seed {seed}: cut off at {at}, and not refused"));
            }
        }
        judge(&sample, &sample.bytes, sample.bytes.len()).map_err(|words| format!("seed {seed}: {words}"))?;
        for at in 0..sample.bytes.len() {
            let mut bytes = sample.bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            judge(&sample, &bytes, at).map_err(|words| format!("seed {seed}, byte {at} changed: {words}"))?;
        }
    }
    Ok(())
}

fn judge(sample: &LogSample, bytes: &[u8], harmed_at: usize) -> Result<(), String> {
    match read(bytes, &OWNER) {
        Err(damage) if harmed_at >= sample.synced => Err(format!("refused, and nobody was told of it: {damage}")),
        Err(damage) if damage.offset > harmed_at as u64 => Err(format!("{damage} is behind the harm")),
        Err(_) => Ok(()),
        Ok(file) => judge_read(sample, &file, harmed_at),
    }
}

/// Zeros between groups say nothing: only there may harm before the synced end go unseen, because nothing is lost by it.
fn judge_read(sample: &LogSample, file: &LogFile, harmed_at: usize) -> Result<(), String> {
    let read: Vec<&Record> = file.records.iter().map(|(_, record)| record).collect();
    let wanted = &sample.records;
    let whole = sample.ends.iter().take_while(|(end, _)| *end <= harmed_at).last().map_or(0, |(_, count)| *count);
    let is_part = read.len() >= whole && read.iter().zip(wanted).all(|(a, b)| *a == b);
    if !is_part || read.len() > wanted.len() {
        return Err(format!("read {read:?}"));
    }
    let synced = sample.ends.iter().take_while(|(end, _)| *end <= sample.synced).last().map_or(0, |(_, count)| *count);
    if read.len() < synced { Err(format!("{} records were synced and {} read", synced, read.len())) } else { Ok(()) }
}
