//! The guest's root: busybox, the kernel's modules, `tests/power/init`, and a server with its libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::cpio::Archive;
use super::debian_guest::Guest;
use crate::{Outcome, peers, process, workspace};

/// What the machine's disk and network need, each behind what it needs itself.
const MODULES: &[&str] = &[
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "virtio_blk",
    "crc16",
    "mbcache",
    "jbd2",
    "ext4",
];
/// Where a program of Debian looks for its libraries.
const LIBRARIES: &str = "lib/x86_64-linux-gnu";

/// Writes the root with `program`, called `/bin/{name}` inside.
pub fn write(image: &Path, guest: &Guest, program: &Path, name: &str) -> Outcome<()> {
    let mut archive = Archive::default();
    archive.file("init", &read(&workspace::root().join("tests/power/init"))?);
    archive.file("bin/busybox", &read(&guest.busybox)?);
    archive.file(&format!("bin/{name}"), &read(program)?);
    let mut order = String::new();
    for module in MODULES {
        if let Some(path) = guest.module(module)? {
            archive.file(&format!("modules/{module}.ko"), &read(&path)?);
            order.push_str(&format!("{module}.ko\n"));
        }
    }
    archive.file("modules/order", order.as_bytes());
    for (inside, path) in libraries(program)? {
        archive.file(&inside, &read(&path)?);
    }
    let folder = image.parent().expect("an image lies in a folder");
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(image, archive.finish()))
        .map_err(|error| format!("{}: {error}", image.display()))
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// What `program` is linked with, and where that lies inside.
fn libraries(program: &Path) -> Outcome<Vec<(String, PathBuf)>> {
    let mut ldd = Command::new("ldd");
    ldd.arg(program).env("LD_LIBRARY_PATH", peers::library_folder());
    // It fails for a static program, which needs nothing.
    let output = ldd.output().map_err(|error| format!("ldd: {error}"))?;
    parse(&String::from_utf8_lossy(&output.stdout))
        .map_err(|name| format!("{}: {name} is missing", process::describe(&ldd)))
}

/// Lines `name => path (address)`, and `path (address)` for what loads the others. An error is the name of what is missing.
fn parse(output: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let mut found = Vec::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, "=>", "not", "found"] => return Err(name.to_owned()),
            [name, "=>", path, _] => found.push((format!("{LIBRARIES}/{name}"), PathBuf::from(path))),
            [path, _] if path.starts_with('/') => found.push((path[1..].to_owned(), PathBuf::from(path))),
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn libraries_are_found_and_a_missing_one_is_named() {
        let output = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld.so.2 (0x3)\n";
        let found = [("lib/x86_64-linux-gnu/libc.so.6", "/lib/libc.so.6"), ("lib64/ld.so.2", "/lib64/ld.so.2")];
        assert_eq!(parse(output), Ok(found.map(|(inside, path)| (inside.to_owned(), path.into())).to_vec()));
        assert_eq!(parse("\tstatically linked\n"), Ok(Vec::new()));
        assert_eq!(parse("\tlibx.so => not found\n"), Err("libx.so".to_owned()));
    }
}
