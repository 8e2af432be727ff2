//! One slice of `tier`, of a server as a client sees it, or of a store that is called.

use std::fs;
use std::time::Duration;

use super::options::Options;
use super::server::Server;
use super::slice::{Entrant, quiet_slice};
use super::tier::{Called, Libraries, Ours, load_of};
use super::tier_peer::Line;
use crate::Outcome;

/// What INFO says may be so old.
const INFO_AGE: Duration = Duration::from_millis(300);

/// Who is asked.
#[derive(Clone, Copy)]
pub enum Who {
    Ours { index: usize, pipeline: usize },
    Library { cpus: &'static str },
    Theirs { cpus: &'static str },
}

/// What one slice showed.
#[derive(Clone, Copy)]
pub struct Sample {
    pub per_second: f64,
    pub cpu_us: f64,
    /// Of the disk, over GETs; what the kernel counts for the process.
    pub disk_bytes: f64,
    /// As a client sees it; not known of a library.
    pub p50_us: f64,
    pub p99_us: f64,
    /// Values that came back, over GETs.
    pub fetches: f64,
}

pub fn sample(
    who: Who,
    distribution: &str,
    ours: &[Ours],
    libraries: &mut Libraries,
    options: &Options,
) -> Outcome<Sample> {
    match who {
        Who::Ours { index, pipeline } => sample_ours(&ours[index].server, distribution, pipeline, options),
        Who::Library { cpus } => sample_called(&mut libraries.zerohop, distribution, cpus, options),
        Who::Theirs { cpus } => sample_called(&mut libraries.rocksdb, distribution, cpus, options),
    }
}

fn sample_called(called: &mut Called, distribution: &str, cpus: &str, options: &Options) -> Outcome<Sample> {
    let before = disk_bytes(called.store.pid())?;
    let Line { gets, wall_s, cpu_s } = called.store.read(distribution, options.slice_seconds, cpus)?;
    let bytes = disk_bytes(called.store.pid())? - before;
    let gets = gets.max(1) as f64;
    Ok(Sample {
        per_second: gets / wall_s,
        cpu_us: cpu_s * 1e6 / gets,
        disk_bytes: bytes / gets,
        p50_us: f64::NAN,
        p99_us: f64::NAN,
        fetches: f64::NAN,
    })
}

fn sample_ours(server: &Server, distribution: &str, pipeline: usize, options: &Options) -> Outcome<Sample> {
    // Other keys each time, as RocksDB's threads draw them: with one seed for all, those of the slice before would be asked for again.
    let seed = (server.run_time_ns()? | 1).to_string();
    let entrant = Entrant::new(server, &load_of(distribution, pipeline, options.keys).with(&["--seed", &seed]));
    let read = || -> Outcome<[f64; 3]> {
        std::thread::sleep(INFO_AGE);
        let info = server.ask("INFO everything")?;
        Ok([disk_bytes(server.pid())?, number(&info, "keyspace_hits")?, number(&info, "values_fetched")?])
    };
    let before = read()?;
    let slice = quiet_slice(&entrant, options, &mut 0)?;
    let after = read()?;
    // The warm-up counts in these, too, and in what they are divided by.
    let gets = (after[1] - before[1]).max(1.0);
    Ok(Sample {
        per_second: slice.per_second,
        cpu_us: slice.us_per_request,
        disk_bytes: (after[0] - before[0]) / gets,
        p50_us: slice.p50_us,
        p99_us: slice.p99_us,
        fetches: (after[2] - before[2]) / gets,
    })
}

fn number(info: &str, name: &str) -> Outcome<f64> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok());
    value.ok_or_else(|| format!("INFO has no number {name}"))
}

/// What a process had the disk read, all its threads, those that ended included.
fn disk_bytes(pid: u32) -> Outcome<f64> {
    let path = format!("/proc/{pid}/io");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    number(&text, "read_bytes")
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_number_is_found_by_its_whole_name() {
        let text = "rchar: 7\r\nxread_bytes:1\r\nread_bytes: 4096\r\ncancelled_write_bytes: 0";
        assert_eq!(number(text, "read_bytes"), Ok(4096.0));
        assert!(number(text, "bytes").is_err_and(|message| message.contains("bytes")));
    }
}
