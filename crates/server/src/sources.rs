//! Where settings come from, and which source wins: option over environment over file over default.

use std::path::{Path, PathBuf};

use shard::Durability;
use toml::Value;

use crate::config::{NodeConfig, WhenFull};
use crate::hosts::Surroundings;
use crate::settings::{SETTINGS, Setting, setting};

/// What a person gave, unchecked.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Options: key and values.
    pub options: Vec<(String, Vec<String>)>,
    /// All variables whose name begins with `ZEROHOP_`.
    pub environment: Vec<(String, String)>,
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// Whether the file was named by a variable.
    pub file_by_variable: bool,
    /// Whether only the settings of a store for this machine count.
    pub local: bool,
    /// Whether `--ephemeral` is why there is no directory.
    pub is_ephemeral: bool,
}

/// What no variable gives, though one might be expected to.
const OPTIONS_ONLY: [&str; 2] = ["ephemeral", "nodes"];

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody gave one.
    Default,
    /// The configuration file.
    File(PathBuf),
    /// The environment.
    Environment,
    /// The command line.
    Option,
}

/// A value that cannot be used. Its text names key, value, origin and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(pub String);

impl std::fmt::Display for SettingError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for SettingError {}

/// The effective configuration.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// For the node.
    pub config: NodeConfig,
    /// Parallel to [`SETTINGS`].
    pub origins: Vec<Origin>,
    /// What is odd but no reason to refuse.
    pub warnings: Vec<String>,
}

/// Lays the sources over `defaults`.
///
/// # Errors
/// The first value that cannot be used.
pub fn resolve(sources: &Sources, defaults: NodeConfig) -> Result<Resolved, SettingError> {
    let origins = vec![Origin::Default; SETTINGS.len()];
    let mut resolved = Resolved { config: defaults, origins, warnings: Vec::new() };
    if let Some(path) = &sources.file {
        resolved.take_file(path, if sources.file_by_variable { "ZEROHOP_CONFIG" } else { "--config" })?;
    }
    for (variable, value) in &sources.environment {
        resolved.take_variable(variable, value, sources.local)?;
    }
    for (key, words) in &sources.options {
        let known = setting(key).ok_or_else(|| SettingError(format!("--{key}: there is no such option")))?;
        resolved.take(known, words, Origin::Option)?;
    }
    resolved.settle(sources.is_ephemeral)?;
    Ok(resolved)
}

impl Resolved {
    fn take(&mut self, setting: &Setting, words: &[String], origin: Origin) -> Result<(), SettingError> {
        setting
            .set(&mut self.config, words)
            .map_err(|reason| SettingError(format!("{}: {reason}", spell(setting.key, words, &origin))))?;
        self.origins[position(setting.key)] = origin;
        Ok(())
    }

