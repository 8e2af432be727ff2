//! `cargo x wheel`: the Python package as one file, which also brings the program `zerohop`: the static binary, without its tables for
//! debuggers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::needs::{self, PYTHON, WHEEL_TOOLS};
use crate::{Outcome, dist, process, workspace};

/// The oldest system that it is for, as pip names it.
pub const PLATFORM: &str = "manylinux_2_28_x86_64";

/// `cargo x wheel`.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    if !arguments.is_empty() {
        return Err("wheel takes no arguments".to_owned());
    }
    let missing: Vec<_> = [&PYTHON, &WHEEL_TOOLS].into_iter().filter(|need| !need.is_met()).collect();
    needs::install(&missing)?;
    if let Some(missing) = missing.into_iter().find(|need| !need.is_met()) {
        return Err(format!("{} is missing: {}", missing.name, missing.advice()));
    }
    println!("built {}", build()?.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds it into `target/dist` and names it.
pub fn build() -> Outcome<PathBuf> {
    let package = workspace::root().join("python");
    let scripts = package.join("zerohop.data/scripts");
    fs::create_dir_all(&scripts).map_err(|error| format!("{}: {error}", scripts.display()))?;
    let mut strip = Command::new("strip");
    strip.arg("--strip-debug").arg("-o").arg(scripts.join("zerohop")).arg(dist::build_binary()?);
    process::output(&mut strip)?;
    let output = dist::folder()?;
    for old in wheels(&output)? {
        fs::remove_file(&old).map_err(|error| format!("{}: {error}", old.display()))?;
    }
    let programs = needs::wheel_python().parent().expect("it lies in a folder of programs").to_path_buf();
    let mut maturin = Command::new(programs.join("maturin"));
    maturin.args(["build", "--quiet", "--release", "--zig", "--compatibility", "manylinux_2_28"]);
    // It looks for Python, and with that for the linker, among the programs.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(programs).chain(std::env::split_paths(&path));
    maturin.env("PATH", std::env::join_paths(folders).expect("folders of PATH hold no separator"));
    maturin.arg("--out").arg(&output).current_dir(&package);
    // Beside what others build: the linker is another one.
    maturin.env("CARGO_TARGET_DIR", workspace::tools_folder().join("wheel-build"));
    // Places in messages are told from the root, not from that of the machine that builds.
    maturin.env("RUSTFLAGS", format!("--remap-path-prefix={}/=", workspace::root().display()));
    if !process::shown(&mut maturin)? {
        return Err("the wheel does not build; see above".to_owned());
    }
    wheels(&output)?.pop().ok_or_else(|| "maturin built no wheel".to_owned())
}

fn wheels(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = listed.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "whl")).collect())
}
