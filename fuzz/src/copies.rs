//! Target `copies`: what a store is copied by. The file `BACKUP`, a save's file `SAVE` and its parts, and dumped values are refused
//! or read, and what was read is written so that it means the same.

// The readers of a save belong to the program `zerohop`, which is no library: its files are a part of this one. They are formatted
// there, and `rustfmt` would look for their tests in the wrong folder.
#[path = "../../crates/cli/src/cluster/save/manifest.rs"]
#[rustfmt::skip]
#[allow(dead_code, reason = "a folder's file is not asked for here")]
mod manifest;
#[path = "../../crates/cli/src/cluster/save/part.rs"]
#[rustfmt::skip]
#[allow(dead_code, reason = "what several parts add up to is not asked for here")]
mod part;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base::Text;
use base::checksum::crc64_redis;
use serde_json::Value;
use server::backup::Description;
use server::backup::description::{Base, ChainPoint, Part, StoredFile};
use types::List;
use types::dump::{Dumped, dump_list, dump_string, restore};
use xxhash_rust::xxh3::xxh3_128;

use crate::source::Source;

const MANIFEST: &str = "MANIFEST";
/// How a part of a save begins.
const PART_MAGIC: &[u8] = b"ZHSAVE01";
/// What stands there instead of an entry behind the last one.
const PART_END: [u8; 4] = [0xff; 4];

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("zerohop-fuzz-{}.dump", std::process::id())));

/// Input: which of them, and its bytes or its fields. Digests are made right, so that what stands behind them is looked at.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    match source.byte() % 5 {
        0 => backup(source.rest()),
        1 => backup_of_fields(&mut source),
        2 => save(source.rest()),
        3 => save_part(source.byte(), source.rest()),
        _ => dump(source.byte(), source.rest()),
    }
}

/// The text of a JSON object that says its own digest, if `bytes` are an object.
fn sealed(bytes: &[u8]) -> Option<String> {
    let mut value: Value = serde_json::from_slice(bytes).ok()?;
    value.as_object_mut()?.remove("digest");
    let digest = format!("{:032x}", xxh3_128(value.to_string().as_bytes()));
    value.as_object_mut()?.insert("digest".to_owned(), digest.into());
    Some(value.to_string())
}

fn backup(bytes: &[u8]) {
    std::hint::black_box(Description::decode(bytes)).ok();
    let Some(text) = sealed(bytes) else { return };
    match Description::decode(text.as_bytes()) {
        Err(reason) => assert!(!reason.is_empty()),
        Ok(description) => check_backup(&description),
    }
}

/// What was believed names no file outside of its directory, and is read as it is written.
fn check_backup(description: &Description) {
    assert_eq!(Description::decode(description.encode().as_bytes()).as_ref(), Ok(description));
    assert!(description.file(MANIFEST).is_some());
    assert!(description.own_bytes() <= description.total_bytes());
    for file in &description.files {
        let names = file.parts.iter().map(|part| &part.file).chain([&file.name]);
        names.for_each(|name| assert!(!name.contains(['/', '\0']) && !name.starts_with('.'), "{name:?}"));
        assert_eq!(file.parts.iter().map(|part| u128::from(part.bytes)).sum::<u128>(), u128::from(file.bytes));
    }
}

/// A description of which most is as it should be.
fn backup_of_fields(source: &mut Source<'_>) {
    let bases: Vec<Base> = (0..source.below(3)).map(|_| Base { id: id(source), directory: text(source) }).collect();
    let mut files = vec![stored_file(MANIFEST.to_owned(), &bases, source)];
    for _ in 0..source.below(4) {
        let name = match source.below(4) {
            0 => text(source),
            1 => format!("g{:02}-{:08}-{:016}.run", source.below(64), source.byte(), source.byte()),
            _ => format!("{:08}-{:03}-{:010}.log", source.byte(), source.below(4), source.below(4)),
        };
        files.push(stored_file(name, &bases, source));
    }
    let point = (0..source.below(3)).map(|_| ChainPoint {
        incarnation: source.long(),
        core: source.short(),
        ordinal: source.long(),
    });
    let description = Description {
        format: Description::FORMAT,
        point: point.collect(),
        id: id(source),
        store: id(source),
        version: text(source),
        taken_unix_ms: source.long(),
        source: text(source),
        online: source.below(2) == 1,
        bases,
        files,
    };
    if let Ok(again) = Description::decode(description.encode().as_bytes()) {
        assert_eq!(again, description);
        check_backup(&again);
    }
}

