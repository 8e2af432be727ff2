//! What the repository holds: its root, its tracked files, its crates and their edges.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::{Outcome, process};

/// The root of the repository: the folder above this crate.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a member of the workspace").to_path_buf()
}

/// Where chores keep what they build or install; removed by `cargo clean`.
pub fn tools_folder() -> PathBuf {
    root().join("target").join("xtask")
}

/// The cargo that runs this chore.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Builds a program of the workspace in profile `checked` and names it. Chosen from the whole workspace, as the tests are: cargo
/// unites the features of what is chosen, and a choice of its own would build most crates once more.
pub fn checked_program(name: &str) -> Outcome<PathBuf> {
    checked("--bin", name).map(|folder| folder.join(name))
}

/// The same of an example.
pub fn checked_example(name: &str) -> Outcome<PathBuf> {
    checked("--example", name).map(|folder| folder.join("examples").join(name))
}

fn checked(kind: &str, name: &str) -> Outcome<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--profile", "checked", "--workspace", kind, name]);
    match process::shown(&mut build)? {
        true => Ok(target_folder().join("checked")),
        false => Err(format!("`{}` failed", process::describe(&build))),
    }
}

/// One text file of the repository.
pub struct TextFile {
    /// Path from the root, with `/`.
    pub path: String,
    /// Its contents.
    pub text: String,
}

/// One crate of the workspace as Cargo reports it.
#[derive(Clone, Debug, Deserialize)]
pub struct Package {
    /// Its name; for crates in `crates/` also its folder.
    pub name: String,
    /// What its manifest names.
    pub dependencies: Vec<Dependency>,
    /// Its features and what each turns on.
    pub features: BTreeMap<String, Vec<String>>,
}

/// One line of a manifest's dependency tables.
#[derive(Clone, Debug, Deserialize)]
pub struct Dependency {
    /// The dependency's name.
    pub name: String,
    /// `None` for normal dependencies, else `dev` or `build`.
    pub kind: Option<String>,
    /// Present when it is a crate of this workspace.
    pub path: Option<String>,
}

impl Dependency {
    /// Whether only tests use it.
    pub fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// The workspace's crates with the edges their manifests declare.
pub fn packages() -> Outcome<Vec<Package>> {
    let text = process::output(cargo().args(["metadata", "--format-version", "1", "--no-deps", "--offline"]))?;
    let metadata: Metadata =
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata printed no such JSON: {error}"))?;
    Ok(metadata.packages)
}

/// Every tracked file and every new one that is not ignored, as text; binary files are left out.
pub fn text_files() -> Outcome<Vec<TextFile>> {
    let listing = process::output(Command::new("git").current_dir(root()).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let mut paths: Vec<&str> = listing.lines().collect();
    paths.sort_unstable();
    paths.dedup();
    let read = |path: &str| {
        let text = std::fs::read_to_string(root().join(path)).ok()?;
        Some(TextFile { path: path.to_owned(), text })
    };
    Ok(paths.into_iter().filter_map(read).collect())
}

/// The commit the tree stands on, as 40 hexadecimal digits; zeros outside a Git checkout.
pub fn commit() -> String {
    process::output(Command::new("git").current_dir(root()).args(["rev-parse", "HEAD"]))
        .map_or_else(|_| "0".repeat(40), |text| text.trim().to_owned())
}

/// Where Cargo puts what it builds.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
