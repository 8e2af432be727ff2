//! `zerohop up --nodes`: several processes on this machine as one store, to try out what happens when one of them dies.
//!
//! ```text
//!   up ─► plan ─► process 1 (founds) ─► process 2 … n (join) ─► health: all whole ─► announce ─► until it is stopped
//!                    └──────── what they say, how they end ────────┴─► events ─► here
//! ```

mod announce;
mod health;
mod place;
mod plan;
mod process;

use std::process::{ExitCode, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use server::membership::membership;
use server::ports;
use server::stop_signals::{FORCED_EXIT_CODE, StopRequest, on_request};

use crate::serve::ADMIN_LINE;
use crate::{exit, say};
pub use place::{Place, nodes_in};
use plan::{Entry, name};
pub use plan::{NODES_MAX, Plan};
use process::{Event, NodeProcess, reason};

/// Ports that are tried for one node before giving up.
const PORTS_TRIED_MAX: usize = 64;
/// How long all slots may take to have their copies before that is said instead.
const WHOLE_PATIENCE: Duration = Duration::from_secs(60);
/// How long a clean stop may take before it is ended by force.
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// Why the nodes are stopped.
enum End {
    /// Somebody asked.
    Asked,
    /// Exit code and problem.
    Failed(u8, String),
}

/// What a node that serves has said.
#[derive(Default)]
struct Ready {
    token: Option<String>,
}

struct Nodes<'plan> {
    plan: &'plan Plan,
    processes: Vec<NodeProcess>,
    events: Receiver<Event>,
    tell: Sender<Event>,
}

/// Runs them until they are stopped.
pub fn run(plan: &Plan) -> ExitCode {
    let (tell, events) = channel();
    let asked = tell.clone();
    let listens = on_request(move |request| drop(asked.send(Event::Asked(request))));
    if let Err(error) = listens {
        return exit::with(exit::FAILED, &format!("signals: {error}"));
    }
    let lock = match place::take(plan) {
        Ok(lock) => lock,
        Err((code, problem)) => return exit::with(code, &problem),
    };
    let mut nodes = Nodes { plan, processes: Vec::new(), events, tell };
    let end = nodes.start().and_then(|()| nodes.keep_company());
    let code = match &end {
        Ok(()) => exit::FAILED,
        Err(End::Asked) => 0,
        Err(End::Failed(code, problem)) => {
            say::problem(problem);
            *code
        }
    };
    let code = nodes.stop().max(code);
    // Nobody has it from now on; the lock itself goes with this process.
    lock.write("").ok();
    ExitCode::from(code)
}

