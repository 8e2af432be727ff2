//! `cargo x peers`: the servers Zerohop is measured against and compared with, found on this machine or fetched from
//! its own Debian mirror into `target/peers` without installing anything system-wide.
//!
//! ```text
//! target/peers/apt    a package state of its own: the machine's sources plus the backports suite
//! target/peers/root   the unpacked packages, their libraries included
//! target/peers/bin    one small script per program that runs it with those libraries, under its own process id
//! ```

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::{Outcome, process, workspace};

/// A peer and where it comes from.
struct Kind {
    name: &'static str,
    /// What its `--version` must contain: numbers measured against another version are other numbers.
    version: &'static str,
    packages: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    Kind { name: "redis-server", version: "v=7.0.", packages: &["redis-server", "redis-tools"] },
    Kind { name: "redis-cli", version: "redis-cli 7.0.", packages: &["redis-tools"] },
    Kind { name: "valkey-server", version: "v=", packages: &["valkey-server", "valkey-tools"] },
    Kind { name: "valkey-cli", version: "valkey-cli ", packages: &["valkey-tools"] },
    Kind { name: "memcached", version: "memcached 1.", packages: &["memcached"] },
    Kind { name: "nutcracker", version: "nutcracker-0.5.", packages: &["nutcracker", "libyaml-0-2"] },
];

/// Libraries the packages above need and a small machine may lack; all come from the machine's own release.
const LIBRARIES: &[&str] =
    &["libatomic1", "libevent-2.1-7", "libhiredis0.14", "libjemalloc2", "liblua5.1-0", "liblzf1"];

/// A peer that runs on this machine.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Name of the program.
    pub name: String,
    /// What to start.
    pub program: PathBuf,
    /// What it says it is.
    pub version: String,
}

/// Prints every peer, fetching what is missing.
pub fn run(_arguments: &[String]) -> Outcome<ExitCode> {
    let mut complete = true;
    for kind in KINDS {
        match find_or_fetch(kind.name) {
            Ok(peer) => {
                let shown = peer.program.strip_prefix(workspace::root()).unwrap_or(&peer.program);
                println!("{:<14} {}  ({})", peer.name, peer.version, shown.display());
            }
            Err(message) => {
                complete = false;
                println!("{:<14} missing: {message}", kind.name);
            }
        }
    }
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the peer `name` runs here without anything being fetched.
pub fn is_here(name: &str) -> bool {
    KINDS.iter().any(|kind| kind.name == name && find(kind).is_some())
}

/// The folder with the programs that were fetched.
pub fn program_folder() -> PathBuf {
    folder().join("bin")
}

/// The peer `name`: fetched before, installed on this machine in the right version, or fetched now.
pub fn find_or_fetch(name: &str) -> Outcome<Peer> {
    let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| format!("no peer is called `{name}`"))?;
    if let Some(peer) = find(kind) {
        return Ok(peer);
    }
    fetch(kind)?;
    find(kind).ok_or_else(|| format!("its package was unpacked, but {name} does not run or has another version"))
}

/// The program `name` itself and not the script that starts it: what a machine of its own needs.
pub fn unpacked(name: &str) -> Outcome<PathBuf> {
    let peer = find_or_fetch(name)?;
    let unpacked = folder().join("root/usr/bin").join(name);
    Ok(if unpacked.is_file() { unpacked } else { peer.program })
}

/// Where fetched programs have their libraries.
pub fn library_folder() -> PathBuf {
    folder().join("root/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH))
}

/// Where everything lies that was fetched.
pub fn folder() -> PathBuf {
    workspace::root().join("target").join("peers")
}

fn find(kind: &Kind) -> Option<Peer> {
    let program = process::find(kind.name, &folder().join("bin"))?;
    let output = Command::new(&program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(if output.stdout.is_empty() { &output.stderr } else { &output.stdout });
    let version = text.lines().next()?.trim().to_owned();
    version.contains(kind.version).then(|| Peer { name: kind.name.to_owned(), program, version })
}

fn fetch(kind: &Kind) -> Outcome<()> {
    let configuration = prepare_apt()?;
    let packages = folder().join("apt").join("packages");
    make_folder(&packages)?;
    for package in kind.packages.iter().chain(LIBRARIES) {
        let mut download = Command::new("apt-get");
        download.args(["download", package]).current_dir(&packages).env("APT_CONFIG", &configuration);
        quiet(&mut download, &format!("fetching the Debian package {package}"))?;
    }
    let root = folder().join("root");
    unpack_all(&packages, &root)?;
    KINDS.iter().try_for_each(|kind| write_starter(kind.name, &root))
}

/// Unpacks every package of a folder into `root`.
pub fn unpack_all(packages: &Path, root: &Path) -> Outcome<()> {
    make_folder(root)?;
    let listed = fs::read_dir(packages).map_err(|error| format!("cannot list {}: {error}", packages.display()))?;
    for package in
        listed.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "deb"))
    {
        quiet(Command::new("dpkg-deb").arg("-x").arg(&package).arg(root), "unpacking a Debian package")?;
    }
    Ok(())
}

