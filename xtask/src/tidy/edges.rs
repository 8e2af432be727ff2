//! Rules: crate edges and third-party crates are those of the tables in `ARCHITECTURE.md` and `docs/dependencies.md`.

use super::table::{self, Row};
use super::{Finding, House};
use crate::workspace::{Dependency, Package};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const DEPENDENCIES: &str = "docs/dependencies.md";
/// The rings that stay pure; crates of other rings only need a reason for what they use.
const PURE_RINGS: [&str; 4] = ["0", "1", "2", "3"];
/// What tests of any crate may use.
const TEST_TOOLS: &[&str] = &["proptest"];
/// Crates whose tests drive the whole system and may therefore use any of it.
const WHOLE_SYSTEM: &[&str] = &["server", "cli"];

/// One row of the crate table.
pub struct CrateRow {
    /// Line of the page.
    pub line: usize,
    /// Ring, as written.
    pub ring: String,
    /// The crate's name.
    pub name: String,
    may_import: Vec<String>,
    third_party: Vec<String>,
}

impl CrateRow {
    /// Whether the crate belongs to the rings that see no street.
    pub fn is_pure(&self) -> bool {
        PURE_RINGS.contains(&self.ring.as_str())
    }

    fn new(row: Row) -> CrateRow {
        let owned = |cell: usize| {
            let cell = row.cells.get(cell).map_or("", String::as_str);
            table::names(cell).into_iter().map(str::to_owned).collect()
        };
        let word = |cell: usize| row.cells.get(cell).cloned().unwrap_or_default();
        CrateRow { line: row.line, ring: word(0), name: word(1), may_import: owned(3), third_party: owned(4) }
    }
}

/// The crate table of `ARCHITECTURE.md`.
pub fn crate_table(house: &House) -> Vec<CrateRow> {
    let page = house.text(ARCHITECTURE).unwrap_or_default();
    let rows = table::rows(page, &["ring", "crate", "owns", "may import", "third party"]).unwrap_or_default();
    rows.into_iter().map(CrateRow::new).collect()
}

/// Every edge between workspace crates stands in the table, and every crate has a row.
pub fn check_workspace_edges(house: &House) -> Vec<Finding> {
    let rows = crate_table(house);
    let mut findings = Vec::new();
    for package in &house.packages {
        let Some(row) = rows.iter().find(|row| row.name == package.name) else {
            findings.push(at_manifest(package, format!("crate `{}` has no row in {ARCHITECTURE}", package.name)));
            continue;
        };
        for edge in package.dependencies.iter().filter(|dependency| dependency.path.is_some()) {
            let whole_system_test = edge.is_dev() && WHOLE_SYSTEM.contains(&package.name.as_str());
            let known = row.may_import.contains(&edge.name) || edge.name == package.name || whole_system_test;
            if !known {
                findings.push(at_manifest(package, edge_message(package, edge)));
            }
        }
    }
    for row in rows.iter().filter(|row| !house.packages.iter().any(|package| package.name == row.name)) {
        let message = format!("the table names `{}`, which is no crate: delete the row", row.name);
        findings.push(Finding { path: ARCHITECTURE.to_owned(), line: row.line, message });
    }
    findings
}

fn edge_message(package: &Package, edge: &Dependency) -> String {
    format!(
        "`{}` may not import `{}`: pass what it needs as an argument, or move it inward; the edges are the table in \
         {ARCHITECTURE}",
        package.name, edge.name
    )
}

/// Pure crates use only the third-party crates that their row names.
pub fn check_third_party(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in crate_table(house).iter().filter(|row| row.is_pure()) {
        let Some(package) = house.packages.iter().find(|package| package.name == row.name) else { continue };
        for used in package.dependencies.iter().filter(|dependency| dependency.path.is_none()) {
            let is_test_tool = used.is_dev() && TEST_TOOLS.contains(&used.name.as_str());
            if !row.third_party.contains(&used.name) && !is_test_tool {
                let message = format!(
                    "`{}` is pure and may not use `{}`: its allow-list is the table in {ARCHITECTURE}",
                    package.name, used.name
                );
                findings.push(at_manifest(package, message));
            }
        }
    }
    findings
}

