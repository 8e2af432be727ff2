//! Glob patterns as KEYS, SCAN and COMMAND LIST take them: `*`, `?`, `[abc]`, `[^a-z]`, `\` before a literal.
//!
//! Only the last `*` is ever retried, so time is at most pattern times text and there is no recursion
//! (CVE-2022-36021, CVE-2024-31228).

/// Whether `text` as a whole fits `pattern`; `ignore_case` for ASCII letters.
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    let (mut at, mut position) = (0, 0);
    // Where to go on when the text after the last star does not fit: behind the star, one byte further.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            if at == pattern.len() {
                return true;
            }
            retry = Some((at, position));
            continue;
        }
        let fits = match text.get(position) {
            None if at >= pattern.len() => return true,
            // No shorter rest of the text can fit either.
            None => return false,
            Some(&byte) => match_one(pattern, at, byte, ignore_case),
        };
        match (fits, &mut retry) {
            (Some(next), _) => {
                at = next;
                position += 1;
            }
            (None, Some((after_star, resume_at))) => {
                *resume_at += 1;
                at = *after_star;
                position = *resume_at;
            }
            (None, None) => return false,
        }
    }
}

/// Whether the pattern's element at `at` fits `byte`; where the next element begins if so.
fn match_one(pattern: &[u8], at: usize, byte: u8, ignore_case: bool) -> Option<usize> {
    let same = |left: u8, right: u8| left == right || (ignore_case && left.eq_ignore_ascii_case(&right));
    match pattern.get(at)? {
        b'?' => Some(at + 1),
        b'[' => match_class(pattern, at + 1, byte, ignore_case),
        b'\\' if at + 1 < pattern.len() => same(pattern[at + 1], byte).then_some(at + 2),
        &literal => same(literal, byte).then_some(at + 1),
    }
}

/// A class that is not closed ends with the pattern, as in Redis.
fn match_class(pattern: &[u8], mut at: usize, byte: u8, ignore_case: bool) -> Option<usize> {
    let fold = |byte: u8| if ignore_case { byte.to_ascii_lowercase() } else { byte };
    let byte = fold(byte);
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut found = false;
    loop {
        match *pattern.get(at..).unwrap_or(&[]) {
            [] => break,
            [b'\\', literal, ..] => {
                found |= fold(literal) == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                let (low, high) = (fold(first.min(last)), fold(first.max(last)));
                found |= (low..=high).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= fold(literal) == byte;
                at += 1;
            }
        }
    }
    (found != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn follows_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h*llo", "hllo", true),
            ("h*l*o", "hxlxlxo", true),
            ("*.rs", "a.rs.rs", true),
            ("*.rs", "a.rs.r", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("[\\]]", "]", true),
            ("[a", "a", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("a**b", "ab", true),
            ("HELLO", "hello", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), false), expected, "{pattern} {text}");
        }
        assert!(matches(b"HE[L]?o", b"hellO", true));
    }

    /// What made Redis recurse for minutes ends at once: the number of steps is bounded by the product.
    #[test]
    fn hostile_patterns_end() {
        let pattern = b"*?".repeat(5_000);
        assert!(matches(&pattern, &b"a".repeat(5_000), false));
        assert!(!matches(&pattern, &b"a".repeat(4_999), false));
        let stars = [b"a*".repeat(2_000), b"b".to_vec()].concat();
        assert!(!matches(&stars, &b"a".repeat(4_000), false));
        assert!(!matches(&b"[".repeat(10_000), b"aa", false));
    }
}
