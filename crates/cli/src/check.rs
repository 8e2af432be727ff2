//! `zerohop check`: would this data directory start, and what is in it? Writes nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Value, json};
use server::DirectoryError;
use server::backup::{BackupSet, is_backup};
use server::inspection::{Inspection, InspectionError, inspect};

use crate::{announce, exit, progress, say};

const AFTER: &str = "\
Reads every group of every log, verifies checksums, order and completeness, and replays all changes in memory, exactly
as a start does. A torn tail is what a crash leaves, and nothing says that it was acknowledged: the next start cuts it,
and the exit code stays 0.

Of a backup every digest is verified, its bases' too if they are found beside it or where they were, and the whole is
opened as a restore would.

Nothing is repaired, and nothing is written, whatever is found.

Exit codes: 0 it would start, 1 it cannot be read, 3 a process uses it, 4 it is damaged.";

/// Its options.
pub fn command() -> Command {
    Command::new("check")
        .about("Verify a data directory offline, or a backup")
        .args([
            Arg::new("directory").value_name("DIRECTORY").required(true).value_parser(value_parser!(PathBuf)),
            Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object"),
        ])
        .after_help(AFTER)
}

/// Verifies and tells.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let path: &PathBuf = matches.get_one("directory").expect("clap requires it");
    let json = matches.get_flag("json");
    if is_backup(path) {
        return check_backup(path, json);
    }
    // The bar goes before anything is printed.
    let inspected = inspect(path, &mut progress::bar());
    match inspected {
        Ok(inspection) if json => say::line(&as_json(&inspection).to_string()),
        Ok(inspection) => as_text(path, &inspection).iter().for_each(|line| say::line(line)),
        Err(error) => return failed(path, &error, json),
    }
    ExitCode::SUCCESS
}

fn check_backup(path: &Path, json: bool) -> ExitCode {
    let checked =
        BackupSet::at(path).and_then(|set| set.verify_what_is_here(&mut progress::of("verifying")).map(|()| set));
    let set = match checked {
        Ok(set) => set,
        Err(error) => return exit::of_backup(&error, json),
    };
    let missing: Vec<&str> = set.missing().map(|base| base.id.as_str()).collect();
    if json {
        let mut report = crate::backup::as_json(path, set.description());
        report["missing_bases"] = json!(missing);
        say::line(&report.to_string());
        return ExitCode::SUCCESS;
    }
    let verdict =
        if missing.is_empty() { "a backup; restored, it would start" } else { "a backup whose own files are whole" };
    say::line(&format!("{}: {verdict}", path.display()));
    crate::backup::facts(set.description()).iter().for_each(|(name, text)| say::line(&format!("  {name:<12} {text}")));
    for base in set.missing() {
        let text = format!("{} was in {}: not found, so the whole was not opened", base.id, base.directory);
        say::line(&format!("  {:<12} {text}", "missing"));
    }
    ExitCode::SUCCESS
}

fn failed(path: &Path, error: &InspectionError, json: bool) -> ExitCode {
    let shown = path.display().to_string();
    let mut report = json!({ "ok": false });
    let (code, problem) = match error {
        InspectionError::Damage(damage) => {
            report["file"] = damage.file.as_str().into();
            report["offset"] = damage.offset.into();
            (exit::DAMAGED, format!("{}: {}", shown, damage))
        }
        InspectionError::Directory(DirectoryError::Held(holder)) => {
            let (who, fix) = exit::holder_and_fix(&shown, holder);
            (exit::IN_USE, format!("{shown} is in use by {who}: {fix}, or check a copy"))
        }
        InspectionError::Directory(DirectoryError::Refused(text)) => (exit::DAMAGED, text.clone()),
        InspectionError::Directory(DirectoryError::Io(text)) => (exit::FAILED, text.clone()),
    };
    if json {
        report["problem"] = problem.into();
        say::line(&report.to_string());
        return ExitCode::from(code);
    }
    exit::with(code, &problem)
}

fn as_text(path: &Path, inspection: &Inspection) -> Vec<String> {
    let shown = path.display();
    let Some(manifest) = &inspection.manifest else { return vec![format!("{shown}: no store was ever started here")] };
    let recovery = &inspection.recovery;
    let mut lines = vec![format!("{shown}: it would start")];
    let mut fact = |name: &str, text: String| lines.push(format!("  {name:<12} {text}"));
    fact("store", hexadecimal(&manifest.store_id));
    fact("started", format!("{} times, last with {} cores", manifest.incarnation, manifest.cores));
    let runs = recovery.cuts.all().iter().filter(|cut| cut.incarnation > 0).count();
    fact("read", announce::size(recovery.bytes));
    fact("runs", format!("{runs} of slot groups, with {} keys", recovery.keys));
    fact("logs", format!("{} with changes behind the runs", recovery.chains.len()));
    fact("groups", recovery.groups.to_string());
    fact("records", recovery.records.to_string());
    for keys in &inspection.databases {
        let expiring = keys.expiring;
        fact(&format!("database {}", keys.database), format!("{} keys, {expiring} with a time to live", keys.keys));
    }
    for cut in &recovery.torn {
        let why = if cut.incomplete_unit { "an incomplete unit" } else { "a torn tail" };
        let text = format!(
            "{} at offset {}: {why}, not known to be acknowledged; the next start cuts it",
            cut.file, cut.offset
        );
        fact("tail", text);
    }
    lines
}

fn as_json(inspection: &Inspection) -> Value {
    let recovery = &inspection.recovery;
    let chains: Vec<Value> = recovery
        .chains
        .iter()
        .map(|chain| {
            let (incarnation, core, cores) = (chain.incarnation, chain.core, chain.cores);
            json!({ "incarnation": incarnation, "core": core, "cores": cores, "groups": chain.last_ordinal.0 })
        })
        .collect();
    let databases: Vec<Value> = inspection
        .databases
        .iter()
        .map(|keys| json!({ "database": keys.database, "keys": keys.keys, "expiring": keys.expiring }))
        .collect();
    let tails: Vec<Value> = recovery
        .torn
        .iter()
        .map(|cut| json!({ "file": cut.file, "offset": cut.offset, "incomplete_unit": cut.incomplete_unit }))
        .collect();
    json!({
        "ok": true,
        "store": inspection.manifest.as_ref().map(|manifest| hexadecimal(&manifest.store_id)),
        "incarnation": inspection.manifest.as_ref().map(|manifest| manifest.incarnation),
        "cores": inspection.manifest.as_ref().map(|manifest| manifest.cores),
        "bytes": recovery.bytes,
        "groups": recovery.groups,
        "records": recovery.records,
        "runs": recovery.cuts.all().iter().filter(|cut| cut.incarnation > 0).count(),
        "run_keys": recovery.keys,
        "chains": chains,
        "databases": databases,
        "tails": tails,
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
