//! `cargo x dist`: the static binary and the Debian package. No root and no extra target is needed: the binary is a
//! static-pie of the installed gnu target.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::empty_root::{self, Start};
use crate::suites::Counts;
use crate::{Outcome, debian_package, process, workspace};

/// The target that is named so that build scripts and macros are not linked statically with the rest.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What was built.
pub struct Artefacts {
    /// The static binary.
    pub binary: PathBuf,
    /// The Debian package; absent where there is no dpkg-deb.
    pub package: Option<PathBuf>,
}

/// `cargo x dist`.
pub fn run(arguments: &[String]) -> Outcome<ExitCode> {
    let is_checked = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("dist takes nothing or `--check`".to_owned()),
    };
    let artefacts = build()?;
    println!("built {}", artefacts.binary.display());
    match &artefacts.package {
        Some(package) => println!("built {}", package.display()),
        None => println!("no Debian package: dpkg-deb is missing (part of dpkg on every Debian)"),
    }
    if is_checked {
        let counts = check(&artefacts)?;
        println!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
        return Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds both artefacts into `target/dist`.
pub fn build() -> Outcome<Artefacts> {
    let (binary, output) = (build_binary()?, folder()?);
    let package = debian_package::build(&binary, &output)?;
    Ok(Artefacts { binary, package })
}

/// Where what strangers download is put.
pub fn folder() -> Outcome<PathBuf> {
    let folder = workspace::target_folder().join("dist");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Builds the static binary into `target/dist`.
pub fn build_binary() -> Outcome<PathBuf> {
    let target_folder = workspace::tools_folder().join("static");
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "cli", "--bin", "zerohop", "--target", TARGET]);
    cargo.arg("--target-dir").arg(&target_folder).env("RUSTFLAGS", "-C target-feature=+crt-static");
    if !process::shown(&mut cargo)? {
        return Err("the static binary does not build; see above".to_owned());
    }
    let binary = folder()?.join("zerohop");
    let built = target_folder.join(TARGET).join("release/zerohop");
    std::fs::copy(&built, &binary).map_err(|error| format!("{}: {error}", built.display()))?;
    Ok(binary)
}

/// The binary is a static-pie, and each artefact starts in an empty root and answers.
pub fn check(artefacts: &Artefacts) -> Outcome<Counts> {
    let mut counts = Counts::default();
    let bytes = std::fs::read(&artefacts.binary).map_err(|error| format!("the static binary: {error}"))?;
    let is_static = is_static_pie(&bytes);
    println!("the binary is {}a static-pie", if is_static { "" } else { "not " });
    counts.add(Counts::one(is_static));
    counts.add(started("the static binary", |root| empty_root::with_binary(root, &artefacts.binary))?);
    if let Some(package) = &artefacts.package {
        counts.add(started("the Debian package", |root| debian_package::unpack(package, root))?);
    }
    Ok(counts)
}

/// Lays out an empty root with `lay_out`, starts what it says and asks it PING.
fn started(what: &str, lay_out: impl FnOnce(&Path) -> Outcome<Vec<String>>) -> Outcome<Counts> {
    match empty_root::start_and_ask(lay_out)? {
        Start::Answered => {
            println!("{what} answers PING from an empty root");
            Ok(Counts::one(true))
        }
        Start::Silent(why) => {
            println!("{what} does not answer from an empty root: {why}");
            Ok(Counts::one(false))
        }
        Start::NotPermitted => {
            println!("{what}: this machine permits no new root (neither root nor user namespaces)");
            Ok(Counts { skipped: 1, ..Counts::default() })
        }
    }
}

/// Whether a 64-bit little-endian ELF file is position-independent and asks for no interpreter.
fn is_static_pie(elf: &[u8]) -> bool {
    const SHARED_OBJECT: u64 = 3;
    const INTERPRETER: u64 = 3;
    let number = |at: usize, size: usize| -> Option<u64> {
        let bytes = elf.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    let segments = || -> Option<Vec<u64>> {
        let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        (0..count).map(|index| number(usize::try_from(table + index * size).ok()?, 4)).collect()
    };
    elf.starts_with(b"\x7fELF\x02\x01")
        && number(16, 2) == Some(SHARED_OBJECT)
        && segments().is_some_and(|kinds| !kinds.contains(&INTERPRETER))
}

#[cfg(test)]
mod tests {
    use super::is_static_pie;

    /// An ELF header with program headers of these kinds.
    fn elf(kind: u8, segments: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64 + 56 * segments.len()];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (file[16], file[32], file[54], file[56]) = (kind, 64, 56, u8::try_from(segments.len()).expect("few"));
        for (index, segment) in segments.iter().enumerate() {
            file[64 + 56 * index] = *segment;
        }
        file
    }

    #[test]
    fn an_interpreter_or_a_fixed_address_is_caught() {
        assert!(is_static_pie(&elf(3, &[1, 2, 6])));
        assert!(!is_static_pie(&elf(3, &[1, 3, 6])));
        assert!(!is_static_pie(&elf(2, &[1])));
        assert!(!is_static_pie(&elf(3, &[1])[..66]));
    }

    #[test]
    fn this_very_test_is_no_static_pie() {
        let own = std::env::current_exe().and_then(std::fs::read).expect("a running program can read itself");
        assert!(!is_static_pie(&own));
    }
}