/// Every third-party crate has a line with its reason.
pub fn check_reasons(house: &House) -> Vec<Finding> {
    let page = house.text(DEPENDENCIES).unwrap_or_default();
    let rows = table::rows(page, &["crate", "used by", "why"]).unwrap_or_default();
    let reasoned: Vec<&str> = rows.iter().flat_map(|row| table::names(&row.cells[0])).collect();
    let used = |name: &str| {
        let mut all = house.packages.iter().flat_map(|package| &package.dependencies);
        all.any(|dependency| dependency.name == name)
    };
    let mut findings = Vec::new();
    for package in &house.packages {
        for unexplained in package.dependencies.iter().filter(|dependency| dependency.path.is_none()) {
            if !reasoned.contains(&unexplained.name.as_str()) {
                let message = format!("`{}` needs a line with its reason in {DEPENDENCIES}", unexplained.name);
                findings.push(at_manifest(package, message));
            }
        }
    }
    for row in &rows {
        for name in table::names(&row.cells[0]).into_iter().filter(|name| !house.packages.is_empty() && !used(name)) {
            let message = format!("no crate uses `{name}`: delete the line, and the entry in Cargo.toml");
            findings.push(Finding { path: DEPENDENCIES.to_owned(), line: row.line, message });
        }
    }
    findings
}

fn at_manifest(package: &Package, message: String) -> Finding {
    let folder = if package.name == "xtask" { "xtask".to_owned() } else { format!("crates/{}", package.name) };
    Finding { path: format!("{folder}/Cargo.toml"), line: 1, message }
}

#[cfg(test)]
mod tests {
    use super::{Dependency, House, Package, check_reasons, check_third_party, check_workspace_edges};

    const PAGE: &str = "| ring | crate | owns | may import | third party |\n|---|---|---|---|---|\n\
                        | 0 | `base` | ids | – | crc-fast |\n| 1 | `wire` | bytes | base | – |\n\
                        | 5 | `server` | wiring | base, wire | – |\n";

    fn dependency(name: &str, kind: Option<&str>, inside: bool) -> Dependency {
        let path = inside.then(|| format!("/x/{name}"));
        Dependency { name: name.to_owned(), kind: kind.map(str::to_owned), path }
    }

    fn house(dependencies: [Vec<Dependency>; 3]) -> House {
        let mut house = House::of(&[
            ("ARCHITECTURE.md", PAGE),
            (
                "docs/dependencies.md",
                "| crate | used by | why |\n|---|---|---|\n| `crc-fast`, `proptest` | base | checks |\n",
            ),
        ]);
        for (name, dependencies) in ["base", "wire", "server"].into_iter().zip(dependencies) {
            house.packages.push(Package { name: name.to_owned(), dependencies, features: Default::default() });
        }
        house
    }

    #[test]
    fn edges_of_the_table_pass_and_others_are_caught() {
        let server = vec![dependency("base", None, true), dependency("sim", Some("dev"), true)];
        let wire = vec![dependency("base", None, true)];
        assert_eq!(check_workspace_edges(&house([vec![], wire, server])), []);

        let outward = vec![dependency("wire", None, true)];
        let dev_edge = vec![dependency("server", Some("dev"), true)];
        let findings = check_workspace_edges(&house([outward, dev_edge, vec![]]));
        assert_eq!(
            findings.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(),
            ["crates/base/Cargo.toml", "crates/wire/Cargo.toml"]
        );
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_caught() {
        let mut two = house([vec![], vec![], vec![]]);
        two.packages[2].name = "stranger".to_owned();
        assert_eq!(check_workspace_edges(&two).len(), 2);
    }

    #[test]
    fn a_third_party_crate_outside_the_allow_list_is_caught() {
        let base = vec![dependency("crc-fast", None, false), dependency("proptest", Some("dev"), false)];
        let wire = vec![dependency("proptest", None, false)];
        let server = vec![dependency("crc-fast", None, false)];
        let findings = check_third_party(&house([base, wire, server]));
        assert_eq!(findings.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["crates/wire/Cargo.toml"]);
    }

    #[test]
    fn an_unexplained_and_an_unused_dependency_are_caught() {
        let base = vec![dependency("crc-fast", None, false), dependency("libc", None, false)];
        let paths: Vec<String> =
            check_reasons(&house([base, vec![], vec![]])).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["crates/base/Cargo.toml", "docs/dependencies.md"]);
    }
}
