//! The ports from which the kernel serves outgoing connections.

use std::fs;

/// Where Linux keeps the range.
const PAGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
}

/// What Linux has unless told otherwise.
const USUAL: LocalRange = LocalRange { first: 32_768, last: 60_999 };

impl LocalRange {
    /// That of this machine; the usual one where it does not say.
    pub fn of_this_machine() -> LocalRange {
        fs::read_to_string(PAGE).ok().and_then(|text| LocalRange::parse(&text)).unwrap_or(USUAL)
    }

    /// `32768 60999`, between them a tab -> the range.
    fn parse(text: &str) -> Option<LocalRange> {
        let mut words = text.split_ascii_whitespace().map(str::parse);
        Some(LocalRange { first: words.next()?.ok()?, last: words.next()?.ok()? })
    }

    /// Whether an outgoing connection may get this port.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_line_is_read_and_another_is_not() {
        assert_eq!(LocalRange::parse("32768\t60999\n"), Some(USUAL));
        assert_eq!(LocalRange::parse("1024 65535"), Some(LocalRange { first: 1024, last: 65_535 }));
        assert_eq!(LocalRange::parse("32768"), None);
        assert_eq!(LocalRange::parse("many few"), None);
    }
}
