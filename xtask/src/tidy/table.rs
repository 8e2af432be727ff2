//! Markdown tables that are the truth for a rule: the page is read, so page and check cannot drift apart.

/// A row of a table: its line in the page and its cells without code marks.
pub struct Row {
    /// Line of the page, counted from 1.
    pub line: usize,
    /// The cells, trimmed, backticks removed.
    pub cells: Vec<String>,
}

/// The rows of the first table of `page` whose header begins with the cells `header`.
pub fn rows(page: &str, header: &[&str]) -> Option<Vec<Row>> {
    let all: Vec<(usize, Vec<String>)> =
        page.lines().enumerate().map(|(index, line)| (index + 1, cells(line))).collect();
    let start = all.iter().position(|(_, cells)| {
        cells.len() >= header.len() && cells.iter().zip(header).all(|(cell, wanted)| cell == wanted)
    })?;
    let body = all[start + 1..].iter().skip(1).take_while(|(_, cells)| !cells.is_empty());
    Some(body.map(|(line, cells)| Row { line: *line, cells: cells.clone() }).collect())
}

/// The words of a cell that lists names with commas; `–` lists none.
pub fn names(cell: &str) -> Vec<&str> {
    cell.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "–").collect()
}

fn cells(line: &str) -> Vec<String> {
    let Some(inner) = line.trim().strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) else {
        return Vec::new();
    };
    inner.split('|').map(|cell| cell.replace('`', "").trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{names, rows};

    #[test]
    fn the_named_table_is_found_and_read() {
        let page = "| x |\n|---|\n| 1 |\n\n| a | b |\n|---|---|\n| `k` | l, m |\n| n | – |\n\ntext\n";
        let rows = rows(page, &["a", "b"]).expect("the table is there");
        assert_eq!(rows.iter().map(|row| (row.line, row.cells[0].as_str())).collect::<Vec<_>>(), [(7, "k"), (8, "n")]);
        assert_eq!(names(&rows[0].cells[1]), ["l", "m"]);
        assert_eq!(names(&rows[1].cells[1]), [] as [&str; 0]);
    }
}
