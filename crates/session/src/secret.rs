//! Comparing secrets without telling how much of a guess is right.

/// Whether `guess` is `secret`. The time depends on the length of the guess alone (CVE-2026-47783 was a comparison
/// that did not).
pub(crate) fn is_secret(secret: &[u8], guess: &[u8]) -> bool {
    let mut difference = usize::from(secret.len() != guess.len());
    for (index, &byte) in guess.iter().enumerate() {
        let other = if secret.is_empty() { 0 } else { secret[index % secret.len()] };
        difference |= usize::from(byte ^ other);
    }
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn only_the_secret_itself_passes() {
        assert!(is_secret(b"abc", b"abc"));
        for guess in [&b""[..], b"a", b"abd", b"abcabc", b"abcd"] {
            assert!(!is_secret(b"abc", guess), "{guess:?}");
        }
        assert!(is_secret(b"", b""));
        assert!(!is_secret(b"", b"\0"));
    }
}
