//! Numbers of INFO, by their names.

use crate::Outcome;

/// The number behind `name:`.
///
/// # Errors
/// When INFO does not tell it.
pub fn number_of(info: &str, name: &str) -> Outcome<f64> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.and_then(|value| value.trim().parse().ok()).ok_or_else(|| format!("INFO does not tell {name}"))
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn lines_of_info_are_found_by_their_whole_name() {
        assert_eq!(number_of("a:1\r\nlog_bytes_written:20\r\n", "log_bytes_written"), Ok(20.0));
        assert!(number_of("log_bytes_written_more:20\r\n", "log_bytes_written").is_err());
    }
}
