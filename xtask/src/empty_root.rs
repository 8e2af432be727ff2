//! Starting a server where there is nothing but itself: no libc, no /proc, no /etc. What answers here answers anywhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use ports::PortBlock;

use crate::{Outcome, needs, process, workspace};

/// How long a started server may take to answer one request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What came of a start.
pub enum Start {
    /// It answered PING.
    Answered,
    /// It did not; what it printed instead.
    Silent(String),
    /// This machine lets nobody change the root.
    NotPermitted,
}

/// Puts only `binary` into `root`; the command that serves from it.
pub fn with_binary(root: &Path, binary: &Path) -> Outcome<Vec<String>> {
    std::fs::copy(binary, root.join("zerohop")).map_err(|error| format!("{}: {error}", root.display()))?;
    Ok(["/zerohop", "serve", "--dir", "/data"].map(str::to_owned).to_vec())
}

/// Makes an empty root, lays it out, starts the command it returns on a free port, asks PING, ends it.
pub fn start_and_ask(lay_out: impl FnOnce(&Path) -> Outcome<Vec<String>>) -> Outcome<Start> {
    let Some(mut change_root) = change_root() else { return Ok(Start::NotPermitted) };
    let root = fresh_folder()?;
    let command = lay_out(&root)?;
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let port = block.first();
    change_root.arg(&root).args(&command).args(["--port", &port.to_string()]).env_clear();
    let mut child = change_root
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("chroot did not start: {error}"))?;
    let start = ask_when_ready(&mut child, port);
    child.kill().map_err(|error| format!("the server could not be ended: {error}"))?;
    child.wait().map_err(|error| format!("the server was lost: {error}"))?;
    std::fs::remove_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    Ok(start)
}

/// `chroot`, or `unshare --map-root-user chroot` for everybody else; `None` where neither works.
fn change_root() -> Option<Command> {
    let chroot = needs::find("chroot").unwrap_or_else(|| PathBuf::from("/usr/sbin/chroot"));
    if needs::is_root() {
        return Some(Command::new(chroot));
    }
    let unshare = needs::find("unshare")?;
    process::output(Command::new(&unshare).args(["--map-root-user", "true"])).ok()?;
    let mut command = Command::new(unshare);
    command.arg("--map-root-user").arg(chroot);
    Some(command)
}

fn fresh_folder() -> Outcome<PathBuf> {
    let folder = workspace::tools_folder().join("empty-root");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Asks after each line the server prints: the line is the event, so that nothing waits for time to pass.
fn ask_when_ready(child: &mut Child, port: u16) -> Start {
    let (sender, lines) = mpsc::channel();
    let stdout = child.stdout.take().expect("standard output was piped");
    let stderr = child.stderr.take().expect("standard error was piped");
    forward(stdout, sender.clone());
    forward(stderr, sender);
    let mut said = String::new();
    loop {
        match lines.recv_timeout(ANSWER_TIMEOUT) {
            Ok(line) => said.push_str(&format!("{line}\n")),
            Err(_) => return Start::Silent(format!("it printed {said:?} and then nothing more")),
        }
        if ping(port).is_ok_and(|reply| reply == *b"+PONG\r\n") {
            return Start::Answered;
        }
    }
}

/// Sends each line of `stream` until it ends or nobody listens any more.
fn forward(stream: impl Read + Send + 'static, sender: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
}

fn ping(port: u16) -> std::io::Result<[u8; 7]> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(b"PING\r\n")?;
    let mut reply = [0; 7];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}
