//! The file `BACKUP`: what a backup has, of which store, at which point, and where the rest of it is.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use storage::log::MANIFEST_FILE_NAME;
use storage::log::format::parse_segment_file_name;
use storage::run::format::parse_run_file_name;
use xxhash_rust::xxh3::xxh3_128;

/// Its name.
pub const DESCRIPTION_FILE_NAME: &str = directory::BACKUP_FILE_NAME;
/// Longest file that is read, bytes.
pub const DESCRIPTION_BYTES_MAX: u64 = 64 << 20;
/// What stands between a file's name and the offset of its bytes.
const OFFSET_MARK: char = '@';
const FORMAT: u16 = 1;

/// How far the backup goes in one core's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainPoint {
    /// Which opening of the store wrote that log.
    pub incarnation: u64,
    /// Which core.
    pub core: u16,
    /// Its last log group.
    pub ordinal: u64,
}

/// Another backup that has parts of this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Its id.
    pub id: String,
    /// Where it was.
    pub directory: String,
}

/// Bytes of a file that lie in one backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Id of the backup; empty for the one that is described.
    pub backup: String,
    /// Name in that backup.
    pub file: String,
    /// Length.
    pub bytes: u64,
    /// XXH3 with 128 bits, hexadecimal.
    pub digest: String,
}

/// One file of the data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFile {
    /// Its name there.
    pub name: String,
    /// Length.
    pub bytes: u64,
    /// Digest of its last bytes, see [`super::plan::TAIL_BYTES`].
    pub tail: String,
    /// Joined, they are the file.
    pub parts: Vec<Part>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Version of this format.
    pub format: u16,
    /// Random, 32 hexadecimal digits.
    pub id: String,
    /// The store's id, 32 hexadecimal digits.
    pub store: String,
    /// Version of the program.
    pub version: String,
    /// When the point was known.
    pub taken_unix_ms: u64,
    /// The data directory.
    pub source: String,
    /// Whether a node used it.
    pub online: bool,
    /// How far it goes.
    pub point: Vec<ChainPoint>,
    /// The other backups that it needs.
    pub bases: Vec<Base>,
    /// What a data directory of that moment has.
    pub files: Vec<StoredFile>,
}

impl Description {
    /// The current format's number.
    pub const FORMAT: u16 = FORMAT;

    /// The file's text.
    pub fn encode(&self) -> String {
        let mut value = serde_json::to_value(self).expect("numbers and strings are JSON");
        let digest = digest_of(&value);
        value.as_object_mut().expect("a structure is an object").insert("digest".to_owned(), digest.into());
        let mut text = serde_json::to_string_pretty(&value).expect("what became a value becomes text");
        text.push('\n');
        text
    }

    /// Read the file's bytes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Description, String> {
        let mut value: Value = serde_json::from_slice(bytes).map_err(|error| format!("it is no JSON: {error}"))?;
        let object = value.as_object_mut().ok_or("it is no JSON object")?;
        let stated = object.remove("digest").ok_or("it has no digest")?;
        if object.get("format").and_then(Value::as_u64).is_some_and(|format| format != u64::from(FORMAT)) {
            let format = &object["format"];
            return Err(format!(
                "it has format {format}, this version reads format {FORMAT}; use the version that wrote it"
            ));
        }
        let computed = digest_of(&value);
        if stated != computed.as_str() {
            return Err(format!("its digest is {computed}, not {stated}"));
        }
        let description: Description = serde_json::from_value(value).map_err(|error| error.to_string())?;
        description.check()?;
        Ok(description)
    }

    /// Bytes of the parts that this backup has itself.
    pub fn own_bytes(&self) -> u64 {
        let parts = self.files.iter().flat_map(|file| &file.parts);
        parts.filter(|part| part.backup.is_empty()).map(|part| part.bytes).sum()
    }

    /// Bytes of the data directory.
    pub fn total_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The file of that name.
    pub fn file(&self, name: &str) -> Option<&StoredFile> {
        self.files.iter().find(|file| file.name == name)
    }

    /// Names lead nowhere else, and parts add up.
    fn check(&self) -> Result<(), String> {
        let known: BTreeSet<&str> = self.bases.iter().map(|base| base.id.as_str()).collect();
        if ![&self.id, &self.store].into_iter().all(|id| is_id(id)) || !known.iter().all(|id| is_id(id)) {
            return Err("an id is no 32 hexadecimal digits".to_owned());
        }
        let mut names = BTreeSet::new();
        let mut total = 0u64;
        for file in &self.files {
            let name = &file.name;
            total = total.checked_add(file.bytes).ok_or("its files are longer than a disk can be")?;
            if !is_data_file(name) || !names.insert(name) {
                return Err(format!("it lists {name:?}, which is no file of a data directory, or lists it twice"));
            }
            let mut offset = 0u64;
            for part in &file.parts {
                let is_own = part.backup.is_empty();
                let may_be_called =
                    if is_own { part.file == part_name(name, offset) } else { is_part_of(&part.file, name) };
                if !may_be_called || (!is_own && !known.contains(part.backup.as_str())) {
                    return Err(format!("{name} has a part {:?} that cannot be one", part.file));
                }
                offset = offset.checked_add(part.bytes).ok_or_else(|| format!("{name} is too long"))?;
            }
            if offset != file.bytes {
                return Err(format!("the parts of {name} have {offset} bytes, not {}", file.bytes));
            }
        }
        match names.contains(&MANIFEST_FILE_NAME.to_owned()) {
            true => Ok(()),
            false => Err(format!("it lists no {MANIFEST_FILE_NAME}")),
        }
    }
}

