//! The file SAVE: which parts a save has, and what they add up to.

use std::io;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::part::{Content, digest_of, hexadecimal};

/// Name of the file.
pub const FILE_NAME: &str = "SAVE";
const FORMAT: u64 = 1;

/// One part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub file: String,
    pub keys: u64,
    pub bytes: u64,
    pub digest: u128,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub taken_unix_ms: u64,
    pub content: Content,
    pub parts: Vec<Part>,
}

impl Manifest {
    fn to_json(&self) -> Json {
        let part = |part: &Part| {
            let digest = hexadecimal(part.digest);
            json!({ "file": part.file, "keys": part.keys, "bytes": part.bytes, "digest": digest })
        };
        json!({
            "format": FORMAT,
            "version": env!("CARGO_PKG_VERSION"),
            "taken_unix_ms": self.taken_unix_ms,
            "keys": self.content.keys,
            "content": hexadecimal(self.content.sum),
            "parts": self.parts.iter().map(part).collect::<Vec<_>>(),
        })
    }

    /// The bytes of the file.
    pub fn to_text(&self) -> String {
        let mut json = self.to_json();
        let digest = digest_of(&json.to_string());
        json["digest"] = digest.into();
        format!("{json:#}\n")
    }

    /// What a file says.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub fn of_text(text: &str) -> Result<Manifest, String> {
        let mut json: Json = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        match json["format"].as_u64() {
            Some(FORMAT) => {}
            Some(other) => return Err(format!("it has format {other}, and this version knows only {FORMAT}")),
            None => return Err("it does not say what format it has".to_owned()),
        }
        let digest = json.as_object_mut().and_then(|members| members.remove("digest"));
        if digest.as_ref().and_then(Json::as_str) != Some(&digest_of(&json.to_string())) {
            return Err("it is damaged: its digest is another".to_owned());
        }
        let number = |json: &Json| u128::from_str_radix(json.as_str()?, 16).ok();
        let part = |json: &Json| {
            let file = json["file"].as_str().filter(|name| is_part_name(name))?.to_owned();
            Some(Part {
                file,
                keys: json["keys"].as_u64()?,
                bytes: json["bytes"].as_u64()?,
                digest: number(&json["digest"])?,
            })
        };
        let read = || {
            Some(Manifest {
                taken_unix_ms: json["taken_unix_ms"].as_u64()?,
                content: Content { keys: json["keys"].as_u64()?, sum: number(&json["content"])? },
                parts: json["parts"].as_array()?.iter().map(part).collect::<Option<_>>()?,
            })
        };
        read().ok_or_else(|| "it lacks something that a save of its format has".to_owned())
    }

    /// Reads the file of a directory.
    ///
    /// # Errors
    /// Why there is none, for people.
    pub fn read(directory: &Path) -> Result<Manifest, String> {
        let path = directory.join(FILE_NAME);
        let text = std::fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!("{} is no save, or one that ended early: it has no file {FILE_NAME}", directory.display())
            }
            _ => format!("{}: {error}", path.display()),
        })?;
        Manifest::of_text(&text).map_err(|why| format!("{}: {why}", path.display()))
    }
}

/// The name of a part.
pub fn part_name(number: usize) -> String {
    format!("part-{number:03}.dump")
}

fn is_part_name(name: &str) -> bool {
    let number = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".dump"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let part = Part { file: part_name(0), keys: 3, bytes: 99, digest: u128::MAX - 7 };
        Manifest { taken_unix_ms: 5, content: Content { keys: 3, sum: 1 << 100 }, parts: vec![part] }
    }

    #[test]
    fn it_is_read_as_it_was_written_and_no_other_way() {
        let text = manifest().to_text();
        assert_eq!(Manifest::of_text(&text), Ok(manifest()));
        for (what, other, word) in [
            ("\"format\": 1", "\"format\": 2", "format 2"),
            ("\"keys\": 3", "\"keys\": 4", "damaged"),
            ("part-000.dump", "../../secret", "damaged"),
            ("{", "", "no JSON"),
        ] {
            let told = Manifest::of_text(&text.replacen(what, other, 1)).unwrap_err();
            assert!(told.contains(word), "{told}");
        }
    }

    #[test]
    fn a_part_is_a_file_of_the_directory() {
        let mut elsewhere = manifest();
        for name in ["../part-000.dump", "/part-000.dump", "part-.dump", "part-0x.dump", "SAVE"] {
            elsewhere.parts[0].file = name.to_owned();
            assert!(Manifest::of_text(&elsewhere.to_text()).is_err(), "{name}");
        }
    }
}
