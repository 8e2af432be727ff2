//! Patterns over key names: `*`, `?`, `[abc]`, `[^a]`, `[a-z]`, `\x`, as Redis reads them.
//!
//! Only the last `*` is ever tried again, so the time is at most the product of the two lengths, whatever the pattern
//! (CVE-2022-36021 was a pattern that took exponential time).

/// Whether all of `text` matches `pattern`.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    // Where to go on after the last star: in the pattern, and one byte further in the text each time.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            while pattern.get(at) == Some(&b'*') {
                at += 1;
            }
            if at == pattern.len() {
                return true;
            }
            retry = Some((at, position));
        }
        let step = match text.get(position) {
            Some(byte) => match_one(&pattern[at..], *byte),
            None if at == pattern.len() => return true,
            None => return false, // What is left of the pattern wants more text than there is.
        };
        match (step, &mut retry) {
            (Some(taken), _) => (at, position) = (at + taken, position + 1),
            (None, Some((after_star, from))) => {
                *from += 1;
                (at, position) = (*after_star, *from);
            }
            (None, None) => return false,
        }
    }
}

/// How many bytes of the pattern the one that matches `byte` takes; `None` when `byte` does not match.
fn match_one(pattern: &[u8], byte: u8) -> Option<usize> {
    let (matched, taken) = match pattern {
        [] => return None,
        [b'?', ..] => (true, 1),
        [b'[', class @ ..] => {
            let (matched, taken) = match_class(class, byte);
            (matched, taken + 1)
        }
        [b'\\', literal, ..] => (*literal == byte, 2),
        [literal, ..] => (*literal == byte, 1),
    };
    matched.then_some(taken)
}

/// Whether `byte` is in the class whose text begins behind `[`, and how long that text is with its `]`. A class that
/// nobody closed ends with the pattern.
fn match_class(class: &[u8], byte: u8) -> (bool, usize) {
    let negated = class.first() == Some(&b'^');
    let (mut at, mut found) = (usize::from(negated), false);
    loop {
        match &class[at..] {
            [b'\\', literal, ..] => {
                found |= *literal == byte;
                at += 2;
            }
            [b']', ..] => return (found != negated, at + 1),
            [] => return (found != negated, at),
            [first, b'-', last, ..] => {
                found |= (*first.min(last)..=*first.max(last)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= *literal == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;
    use proptest::prelude::*;

    #[test]
    fn matches_like_redis() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("", "a", false),
            ("?", "", false),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a*", "a", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-b-c-", false),
            ("*b", "aab", true),
            ("*ab", "aaab", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hallo", true),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            ("[]a]", "]a]", false),
            ("[\\]]", "]", true),
            ("[a", "a", true),
            ("[^", "a", true),
            ("[a-", "-", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("\\", "\\", true),
            ("a\\", "a\\", true),
            ("a**", "a", true),
            ("a?*", "a", false),
            ("*?", "", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn hostile_patterns_end_soon() {
        let text = vec![b'a'; 1000];
        assert!(!matches("*?".repeat(10_000).as_bytes(), &text));
        assert!(!matches(["a*".repeat(5_000), "b".into()].concat().as_bytes(), &text));
        assert!(matches("*".repeat(10_000).as_bytes(), &text));
    }

    /// The definition, by recursion.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
            _ if text.is_empty() => false,
            _ => super::match_one(pattern, text[0]).is_some_and(|taken| naive(&pattern[taken..], &text[1..])),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_its_definition(
            pattern in prop::collection::vec(prop::sample::select(b"ab*?[]^-\\".to_vec()), 0..10),
            text in prop::collection::vec(prop::sample::select(b"ab-".to_vec()), 0..10),
        ) {
            prop_assert_eq!(matches(&pattern, &text), naive(&pattern, &text));
        }
    }
}