fn stored_file(name: String, bases: &[Base], source: &mut Source<'_>) -> StoredFile {
    let (mut parts, mut offset) = (Vec::new(), 0u64);
    for _ in 0..source.below(4) {
        let bytes = match source.byte() {
            255 => source.long(),
            few => u64::from(few),
        };
        let backup = match source.below(bases.len() + 1) {
            0 => String::new(),
            number => bases[number - 1].id.clone(),
        };
        let file = match (source.below(8), offset) {
            (7, _) => text(source),
            (_, 0) => name.clone(),
            _ => format!("{name}@{offset}"),
        };
        parts.push(Part { backup, file, bytes, digest: text(source) });
        offset = offset.wrapping_add(bytes);
    }
    StoredFile { name, bytes: offset, tail: text(source), parts }
}

fn id(source: &mut Source<'_>) -> String {
    match source.byte() {
        255 => text(source),
        number => format!("{number:032x}"),
    }
}

fn text(source: &mut Source<'_>) -> String {
    String::from_utf8_lossy(source.string()).into_owned()
}

fn save(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    std::hint::black_box(manifest::Manifest::of_text(text)).ok();
    let Some(text) = sealed(bytes) else { return };
    match manifest::Manifest::of_text(&text) {
        Err(reason) => assert!(!reason.is_empty()),
        Ok(read) => {
            read.parts.iter().for_each(|part| assert!(!part.file.contains('/'), "{}", part.file));
            assert_eq!(manifest::Manifest::of_text(&read.to_text()), Ok(read));
        }
    }
}

/// `body`: entries, as many as `count` says.
fn save_part(count: u8, body: &[u8]) {
    std::hint::black_box(entries(body)).ok();
    let mut file = [PART_MAGIC, body, &PART_END, &u64::from(count).to_le_bytes()].concat();
    file.extend_from_slice(&xxh3_128(&file).to_le_bytes());
    let Ok(entries) = entries(&file) else { return };
    assert_eq!(entries.len(), usize::from(count));
    let again = with_file(|path| {
        let mut writer = part::Writer::create(path).expect("nothing is there");
        entries.iter().for_each(|entry| writer.add(entry).expect("it was in a part"));
        let (content, bytes, _) = writer.finish().expect("the temporary folder is writable");
        assert_eq!((content.keys, bytes), (u64::from(count), file.len() as u64));
        std::fs::read(path).expect("it was just written")
    });
    assert_eq!(again, file, "there is one way to say a thing");
}

fn entries(file: &[u8]) -> std::io::Result<Vec<part::Entry>> {
    with_file(|path| {
        std::fs::write(path, file).expect("the temporary folder is writable");
        let mut reader = part::Reader::open(path)?;
        std::iter::from_fn(|| reader.next().transpose()).collect()
    })
}

fn with_file<T>(work: impl FnOnce(&Path) -> T) -> T {
    let result = work(&FILE);
    std::fs::remove_file(&*FILE).expect("the file was just written");
    result
}

/// `body`: what stands before the version.
fn dump(version: u8, body: &[u8]) {
    std::hint::black_box(restore(body)).ok();
    let mut payload = [body, &[version, 0]].concat();
    payload.extend_from_slice(&crc64_redis(&payload).to_le_bytes());
    let Ok(value) = restore(&payload) else { return };
    let again = match &value {
        Dumped::String(bytes) => dump_string(Text::Short(bytes)),
        Dumped::List(encoding) => {
            let list = List::decode(encoding).expect("a list that is restored is encoded as lists are");
            assert!(!list.is_empty());
            dump_list(&list)
        }
    };
    assert_eq!(restore(&again), Ok(value));
}
