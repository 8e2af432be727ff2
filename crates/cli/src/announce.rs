//! What a person is told about a node that runs: durability, backend, recovery, in plain lines.

use std::time::Duration;

use server::{Durability, Node, NodeConfig};

/// What an acknowledged write survives.
pub fn durability(config: &NodeConfig) -> &'static str {
    match (config.durability, &config.directory) {
        (Durability::Memory, None) => "memory: nothing is kept when it stops",
        (Durability::Memory, Some(_)) => "memory: what lay in the directory was read, what is written now is not kept",
        (Durability::Interval, _) => {
            "interval: an acknowledged write survives the death of the process; a power cut costs at most the last second"
        }
        (Durability::Commit, _) => "commit: an acknowledged write survives a power cut",
    }
}

/// What moves the bytes.
pub fn backend(node: &Node) -> String {
    match node.backend() {
        (backend, None) => backend.name().to_owned(),
        (backend, Some(reason)) => format!("{}, because io_uring does not work here: {reason}", backend.name()),
    }
}

/// Where collectors and people read how the node stands, if anywhere.
pub fn admin(node: &Node) -> Option<String> {
    node.admin_address().map(|address| format!("http://{address}/metrics and /healthz"))
}

/// What replay found: a summary, then a line per tail that did not count.
pub fn recovery(node: &Node, took: Duration) -> Vec<String> {
    let Some(directory) = node.directory() else { return Vec::new() };
    let recovery = node.recovery();
    let mut lines = Vec::new();
    if directory.next_incarnation() == 1 {
        lines.push("a new store".to_owned());
    } else {
        let (keys, records, bytes) = (recovery.keys, recovery.records, size(recovery.bytes));
        let seconds = took.as_secs_f64();
        lines.push(format!("{keys} keys from runs, {records} records from the log ({bytes}) in {seconds:.2} s"));
    }
    for cut in &recovery.torn {
        let why = if cut.incomplete_unit { "an incomplete unit" } else { "a torn tail" };
        let file = directory.path().join(&cut.file);
        lines.push(format!(
            "{why}, not known to be acknowledged, was cut: {} at offset {}",
            file.display(),
            cut.offset
        ));
    }
    lines
}

/// Bytes for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if amount < 1024.0 {
            break;
        }
        (amount, unit) = (amount / 1024.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") }
}

/// A moment as `2026-01-31 12:00:00 UTC`, from Unix seconds (days to civil date: Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
pub fn date(unix_s: u64) -> String {
    const DAY_S: u64 = 86_400;
    let shifted = unix_s / DAY_S + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let second = unix_s % DAY_S;
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_827_696), "2000-02-29 12:34:56 UTC");
        assert_eq!(date(1_798_761_599), "2026-12-31 23:59:59 UTC");
        assert_eq!(date(1_798_761_600), "2027-01-01 00:00:00 UTC");
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!([size(0), size(1023), size(1024), size(5 << 30)], ["0 B", "1023 B", "1.0 KiB", "5.0 GiB"]);
    }
}
