//! Words that many settings share: numbers, yes or no, paths, and files of one line.

use std::path::{Path, PathBuf};

use toml::Value;

pub(super) fn set_number(target: &mut u16, words: &[String], least: u16, most: u16, what: &str) -> Result<(), String> {
    let number = words[0].parse().ok().filter(|number| (least..=most).contains(number));
    *target = number.ok_or_else(|| format!("give a number from {least} to {most}: {what}"))?;
    Ok(())
}

pub(super) fn set_boolean(target: &mut bool, words: &[String]) -> Result<(), String> {
    *target = match words[0].as_str() {
        "yes" | "true" | "1" => true,
        "no" | "false" | "0" => false,
        _ => return Err("give yes or no".into()),
    };
    Ok(())
}

pub(super) fn set_path(target: &mut Option<PathBuf>, words: &[String]) -> Result<(), String> {
    if words[0].is_empty() {
        return Err("give a path, or leave the setting out".into());
    }
    *target = Some(PathBuf::from(&words[0]));
    Ok(())
}

pub(super) fn show_path(path: Option<&Path>) -> Option<Value> {
    path.map(|path| path.display().to_string().into())
}

/// A secret that a file begins with.
pub(super) fn first_line(path: &str, what: &str) -> Result<Vec<u8>, String> {
    let content = std::fs::read(path).map_err(|error| format!("{error}; give a file that holds {what}"))?;
    let first_line = content.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    match first_line.is_empty() {
        true => Err(format!("the file's first line is empty; write {what} there")),
        false => Ok(first_line.to_vec()),
    }
}
