//! The guest's kernel and its tools: Debian's packages, unpacked beside the peers and installed nowhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, peers, process};

/// The kernel that Debian builds for virtual machines; this package only names the newest one.
const KERNEL: &str = "linux-image-cloud-amd64";
/// The guest's tools, in one static program.
const BUSYBOX: &str = "busybox-static";

/// What a guest starts from.
pub struct Guest {
    /// The kernel's image.
    pub kernel: PathBuf,
    /// busybox.
    pub busybox: PathBuf,
    modules: PathBuf,
}

impl Guest {
    /// The file of a module; `None` if it is part of the kernel's image.
    pub fn module(&self, name: &str) -> Outcome<Option<PathBuf>> {
        let file = format!("{name}.ko");
        if let Some(path) = find_below(&self.modules, &|path| path.ends_with(&file)) {
            return Ok(Some(path));
        }
        let built_in = std::fs::read_to_string(self.modules.join("modules.builtin")).unwrap_or_default();
        if built_in.lines().any(|line| line.ends_with(&format!("/{file}"))) {
            return Ok(None);
        }
        Err(format!("the guest's kernel has no module {name}, or it is compressed"))
    }
}

fn folder() -> PathBuf {
    peers::folder().join("guest")
}

/// What was fetched before.
pub fn find() -> Outcome<Guest> {
    let root = folder().join("root");
    let is_kernel = |path: &Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")) && path.is_file()
    };
    let found = || {
        let kernel = find_below(&root.join("boot"), &is_kernel)?;
        let version = kernel.file_name()?.to_string_lossy().strip_prefix("vmlinuz-")?.to_owned();
        let first = |paths: [PathBuf; 2]| paths.into_iter().find(|path| path.exists());
        let modules = first(["lib/modules", "usr/lib/modules"].map(|path| root.join(path).join(&version)))?;
        let busybox = first(["bin/busybox", "usr/bin/busybox"].map(|path| root.join(path)))?;
        Some(Guest { kernel, busybox, modules })
    };
    found().ok_or_else(|| "the guest's kernel and busybox are not fetched yet".to_owned())
}

/// Fetches and unpacks both packages.
pub fn fetch() -> Outcome<()> {
    let configuration = peers::prepare_apt()?;
    let apt = |program: &str| {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &configuration);
        command
    };
    let packages = folder().join("packages");
    peers::make_folder(&packages)?;
    let depends = process::output(apt("apt-cache").args(["depends", "--important", KERNEL]))?;
    let kernel = newest_kernel(&depends).ok_or_else(|| format!("the package {KERNEL} names no kernel"))?;
    for package in [&kernel, BUSYBOX] {
        let mut download = apt("apt-get");
        download.args(["download", package]).current_dir(&packages);
        peers::quiet(&mut download, &format!("fetching the Debian package {package}"))?;
    }
    peers::unpack_all(&packages, &folder().join("root"))
}

fn newest_kernel(depends: &str) -> Option<String> {
    let mut names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.find(|name| name.starts_with("linux-image-")).map(str::to_owned)
}

fn find_below(folder: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let mut folders = Vec::new();
    for path in std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()) {
        if is_wanted(&path) {
            return Some(path);
        }
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.iter().find_map(|folder| find_below(folder, is_wanted))
}

#[cfg(test)]
mod tests {
    use super::newest_kernel;

    #[test]
    fn the_kernel_is_what_its_package_depends_on() {
        let depends = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-9-cloud-amd64\n";
        assert_eq!(newest_kernel(depends).as_deref(), Some("linux-image-6.1.0-9-cloud-amd64"));
        assert_eq!(newest_kernel("linux-image-cloud-amd64\n"), None);
    }
}
