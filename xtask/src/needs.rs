//! What suites need from the machine: how to see whether it is there, how to get it, how to tell a person.

use std::path::PathBuf;
use std::process::Command;

use crate::power::debian_guest;
use crate::{Outcome, peers, process, workspace};

/// One thing a suite needs.
pub struct Need {
    /// What it is called in messages.
    pub name: &'static str,
    /// The program that must be found.
    pub program: &'static str,
    /// How to get it.
    pub source: Source,
}

/// Where a need comes from.
pub enum Source {
    /// Debian packages, installed as root.
    Debian(&'static [&'static str]),
    /// Peers (`cargo x peers`), unpacked into `target/peers` without root.
    Peers(&'static [&'static str]),
    /// The guest of the power campaign, unpacked beside the peers without root.
    Guest,
    /// Python packages with versions, installed into the virtual environment of this name under `target/xtask`.
    Python(&'static str, &'static [&'static str]),
    /// A component of the Rust toolchain, added by rustup.
    Toolchain(&'static str),
    /// Nothing we may install; the text says how a person gets it.
    ByHand(&'static str),
}

/// The formatter.
pub const RUSTFMT: Need = Need { name: "rustfmt", program: "cargo-fmt", source: Source::Toolchain("rustfmt") };
/// The linter.
pub const CLIPPY: Need = Need { name: "Clippy", program: "cargo-clippy", source: Source::Toolchain("clippy") };
/// The oracle, and the tools that come with it.
pub const REDIS: Need = Need {
    name: "Redis 7.0 with its tools",
    program: "redis-server",
    source: Source::Peers(&["redis-server", "redis-cli"]),
};
/// The newer oracle.
pub const VALKEY: Need = Need { name: "Valkey", program: "valkey-server", source: Source::Peers(&["valkey-server"]) };
/// The machine that loses its power.
pub const QEMU: Need =
    Need { name: "QEMU", program: "qemu-system-x86_64", source: Source::Debian(&["qemu-system-x86"]) };
/// What formats its disk.
pub const MKE2FS: Need = Need { name: "mke2fs", program: "/usr/sbin/mke2fs", source: Source::Debian(&["e2fsprogs"]) };
/// What makes networks of a test, and makes them narrow.
pub const IPROUTE: Need = Need { name: "ip and tc", program: "/usr/sbin/tc", source: Source::Debian(&["iproute2"]) };
/// What cuts them.
pub const NFTABLES: Need = Need { name: "nft", program: "/usr/sbin/nft", source: Source::Debian(&["nftables"]) };
/// What runs in it.
pub const GUEST: Need =
    Need { name: "a kernel and busybox of Debian for virtual machines", program: "dpkg-deb", source: Source::Guest };
/// Python with virtual environments.
pub const PYTHON: Need =
    Need { name: "Python 3", program: "python3", source: Source::Debian(&["python3", "python3-venv"]) };
/// redis-py in the virtual environment; needs [`PYTHON`] before it.
pub const REDIS_PY: Need = Need {
    name: "redis-py, valkey-glide and pytest",
    program: "python3",
    source: Source::Python(
        CLIENTS_ENVIRONMENT,
        &["redis==8.1.0", "valkey-glide-sync==2.5.3", "pytest>=8,<10", "pytest-asyncio>=0.24,<2"],
    ),
};
const CLIENTS_ENVIRONMENT: &str = "python";
/// Django and limits with redis-py, in an environment of their own; needs [`PYTHON`] before it.
pub const APPLICATIONS: Need = Need {
    name: "Django, redis-py and limits",
    program: "python3",
    source: Source::Python(APPLICATIONS_ENVIRONMENT, &["django==5.2.19", "redis==8.1.0", "limits==5.8.0"]),
};
const APPLICATIONS_ENVIRONMENT: &str = "applications";
/// What builds and judges the Python package, in an environment of its own; needs [`PYTHON`] before it.
pub const WHEEL_TOOLS: Need = Need {
    name: "maturin, ziglang, pytest and mypy",
    program: "python3",
    source: Source::Python(
        WHEEL_ENVIRONMENT,
        &["maturin==1.16.0", "ziglang==0.17.1", "pytest>=8,<10", "mypy>=1.18,<3"],
    ),
};
const WHEEL_ENVIRONMENT: &str = "wheel";
/// Go with modules.
pub const GO: Need = Need { name: "Go 1.21 or newer", program: "go", source: Source::Debian(&["golang-go"]) };
/// Node with npm.
pub const NODE: Need = Need { name: "Node with npm", program: "npm", source: Source::Debian(&["nodejs", "npm"]) };
/// Java with Maven.
pub const JAVA: Need =
    Need { name: "Java 17 with Maven", program: "mvn", source: Source::Debian(&["default-jdk-headless", "maven"]) };
/// A C compiler: what links Rust programs.
pub const COMPILER: Need = Need { name: "a C compiler", program: "cc", source: Source::Debian(&["gcc", "libc6-dev"]) };
/// dpkg-deb, which builds the Debian package.
pub const DPKG: Need =
    Need { name: "dpkg-deb", program: "dpkg-deb", source: Source::ByHand("part of dpkg on every Debian") };

impl Need {
    /// Whether the machine has it.
    pub fn is_met(&self) -> bool {
        match self.source {
            Source::Python(environment, packages) => {
                std::fs::read_to_string(python_stamp(environment)).is_ok_and(|stamp| stamp == packages.join("\n"))
            }
            Source::Peers(names) => names.iter().all(|name| peers::is_here(name)),
            Source::Guest => debian_guest::find().is_ok(),
            Source::Debian(_) | Source::Toolchain(_) | Source::ByHand(_) => find(self.program).is_some(),
        }
    }

    /// How a person gets it.
    pub fn advice(&self) -> String {
        match &self.source {
            Source::Debian(packages) => format!("apt-get install {}", packages.join(" ")),
            Source::Guest => "cargo x campaign power, which fetches it from this machine's Debian sources".to_owned(),
            Source::Peers(_) => "cargo x peers, which says what it lacks".to_owned(),
            Source::Python(_, packages) => format!("cargo x test installs {} with pip", packages.join(", ")),
            Source::Toolchain(component) => format!("rustup component add {component}"),
            Source::ByHand(how) => (*how).to_owned(),
        }
    }
}

/// The path of a program, fetched peers first.
pub fn find(program: &str) -> Option<PathBuf> {
    process::find(program, &peers::program_folder())
}

/// The interpreter of the virtual environment that [`REDIS_PY`] makes.
pub fn python() -> PathBuf {
    python_of(CLIENTS_ENVIRONMENT)
}

/// The interpreter of the one that [`APPLICATIONS`] makes.
pub fn applications_python() -> PathBuf {
    python_of(APPLICATIONS_ENVIRONMENT)
}

/// The interpreter of the one that [`WHEEL_TOOLS`] makes.
pub fn wheel_python() -> PathBuf {
    python_of(WHEEL_ENVIRONMENT)
}

fn python_of(environment: &str) -> PathBuf {
    workspace::tools_folder().join(environment).join("bin/python3")
}

fn python_stamp(environment: &str) -> PathBuf {
    workspace::tools_folder().join(environment).join("packages.txt")
}

/// Tries to meet what is not met; prints each step. What is still missing afterwards is asked again by the caller.
pub fn install(missing: &[&Need]) -> Outcome<()> {
    let debian: Vec<&str> = missing
        .iter()
        .filter_map(|need| if let Source::Debian(packages) = need.source { Some(packages) } else { None })
        .flatten()
        .copied()
        .collect();
    if !debian.is_empty() && is_root() && find("apt-get").is_some() {
        install_debian(&debian)?;
    }
    for need in missing {
        match need.source {
            Source::Python(environment, packages) => install_python(environment, packages)?,
            Source::Peers(names) => fetch_peers(names),
            Source::Guest => fetch_guest(),
            Source::Toolchain(component) => add_component(component)?,
            Source::Debian(_) | Source::ByHand(_) => {}
        }
    }
    Ok(())
}

fn add_component(component: &str) -> Outcome<()> {
    let Some(rustup) = find("rustup") else { return Ok(()) };
    println!("adding to the Rust toolchain: {component}");
    if !process::shown(Command::new(rustup).args(["component", "add", component]))? {
        println!("rustup could not add {component}");
    }
    Ok(())
}

/// A peer that cannot be fetched is told and left to the list of what is missing.
fn fetch_peers(names: &[&str]) {
    for name in names {
        match peers::find_or_fetch(name) {
            Ok(peer) => println!("found {}: {}", peer.name, peer.version),
            Err(message) => println!("{name}: {message}"),
        }
    }
}

/// As a peer that cannot be fetched.
fn fetch_guest() {
    println!("fetching from Debian: the guest of the power campaign");
    if let Err(message) = debian_guest::fetch() {
        println!("{message}");
    }
}

/// Whether packages may be installed: apt wants root.
pub fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn install_debian(packages: &[&str]) -> Outcome<()> {
    println!("installing from Debian: {}", packages.join(" "));
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["-qq", "-o", "Dpkg::Use-Pty=0"]);
        command
    };
    let done = process::shown(apt().arg("update"))?
        && process::shown(apt().args(["install", "-y", "--no-install-recommends"]).args(packages))?;
    if !done {
        println!("apt-get could not install all of it; what is missing is listed below");
    }
    Ok(())
}

fn install_python(environment: &str, packages: &[&str]) -> Outcome<()> {
    println!("installing into target/xtask/{environment}: {}", packages.join(" "));
    let Some(python3) = find("python3") else { return Ok(()) };
    let folder = workspace::tools_folder().join(environment);
    let python = python_of(environment);
    let done = process::shown(Command::new(python3).args(["-m", "venv"]).arg(&folder))?
        && process::shown(Command::new(python).args(["-m", "pip", "install", "-q"]).args(packages))?;
    if done {
        std::fs::write(python_stamp(environment), packages.join("\n"))
            .map_err(|error| format!("target/xtask/{environment}: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Need, Source};

    #[test]
    fn a_missing_program_is_not_met_and_says_how_to_get_it() {
        let need = Need { name: "x", program: "no-such-program-anywhere", source: Source::Debian(&["a", "b"]) };
        assert!(!need.is_met());
        assert_eq!(need.advice(), "apt-get install a b");
        let shell = Need { name: "sh", program: "sh", source: Source::ByHand("it is there") };
        assert!(shell.is_met());
    }
}