/// A package state of our own, so that neither the machine's lists nor its packages change and no root is needed.
pub fn prepare_apt() -> Outcome<PathBuf> {
    let apt = folder().join("apt");
    let configuration = apt.join("apt.conf");
    for part in ["parts", "lists/partial", "cache/archives/partial"] {
        make_folder(&apt.join(part))?;
    }
    let codename = codename()?;
    write(&apt.join("parts/peers.sources"), &sources(&codename)?)?;
    let shown = apt.display();
    let text = format!(
        "Dir::Etc::sourcelist \"{shown}/none.list\";\nDir::Etc::sourceparts \"{shown}/parts\";\n\
         Dir::State::lists \"{shown}/lists\";\nDir::Cache \"{shown}/cache\";\nAPT::Sandbox::User \"\";\n"
    );
    write(&configuration, &text)?;
    let mut update = Command::new("apt-get");
    update.arg("update").env("APT_CONFIG", &configuration);
    quiet(&mut update, "reading the package lists of this machine's Debian sources")?;
    Ok(configuration)
}

fn codename() -> Outcome<String> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .ok_or_else(|| {
            "this machine is no Debian: install redis-server, valkey-server and memcached by hand".to_owned()
        })
}

/// The machine's Debian stanzas for its release, and the same archive's backports suite.
fn sources(codename: &str) -> Outcome<String> {
    let mut text = String::new();
    let listed = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path());
    for path in listed.filter(|path| path.extension().is_some_and(|extension| extension == "sources")) {
        let file = fs::read_to_string(&path).unwrap_or_default();
        for stanza in file.split("\n\n") {
            text.push_str(&stanzas_wanted(stanza, codename));
        }
    }
    for line in fs::read_to_string("/etc/apt/sources.list").unwrap_or_default().lines() {
        text.push_str(&stanzas_wanted(&stanza_of_line(line), codename));
    }
    if text.is_empty() {
        return Err(format!("the package sources of this machine name no suite of {codename}"));
    }
    Ok(text)
}

/// One line of the old format (`deb [options] archive suite component…`) in the new one.
fn stanza_of_line(line: &str) -> String {
    let mut options = String::new();
    let mut words: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        match word.trim_start_matches('[').trim_end_matches(']').split_once('=') {
            Some(("signed-by", key)) => options = format!("Signed-By: {key}\n"),
            Some(_) if word.starts_with('[') || word.ends_with(']') => {}
            _ => words.push(word),
        }
    }
    match words[..] {
        ["deb", archive, suite, ref components @ ..] => {
            format!("Types: deb\nURIs: {archive}\nSuites: {suite}\nComponents: {}\n{options}", components.join(" "))
        }
        _ => String::new(),
    }
}

fn stanzas_wanted(stanza: &str, codename: &str) -> String {
    let Some(suites) = stanza.lines().find_map(|line| line.strip_prefix("Suites:")) else { return String::new() };
    let names: Vec<&str> = suites.split_whitespace().collect();
    let is_release = names.contains(&codename);
    if !is_release && !names.contains(&format!("{codename}-security").as_str()) {
        return String::new();
    }
    let mut text = format!("{}\n\n", stanza.trim());
    if is_release {
        let backports = format!("Suites: {codename}-backports");
        text.push_str(&stanza.trim().replace(&format!("Suites:{suites}"), &backports));
        text.push_str("\n\n");
    }
    text
}

/// A script and not a link: the program needs the unpacked libraries, and `exec` keeps its process id.
fn write_starter(name: &str, root: &Path) -> Outcome<()> {
    let places = ["usr/bin", "usr/sbin"].map(|place| root.join(place).join(name));
    let Some(program) = places.into_iter().find(|program| program.is_file()) else { return Ok(()) };
    make_folder(&folder().join("bin"))?;
    let starter = folder().join("bin").join(name);
    let libraries = library_folder();
    let text =
        format!("#!/bin/sh\nLD_LIBRARY_PATH=\"{}\" exec \"{}\" \"$@\"\n", libraries.display(), program.display());
    write(&starter, &text)?;
    fs::set_permissions(&starter, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("cannot make {} executable: {error}", starter.display()))
}

/// Runs `command`, showing neither its output nor its addresses.
pub fn quiet(command: &mut Command, doing: &str) -> Outcome<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{doing} failed ({status})")),
        Err(error) => Err(format!("{doing} failed: {error}")),
    }
}

/// Makes a folder and those above it.
pub fn make_folder(path: &Path) -> Outcome<()> {
    fs::create_dir_all(path).map_err(|error| format!("cannot make the folder {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{stanza_of_line, stanzas_wanted};

    const STANZA: &str = "Types: deb\nURIs: http://host/debian\nSuites: bookworm bookworm-updates\nComponents: main";

    #[test]
    fn the_release_brings_its_backports() {
        let text = stanzas_wanted(STANZA, "bookworm");
        assert!(text.contains("Suites: bookworm bookworm-updates\n"), "{text}");
        assert!(text.contains("Suites: bookworm-backports\n"), "{text}");
        assert_eq!(text.matches("URIs: http://host/debian").count(), 2);
    }

    #[test]
    fn other_suites_are_left_out() {
        assert_eq!(stanzas_wanted(STANZA, "trixie"), "");
        assert_eq!(stanzas_wanted("# a comment", "bookworm"), "");
    }

    #[test]
    fn a_line_of_the_old_format_is_understood() {
        let stanza = stanza_of_line("deb [arch=amd64 signed-by=/k.gpg] http://host/debian bookworm main contrib");
        assert!(stanza.contains("Signed-By: /k.gpg\n") && stanza.contains("Components: main contrib\n"), "{stanza}");
        assert!(stanzas_wanted(&stanza, "bookworm").contains("bookworm-backports"));
        assert_eq!(stanza_of_line("# deb nothing"), "");
    }
}
