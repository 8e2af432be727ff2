//! What `check` and `serve` make of a harmed directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::book::{Book, compare};
use super::files;
use super::harm::Done;
use crate::process::Server;

/// `check` found damage.
const DAMAGED: i32 = 4;

/// What became of a harmed directory, when that is right.
pub(super) enum Verdict {
    /// Refused, with a name.
    Refused,
    /// Opened; it has all but the last `unknown_count` acknowledged writes, of which nothing in it told.
    Opened { unknown_count: usize },
}

/// What became of the directory.
///
/// # Errors
/// Says what is wrong: bytes that were never acknowledged, a refusal that names nothing, a repair.
pub(super) fn judge(zerohop: &str, directory: &Path, book: &Book, done: &Done) -> io::Result<Verdict> {
    let before = contents(directory)?;
    let (expected, unknown_count) = book.expected(&before);
    let output = Command::new(zerohop).arg("check").arg(directory).output()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if contents(directory)? != before {
        return Err(wrong("`check` changed the directory", &said));
    }
    let server = Server::start_zerohop(zerohop, &["--durability", "commit", "--cores", "2"], Some(directory));
    match (output.status.code(), server) {
        (Some(0), Ok(server)) => {
            compare(&expected, server.connect()?)?;
            Ok(Verdict::Opened { unknown_count })
        }
        (Some(DAMAGED), Err(refusal)) => {
            names_what_is_wrong(&said, done)?;
            names_what_is_wrong(&refusal.to_string(), done)?;
            match contents(directory)? == before {
                true => Ok(Verdict::Refused),
                false => Err(wrong("a refused directory was changed", &said)),
            }
        }
        (code, Ok(_)) => Err(wrong(&format!("serve starts where check ends with {code:?}"), &said)),
        (code, Err(refusal)) => Err(wrong(&format!("check ends with {code:?}, serve says {refusal}"), &said)),
    }
}

/// A refusal names a file and, unless it is the manifest or there is no such file, the place in it.
fn names_what_is_wrong(said: &str, done: &Done) -> io::Result<()> {
    let is_named = [".log", ".run", "MANIFEST"].iter().any(|part| said.contains(part));
    let has_place = said.contains("offset") || said.contains("MANIFEST") || said.contains("missing");
    if is_named && has_place {
        Ok(())
    } else {
        Err(wrong(&format!("nothing says where it is ({:?})", done.harm), said))
    }
}

fn wrong(what: &str, said: &str) -> io::Error {
    io::Error::other(format!("{what}\n      {}", said.trim().replace('\n', "\n      ")))
}

/// The store's files: not the lock, which says who used it, nor the server's output.
fn contents(directory: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut all = BTreeMap::new();
    for path in files(directory)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name == "MANIFEST" || name.ends_with(".log") || name.ends_with(".run") {
            all.insert(name, fs::read(&path)?);
        }
    }
    Ok(all)
}