    fn take_file(&mut self, path: &Path, given: &str) -> Result<(), SettingError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            SettingError(format!("{given} {shown}: {error}; give a readable TOML file, or leave it out"))
        })?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            SettingError(format!("{given} {shown}: this is no TOML\n{}", error.to_string().trim_end()))
        })?;
        for (key, value) in &table {
            let origin = Origin::File(path.to_owned());
            let Some(known) = setting(key) else {
                let hint = nearest(key).map_or_else(
                    || format!("known are {}", SETTINGS.iter().map(|s| s.key).collect::<Vec<_>>().join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                return Err(SettingError(format!("{key} = {value} (in {shown}): there is no such key; {hint}")));
            };
            let words = words_of(value).ok_or_else(|| {
                let kind =
                    if known.many { "a string or a list of strings" } else { "a string, a whole number or a boolean" };
                SettingError(format!("{key} = {value} (in {shown}): {kind} is expected"))
            })?;
            self.take(known, &words, origin)?;
        }
        Ok(())
    }

    fn take_variable(&mut self, variable: &str, value: &str, local: bool) -> Result<(), SettingError> {
        if let Some(known) = SETTINGS.iter().find(|setting| setting.variable() == variable) {
            if local && !known.local {
                return Ok(());
            }
            if value.starts_with("tcp://") {
                return Err(SettingError(format!(
                    "{variable}={value} (environment): an orchestrator set this for a service named zerohop; \
                     unset it (in Kubernetes: enableServiceLinks: false)"
                )));
            }
            return self.take(known, &[value.to_owned()], Origin::Environment);
        }
        let key = variable.trim_start_matches("ZEROHOP_").to_ascii_lowercase().replace('_', "-");
        if OPTIONS_ONLY.contains(&key.as_str()) {
            let text =
                format!("{variable}={value} (environment) means nothing; it is an option of `zerohop up`, --{key}");
            self.warnings.push(text);
            return Ok(());
        }
        if let Some(near) = nearest(&key).and_then(setting) {
            let meant = near.variable();
            self.warnings.push(format!("{variable}={value} (environment) means nothing; did you mean {meant}?"));
        }
        Ok(())
    }

    /// What no setting can check alone.
    fn settle(&mut self, is_ephemeral: bool) -> Result<(), SettingError> {
        let is_decided = *self.origin("durability") != Origin::Default;
        if self.config.directory.is_none() && !is_decided {
            self.config.durability = Durability::Memory;
        }
        let config = &self.config;
        if config.directory.is_none() {
            let origin = self.origin("durability");
            if config.durability != Durability::Memory {
                let words = [config.durability.name().to_owned()];
                let given = spell("durability", &words, origin);
                return Err(SettingError(format!(
                    "{given}: there is no directory to keep anything in; {}",
                    if is_ephemeral { "leave out --ephemeral" } else { "add --dir DIRECTORY" }
                )));
            }
        }
        if config.when_full == WhenFull::Tier && config.durability == Durability::Memory {
            let given = spell("when-full", &[config.when_full.name().to_owned()], self.origin("when-full"));
            return Err(SettingError(format!(
                "{given}: with durability memory there is no run to read values from; give --dir DIRECTORY and \
                 --durability interval or commit, or another policy"
            )));
        }
        if config.last_port() > u32::from(u16::MAX) {
            let (given, last) = (spell("port", &[config.port.to_string()], self.origin("port")), config.last_port());
            return Err(SettingError(format!(
                "{given}: with {} cores the last port would be {last}, and 65535 is the highest; give a lower port",
                config.cores
            )));
        }
        let plain = u32::from(config.base_port())..=config.last_client_port();
        let sealed = u32::from(config.tls.port)..=config.last_tls_port();
        for own in [plain, sealed].into_iter().filter(|own| *own.start() > 0) {
            if let Some(port) = config.admin_port.filter(|port| own.contains(&u32::from(*port))) {
                let given = spell("admin-port", &[port.to_string()], self.origin("admin-port"));
                let (first, last) = own.into_inner();
                return Err(SettingError(format!(
                    "{given}: clients of this node connect to {first} to {last}; give another port"
                )));
            }
        }
        self.settle_files()?;
        let config = &self.config;
        let announced_last = u32::from(config.instance_port_base()) + u32::from(config.cores) - 1;
        if announced_last > u32::from(u16::MAX) {
            let words = [config.instance_port_base().to_string()];
            let given = spell("announce-port-base", &words, self.origin("announce-port-base"));
            return Err(SettingError(format!(
                "{given}: with {} cores the last announced port would be {announced_last}; give a lower one",
                config.cores
            )));
        }
        let open = config.bind.iter().find(|address| !address.to_canonical().is_loopback());
        let is_open = config.users().is_ok_and(|users| users.default_user().is_open());
        if let Some(address) = open.filter(|_| config.protected_mode && is_open) {
            let given = spell("bind", &[address.to_string()], self.origin("bind"));
            return Err(SettingError(format!(
                "{given}: everybody who reaches this address could read and write all data; give a password with \
                 --requirepass-file FILE, or bind 127.0.0.1, or, if the network is trusted, add --protected-mode no"
            )));
        }
        Ok(())
    }

    /// Hosts, certificates and keys: what settings name is read and checked before anything starts.
    fn settle_files(&mut self) -> Result<(), SettingError> {
        let read = crate::hosts::settle(&mut self.config, &Surroundings::here());
        let read = read.and_then(|()| crate::tls_files::settle(&mut self.config));
        read.map_err(|(key, reason)| {
            let value = setting(key).and_then(|setting| setting.show(&self.config)).map(|value| match value {
                Value::String(text) => text,
                other => other.to_string(),
            });
            let words: Vec<String> = value.into_iter().collect();
            SettingError(format!("{}: {reason}", spell(key, &words, self.origin(key))))
        })
    }

    fn origin(&self, key: &str) -> &Origin {
        &self.origins[position(key)]
    }

    /// The effective configuration as TOML, each line with its origin. The password itself is not in it.
    pub fn print(&self) -> String {
        let mut text = String::new();
        for (setting, origin) in SETTINGS.iter().zip(&self.origins) {
            let origin = match origin {
                Origin::Default => "default".to_owned(),
                Origin::File(path) => path.display().to_string(),
                Origin::Environment => setting.variable(),
                Origin::Option => format!("--{}", setting.key),
            };
            match setting.show(&self.config) {
                Some(value) => text.push_str(&format!("{:<40} # {origin}\n", format!("{} = {value}", setting.key))),
                None => text.push_str(&format!("{:<40} # {origin}\n", format!("# {} is not set", setting.key))),
            }
        }
        text
    }
}

fn position(key: &str) -> usize {
    SETTINGS.iter().position(|setting| setting.key == key).expect("code names settings that exist")
}

/// A setting as its source spells it.
fn spell(key: &str, words: &[String], origin: &Origin) -> String {
    // A secret with a wrong letter is almost that secret.
    let value = if key == "token" { "…".to_owned() } else { words.join(" ") };
    match origin {
        Origin::Default | Origin::Option => format!("--{key} {value}").trim_end().to_owned(),
        Origin::Environment => {
            let variable = setting(key).map_or_else(String::new, Setting::variable);
            format!("{variable}={value} (environment)")
        }
        Origin::File(path) => format!("{key} = {value} (in {})", path.display()),
    }
}

fn words_of(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Integer(number) => Some(vec![number.to_string()]),
        Value::Boolean(truth) => Some(vec![if *truth { "yes" } else { "no" }.to_owned()]),
        Value::Array(values) => values.iter().map(|value| value.as_str().map(str::to_owned)).collect(),
        Value::Float(_) | Value::Datetime(_) | Value::Table(_) => None,
    }
}

/// The key that `typed` probably means.
fn nearest(typed: &str) -> Option<&'static str> {
    let near = SETTINGS.iter().map(|setting| (distance(typed, setting.key), setting.key)).min()?;
    (near.0 <= 1 + typed.len() / 4).then_some(near.1)
}

/// Insertions, deletions and replacements from one word to the other (Levenshtein 1966).
fn distance(from: &str, to: &str) -> usize {
    let to = to.as_bytes();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, byte) in from.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for column in 1..=to.len() {
            let replaced = diagonal + usize::from(byte != to[column - 1]);
            diagonal = row[column];
            row[column] = replaced.min(diagonal + 1).min(row[column - 1] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests;
