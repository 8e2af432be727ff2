//! `zerohop cluster save` and `load`: everything that a cluster has, in files, and back into a cluster of any size
//! (docs/internals/save.md).

mod manifest;
mod nodes;
mod part;

use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use io::files::{Readers, replace_file};

use self::manifest::{FILE_NAME, Manifest, Part, part_name};
use self::nodes::Nodes;
use self::part::{Content, Entry, Reader, Writer, hexadecimal};
use crate::client::connection::Target;
use crate::{progress, say};

/// Entries, and bytes of them, that are given to the nodes in one go.
const BATCH: usize = 1024;
const BATCH_BYTES: usize = 4 << 20;
/// What expires within this time after a load, and as long as the load took twice, is not checked: it may go while it is looked for.
const SOON_MS: u64 = 60_000;

/// Writes a save to `directory`.
///
/// # Errors
/// Why there is none, for people.
pub fn save(target: &Target, directory: &Path) -> Result<(), String> {
    let mut nodes = open(target)?;
    prepare(directory)?;
    let total = nodes.keys()?;
    let mut progress = progress::of_keys("saving");
    let (mut parts, mut content) = (Vec::new(), Content::default());
    let of_disk = |error: std::io::Error| format!("{}: {error}", directory.display());
    for number in 0..nodes.nodes.len() {
        let file = part_name(number);
        let mut writer = Writer::create(&directory.join(&file)).map_err(of_disk)?;
        nodes.nodes[number].each(|entry| {
            progress(content.keys + writer.content.keys, total);
            writer.add(&entry).map_err(of_disk)
        })?;
        let (of_part, bytes, digest) = writer.finish().map_err(of_disk)?;
        parts.push(Part { file, keys: of_part.keys, bytes, digest });
        content.join(of_part);
    }
    if !nodes.are_where_they_were()? {
        return Err("slots moved while they were saved: try again when `zerohop cluster status` shows none that does"
            .to_owned());
    }
    let manifest = Manifest { taken_unix_ms: unix_ms(), content, parts };
    let written = replace_file(&directory.join(FILE_NAME), manifest.to_text().as_bytes(), Readers::AsUsual);
    written.map_err(of_disk)?;
    drop(progress);
    let bytes: u64 = manifest.parts.iter().map(|part| part.bytes).sum();
    say::line(&format!(
        "saved {} keys of {} nodes, {bytes} bytes, in {}; content {}",
        content.keys,
        nodes.nodes.len(),
        directory.display(),
        hexadecimal(content.sum)
    ));
    Ok(())
}

/// Loads the save in `directory` into an empty cluster, and looks whether it is all there.
///
/// # Errors
/// Why it is not, for people.
pub fn load(target: &Target, directory: &Path) -> Result<(), String> {
    let manifest = Manifest::read(directory)?;
    verify(directory, &manifest)?;
    let mut nodes = open(target)?;
    let there = nodes.keys()?;
    if there > 0 {
        return Err(format!(
            "the cluster has {there} keys: a save is loaded into an empty one (FLUSHALL at every node empties it)"
        ));
    }
    let begun = Instant::now();
    give_all(&mut nodes, directory, &manifest)?;
    let soon_ms = unix_ms() + SOON_MS + 2 * begun.elapsed().as_millis() as u64;
    let stays = |entry: &Entry| entry.expires_at_ms == 0 || entry.expires_at_ms > soon_ms;
    let (mut expected, mut found) = (Content::default(), Content::default());
    each(directory, &manifest, |entry| {
        if stays(&entry) {
            expected.add(&entry);
        }
        Ok(())
    })?;
    let mut progress = progress::of_keys("checking");
    for node in &mut nodes.nodes {
        node.each(|entry| {
            if stays(&entry) {
                found.add(&entry);
            }
            progress(found.keys, expected.keys);
            Ok(())
        })?;
    }
    drop(progress);
    if found != expected {
        return Err(format!(
            "what is in the cluster is not what the save has: {} keys with content {}, {} with {} were expected. Does somebody write to it?",
            found.keys,
            hexadecimal(found.sum),
            expected.keys,
            hexadecimal(expected.sum)
        ));
    }
    let expiring = manifest.content.keys - expected.keys;
    let left_out =
        if expiring == 0 { String::new() } else { format!("; {expiring} expire soon or did, and were not compared") };
    say::line(&format!(
        "loaded {} keys into {} nodes; read back and compared: content {}{left_out}",
        expected.keys,
        nodes.nodes.len(),
        hexadecimal(found.sum)
    ));
    Ok(())
}

fn open(target: &Target) -> Result<Nodes, String> {
    let nodes = Nodes::open(target)?;
    match nodes.orphans() {
        0 => Ok(nodes),
        slots => Err(format!("nobody serves {slots} slots: `zerohop cluster status` says why")),
    }
}

/// A new or an empty directory.
fn prepare(directory: &Path) -> Result<(), String> {
    let of_disk = |error: std::io::Error| format!("{}: {error}", directory.display());
    std::fs::create_dir_all(directory).map_err(of_disk)?;
    match std::fs::read_dir(directory).map_err(of_disk)?.next() {
        None => Ok(()),
        Some(_) => Err(format!("{} is not empty: a save goes into a directory of its own", directory.display())),
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Whether all parts are whole, before anything is loaded.
fn verify(directory: &Path, manifest: &Manifest) -> Result<(), String> {
    let mut content = Content::default();
    each(directory, manifest, |entry| {
        content.add(&entry);
        Ok(())
    })?;
    match content == manifest.content {
        true => Ok(()),
        false => Err(format!("{}: the parts are not those that {FILE_NAME} tells of", directory.display())),
    }
}

fn each(
    directory: &Path,
    manifest: &Manifest,
    mut take: impl FnMut(Entry) -> Result<(), String>,
) -> Result<(), String> {
    for part in &manifest.parts {
        let path = directory.join(&part.file);
        let of_file = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut reader = Reader::open(&path).map_err(of_file)?;
        while let Some(entry) = reader.next().map_err(of_file)? {
            take(entry)?;
        }
    }
    Ok(())
}

fn give_all(nodes: &mut Nodes, directory: &Path, manifest: &Manifest) -> Result<(), String> {
    let mut progress = progress::of_keys("loading");
    let (mut batch, mut bytes, mut done): (Vec<Entry>, usize, u64) = (Vec::new(), 0, 0);
    each(directory, manifest, |entry| {
        bytes += entry.key.len() + entry.payload.len();
        batch.push(entry);
        if batch.len() >= BATCH || bytes >= BATCH_BYTES {
            nodes.restore(&batch)?;
            done += batch.len() as u64;
            progress(done, manifest.content.keys);
            (batch, bytes) = (Vec::new(), 0);
        }
        Ok(())
    })?;
    nodes.restore(&batch)
}