impl Nodes<'_> {
    /// Starts those that there are, or the first one, and lets the others join; returns when all are one store.
    fn start(&mut self) -> Result<(), End> {
        let refused = |problem| End::Failed(exit::DAMAGED, problem);
        let known = (1..=self.plan.nodes).map(|number| membership(&self.plan.directory_of(number)));
        let known = known.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let members = known.iter().flatten().count();
        if members > 0 && self.plan.is_port_given {
            say::line("the nodes that are there keep their ports: the others know them by these");
        }
        let mut token = None;
        for (number, member) in (1..).zip(&known).filter(|(_, member)| member.is_some()) {
            let port = member.and_then(|member| member.port);
            token = self.start_one(number, port, &Entry::Resume)?.token.or(token);
        }
        if members == 0 {
            token = self.start_one(1, None, &Entry::Found)?.token;
        }
        let (there, absent) =
            (self.processes[0].port, (1..=self.plan.nodes).filter(|number| known[number - 1].is_none()));
        for number in absent.filter(|number| members > 0 || *number > 1) {
            let token = token.as_deref().unwrap_or_default();
            self.start_one(number, None, &Entry::Join(there, token))?;
        }
        self.processes.sort_by_key(|process| process.number);
        let is_whole = self.await_whole()?;
        announce::ready(self.plan, &self.processes, is_whole);
        Ok(())
    }

    /// Starts a node where others know it, or else on the next ports that nobody has.
    fn start_one(&mut self, number: usize, known: Option<u16>, entry: &Entry<'_>) -> Result<Ready, End> {
        let mut port = match known {
            Some(port) => port,
            None => self.next_port()?,
        };
        for _ in 0..PORTS_TRIED_MAX {
            let directory = self.plan.directory_of(number);
            let words = self.plan.serve(number, port, entry);
            let token = if let Entry::Join(_, token) = entry { Some(*token) } else { None };
            let process = NodeProcess::start((number, directory, port), (&words, token), &self.tell);
            self.processes
                .push(process.map_err(|error| End::Failed(exit::FAILED, format!("{}: {error}", name(number))))?);
            let (status, problem) = match self.await_ready(number)? {
                Ok(ready) => return Ok(ready),
                Err(ended) => ended,
            };
            self.processes.pop();
            let code = status.and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
            let failed = End::Failed(code.filter(|code| *code > 0).unwrap_or(exit::FAILED), problem);
            let taken = match ports::bind(&self.plan.config_of(number, port)) {
                Err(error) if code != Some(exit::IN_USE) && error.is_taken() => error.port.unwrap_or(port),
                _ => return Err(failed),
            };
            let owner = server::port_owner::port_owner(taken);
            let by = owner.map_or_else(|| "a process of another user".to_owned(), |owner| owner.to_string());
            if known.is_some() {
                let text = format!(
                    "{}: port {taken} is taken by {by}; the other nodes know it there: end that process",
                    name(number)
                );
                return Err(End::Failed(exit::FAILED, text));
            }
            say::line(&format!("port {taken} is taken by {by}"));
            port = self.after(port, taken)?;
        }
        Err(End::Failed(exit::FAILED, format!("no free port for {}; choose others with --port", name(number))))
    }

    /// Where the next node is tried first.
    fn next_port(&self) -> Result<u16, End> {
        let last = self.processes.iter().map(|process| process.port).max();
        match (last, self.plan.config.port) {
            (_, 0) => {
                ports::free_block(&self.plan.config).map_err(|error| End::Failed(exit::FAILED, error.to_string()))
            }
            (Some(last), _) => Ok(last.saturating_add(self.plan.ports_apart())),
            (None, port) => Ok(port),
        }
    }

    /// The port from which on a block may be free that begins at `port` and has the `taken` one.
    fn after(&self, port: u16, taken: u16) -> Result<u16, End> {
        if self.plan.config.port == 0 {
            return self.next_port();
        }
        // Its own ports, or those for other nodes so much further up: neither can be part of a block any more.
        let offset = (taken - port) % server::cluster::NODES_PORT_OFFSET;
        Ok((port + offset).saturating_add(1))
    }

    /// Waits until a node serves; or how it ended and what it said of that.
    fn await_ready(&mut self, number: usize) -> Result<Result<Ready, (Option<ExitStatus>, String)>, End> {
        let (mut ready, mut warnings) = (Ready::default(), Vec::new());
        loop {
            match self.events.recv().expect("we hold a sender ourselves") {
                Event::Said(from, line) if from == number => {
                    if let Some((_, rest)) = line.split_once("--token ") {
                        ready.token = rest.split(' ').next().map(str::to_owned);
                    }
                    if let (Some(admin), Some(process)) = (line.strip_prefix(ADMIN_LINE), self.processes.last_mut()) {
                        process.admin = Some(admin.to_owned());
                    }
                    if line.starts_with("ready on ") {
                        warnings.iter().for_each(|line: &String| say::warning_of(&name(number), line));
                        return Ok(Ok(ready));
                    }
                }
                Event::Warned(from, line) if from == number => warnings.push(line),
                Event::Ended(from) if from == number => {
                    let status = self.processes.last_mut().and_then(NodeProcess::reap);
                    let said = warnings.join("\n");
                    let said = said.strip_prefix("zerohop: ").unwrap_or(&said);
                    return Ok(Err((status, format!("{} {}: {said}", name(number), reason(status)))));
                }
                event => self.heard(event)?,
            }
        }
    }

    /// Waits until every slot has its copies, and says whether that came to be.
    fn await_whole(&mut self) -> Result<bool, End> {
        let until = Instant::now() + WHOLE_PATIENCE;
        let nodes = self.processes.iter().map(|process| (process.directory.clone(), process.port + 1)).collect();
        let password = self.plan.config.password.clone().and_then(|password| String::from_utf8(password).ok());
        health::watch(nodes, password, self.tell.clone(), until);
        loop {
            match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Whole) => return Ok(true),
                Ok(event) => self.heard(event)?,
                Err(_) => return Ok(false),
            }
        }
    }

    /// Tells what happens to them, until nobody is left.
    fn keep_company(&mut self) -> Result<(), End> {
        while self.processes.iter().any(NodeProcess::is_running) {
            let event = self.events.recv().expect("we hold a sender ourselves");
            self.heard(event)?;
        }
        Err(End::Failed(exit::FAILED, "no node is left".to_owned()))
    }

    /// Passes on what a node says, and tells of its end.
    fn heard(&mut self, event: Event) -> Result<(), End> {
        match event {
            Event::Said(number, line) => say::line(&format!("{}: {line}", name(number))),
            Event::Warned(number, line) => say::warning_of(&name(number), &line),
            Event::Ended(number) => {
                let Some(process) = self.processes.iter_mut().find(|process| process.number == number) else {
                    return Ok(());
                };
                let status = process.reap();
                announce::ended(self.plan, &self.processes, number, &reason(status));
            }
            Event::Whole => {}
            Event::Asked(_) => return Err(End::Asked),
        }
        Ok(())
    }

    /// Stops all that run, cleanly if they can; the exit code.
    fn stop(&mut self) -> u8 {
        let (until, mut code) = (Instant::now() + STOP_PATIENCE, 0);
        self.processes.iter().for_each(|process| process.signal(Signal::TERM));
        while self.processes.iter().any(NodeProcess::is_running) {
            match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Ended(number)) => {
                    let process = self.processes.iter_mut().find(|process| process.number == number);
                    let status = process.and_then(NodeProcess::reap);
                    if !status.is_some_and(|status| status.success()) {
                        say::warning_of(&name(number), &reason(status));
                        code = code.max(exit::FAILED);
                    }
                }
                Ok(Event::Asked(StopRequest::Forced)) => {
                    say::line("forced to stop before the logs were sealed; the next start recovers as after a crash");
                    self.processes.iter().for_each(|process| process.signal(Signal::KILL));
                    code = FORCED_EXIT_CODE as u8;
                }
                Ok(Event::Said(number, line)) => say::line(&format!("{}: {line}", name(number))),
                Ok(Event::Warned(number, line)) => say::warning_of(&name(number), &line),
                Ok(Event::Asked(StopRequest::Clean) | Event::Whole) => {}
                Err(RecvTimeoutError::Timeout) => {
                    say::warning("a node does not stop; it is killed, and the next start recovers as after a crash");
                    self.processes.iter().for_each(|process| process.signal(Signal::KILL));
                    for process in &mut self.processes {
                        process.reap();
                    }
                    code = code.max(exit::FAILED);
                }
                Err(RecvTimeoutError::Disconnected) => unreachable!("we hold a sender ourselves"),
            }
        }
        code
    }
}
