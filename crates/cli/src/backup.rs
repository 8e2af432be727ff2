//! `zerohop backup`: a copy of a store as it was at one moment, while it runs or not.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use serde_json::{Value as Json, json};
use server::backup::{BackupError, ChainPoint, Description, Hold, Offline, Source, Target, read_description, take};
use wire::reply_parse::Value;

use crate::client::connection::{Connection, Target as Node};
use crate::{announce, exit, progress, say};

/// For how long the node keeps its files if nobody renews that, milliseconds.
const LEASE_MS: u64 = 60_000;

const AFTER: &str = "\
Examples:
  zerohop backup --port 6379 --to /backups/monday
  zerohop backup --port 6379 --to /backups/tuesday --since /backups/monday     copies only what is new
  zerohop backup --dir /var/lib/zerohop --to /backups/monday                   whether a node runs there or not
  zerohop check /backups/tuesday
  zerohop restore /backups/tuesday --to /var/lib/zerohop-again

It runs on the node's machine and reads the files of its data directory, so it needs the right to read them. The node
goes on serving; it keeps the files for as long as the copying takes. Every write that was acknowledged before is in
the backup, and units are whole. A backup exists once its file BACKUP does: one that ended early says that it is none,
and the next one to the same place begins anew. The password comes from the variable REDISCLI_AUTH.

Exit codes: 0 done, 1 failed, 3 a directory is in use, 4 the store or the base is damaged.";

/// Its options.
pub fn command() -> Command {
    let path = |name: &'static str, value: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(value_parser!(PathBuf))
    };
    Command::new("backup")
        .about("Back up a store, running or stopped")
        .args([
            Arg::new("port")
                .long("port")
                .value_name("PORT")
                .value_parser(value_parser!(u16))
                .help("Port of the running node"),
            path("dir", "DIRECTORY").help("Its data directory, instead; also one that no node uses"),
            Arg::new("user").long("user").value_name("NAME").help("User of the password in REDISCLI_AUTH"),
            path("to", "DIRECTORY").required(true).help("Where the backup goes: a new or an empty directory"),
            path("since", "BACKUP").help("An earlier backup, or only its file BACKUP: what it has is not copied again"),
            Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object"),
        ])
        .group(ArgGroup::new("source").args(["port", "dir"]).required(true))
        .after_help(AFTER)
}

/// Copies and tells.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let json = matches.get_flag("json");
    let to: &PathBuf = matches.get_one("to").expect("clap requires it");
    match back_up(matches, to) {
        Ok(description) if json => say::line(&as_json(to, &description).to_string()),
        Ok(description) => as_text(to, &description).iter().for_each(|line| say::line(line)),
        Err(error) => return exit::of_backup(&error, json),
    }
    ExitCode::SUCCESS
}

fn back_up(matches: &ArgMatches, to: &Path) -> Result<Description, BackupError> {
    let base = matches.get_one::<PathBuf>("since").map(|path| read_description(path)).transpose()?;
    let about = format!("pid {}, a backup", std::process::id());
    let target = Target::prepare(to, &about)?;
    if target.removed() > 0 {
        say::warning(&format!("{} had a backup that ended early: it is begun anew", to.display()));
    }
    let found = match matches.get_one::<u16>("port") {
        Some(port) => online(matches, *port),
        None => of_directory(matches),
    };
    let (source, mut hold) = match found {
        Ok(found) => found,
        Err(error) => {
            target.abandon();
            return Err(error);
        }
    };
    let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let base = base.as_ref().map(|(description, directory)| (description, directory.as_path()));
    let progress = (&mut progress::of("copying") as &mut _, &mut progress::of("reading the copy") as &mut _);
    take((&source, &mut *hold), target, base, unix_ms, progress)
}

type Found = (Source, Box<dyn Hold>);

/// Of a node that uses the directory, or of the directory alone.
fn of_directory(matches: &ArgMatches) -> Result<Found, BackupError> {
    let directory: &PathBuf = matches.get_one("dir").expect("one of both is required");
    match Offline::open(directory, &mut progress::of("reading the store")) {
        Ok((source, hold)) => Ok((source, Box::new(hold))),
        Err(BackupError::InUse(holder)) => match port_of(&holder) {
            Some(port) => online(matches, port),
            None => Err(BackupError::InUse(exit::held(&directory.display().to_string(), &holder))),
        },
        Err(error) => Err(error),
    }
}

/// What the lock of a directory says about the node that uses it: `pid 7, port 6379, since …`.
fn port_of(holder: &str) -> Option<u16> {
    holder.split(", ").find_map(|word| word.strip_prefix("port ")?.parse().ok())
}

fn online(matches: &ArgMatches, port: u16) -> Result<Found, BackupError> {
    let node = Node {
        host: "127.0.0.1".to_owned(),
        port,
        socket: None,
        user: matches.get_one("user").cloned(),
        password: std::env::var("REDISCLI_AUTH").ok(),
        database: 0,
        resp3: true,
        tls: None,
        within: None,
    };
    let mut connection = Connection::open(&node).map_err(BackupError::Failed)?;
    let begun = call(&mut connection, &["BEGIN", &LEASE_MS.to_string()])?;
    let begun = Begun::read(&begun).ok_or_else(|| {
        BackupError::Failed(format!("the node at {node} answers ZH.BACKUP in words that this version does not know"))
    })?;
    let mut hold = Lease { connection, id: begun.id, renewed: Instant::now() };
    match Source::online(&begun.directory, begun.files, begun.point) {
        Ok(source) => Ok((source, Box::new(hold))),
        Err(error) => {
            // Otherwise the lease ends it.
            hold.end().ok();
            Err(error)
        }
    }
}

