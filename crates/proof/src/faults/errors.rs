//! Named faults under load, each with what has to become of it.

use std::io;

use super::book::Book;
use super::node::{Home, Node, has_all, words};
use super::shim::{EIO, ENOSPC, Rule, SHORT, Shim, call, file};
use super::{Options, SETTINGS, Setting, tell};
use crate::process::contains;

/// Written before the fault, bytes.
const LOAD_BEFORE: u64 = 200 << 10;
/// Written behind it where it is to do no harm, bytes.
const LOAD_AFTER: u64 = 1 << 20;

/// What has to become of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    /// Replies of that tick may promise what the disk refused: the process ends, and says why.
    End,
    /// Nothing is acknowledged any more, who waits is answered or cut off, reads go on.
    Refusal,
    /// Nobody notices.
    Nothing,
    /// The next segment comes with the next attempt; writes may be refused until then.
    LateSegment,
    /// The run before it stays, and the next attempt succeeds.
    LateRun,
    /// The last run of a stop is not made; the next start replays what it would have had.
    StopWithoutRun,
}

struct Case {
    name: &'static str,
    rule: Rule,
    becomes: Becomes,
}

const fn rule(calls: u32, files: u32, nth: u32, error: u32) -> Rule {
    Rule { calls, files, nth, times: 1, error, first_is_short: false }
}

const CASES: [Case; 17] = [
    Case { name: "EIO on a write to the log", rule: rule(call::WRITE, file::LOG, 7, EIO), becomes: Becomes::End },
    Case { name: "ENOSPC on a write to the log", rule: rule(call::WRITE, file::LOG, 5, ENOSPC), becomes: Becomes::End },
    Case {
        name: "a short write to the log, then EIO",
        rule: Rule { times: 2, first_is_short: true, ..rule(call::WRITE, file::LOG, 6, EIO) },
        becomes: Becomes::End,
    },
    Case { name: "short writes to the log", rule: shorts(file::LOG), becomes: Becomes::Nothing },
    Case {
        name: "EIO once on a sync of the log",
        rule: rule(call::SYNC, file::LOG, 1, EIO),
        becomes: Becomes::Refusal,
    },
    Case { name: "EIO on a write to a new segment", rule: rule(call::WRITE, file::NEW_LOG, 1, EIO), becomes: LATE },
    Case { name: "ENOSPC on a sync of a new segment", rule: rule(call::SYNC, file::NEW_LOG, 1, ENOSPC), becomes: LATE },
    Case { name: "EIO on the name of a new segment", rule: rule(call::RENAME, file::LOG, 1, EIO), becomes: LATE },
    Case { name: "EIO on a write to a run", rule: rule(call::WRITE, file::NEW_RUN, 1, EIO), becomes: LATE_RUN },
    Case { name: "ENOSPC on a write to a run", rule: rule(call::WRITE, file::NEW_RUN, 2, ENOSPC), becomes: LATE_RUN },
    Case { name: "short writes to runs", rule: shorts(file::NEW_RUN), becomes: Becomes::Nothing },
    Case { name: "EIO once on a sync of a run", rule: rule(call::SYNC, file::NEW_RUN, 1, EIO), becomes: LATE_RUN },
    Case { name: "EIO on the name of a run", rule: rule(call::RENAME, file::RUN, 1, EIO), becomes: LATE_RUN },
    Case {
        // Of a group that had a run already: what it replaces must still be there. Most of that round are written over older ones.
        name: "EIO on syncs of a second round of runs",
        rule: Rule { times: 3, ..rule(call::SYNC, file::NEW_RUN | file::RUN, 66, EIO) },
        becomes: LATE_RUN,
    },
    Case {
        // What was written over is half of one run and half of another then, under its old name.
        name: "ENOSPC on writes over older runs",
        rule: Rule { times: 2, first_is_short: true, ..rule(call::WRITE, file::RUN, 3, ENOSPC) },
        becomes: LATE_RUN,
    },
    Case {
        name: "EIO on a sync of one of the runs of a stop",
        rule: rule(call::SYNC, file::NEW_RUN, 5, EIO),
        becomes: Becomes::StopWithoutRun,
    },
    Case {
        // The end of a run, which is all of a small one, is written when the next one begins.
        name: "ENOSPC on a write to one of the runs of a stop",
        rule: rule(call::WRITE, file::NEW_RUN, 5, ENOSPC),
        becomes: Becomes::StopWithoutRun,
    },
];
const LATE: Becomes = Becomes::LateSegment;
const LATE_RUN: Becomes = Becomes::LateRun;

const fn shorts(files: u32) -> Rule {
    Rule { calls: call::WRITE, files, nth: 2, times: 9, error: SHORT, first_is_short: false }
}

/// Replies wait for the logs of other cores, too: one client with units over both cores, and many.
const SEVERAL_CORES: [Setting; 2] = [
    Setting { durability: "commit", backend: "epoll", cores: 2 },
    Setting { durability: "commit", backend: "uring", cores: 2 },
];

/// Runs all cases in all settings.
pub(super) fn run(options: &Options, home: &Home, shim: &Shim) -> io::Result<(u64, Vec<String>)> {
    let (mut right, mut wrong) = (0, Vec::new());
    for (place, setting) in SETTINGS.iter().chain(&SEVERAL_CORES).enumerate() {
        let is_had = |case: &Case| setting.cores == 1 || case.becomes == Becomes::Refusal;
        let is_meant = |number: usize, case: &Case| options.is_meant((number, case.name), place) && is_had(case);
        for (_, case) in CASES.iter().enumerate().filter(|(number, case)| is_meant(*number, case)) {
            let result = one(case, setting, (home, shim), options.seed);
            tell(&format!("{} ({setting})", case.name), result, (&mut right, &mut wrong));
        }
    }
    Ok((right, wrong))
}

