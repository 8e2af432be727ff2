//! The fuzzing program: what building it needs, and its build.

use std::path::PathBuf;
use std::process::Command;

use crate::needs::{Need, Source};
use crate::{Outcome, process, workspace};

/// libFuzzer is C++.
pub const CXX: Need = Need { name: "a C++ compiler", program: "c++", source: Source::Debian(&["g++"]) };

/// Coverage that libFuzzer reads (counters per edge, operands of comparisons) and the sanitizer, as cargo-fuzz asks for them.
const FLAGS: [&str; 7] = [
    "--cfg=fuzzing",
    "-Zsanitizer=address",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Where the program, the inputs found and what is printed lie.
pub fn folder() -> PathBuf {
    workspace::target_folder().join("fuzz")
}

/// Builds the program, the ordinary one or the one that carries planted bugs, and names it.
///
/// # Errors
/// What the machine lacks, and how to get it.
pub fn build(carries_bugs: bool) -> Outcome<PathBuf> {
    let (host, libraries) = toolchain()?;
    if !CXX.is_met() {
        return Err(format!("{} is missing, which libFuzzer needs: {}", CXX.name, CXX.advice()));
    }
    let names = std::fs::read_dir(&libraries).map_err(|error| format!("{}: {error}", libraries.display()))?;
    let is_runtime = |name: String| name.starts_with("librustc") && name.ends_with("_rt.asan.a");
    if !names.flatten().any(|entry| is_runtime(entry.file_name().to_string_lossy().into_owned())) {
        return Err(format!(
            "AddressSanitizer's runtime (librustc-*_rt.asan.a) is not in {}: this toolchain was built without it, \
             rustup's has it for x86_64-unknown-linux-gnu (rustup default stable)",
            libraries.display()
        ));
    }
    println!("building the fuzzing program (sanitizer and coverage: its own copy of every crate)");
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    cargo.arg("--target-dir").arg(folder());
    cargo.args(if carries_bugs { &["--features", "planted"][..] } else { &[] });
    // `-Z` on the stable compiler; build scripts and macros stay plain, because a target is named.
    cargo.env("RUSTC_BOOTSTRAP", "1").env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    if !process::shown(&mut cargo)? {
        return Err("the fuzzing program does not build; see above".to_owned());
    }
    Ok(folder().join(host).join("release/fuzz"))
}

/// The triple of this machine, and where its libraries lie.
fn toolchain() -> Outcome<(String, PathBuf)> {
    let rustc = || Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let version = process::output(rustc().arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` names no host")?.trim().to_owned();
    let libraries = process::output(rustc().args(["--print", "target-libdir"]))?;
    // The runtime of a toolchain lies beside the libraries of its host.
    let libraries = PathBuf::from(libraries.trim());
    Ok((host, libraries))
}
