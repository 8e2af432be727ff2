//! `zerohop top`: what classes and destinations of a proxy, or the cores of a node, do at the moment.
//!
//! ```text
//!  admin port ─ scrape ─► Reading ─┐
//!                 a second before ─┴─► Frame ─► text, once or each second on a screen; or JSON
//! ```

mod frame;
mod histogram;
mod reading;
mod scrape;
mod screen;
mod text;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::{exit, say};
use frame::{Frame, Source};
use reading::Reading;
use scrape::Scrape;

const AFTER: &str = "\
An admin port is opened by --admin-port of `zerohop proxy`, `zerohop serve` and `zerohop up`.

Examples:
  zerohop top                            the admin port 127.0.0.1:9121, again each second, until q or Ctrl-C
  zerohop top 127.0.0.1:9122 --once      one picture as text
  zerohop top proxy:9122 node1:9121      several, one below the other
  zerohop top --json | jq .              for a program";

/// Its options.
pub fn command() -> Command {
    Command::new("top")
        .about("Show what a proxy's classes and destinations, or a node's cores, do at the moment")
        .arg(
            Arg::new("address")
                .num_args(1..)
                .value_name("HOST:PORT")
                .default_value("127.0.0.1:9121")
                .help("Admin ports of proxies and nodes"),
        )
        .arg(
            Arg::new("once")
                .long("once")
                .action(ArgAction::SetTrue)
                .help("Print one picture, of all since the start, and end; so it does where there is no terminal"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("The same as one JSON object"))
        .after_help(AFTER)
}

/// Shows it.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let addresses: Vec<String> = matches.get_many("address").expect("it has a default").cloned().collect();
    let mut watch = Watch { before: addresses.iter().map(|_| None).collect(), addresses };
    let first = watch.look();
    if let Some(problem) = first.problem_of_all() {
        return exit::with(exit::FAILED, &problem);
    }
    if matches.get_flag("json") {
        say::line(&first.json().to_string());
        return ExitCode::SUCCESS;
    }
    if matches.get_flag("once") || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        text::lines(&first, false).iter().for_each(|line| say::line(line));
        return ExitCode::SUCCESS;
    }
    let colours = std::env::var_os("NO_COLOR").is_none_or(|word| word.is_empty());
    match screen::show(first, || watch.look(), colours) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::with(exit::FAILED, &format!("the terminal: {error}; --once needs none")),
    }
}

/// Who is looked at, and what was seen there last.
struct Watch {
    addresses: Vec<String>,
    before: Vec<Option<(Instant, Reading)>>,
}

impl Watch {
    /// All of them, now.
    fn look(&mut self) -> Frame {
        let sources = self.addresses.iter().zip(&mut self.before).map(|(address, before)| {
            let seen = match scrape::scrape(address) {
                Ok(seen) => seen,
                Err(problem) => return Source::unreachable(address, problem),
            };
            let Scrape { reading, health } = seen;
            let now = Instant::now();
            let since = before.as_ref().map(|(at, reading)| (now.duration_since(*at).as_secs_f64(), reading));
            let unix_seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let source = Source::of(address, health, &reading, since, unix_seconds.as_secs_f64());
            *before = Some((now, reading));
            source
        });
        Frame { sources: sources.collect() }
    }
}
