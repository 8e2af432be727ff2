//! What a slice is disturbed by: runs that are due, a million keys that expire at one moment, a backup.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use super::super::info::number_of;
use super::super::programs::built;
use super::super::results::{Bar, Results};
use super::super::server::Server;
use super::stage::{Pace, Seen, Stage, WARM_UP_SECONDS};
use crate::{Outcome, process};

/// Keys that expire at one moment, 20 bytes with values of 8.
const EXPIRING_KEYS: u64 = 1_000_000;
/// After their load, until they expire: the runs that it made due are made meanwhile.
const EXPIRE_AFTER: Duration = Duration::from_millis(1500);
/// The load generator's own start.
const GENERATOR_START: Duration = Duration::from_millis(100);
/// Loads of keys that took longer than the one before, so that they expired too early.
const TRIES_MAX: u32 = 4;
const BEGINS_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// See the module.
#[derive(Clone, Copy, PartialEq)]
pub enum Disturbance {
    /// So many strides of log are due when the slice begins.
    Runs {
        /// One is one run.
        strides: f64,
    },
    /// All keys of a million expire when the slice begins.
    Expiry,
    /// `zerohop backup` copies meanwhile.
    Backup,
}

impl Disturbance {
    /// The share of a slice in which it was under way.
    pub fn share(self, seen: &Seen) -> f64 {
        match self {
            Disturbance::Runs { .. } => seen.run_share,
            Disturbance::Expiry => seen.expiry_share,
            Disturbance::Backup => seen.backup_share,
        }
    }
}

impl Stage {
    /// A slice with the disturbance.
    pub fn disturbed(&mut self, pace: Pace, disturbance: Disturbance) -> Outcome<Seen> {
        match disturbance {
            Disturbance::Runs { strides } => {
                self.burst(strides)?;
                self.observe(pace)
            }
            Disturbance::Expiry => self.expire(pace),
            Disturbance::Backup => {
                self.settle()?;
                let backup = Backup::start(&self.server)?;
                let seen = self.observe(pace)?;
                backup.end(&self.server)?;
                Ok(seen)
            }
        }
    }

    fn expire(&mut self, pace: Pace) -> Outcome<Seen> {
        for attempt in 1..=TRIES_MAX {
            let began = Instant::now();
            let load = Duration::from_secs_f64(1.25 * self.expiry_load_seconds);
            let moment = SystemTime::now() + load + attempt * EXPIRE_AFTER;
            load_expiring(&self.server, moment)?;
            self.expiry_load_seconds = began.elapsed().as_secs_f64();
            self.settle()?;
            let lead = GENERATOR_START + Duration::from_secs_f64(WARM_UP_SECONDS);
            if let Ok(left) = (moment - lead).duration_since(SystemTime::now()) {
                std::thread::sleep(left);
                return self.observe(pace);
            }
        }
        Err("loading keys took so long each time that they expired too early".to_owned())
    }
}

fn load_expiring(server: &Server, moment: SystemTime) -> Outcome<()> {
    let unix_ms = moment.duration_since(SystemTime::UNIX_EPOCH).map_err(|error| error.to_string())?.as_millis();
    let count = EXPIRING_KEYS.to_string();
    let mut load = Command::new(built("load-generator"));
    load.args(["--target", &format!("127.0.0.1:{}", server.port), "--pin", "1", "--pipeline", "64", "--warm-up", "0"])
        .args(["--distribution", "sequential", "--key-prefix", "expiring:", "--key-bytes", "20", "--value-bytes", "8"])
        .args(["--keys", &count, "--requests", &count, "--json"])
        .args(["--command", &format!("SET __key__ __value__ PXAT {unix_ms}")]);
    process::output(&mut load).map(|_| ())
}

/// A backup under way beside a slice: on the generator's CPU, which it leaves to the generator.
struct Backup {
    child: Child,
    folder: PathBuf,
}

impl Backup {
    fn start(server: &Server) -> Outcome<Backup> {
        let folder = server.folder().join("backup");
        let child = command(server, &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("a backup does not start: {error}"))?;
        let backup = Backup { child, folder };
        await_gauge(server, "backup_under_way", 1.0)?;
        Ok(backup)
    }

    /// It is broken off: what is measured is what others see while it copies.
    fn end(self, server: &Server) -> Outcome<()> {
        drop(self);
        await_gauge(server, "backup_under_way", 0.0)
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("a backup does not end: {error}");
        }
        if self.folder.exists() && fs::remove_dir_all(&self.folder).is_err() {
            eprintln!("cannot remove {}", self.folder.display());
        }
    }
}

fn command(server: &Server, folder: &std::path::Path) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "19", "taskset", "-c", "1"]).arg(built("zerohop"));
    command.args(["backup", "--port", &server.port.to_string(), "--to"]).arg(folder);
    command
}

fn await_gauge(server: &Server, name: &str, wanted: f64) -> Outcome<()> {
    let deadline = Instant::now() + BEGINS_WITHIN;
    while Instant::now() < deadline {
        if number_of(&server.ask("INFO persistence")?, name)?.to_bits() == wanted.to_bits() {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Err(format!("{name} does not become {wanted} within {BEGINS_WITHIN:?}"))
}

/// A backup that is not broken off: one that nobody could restore would be measured for nothing.
pub fn whole_backup(stage: &Stage, results: &mut Results) -> Outcome<()> {
    let folder = stage.server.folder().join("whole-backup");
    let began = Instant::now();
    process::output(&mut command(&stage.server, &folder))?;
    let seconds = began.elapsed().as_secs_f64();
    fs::remove_dir_all(&folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    results.value("backup-whole", &stage.server.name, "s to copy and verify, nobody asking", &[seconds], Bar::None)?;
    Ok(())
}
