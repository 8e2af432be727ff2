//! Keeps what was measured in `bench/results/`: one pair of files per comparison, options and day.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::options::Options;
use super::results::{Results, Row, TABLE_HEAD};
use crate::{Outcome, process, workspace};

/// Appends the run to `bench/results/<date>-<what ran>.json` and writes the table beside it.
pub fn keep(results: &Results, options: &Options) -> Outcome<()> {
    if results.rows.is_empty() {
        println!("nothing was measured, nothing is kept");
        return Ok(());
    }
    let (date, commit, machine) = (date()?, commit(), machine());
    let run = json!({
        "name": results.name, "date": date, "commit": commit, "machine": machine, "pairs": options.pairs,
        "slice_seconds": options.slice_seconds, "durability": options.durability, "keys": options.keys,
        "notes": results.notes, "not_measured": results.absent, "rows": results.rows, "slices": results.slices,
    });
    let head = format!(
        "# {} ({date}, commit {commit})\n\n{machine}. {} pairs of {} s, server pinned to one CPU, generator to \
         another, each once the servers of its comparison are at rest; `{}` durability where the comparison does not say otherwise. Ratios are subject / against; the \
         95 % bound of the median decides.\n",
        results.name, options.pairs, options.slice_seconds, options.durability
    );
    let rows: Vec<String> = results.rows.iter().map(Row::markdown).collect();
    let notes: String = results.notes.iter().map(|note| format!("- {note}\n")).collect();
    let absent: String = results.absent.iter().map(|what| format!("- NOT MEASURED: {what}\n")).collect();
    let table = format!("{head}\n{TABLE_HEAD}\n{}\n\n{notes}{absent}", rows.join("\n"));
    let stem = format!("{date}-{}", file_name(results.name, options));
    write(&stem, run, &table)?;
    let failed = results.rows.iter().filter(|row| row.verdict == "FAIL").count();
    let judged = results.rows.iter().filter(|row| !row.verdict.is_empty()).count();
    println!("{} of {judged} bars met; kept in bench/results/{stem}.md", judged - failed);
    Ok(())
}

/// Keeps the table of all comparisons of one run.
pub fn keep_all(options: &Options, table: &str, verdicts: Value) -> Outcome<()> {
    let (date, commit, machine) = (date()?, commit(), machine());
    let stem = format!("{date}-{}", file_name("all", options));
    let run = json!({
        "name": "all", "date": date, "commit": commit, "machine": machine, "pairs": options.pairs,
        "slice_seconds": options.slice_seconds, "verdicts": verdicts,
    });
    write(&stem, run, &format!("# all ({date}, commit {commit})\n\n{machine}.\n\n{table}"))?;
    println!("kept in bench/results/{stem}.md");
    Ok(())
}

/// What ran, as part of a file's name: another choice of cells, backends or lengths is another file.
fn file_name(name: &str, options: &Options) -> String {
    let mut parts = vec![name.to_owned()];
    parts.extend(options.only.as_ref().map(|only| only.replace(',', "+")));
    if let [backend] = &options.backends[..] {
        parts.push(backend.clone());
    }
    let usual = Options::default();
    if options.durability != usual.durability {
        parts.push(options.durability.clone());
    }
    if let Some(keys) = options.keys_asked {
        parts.push(format!("{keys}-keys"));
    }
    if options.is_look() {
        parts.push("look".to_owned());
    }
    let part = |part: &String| part.replace(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)), "_");
    parts.iter().map(part).collect::<Vec<String>>().join("-")
}

fn write(stem: &str, run: Value, table: &str) -> Outcome<()> {
    let folder = workspace::root().join("bench/results");
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // Not `with_extension`: the name may have points of its own.
    let (json, markdown) = (folder.join(format!("{stem}.json")), folder.join(format!("{stem}.md")));
    let mut runs: Vec<Value> = match fs::read_to_string(&json) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| format!("{} is damaged ({error}): move it away", json.display()))?,
        Err(_) => Vec::new(),
    };
    runs.push(run);
    let text = serde_json::to_string(&runs).map_err(|error| error.to_string())?;
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    write(&json, &text)?;
    write(&markdown, table)
}

fn date() -> Outcome<String> {
    Ok(process::output(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned())
}

/// What the numbers were taken on; no name of a host.
/// Pages touched to learn what a new one costs.
const NEW_PAGES: usize = 16 << 10;
const PAGE_BYTES: usize = 4096;

fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown CPU");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim().split('-').next().unwrap_or("");
    let model = model.trim_start_matches([' ', '\t', ':']);
    format!("{cpus} CPUs ({model}), Linux {kernel}, {:.1} us for a page of new memory", new_page_us())
}

/// What touching a page of memory for the first time costs. Far above a microsecond, the host takes back what a guest does not
/// use, and whoever grows pays for it: server, page cache, peers.
fn new_page_us() -> f64 {
    let begun = Instant::now();
    let pages = std::hint::black_box(vec![1u8; NEW_PAGES * PAGE_BYTES]);
    let new_us = begun.elapsed().as_secs_f64() * 1e6;
    drop(pages);
    new_us / NEW_PAGES as f64
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        process::output(Command::new("git").args(arguments).current_dir(workspace::root())).unwrap_or_default()
    };
    // Results that were just written are no change of what is measured.
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results"]);
    let mark = if changed.is_empty() { "" } else { "+changes" };
    format!("{}{mark}", git(&["rev-parse", "--short=10", "HEAD"]).trim())
}

#[cfg(test)]
mod tests {
    use super::{Options, file_name};

    fn name(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        file_name("peers", &Options::of(&words).expect("known options"))
    }

    #[test]
    fn a_file_is_named_by_what_ran() {
        assert_eq!(name(&[]), "peers");
        assert_eq!(name(&["--only", "get-P1,set-P1"]), "peers-get-P1+set-P1");
        assert_eq!(name(&["--io", "epoll", "--durability", "interval"]), "peers-epoll-interval");
        assert_eq!(name(&["--keys", "1000", "--only", "../x"]), "peers-.._x-1000-keys");
    }

    #[test]
    fn a_look_never_replaces_a_verdict() {
        assert_eq!(name(&["--quick"]), "peers-look");
        assert_eq!(name(&["--pairs", "14"]), "peers-look");
        assert_eq!((name(&["--kills", "99"]), name(&["--kills", "200"])), ("peers-look".into(), "peers".into()));
        assert_eq!(name(&["--pairs", "21", "--slice", "1"]), "peers");
    }
}
