//! From when until when a certificate is valid: the one thing of our own that nobody else reads before clients refuse it.
//!
//! ```text
//!   Certificate { tbs { [0] version?, serial, signature, issuer, validity { from, until }, … }, … }    RFC 5280, 4.1
//! ```

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// See the module. As Unix seconds, and as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub from_s: i64,
    pub until_s: i64,
    pub from: String,
    pub until: String,
}

impl Validity {
    /// Of a certificate in DER; `None`: it is none.
    pub fn of(certificate: &[u8]) -> Option<Validity> {
        let (_, certificate, _) = element(certificate).filter(|found| found.0 == SEQUENCE)?;
        let (_, mut fields, _) = element(certificate).filter(|found| found.0 == SEQUENCE)?;
        if fields.first() == Some(&VERSION) {
            fields = element(fields)?.2;
        }
        for expected in [INTEGER, SEQUENCE, SEQUENCE] {
            fields = element(fields).filter(|found| found.0 == expected)?.2;
        }
        let (_, times, _) = element(fields).filter(|found| found.0 == SEQUENCE)?;
        let (kind, from, rest) = element(times)?;
        let (from_s, from) = moment(kind, from)?;
        let (kind, until, _) = element(rest)?;
        let (until_s, until) = moment(kind, until)?;
        Some(Validity { from_s, until_s, from, until })
    }
}

/// The first element: its tag, what is in it, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (len, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (len.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn moment(kind: u8, text: &[u8]) -> Option<(i64, String)> {
    let text = text.strip_suffix(b"Z").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number = |digits: &[u8]| digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    let (year, rest) = match (kind, text.len()) {
        // RFC 5280, 4.1.2.5.1: 50 and later are of the last century.
        (UTC_TIME, 12) => (if number(&text[..2]) >= 50 { 1900 } else { 2000 } + number(&text[..2]), &text[2..]),
        (GENERALIZED_TIME, 14) => (number(&text[..4]), &text[4..]),
        _ => return None,
    };
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|at| number(&rest[at..at + 2]));
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some((seconds, format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")))
}

/// Days since 1970-01-01 (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(moment(UTC_TIME, b"700101000000Z").unwrap().0, 0);
        assert_eq!(moment(UTC_TIME, b"000229123456Z").unwrap(), (951_827_696, "2000-02-29 12:34:56 UTC".to_owned()));
        assert_eq!(moment(GENERALIZED_TIME, b"20261231235959Z").unwrap().0, 1_798_761_599);
        assert_eq!(moment(UTC_TIME, b"500101000000Z").unwrap().0, -631_152_000);
        for (kind, text) in [(UTC_TIME, &b"7001010000Z"[..]), (UTC_TIME, b"700101000000"), (UTC_TIME, b"7x0101000000Z")]
        {
            assert_eq!(moment(kind, text), None);
        }
        assert_eq!(moment(GENERALIZED_TIME, b"20261331000000Z"), None);
    }

    #[test]
    fn a_certificate_that_is_cut_off_anywhere_or_changed_is_none_and_no_panic() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(2020, 1, 2);
        parameters.not_after = rcgen::date_time_ymd(2051, 3, 4);
        let certificate = parameters.self_signed(&key).unwrap().der().to_vec();
        let validity = Validity::of(&certificate).unwrap();
        assert_eq!([&validity.from[..10], &validity.until[..10]], ["2020-01-02", "2051-03-04"]);
        assert_eq!((validity.from_s, validity.until_s), (1_577_923_200, 2_561_500_800));
        for end in 0..certificate.len() {
            assert_eq!(Validity::of(&certificate[..end]), None, "{end}");
        }
        for at in 0..certificate.len() {
            let mut changed = certificate.clone();
            changed[at] ^= 0xff;
            Validity::of(&changed);
        }
    }
}