/// Whether a data directory has files of that name.
pub(super) fn is_data_file(name: &str) -> bool {
    name == MANIFEST_FILE_NAME || parse_run_file_name(name).is_some() || parse_segment_file_name(name).is_some()
}

/// Name of the part of a file that begins at `offset`.
pub(super) fn part_name(name: &str, offset: u64) -> String {
    if offset == 0 { name.to_owned() } else { format!("{name}{OFFSET_MARK}{offset}") }
}

/// Whether a file of a backup is a part of any file of a data directory.
pub(super) fn is_part_file(file: &str) -> bool {
    is_data_file(file.split(OFFSET_MARK).next().unwrap_or(file)) && file.split(OFFSET_MARK).count() <= 2
}

fn is_part_of(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name);
    rest.is_some_and(|rest| {
        let offset = rest.strip_prefix(OFFSET_MARK).and_then(|offset| offset.parse::<u64>().ok());
        rest.is_empty() || offset.is_some_and(|offset| offset > 0 && file == part_name(name, offset))
    })
}

fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn digest_of(value: &Value) -> String {
    hexadecimal(xxh3_128(value.to_string().as_bytes()))
}

/// A digest as it is written.
pub(super) fn hexadecimal(digest: u128) -> String {
    format!("{digest:032x}")
}

/// Sixteen bytes as ids are written.
pub(super) fn hexadecimal_id(id: &[u8; 16]) -> String {
    hexadecimal(u128::from_be_bytes(*id))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const STORE: &str = "00112233445566778899aabbccddeeff";

    pub(in crate::backup) fn part(backup: &str, file: &str, bytes: u64) -> Part {
        Part { backup: backup.to_owned(), file: file.to_owned(), bytes, digest: hexadecimal(u128::from(bytes)) }
    }

    pub(in crate::backup) fn description(id: u8, files: Vec<(&str, Vec<Part>)>) -> Description {
        let file = |(name, parts): (&str, Vec<Part>)| StoredFile {
            name: name.to_owned(),
            bytes: parts.iter().map(|part| part.bytes).sum(),
            tail: hexadecimal(7),
            parts,
        };
        let mut all = vec![file((MANIFEST_FILE_NAME, vec![part("", MANIFEST_FILE_NAME, 52)]))];
        all.extend(files.into_iter().map(file));
        Description {
            format: FORMAT,
            id: hexadecimal(u128::from(id)),
            store: STORE.to_owned(),
            version: "0.1.0".to_owned(),
            taken_unix_ms: 1,
            source: "/data".to_owned(),
            online: true,
            point: vec![ChainPoint { incarnation: 1, core: 0, ordinal: 5 }],
            bases: Vec::new(),
            files: all,
        }
    }

    #[test]
    fn files_that_no_disk_can_hold_are_refused() {
        let names = ["00000001-000-0000000000.log", "00000001-000-0000000001.log"];
        let files = names.map(|name| (name, vec![part("", name, u64::MAX / 2)]));
        let refusal = Description::decode(description(1, files.to_vec()).encode().as_bytes()).unwrap_err();
        assert!(refusal.contains("longer than a disk can be"), "{refusal}");
    }

    #[test]
    fn it_round_trips_and_every_flipped_bit_is_noticed() {
        let log = "00000001-000-0000000000.log";
        let written = description(1, vec![(log, vec![part("", log, 100)])]);
        let text = written.encode().into_bytes();
        assert_eq!(Description::decode(&text), Ok(written));
        for bit in 0..text.len() * 8 {
            let mut damaged = text.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // A space may become another one: nothing that is read changes.
            let is_space = damaged[bit / 8].is_ascii_whitespace() && text[bit / 8].is_ascii_whitespace();
            assert!(is_space || Description::decode(&damaged).is_err(), "bit {bit}");
        }
        (0..text.len() - 1).for_each(|length| assert!(Description::decode(&text[..length]).is_err()));
    }

    #[test]
    fn names_that_lead_elsewhere_and_parts_that_do_not_add_up_are_refused() {
        let log = "00000001-000-0000000000.log";
        let base = hexadecimal(9);
        let with = |change: &dyn Fn(&mut Description)| {
            let mut written =
                description(1, vec![(log, vec![part(&base, log, 100), part("", &part_name(log, 100), 8)])]);
            written.bases.push(Base { id: base.clone(), directory: "/elsewhere".to_owned() });
            change(&mut written);
            Description::decode(written.encode().as_bytes()).is_ok()
        };
        assert!(with(&|_| {}));
        assert!(!with(&|written| written.bases.clear()), "a base that is not named");
        assert!(!with(&|written| written.files[1].bytes += 1), "bytes that no part has");
        assert!(!with(&|written| written.files[1].name = "../passwd".to_owned()), "a name that leads elsewhere");
        assert!(!with(&|written| written.files[1].parts[0].file = format!("../{log}")), "a part that leads elsewhere");
        assert!(!with(&|written| written.files[1].parts[1].file = part_name(log, 99)), "a part of another place");
        assert!(!with(&|written| written.files.push(written.files[1].clone())), "twice");
        assert!(!with(&|written| drop(written.files.remove(0))), "no manifest");
        assert!(!with(&|written| written.store.push('0')), "a store id that is none");
        assert!(!with(&|written| written.format += 1), "a newer format");
    }
}
