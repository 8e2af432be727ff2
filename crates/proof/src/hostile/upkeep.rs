//! Memory beside runs and a backup (AT-18 as the gate has it): no fork, no copy, so next to nothing comes on top of the data.

use std::fs;

use super::bounds::answered;
use super::{Target, Verdict, still_serves, told};
use crate::connection::{Connection, encode};
use crate::kill::told::gauge;
use crate::process::Server;
use crate::reply::{Reply, decode, show};

/// AT-18: a million keys of 15 bytes with values of 132.
const KEYS: usize = 1_000_000;
const VALUE: [u8; 132] = [b'v'; 132];
/// Requests of a batch.
const BATCH: usize = 500;
/// Shares no factor with the keys: every key once, in an order that no group sees coming.
const STEP: usize = 7919;
/// Runs of a round: one for each slot group.
const ROUND: u64 = 64;
/// AT-18: what may come on top, percent.
const EXTRA_PERCENT_MAX: u64 = 10;

/// The most that the process takes while every group becomes a run and a backup keeps all files, over what it took before.
pub fn beside_runs_and_backup(target: &Target) -> Verdict {
    let mut server = target.start_with_log()?;
    let mut connection = told("connect", server.connect())?;
    // The second time makes the log as long and the buffers as large as they get.
    write_all(&mut connection)?;
    write_all(&mut connection)?;
    let before_bytes = told("resident memory", server.resident_bytes())?;
    let runs_before = runs(&mut connection)?;
    told("forget the peak", fs::write(format!("/proc/{}/clear_refs", server.id()), "5"))?;
    let mut copier = told("connect", server.connect())?;
    let backup = begin_backup(&mut copier)?;
    // The log of all keys may be shorter than a round, that of twice as many is not.
    write_all(&mut connection)?;
    write_all(&mut connection)?;
    let ended = told("end the backup", copier.call_line(&format!("ZH.BACKUP END {backup}")))?;
    if ended != b"+OK\r\n" {
        return Err(format!("the backup ends with {}", show(&ended)));
    }
    let made = runs(&mut connection)? - runs_before;
    if made < ROUND {
        return Err(format!("it proves nothing: {made} runs were made"));
    }
    let peak_bytes = told("peak memory", peak_bytes(&server))?;
    still_serves(&mut server)?;
    let extra_percent = peak_bytes.saturating_sub(before_bytes) as f64 / before_bytes as f64 * 100.0;
    let text = format!(
        "{extra_percent:.1} % on top of {} MiB (bound {EXTRA_PERCENT_MAX} %), {made} runs of {KEYS} keys",
        before_bytes >> 20
    );
    if extra_percent <= EXTRA_PERCENT_MAX as f64 { Ok(text) } else { Err(text) }
}

fn write_all(connection: &mut Connection) -> Result<(), String> {
    for first in (0..KEYS).step_by(BATCH) {
        let mut request = Vec::new();
        for number in first..first + BATCH {
            let key = format!("key:{:011}", number * STEP % KEYS);
            encode(&[&b"SET"[..], key.as_bytes(), &VALUE], &mut request);
        }
        answered(connection, &request, BATCH)?;
    }
    Ok(())
}

fn runs(connection: &mut Connection) -> Result<u64, String> {
    let info = told("INFO", connection.call_line("INFO persistence"))?;
    gauge(&info, "runs_published").ok_or_else(|| "INFO tells no runs".to_owned())
}

/// Its id, by which it is ended.
fn begin_backup(connection: &mut Connection) -> Result<String, String> {
    let raw = told("begin a backup", connection.call_line("ZH.BACKUP BEGIN 3600000"))?;
    let Ok(Some((Reply::Array(fields), _))) = decode(&raw) else {
        return Err(format!("it begins with {}", show(&raw)));
    };
    match fields.get(1) {
        Some(Reply::Bulk(id)) => Ok(String::from_utf8_lossy(id).into_owned()),
        Some(Reply::Integer(id)) => Ok(id.to_string()),
        _ => Err(format!("a backup has no id: {}", show(&raw))),
    }
}

/// The most that it has taken since the peak was forgotten.
fn peak_bytes(server: &Server) -> std::io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.map(|kibibytes| kibibytes << 10).ok_or_else(|| std::io::Error::other("the server tells no peak"))
}
