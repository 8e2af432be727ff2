//! `ZH.QOS`: by when a caller wants its replies, and how that was kept.

use client::Qos;
use wire::Reply;

/// The reply to a time that nobody understands.
pub(crate) const UNCLEAR: &[u8] = b"-ERR ZH.QOS takes one time, as 500us, 10ms or 1s; or BATCH, or SINGLE\r\n";

/// Longest time, microseconds: an hour.
const US_MAX: u64 = 3_600_000_000;

/// Requests with a deadline, and those of them that were answered too late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Promises {
    pub asked: u64,
    pub missed: u64,
}

impl Promises {
    /// One was answered.
    #[inline]
    pub fn note(&mut self, was_kept: bool) {
        self.asked += 1;
        self.missed += u64::from(!was_kept);
    }
}

/// A class as a client or an operator writes it: a time, `batch` (when the policy says so) or `single` (at once).
pub fn read(text: &[u8]) -> Option<Qos> {
    let text = std::str::from_utf8(text).ok()?.to_ascii_lowercase();
    match text.as_str() {
        "batch" => return Some(Qos::Batch),
        "single" => return Some(Qos::Single),
        _ => {}
    }
    let end = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let unit_us = match unit {
        "us" => 1,
        "ms" => 1000,
        "s" => 1_000_000,
        _ => return None,
    };
    let us = number.parse::<u64>().ok()?.checked_mul(unit_us)?;
    (1..=US_MAX).contains(&us).then_some(Qos::Within { us })
}

/// What a caller's class is, and how it was kept.
pub(crate) fn tell(qos: Qos, promises: Promises, reply: &mut Reply<'_>) {
    reply.map(3);
    reply.bulk(b"within");
    match qos {
        Qos::Batch => reply.bulk(b"batch"),
        Qos::Single => reply.bulk(b"single"),
        Qos::Within { us } => reply.bulk(format!("{us}us").as_bytes()),
    }
    for (name, count) in [("answered", promises.asked), ("late", promises.missed)] {
        reply.bulk(name.as_bytes());
        reply.integer(count as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units_and_nothing_else_is() {
        let within = |us| Some(Qos::Within { us });
        assert_eq!([b"500us".as_slice(), b"10ms", b"1S"].map(read), [within(500), within(10_000), within(1_000_000)]);
        assert_eq!([b"batch".as_slice(), b"SINGLE"].map(read), [Some(Qos::Batch), Some(Qos::Single)]);
        for nonsense in ["", "10", "ms", "0ms", "-1ms", "1.5ms", "10 ms", "2h", "3601s", "99999999999999999999s"] {
            assert_eq!(read(nonsense.as_bytes()), None, "{nonsense}");
        }
    }
}
