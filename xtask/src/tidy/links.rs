//! Rule: documents link only inside the repository, and every link arrives, headings included.

use std::collections::BTreeSet;

use super::{Finding, House};
use crate::workspace::TextFile;

pub fn check(house: &House) -> Vec<Finding> {
    house.files.iter().filter(|file| file.path.ends_with(".md")).flat_map(|file| check_page(house, file)).collect()
}

fn check_page(house: &House, page: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, target) in links(&page.text) {
        if let Some(message) = broken(house, page, &target) {
            findings.push(Finding { path: page.path.clone(), line, message });
        }
    }
    findings
}

/// Why the link to `target` from `page` is broken.
fn broken(house: &House, page: &TextFile, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Some(format!("`{target}` leaves the repository: name the source in words (author, title, year)"));
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let resolved = if path.is_empty() { Some(page.path.clone()) } else { resolve(&page.path, path) };
    let Some(resolved) = resolved else {
        return Some(format!("`{target}` leaves the repository"));
    };
    let is_folder =
        resolved.is_empty() || house.files.iter().any(|file| file.path.starts_with(&format!("{resolved}/")));
    let Some(file) = house.files.iter().find(|file| file.path == resolved) else {
        return (!is_folder).then(|| format!("`{target}` does not exist: link what does, or drop the link"));
    };
    let arrives = heading.is_empty() || headings(&file.text).contains(heading);
    (!arrives).then(|| format!("`{resolved}` has no heading `#{heading}`"))
}

/// The path that `link` means when it stands in the file `from`.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Lines outside fenced blocks, numbered from 1, with code spans removed.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        let spoken = line.split('`').step_by(2).collect::<Vec<_>>().join("");
        (!fenced && !is_fence).then_some((index + 1, spoken))
    })
}

fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for part in line.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            found.push((number, target.to_owned()));
        }
        for part in line.split('<').skip(1).filter(|part| part.starts_with("http")) {
            found.push((number, part.split('>').next().unwrap_or_default().to_owned()));
        }
    }
    found
}

/// The anchors of a page: its headings in lower case, spaces as hyphens, punctuation dropped.
fn headings(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced && line.starts_with('#') {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            anchors.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::{House, check};

    #[test]
    fn broken_and_outward_links_are_caught() {
        let page = "[a](b.md) [b](../README.md#two-words) [c](gone.md)\n[d](https://example.org)\n\
                    [e](../../x.md)\n```\n[f](gone.md)\n```\n`[g](gone.md)` [h](#nowhere) [i](..)\n<https://example.org>\n";
        let house = House::of(&[("docs/a.md", page), ("docs/b.md", ""), ("README.md", "# Two, words\n")]);
        let lines: Vec<usize> = check(&house).into_iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 2, 3, 7, 8]);
    }
}
