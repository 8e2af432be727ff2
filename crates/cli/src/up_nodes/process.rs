//! One node of `up --nodes`: a process of this binary, what it says, and how it ended.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;

use rustix::process::{Pid, Signal, kill_process};
use server::settings::SETTINGS;
use server::stop_signals::StopRequest;

/// What happens while nodes run.
pub enum Event {
    /// Node `0` wrote a line on standard output.
    Said(usize, String),
    /// Node `0` wrote a line on standard error.
    Warned(usize, String),
    /// Node `0` closed both: it has ended, or is about to.
    Ended(usize),
    /// Every node says that all slots are served and have their copies.
    Whole,
    /// Somebody wants an end.
    Asked(StopRequest),
}

/// See the module.
pub struct NodeProcess {
    /// From 1 on.
    pub number: usize,
    /// Where its data lies.
    pub directory: PathBuf,
    /// The port that it was told.
    pub port: u16,
    /// Where `/metrics` and `/healthz` are, as it said.
    pub admin: Option<String>,
    /// Its number for the operating system.
    pub process_id: u32,
    /// `None` once its end was waited for: until then the number is nobody else's.
    child: Option<Child>,
}

impl NodeProcess {
    /// Starts `zerohop` with these words and this token; what happens to it is told to `events`.
    ///
    /// # Errors
    /// Why there is no process.
    pub fn start(
        (number, directory, port): (usize, PathBuf, u16),
        (words, token): (&[String], Option<&str>),
        events: &Sender<Event>,
    ) -> std::io::Result<NodeProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What counts stands in the words; Ctrl-C is for us, who tell them.
        for setting in &SETTINGS {
            command.env_remove(setting.variable());
        }
        command.envs(token.map(|token| ("ZEROHOP_TOKEN", token)));
        let mut child = command.env_remove("ZEROHOP_CONFIG").process_group(0).spawn()?;
        let (said, warned) = (child.stdout.take(), child.stderr.take());
        let (tell, tell_warnings) = (events.clone(), events.clone());
        let warnings = std::thread::spawn(move || {
            for_each_line(warned, |line| drop(tell_warnings.send(Event::Warned(number, line))));
        });
        std::thread::spawn(move || {
            for_each_line(said, |line| drop(tell.send(Event::Said(number, line))));
            // The end is told behind everything that was said.
            warnings.join().ok();
            tell.send(Event::Ended(number)).ok();
        });
        Ok(NodeProcess { number, directory, port, admin: None, process_id: child.id(), child: Some(child) })
    }

    /// Whether its end is still to come.
    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Sends it a signal, unless it has ended.
    pub fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            // One that has just ended needs none.
            kill_process(Pid::from_child(child), signal).ok();
        }
    }

    /// Waits for its end, which is near or here.
    pub fn reap(&mut self) -> Option<ExitStatus> {
        self.child.take().and_then(|mut child| child.wait().ok())
    }
}

impl Drop for NodeProcess {
    /// Nobody would stop it later.
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.reap();
    }
}

/// How a process ended, in words.
pub fn reason(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.signal(), status.code())) {
        Some((Some(signal), _)) => format!("was killed by signal {signal}"),
        Some((_, Some(code))) => format!("ended with exit code {code}"),
        _ => "ended".to_owned(),
    }
}

fn for_each_line(stream: Option<impl Read>, mut each: impl FnMut(String)) {
    let Some(stream) = stream else { return };
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        each(String::from_utf8_lossy(&line).into_owned());
    }
}
