//! Rule: no file over 800 lines, no function over 70, except what the shrinking list names with a reason.

use super::allowance::{self, Allowance};
use super::{Finding, House};

/// Longest file, lines.
const FILE_LINES_MAX: usize = 800;
/// Longest function, lines from its `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// Something that has a size.
struct Measured {
    what: String,
    path: String,
    line: usize,
    lines: usize,
    lines_max: usize,
}

pub fn check(house: &House) -> Vec<Finding> {
    let (allowances, malformed) = allowance::parse(house.text(allowance::PATH).unwrap_or_default());
    let on_the_list = |line: usize, message: String| Finding { path: allowance::PATH.to_owned(), line, message };
    let mut findings: Vec<Finding> =
        malformed.into_iter().map(|line| on_the_list(line, "write `what | lines | reason`".to_owned())).collect();
    let excesses: Vec<Measured> = measure(house).into_iter().filter(|m| m.lines > m.lines_max).collect();
    for excess in &excesses {
        findings.extend(judge(excess, allowances.iter().find(|allowance| allowance.what == excess.what)));
    }
    for idle in allowances.iter().filter(|allowance| !excesses.iter().any(|excess| excess.what == allowance.what)) {
        findings.push(on_the_list(idle.at, format!("`{}` needs no exception any more: delete the line", idle.what)));
    }
    findings
}

/// What is wrong with an excess, given its allowance.
fn judge(excess: &Measured, allowance: Option<&Allowance>) -> Option<Finding> {
    let Measured { what, lines, lines_max, .. } = excess;
    match allowance {
        None => Some(Finding {
            path: excess.path.clone(),
            line: excess.line,
            message: format!("`{what}` has {lines} lines, {lines_max} are allowed: split it by what it does"),
        }),
        Some(allowance) if *lines > allowance.lines => Some(Finding {
            path: excess.path.clone(),
            line: excess.line,
            message: format!("`{what}` grew to {lines} lines; its exception ends at {}: split it", allowance.lines),
        }),
        Some(allowance) if *lines < allowance.lines => Some(Finding {
            path: allowance::PATH.to_owned(),
            line: allowance.at,
            message: format!("`{what}` shrank to {lines} lines: write {lines} here, the list may only shrink"),
        }),
        Some(_) => None,
    }
}

fn measure(house: &House) -> Vec<Measured> {
    let mut measured = Vec::new();
    for file in house.rust_files() {
        let path = file.file.path.clone();
        let lines = file.file.text.lines().count();
        measured.push(Measured { what: path.clone(), path: path.clone(), line: 1, lines, lines_max: FILE_LINES_MAX });
        measured.extend(file.source.functions().into_iter().map(|function| Measured {
            what: format!("{path}::{}", function.name),
            path: path.clone(),
            line: function.line,
            lines: function.lines,
            lines_max: FUNCTION_LINES_MAX,
        }));
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::{House, allowance, check};

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    fn caught(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        check(&House::of(files)).into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn long_functions_and_files_are_caught() {
        assert_eq!(caught(&[("a.rs", &function_of(70))]), []);
        assert_eq!(caught(&[("a.rs", &function_of(71))]), [("a.rs".to_owned(), 1)]);
        assert_eq!(caught(&[("a.rs", &"//\n".repeat(800))]), []);
        assert_eq!(caught(&[("a.rs", &"//\n".repeat(801))]), [("a.rs".to_owned(), 1)]);
    }

    #[test]
    fn the_list_permits_exactly_what_it_says() {
        let list = |lines: usize| format!("a.rs::long | {lines} | a table\n");
        assert_eq!(caught(&[("a.rs", &function_of(80)), (allowance::PATH, &list(80))]), []);
        assert_eq!(caught(&[("a.rs", &function_of(81)), (allowance::PATH, &list(80))]), [("a.rs".to_owned(), 1)]);
        let at_the_list = [(allowance::PATH.to_owned(), 1)];
        assert_eq!(caught(&[("a.rs", &function_of(79)), (allowance::PATH, &list(80))]), at_the_list);
        assert_eq!(caught(&[("a.rs", &function_of(60)), (allowance::PATH, &list(80))]), at_the_list);
    }
}
