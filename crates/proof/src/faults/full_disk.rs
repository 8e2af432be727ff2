//! A disk that fills under load: writes are refused by name, reads go on, and with room writes go on without a restart.

use std::io;

use super::book::Book;
use super::disk::Disk;
use super::node::{Home, Node, has_all, words};
use super::{Options, SETTINGS, Setting, tell};

/// What happens on a disk of so many mebibytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// It fills by the log itself.
    Fills(u64),
    /// The same, by many clients at once: a tick logs more than what is left of a segment when it is nearly full.
    IsPressed(u64),
    /// It is full, the node dies, and starts are refused until there is room.
    FullAtStart(u64),
    /// Somebody else takes the last room, and a run finds none.
    FullForRuns(u64),
}

/// The first segment fits and the second does not; the third does not, and there are runs; there is room but for runs.
const CASES: [Case; 6] = [
    Case::Fills(12),
    Case::Fills(44),
    Case::IsPressed(12),
    Case::IsPressed(44),
    Case::FullAtStart(12),
    Case::FullForRuns(96),
];
/// Clients that press: each brings 16 KiB a tick.
const MANY_CLIENTS: usize = 40;

/// Room, once there is some, mebibytes.
const ROOM: u64 = 400;
/// Bursts that a full disk is asked to take.
const REFUSED_BURSTS: usize = 40;
/// Written behind it, bytes.
const LOAD_AFTER: u64 = 6 << 20;

/// Runs all cases in all settings.
pub(super) fn run(options: &Options, home: &Home) -> io::Result<(u64, Vec<String>)> {
    let (mut right, mut wrong) = (0, Vec::new());
    let several_cores = Setting { durability: "interval", backend: "uring", cores: 2 };
    for (place, setting) in SETTINGS.into_iter().chain([several_cores]).enumerate() {
        for (number, case) in CASES.into_iter().enumerate() {
            let name = format!("{case:?} ({setting})");
            if options.is_meant((number, &name), place) {
                tell(&name, one(case, &setting, home, options.seed), (&mut right, &mut wrong));
            }
        }
    }
    Ok((right, wrong))
}

fn one(case: Case, setting: &Setting, home: &Home, seed: u64) -> Result<String, String> {
    let (Case::Fills(mebibytes)
    | Case::IsPressed(mebibytes)
    | Case::FullAtStart(mebibytes)
    | Case::FullForRuns(mebibytes)) = case;
    let disk = Disk::mount(home.mount_point()?, mebibytes * u64::from(setting.cores)).map_err(words)?;
    let mut book = Book::new(seed);
    let mut node = home.start(setting, &disk.data(), None)?;
    match case {
        Case::Fills(_) | Case::IsPressed(_) => {
            node.clients = if case == Case::IsPressed(mebibytes) { MANY_CLIENTS } else { 1 };
            fills(&mut node, &mut book)?;
            disk.resize(ROOM).map_err(words)?;
            goes_on(&mut node, &mut book)?;
        }
        Case::FullAtStart(_) => {
            fills(&mut node, &mut book)?;
            disk.fill().map_err(words)?;
            node.kill()?;
            let refusal = home.start(setting, &disk.data(), None).err().ok_or("it started on a full disk")?;
            let place = disk.data().display().to_string();
            has_all("the refused start", &refusal, &["exit status: 1", &place, "No space left on device"])?;
            disk.free().map_err(words)?;
            disk.resize(ROOM).map_err(words)?;
            node = home.start(setting, &disk.data(), None)?;
            node.write(&mut book, LOAD_AFTER)?;
        }
        Case::FullForRuns(_) => {
            runs_find_no_room(&mut node, &mut book, &disk)?;
        }
    }
    node.kill()?;
    home.judge(setting, &disk.data(), &mut book)?;
    Ok(format!("{} units acknowledged, {} refused", book.acknowledged, book.refused))
}

/// Until the log has no room; then nothing but reads goes on, however hard it is pressed.
fn fills(node: &mut Node, book: &mut Book) -> Result<(), String> {
    let mut refusal = None;
    node.load(book, "a refusal", &mut |_, burst| {
        refusal.clone_from(&burst.refusal);
        Ok(refusal.is_some())
    })?;
    let fix = "free room";
    has_all("the refusal", &refusal.unwrap_or_default(), &["MISCONF", ".log", "No space left on device", fix])?;
    node.says(&["gets no further segment", ".log", "No space left on device", fix])?;
    let mut left = REFUSED_BURSTS;
    node.load(book, "pressed", &mut |_, burst| {
        left -= 1;
        Ok(left == 0 && !burst.is_broken)
    })?;
    node.reads(book)?;
    let status = (node.info("log_status"), node.info("aof_last_write_status"));
    if status != (Some("full".to_owned()), Some("err".to_owned())) {
        return Err(format!("INFO persistence says {status:?}"));
    }
    Ok(())
}

/// There is room: the same process takes writes again.
fn goes_on(node: &mut Node, book: &mut Book) -> Result<(), String> {
    node.load(
        book,
        "a write without a restart",
        &mut |_, burst| Ok(burst.acknowledged > 0 && burst.refusal.is_none()),
    )?;
    node.write(book, LOAD_AFTER)?;
    node.says(&["the log has its next segment: writes go on"])?;
    match node.info("log_status").as_deref() {
        Some("ok") => node.reads(book),
        other => Err(format!("INFO persistence says {other:?}")),
    }
}

/// Runs fail and stay away, the log goes on in its room; with room runs go on.
fn runs_find_no_room(node: &mut Node, book: &mut Book, disk: &Disk) -> Result<(), String> {
    node.load(book, "a run", &mut |node, _| Ok(node.count("runs_published") > 2))?;
    disk.fill().map_err(words)?;
    node.load(book, "a run that fails", &mut |node, burst| match &burst.refusal {
        Some(refusal) => Err(format!("a write was refused before any run failed: {refusal}")),
        None => Ok(node.info("rdb_last_bgsave_status").as_deref() == Some("err")),
    })?;
    node.says(&["a checkpoint failed", ".run", "No space left on device", "free room"])?;
    node.reads(book)?;
    let published = node.count("runs_published");
    disk.free().map_err(words)?;
    node.load(book, "a run again", &mut |node, _| {
        let is_well = node.info("rdb_last_bgsave_status").as_deref() == Some("ok");
        Ok(is_well && node.count("runs_published") > published)
    })?;
    node.says(&["checkpoints go on"])
}
