//! Whole scans compared as sets: SCAN promises each key that stays, in no order.

use std::collections::BTreeSet;
use std::io;

use crate::connection::Connection;
use crate::reply::{Reply, decode, show};

/// Most calls of one scan before it counts as endless.
const CALLS_MAX: usize = 100_000;

/// Keys that a complete scan with these options returns.
///
/// # Errors
/// When the scan does not end, a reply is no scan reply, or the connection fails.
pub fn scan_all(connection: &mut Connection, options: &[&str]) -> io::Result<BTreeSet<Vec<u8>>> {
    let mut keys = BTreeSet::new();
    let mut cursor = b"0".to_vec();
    for _ in 0..CALLS_MAX {
        let mut request: Vec<&[u8]> = vec![b"SCAN", &cursor];
        request.extend(options.iter().map(|option| option.as_bytes()));
        let raw = connection.call(&request)?;
        let malformed = || io::Error::other(format!("SCAN answers {}", show(&raw)));
        let Ok(Some((Reply::Array(parts), _))) = decode(&raw) else { return Err(malformed()) };
        let [Reply::Bulk(next), Reply::Array(found)] = &parts[..] else { return Err(malformed()) };
        for key in found {
            let Reply::Bulk(key) = key else { return Err(malformed()) };
            keys.insert(key.clone());
        }
        if next == b"0" {
            return Ok(keys);
        }
        cursor.clone_from(next);
    }
    Err(io::Error::other(format!("SCAN {options:?} does not end after {CALLS_MAX} calls")))
}

/// Compares scans with several options on two servers that hold the same; returns what differs.
///
/// # Errors
/// Those of the connections.
pub fn compare_scans(expected: &mut Connection, actual: &mut Connection) -> io::Result<Option<String>> {
    const OPTIONS: [&[&str]; 5] = [
        &[],
        &["COUNT", "1"],
        &["MATCH", "*s*", "COUNT", "3"],
        &["TYPE", "list"],
        &["COUNT", "1000", "TYPE", "string"],
    ];
    for options in OPTIONS {
        let (wanted, found) = (scan_all(expected, options)?, scan_all(actual, options)?);
        if wanted != found {
            let names = |keys: std::collections::btree_set::Difference<'_, Vec<u8>>| {
                keys.take(10).map(|key| show(key)).collect::<Vec<_>>().join(" ")
            };
            let (missing, extra) = (names(wanted.difference(&found)), names(found.difference(&wanted)));
            return Ok(Some(format!("SCAN {options:?}: missing {{{missing}}}, too many {{{extra}}}")));
        }
    }
    Ok(None)
}