fn call(connection: &mut Connection, words: &[&str]) -> Result<Value, BackupError> {
    let words: Vec<Vec<u8>> = ["ZH.BACKUP"].iter().chain(words).map(|word| word.as_bytes().to_vec()).collect();
    match connection.call(&words).map_err(|why| BackupError::Failed(format!("the backup is none: {why}")))? {
        Value::Error(text) => {
            let text = String::from_utf8_lossy(&text).into_owned();
            Err(BackupError::Failed(format!("the node refused the backup: {}", text.trim_start_matches("ERR "))))
        }
        value => Ok(value),
    }
}

/// The reply to ZH.BACKUP BEGIN.
struct Begun {
    id: u64,
    directory: PathBuf,
    point: Vec<ChainPoint>,
    files: Vec<(String, Option<u64>)>,
}

impl Begun {
    fn read(reply: &Value) -> Option<Begun> {
        let Value::Map(pairs) = reply else { return None };
        let field =
            |name: &str| pairs.iter().find(|(key, _)| text(key).as_deref() == Some(name)).map(|(_, value)| value);
        let point = items(field("point")?)?.iter().map(|chain| match items(chain)? {
            [incarnation, core, ordinal] => Some(ChainPoint {
                incarnation: number(incarnation)?,
                core: number(core)?.try_into().ok()?,
                ordinal: number(ordinal)?,
            }),
            _ => None,
        });
        let files = items(field("files")?)?.iter().map(|file| match items(file)? {
            [name, bytes] => Some((text(name)?, number(bytes))),
            _ => None,
        });
        Some(Begun {
            id: number(field("id")?)?,
            directory: PathBuf::from(text(field("directory")?)?),
            point: point.collect::<Option<_>>()?,
            files: files.collect::<Option<_>>()?,
        })
    }
}

fn items(value: &Value) -> Option<&[Value]> {
    if let Value::Array(items) = value { Some(items) } else { None }
}

fn text(value: &Value) -> Option<String> {
    if let Value::Bulk(bytes) = value { String::from_utf8(bytes.clone()).ok() } else { None }
}

fn number(value: &Value) -> Option<u64> {
    if let Value::Integer(number) = value { (*number).try_into().ok() } else { None }
}

/// A running node keeps the files.
struct Lease {
    connection: Connection,
    id: u64,
    renewed: Instant,
}

impl Hold for Lease {
    fn keep(&mut self) -> Result<(), BackupError> {
        if self.renewed.elapsed() < Duration::from_millis(LEASE_MS / 4) {
            return Ok(());
        }
        self.renewed = Instant::now();
        call(&mut self.connection, &["KEEP", &self.id.to_string()]).map(drop)
    }

    fn end(&mut self) -> Result<(), BackupError> {
        call(&mut self.connection, &["END", &self.id.to_string()]).map(drop)
    }
}

fn as_text(to: &Path, description: &Description) -> Vec<String> {
    let mut lines =
        vec![format!("{}: a backup as of {}", to.display(), announce::date(description.taken_unix_ms / 1000))];
    lines.extend(facts(description).into_iter().map(|(name, text)| format!("  {name:<12} {text}")));
    lines.push(format!("  {:<12} every digest; it would start", "verified"));
    lines
}

/// What there is to tell about a backup.
pub fn facts(description: &Description) -> Vec<(&'static str, String)> {
    let kind = if description.online { "a running node" } else { "a stopped store" };
    let bases = description.bases.len();
    let mut facts = vec![
        ("id", description.id.clone()),
        ("store", description.store.clone()),
        ("of", format!("{}, {kind}", description.source)),
        ("files", format!("{}, {}", description.files.len(), announce::size(description.total_bytes()))),
        ("own", announce::size(description.own_bytes())),
    ];
    if bases > 0 {
        let plural = if bases == 1 { "" } else { "s" };
        facts.push(("bases", format!("{bases} backup{plural} with the rest")));
    }
    for chain in &description.point {
        let ChainPoint { incarnation, core, ordinal } = chain;
        facts.push(("point", format!("incarnation {incarnation}, core {core}, log group {ordinal}")));
    }
    facts
}

/// The same for machines.
pub fn as_json(directory: &Path, description: &Description) -> Json {
    json!({
        "ok": true,
        "directory": directory.display().to_string(),
        "id": description.id,
        "store": description.store,
        "taken_unix_ms": description.taken_unix_ms,
        "source": description.source,
        "online": description.online,
        "files": description.files.len(),
        "bytes": description.total_bytes(),
        "own_bytes": description.own_bytes(),
        "bases": description.bases.iter().map(|base| base.id.as_str()).collect::<Vec<_>>(),
        "point": description.point.iter().map(|chain| json!({
            "incarnation": chain.incarnation, "core": chain.core, "ordinal": chain.ordinal,
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_a_node_names_its_port() {
        assert_eq!(port_of("pid 12, port 6379, since 2026-01-31 12:00:00 UTC"), Some(6379));
        assert_eq!(port_of("pid 12, a backup"), None);
    }
}