fn one(case: &Case, setting: &Setting, (home, shim): (&Home, &Shim), seed: u64) -> Result<String, String> {
    let (data, mut book) = (home.data()?, Book::new(seed));
    shim.disarm().map_err(words)?;
    let more: &[&str] = if case.becomes == Becomes::Refusal { &["--admin-port", "0"] } else { &[] };
    let mut node = home.start_with(setting, &data, Some(shim), more)?;
    node.write(&mut book, LOAD_BEFORE)?;
    node.clients = if setting.cores > 1 && setting.backend == "uring" { 8 } else { 1 };
    if case.becomes == Becomes::Refusal {
        has_all("its health", &node.health()?, &["HTTP/1.1 200 ", "ok"])?;
    }
    shim.arm(&case.rule).map_err(words)?;
    let outcome = match case.becomes {
        Becomes::End => ends(&mut node, &mut book, case),
        Becomes::Refusal => refuses(&mut node, &mut book),
        Becomes::StopWithoutRun => node.stop().map(drop),
        Becomes::Nothing | Becomes::LateSegment | Becomes::LateRun => goes_on(&mut node, &mut book, case, shim),
    };
    node.kill()?;
    let fired = shim.fired().map_err(words)?;
    shim.disarm().map_err(words)?;
    let lost = shim.lose_if(setting.durability == "commit").map_err(words)?;
    outcome?;
    if fired == 0 {
        return Err(format!("it proves nothing: of {} calls none failed", shim.seen().map_err(words)?));
    }
    home.judge(setting, &data, &mut book)?;
    Ok(format!(
        "{} units acknowledged, {} refused, {fired} faults, {lost} writes lost",
        book.acknowledged, book.refused
    ))
}

/// The process ends by itself, with an error that names the file.
fn ends(node: &mut Node, book: &mut Book, case: &Case) -> Result<(), String> {
    node.load(book, "the end of the process", &mut |_, burst| Ok(burst.is_broken))?;
    let status = node.end()?;
    if status.code() != Some(1) {
        return Err(format!("it ended with {status}: {}", node.output()));
    }
    let reason = if case.rule.error == ENOSPC { "No space left on device" } else { "Input/output error" };
    node.says(&["the log failed", "stopped by a failure", ".log: ", reason])
}

/// From the failure on nothing is acknowledged, and reads go on.
fn refuses(node: &mut Node, book: &mut Book) -> Result<(), String> {
    node.load(book, "the log's failure", &mut |node, _| Ok(node.is_over()))?;
    if !node.is_alive() {
        return Err(format!("it ended, though reads could go on: {}", node.output()));
    }
    let mut connections = node.clients()?;
    for _ in 0..10 {
        let burst = node.burst(book, &mut connections)?;
        let refusal = burst.refusal.unwrap_or_default();
        if burst.acknowledged > 0 || burst.is_broken {
            return Err(format!("{} writes were acknowledged behind a failed sync", burst.acknowledged));
        }
        has_all("the refusal", &refusal, &["MISCONF", ".log: ", "Input/output error", "restart"])?;
    }
    node.reads(book)?;
    if node.info("aof_last_write_status").as_deref() != Some("err") {
        return Err("INFO persistence says nothing of it".to_owned());
    }
    let parts = ["HTTP/1.1 503 ", "the log of core ", " has failed: ", ".log: ", "Input/output error"];
    has_all("its health", &node.health()?, &parts)?;
    node.says(&["the log failed", ".log: ", "Input/output error"])
}

/// Whatever fails is tried again, and nothing acknowledged depends on it.
fn goes_on(node: &mut Node, book: &mut Book, case: &Case, shim: &Shim) -> Result<(), String> {
    let (mut was_told, mut published) = (false, 0);
    node.load(book, "the fault and its end", &mut |node, burst| {
        if let Some(refusal) = &burst.refusal {
            if case.becomes != Becomes::LateSegment {
                return Err(format!("a write was refused: {refusal}"));
            }
            has_all("the refusal", refusal, &["MISCONF", ".log", "os error"])?;
        }
        if shim.fired().map_err(words)? < case.rule.times {
            return Ok(false);
        }
        match case.becomes {
            Becomes::LateSegment => Ok(contains(node.output().as_bytes(), b"the log has its next segment")),
            Becomes::LateRun => {
                let has_failed = node.info("rdb_last_bgsave_status").as_deref() == Some("err");
                if has_failed && !was_told {
                    (was_told, published) = (true, node.count("runs_published"));
                }
                // It is shown until a later run succeeds.
                Ok(contains(node.output().as_bytes(), b"checkpoints go on") && !has_failed)
            }
            _ => Ok(true),
        }
    })?;
    match case.becomes {
        Becomes::LateSegment => node.says(&["gets no further segment", ".log"])?,
        Becomes::LateRun => {
            node.says(&["a checkpoint failed", ".run"])?;
            if was_told && node.count("runs_published") <= published {
                return Err("no run was made behind the one that failed".to_owned());
            }
        }
        _ => {}
    }
    node.write(book, LOAD_AFTER)?;
    node.reads(book)
}
