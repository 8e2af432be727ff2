//! The power campaign of `proof`: what its machine is made of, and which servers lose their power in it, for
//! `cargo x campaign power` and the suite.

mod cpio;
pub mod debian_guest;
mod initramfs;

use std::path::Path;
use std::process::Command;

use crate::{Outcome, needs, peers, process, workspace};

/// Rounds within which a loser must have lost what was promised: nearly every cut takes some.
pub const LOSER_ROUNDS: u64 = 5;

/// The variable that plants a bug; the guest hands it to the server.
const PLANTED_VARIABLE: &str = "PLANTED_BUG";

/// Nodes of the cluster that loses its power together.
pub const NODES: u64 = 3;

/// A server and the machine it is put into.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// This binary zerohop.
    Zerohop(&'a Path),
    /// The same on a file system that does not flush the disk; has to be caught.
    ZerohopUnflushed(&'a Path),
    /// Redis: its `appendfsync`. `everysec` has to be caught against `commit`, and `no` against `interval`.
    Redis(&'static str),
}

/// Fetches what can be fetched without root, and says what else is missing.
pub fn meet_needs() -> Outcome<()> {
    let needs: [&needs::Need; 4] = [&needs::QEMU, &needs::MKE2FS, &needs::GUEST, &needs::REDIS];
    let missing: Vec<&needs::Need> = needs.into_iter().filter(|need| !need.is_met()).collect();
    needs::install(&missing)?;
    match missing.iter().find(|need| !need.is_met()) {
        Some(need) => Err(format!("missing: {} -> {}", need.name, need.advice())),
        None => Ok(()),
    }
}

/// A campaign of this subject with this seed; `planted` names the bug that it has to notice.
pub fn command(subject: &Subject<'_>, seed: u64, planted: Option<&str>) -> Outcome<Command> {
    cluster_command(subject, 1, seed, planted)
}

/// The same with so many nodes in the one machine, as a cluster if there are several.
pub fn cluster_command(subject: &Subject<'_>, nodes: u64, seed: u64, planted: Option<&str>) -> Outcome<Command> {
    let (name, program, inside) = match subject {
        Subject::Zerohop(binary) => ("zerohop".to_owned(), binary.to_path_buf(), "zerohop"),
        Subject::ZerohopUnflushed(binary) => ("zerohop-unflushed".to_owned(), binary.to_path_buf(), "zerohop"),
        Subject::Redis(fsync) => (format!("redis-{fsync}"), peers::unpacked("redis-server")?, "redis-server"),
    };
    let guest = debian_guest::find()?;
    let image = workspace::tools_folder().join("power").join(format!("{inside}.img"));
    initramfs::write(&image, &guest, &program, inside)?;
    let mut command = Command::new(workspace::checked_program("proof")?);
    command.args(["power", "--subject", &name, "--seed", &seed.to_string(), "--kernel"]).arg(&guest.kernel);
    command.arg("--initramfs").arg(&image).args(["--nodes", &nodes.to_string()]);
    match planted {
        Some(bug) => command.env(PLANTED_VARIABLE, bug),
        None => command.env_remove(PLANTED_VARIABLE),
    };
    println!("again: {}", process::describe(&command));
    Ok(command)
}
