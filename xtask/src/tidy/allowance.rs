//! The list of exceptions to the size rule, `xtask/tidy-allow.txt`: it may only shrink.

/// Where the list lives.
pub const PATH: &str = "xtask/tidy-allow.txt";

/// One permitted excess: `what | lines | reason`.
#[derive(Debug, PartialEq, Eq)]
pub struct Allowance {
    /// `path` for a file, `path::function` for a function.
    pub what: String,
    /// Lines it has today; more is refused, fewer must be written down.
    pub lines: usize,
    /// Line of the list, counted from 1.
    pub at: usize,
}

/// Reads the list; the second part names lines that are none.
pub fn parse(text: &str) -> (Vec<Allowance>, Vec<usize>) {
    let (mut allowances, mut malformed) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
    {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        match parts[..] {
            [what, lines, reason] if !reason.is_empty() => match lines.parse() {
                Ok(lines) => allowances.push(Allowance { what: what.to_owned(), lines, at: index + 1 }),
                Err(_) => malformed.push(index + 1),
            },
            _ => malformed.push(index + 1),
        }
    }
    (allowances, malformed)
}

#[cfg(test)]
mod tests {
    use super::{Allowance, parse};

    #[test]
    fn a_line_without_a_reason_is_malformed() {
        let (allowances, malformed) = parse("# why\n\na.rs::f | 80 | a table\nb.rs | 900 |\nc.rs | many | x\n");
        assert_eq!(allowances, [Allowance { what: "a.rs::f".to_owned(), lines: 80, at: 3 }]);
        assert_eq!(malformed, [4, 5]);
    }
}
