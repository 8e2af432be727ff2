//! Rust text -> code without comments and literals, the lines that are tests, and the functions. A lexer, no parser:
//! enough to count lines and look for words without being fooled by strings.

/// One source file, seen as code.
pub struct RustSource {
    /// The text with comments and the insides of literals blanked; every line and column stays where it was.
    pub code: String,
    /// For each line, whether it belongs to a test (`#[cfg(test)]`, `#[test]`).
    pub is_test_line: Vec<bool>,
}

/// One function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name without path.
    pub name: String,
    /// The line of its `fn`, counted from 1.
    pub line: usize,
    /// Lines from its `fn` to its closing brace.
    pub lines: usize,
}

impl RustSource {
    /// Reads `text`.
    pub fn new(text: &str) -> RustSource {
        let code = blank_comments_and_literals(text);
        let is_test_line = test_lines(&code);
        RustSource { code, is_test_line }
    }

    /// The lines of code with their numbers (from 1) and whether they are tests.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        self.code.lines().zip(&self.is_test_line).enumerate().map(|(index, (line, test))| (index + 1, line, *test))
    }

    /// All functions with a body, nested ones included.
    pub fn functions(&self) -> Vec<Function> {
        let bytes = self.code.as_bytes();
        let mut functions = Vec::new();
        for at in word_positions(&self.code, "fn") {
            let name: String =
                self.code[at + 2..].trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if name.is_empty() {
                continue; // the type `fn(…)`
            }
            if let Some(end) = item_end(bytes, at).filter(|end| bytes[*end] == b'}') {
                let line = line_of(bytes, at);
                functions.push(Function { name, line, lines: line_of(bytes, end) - line + 1 });
            }
        }
        functions
    }

    /// Names of modules that are declared for tests only and live in a file of their own.
    pub fn test_modules(&self) -> Vec<String> {
        let named = |line: &str| {
            let name = line.trim().strip_prefix("mod ")?.strip_suffix(';')?;
            Some(name.trim().to_owned())
        };
        self.lines().filter(|(_, _, test)| *test).filter_map(|(_, line, _)| named(line)).collect()
    }
}

/// Byte positions where `word` stands alone in `code`.
pub fn word_positions(code: &str, word: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(|at| !is_word(at.checked_sub(1).and_then(|before| bytes.get(before))))
        .filter(|at| !is_word(bytes.get(at + word.len())))
        .collect()
}

fn line_of(bytes: &[u8], at: usize) -> usize {
    bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Where the item that starts at `from` ends: its `;`, or the brace that closes its body.
fn item_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && *byte == b'}' {
                    return Some(at);
                }
            }
            b';' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

fn test_lines(code: &str) -> Vec<bool> {
    let bytes = code.as_bytes();
    let mut is_test = vec![false; code.lines().count()];
    for mark in ["#[cfg(test)]", "#[cfg(all(test", "#[test]"] {
        for (at, _) in code.match_indices(mark) {
            let item = code[at..].find(']').map_or(bytes.len(), |length| at + length + 1);
            let end = item_end(bytes, item).unwrap_or(bytes.len());
            is_test[line_of(bytes, at) - 1..line_of(bytes, end).min(code.lines().count())].fill(true);
        }
    }
    is_test
}

/// The lexer: what stays is code, what goes becomes spaces.
fn blank_comments_and_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_comment_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if starts_raw_string(bytes, at) => raw_string_end(bytes, at),
            b'\'' => character_end(text, at).unwrap_or(at),
            _ => at,
        };
        blank(&mut code[at..end]);
        at = end.max(at + 1);
    }
    String::from_utf8(code).expect("whole characters are blanked, never parts")
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

fn line_comment_end(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| from + length)
}

fn block_comment_end(bytes: &[u8], from: usize) -> usize {
    let (mut depth, mut at) = (0_usize, from);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if bytes[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn starts_raw_string(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|index| bytes[index]);
    let in_a_word = before.is_some_and(|b| b.is_ascii_alphanumeric() && !matches!(b, b'b' | b'c') || b == b'_');
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    !in_a_word && bytes.get(at + 1 + hashes) == Some(&b'"')
}

fn raw_string_end(bytes: &[u8], from: usize) -> usize {
    let hashes = bytes[from + 1..].iter().take_while(|byte| **byte == b'#').count();
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = from + 2 + hashes;
    bytes[body..].windows(close.len()).position(|part| part == close).map_or(bytes.len(), |at| body + at + close.len())
}

/// The end of a character literal; `None` for a lifetime.
fn character_end(text: &str, from: usize) -> Option<usize> {
    let mut rest = text[from + 1..].char_indices();
    let (_, first) = rest.next()?;
    if first == '\\' {
        rest.next()?;
        return rest.find(|(_, c)| *c == '\'').map(|(at, _)| from + 1 + at + 1);
    }
    let (at, second) = rest.next()?;
    (second == '\'').then_some(from + 1 + at + 1)
}

#[cfg(test)]
mod tests {
    use super::{Function, RustSource};

    #[test]
    fn comments_and_literals_vanish_and_columns_stay() {
        let text = "let a = \"x // y\"; // fn z() {}\nlet b = 'é'; /* fn /* w */ */ let c: &'a str = r#\"\"fn\"#;\n";
        let source = RustSource::new(text);
        assert!(!source.code.contains("fn"), "{}", source.code);
        assert!(source.code.contains("&'a str"), "{}", source.code);
        assert_eq!(source.code.lines().count(), 2);
        assert_eq!(source.code.find("; "), text.find("; "));
    }

    #[test]
    fn escaped_quotes_do_not_end_a_literal() {
        let source = RustSource::new("let q = '\\''; let s = \"a\\\"fn f() {}\"; fn g() {}");
        assert_eq!(source.functions(), [Function { name: "g".to_owned(), line: 1, lines: 1 }]);
    }

    #[test]
    fn functions_are_counted_from_fn_to_brace() {
        let text = "trait T {\n  fn no_body(&self);\n}\nfn outer(f: fn(u8) -> u8) {\n  fn inner() {\n  }\n}\n";
        let functions = RustSource::new(text).functions();
        assert_eq!(
            functions.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect::<Vec<_>>(),
            [("outer", 4, 4), ("inner", 5, 2)]
        );
    }

    #[test]
    fn test_regions_are_known() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod far;\n";
        let source = RustSource::new(text);
        assert_eq!(source.is_test_line, [false, true, true, true, true, false, true, true]);
        assert_eq!(source.test_modules(), ["far"]);
    }
}
