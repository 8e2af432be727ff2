//! From the table of settings to options, and from what was typed to the sources of a configuration.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use server::NodeConfig;
use server::settings::{SETTINGS, Setting};
use server::sources::{Resolved, Sources, resolve};

/// Adds an option for every setting; `local`: only those of a store for this machine.
pub fn add(command: Command, local: bool) -> Command {
    command.args(SETTINGS.iter().filter(|setting| setting.local || !local).map(option))
}

/// The option of one setting.
pub fn option(setting: &'static Setting) -> Arg {
    let arg = Arg::new(setting.key)
        .long(setting.key)
        .value_name(setting.value_name)
        .help(setting.help)
        .help_heading(setting.heading)
        .allow_negative_numbers(true)
        .action(if setting.many { ArgAction::Append } else { ArgAction::Set });
    match setting.flag {
        true => arg.num_args(0..=1).require_equals(true).default_missing_value("yes"),
        false => arg,
    }
}

/// The effective configuration; problems are told. Warnings are printed here.
///
/// # Errors
/// The text for the person who typed it.
pub fn configuration(matches: &ArgMatches, local: bool, defaults: NodeConfig) -> Result<Resolved, String> {
    let resolved = resolve(&sources(matches, local)?, defaults).map_err(|error| error.to_string())?;
    resolved.warnings.iter().for_each(|text| crate::say::warning(text));
    Ok(resolved)
}

fn sources(matches: &ArgMatches, local: bool) -> Result<Sources, String> {
    // Not every subcommand has it.
    let is_ephemeral = matches.try_get_one::<bool>("ephemeral").is_ok_and(|flag| flag == Some(&true));
    let mut sources = Sources { local, is_ephemeral, ..Sources::default() };
    for setting in SETTINGS.iter().filter(|setting| setting.local || !local) {
        // Not every subcommand has every one.
        if let Ok(Some(words)) = matches.try_get_many::<String>(setting.key) {
            sources.options.push((setting.key.to_owned(), words.cloned().collect()));
        }
    }
    for (variable, value) in std::env::vars_os() {
        let Some(variable) = variable.to_str().filter(|name| name.starts_with("ZEROHOP_")) else { continue };
        let value = value.into_string().map_err(|_| format!("{variable} (environment): the value is not UTF-8"))?;
        match variable {
            "ZEROHOP_CONFIG" if !local => {
                (sources.file, sources.file_by_variable) = (Some(PathBuf::from(value)), true);
            }
            _ => sources.environment.push((variable.to_owned(), value)),
        }
    }
    // The same order every time, whatever the environment's is.
    sources.environment.sort();
    if !local && let Some(path) = matches.get_one::<PathBuf>("config") {
        (sources.file, sources.file_by_variable) = (Some(path.clone()), false);
    }
    Ok(sources)
}
