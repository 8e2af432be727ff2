//! `zerohop restore`: from a backup and its bases to a data directory that a node may open.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::json;
use server::backup::{BackupSet, restore};
use server::inspection::Inspection;

use crate::{announce, exit, progress, say};

const AFTER: &str = "\
Examples:
  zerohop restore /backups/tuesday --to /var/lib/zerohop
  zerohop restore /mnt/a/tuesday /mnt/b/monday --to /var/lib/zerohop     its base is elsewhere by now

Of several backups it restores the one that is no other's base. Bases are looked for among those named, beside them, and
where they were. Every digest is verified before anything is written, and the result is opened as a start would before
it becomes a store. Nothing is overwritten: the directory must be new or empty. A restore that ended early leaves a
directory that does not start; remove it.

The restored store has the id of the one that was backed up. Do not let both be written to under one name: they are two
histories of one store, and `zerohop backup --since` tells them apart.

Exit codes: 0 done, 1 failed, 3 the directory is in use, 4 a backup is damaged.";

/// Its options.
pub fn command() -> Command {
    Command::new("restore")
        .about("Make a data directory from a backup")
        .args([
            Arg::new("from")
                .value_name("BACKUP")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .help("The backup, and its bases where they are not beside it"),
            Arg::new("to")
                .long("to")
                .value_name("DIRECTORY")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The data directory: a new or an empty one"),
            Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object"),
        ])
        .after_help(AFTER)
}

/// Restores and tells.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let json = matches.get_flag("json");
    let to: &PathBuf = matches.get_one("to").expect("clap requires it");
    let from: Vec<PathBuf> = matches.get_many("from").expect("clap requires it").cloned().collect();
    let restored = BackupSet::locate(&from).and_then(|set| {
        let about = format!("pid {}, a restore", std::process::id());
        let progress = (
            &mut progress::of("verifying") as &mut _,
            &mut progress::of("copying") as &mut _,
            &mut progress::of("reading the log") as &mut _,
        );
        Ok((restore(&set, to, &about, progress)?, set))
    });
    match restored {
        Ok((inspection, set)) => tell(to, &set, &inspection, json),
        Err(error) => return exit::of_backup(&error, json),
    }
    ExitCode::SUCCESS
}

fn tell(to: &std::path::Path, set: &BackupSet, inspection: &Inspection, json: bool) {
    let description = set.description();
    let keys: u64 = inspection.databases.iter().map(|database| database.keys).sum();
    if json {
        let mut report = crate::backup::as_json(to, description);
        report["keys"] = json!(keys);
        return say::line(&report.to_string());
    }
    let shown = to.display();
    say::line(&format!("{shown}: restored as of {}", announce::date(description.taken_unix_ms / 1000)));
    say::line(&format!("  {:<12} {keys}", "keys"));
    crate::backup::facts(description).iter().for_each(|(name, text)| say::line(&format!("  {name:<12} {text}")));
    say::line(&format!("Start it with: zerohop up --dir {shown}"));
}
