//! `zerohop cli`: talks to a server from a terminal, a script or a pipe, as redis-cli does.

pub(crate) mod connection;
pub(crate) mod json;
mod print;
mod redirect;
mod words;

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ::client::cluster::Redirect;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use wire::reply_parse::Value;

use crate::{exit, say, tls_options};
use connection::{CLOSED, Connection, Target};
use redirect::{Members, moved};

/// Redirects that are followed for one command; more mean that the nodes disagree.
const REDIRECTS_MAX: u32 = 6;
/// Before the second redirect of a command is followed, doubled for each one more: nodes that disagree mostly do not for long.
const REDIRECT_PAUSE: Duration = Duration::from_millis(2);

const AFTER: &str = "\
Examples:
  zerohop cli set greeting \"hello world\"
  zerohop cli -p 7000 -n 2                 a prompt; `help SET` explains a command, `exit` leaves
  zerohop cli < commands.txt               one command per line
  zerohop cli -c -p 7001 get key           follows MOVED to the owning core
  zerohop cli -x set photo < photo.jpg     the last argument is all of standard input
  zerohop cli -r 10 -i 0.5 dbsize          ten times, every half second
  zerohop cli --json hello 3
  zerohop cli --tls --cacert ca.crt -h db.example.com -p 6479 ping

The password is taken from the variable REDISCLI_AUTH, so that no process list shows it.";

/// Its options.
pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str| Arg::new(name).value_name(value);
    let flag = |name: &'static str| Arg::new(name).action(ArgAction::SetTrue);
    Command::new("cli")
        .about("Talk to a Redis-compatible server: one command, a pipe, or a prompt")
        .disable_help_flag(true)
        .args([
            text("host", "HOST").short('h').long("host").default_value("127.0.0.1").help("Server"),
            text("port", "PORT")
                .short('p')
                .long("port")
                .default_value("6379")
                .value_parser(value_parser!(u16))
                .help("Its port"),
            text("socket", "PATH")
                .short('s')
                .long("socket")
                .value_parser(value_parser!(PathBuf))
                .help("Its Unix socket, instead of host and port"),
            text("database", "N")
                .short('n')
                .default_value("0")
                .value_parser(value_parser!(u8))
                .help("Database to SELECT"),
            text("user", "NAME").long("user").help("User of the password in REDISCLI_AUTH"),
            flag("resp3").short('3').help("Speak RESP3"),
            flag("cluster").short('c').help("Follow MOVED to the member that owns the key"),
            flag("input").short('x').help("Standard input is the last argument of the command"),
            text("times", "TIMES")
                .short('r')
                .default_value("1")
                .value_parser(value_parser!(u64).range(1..))
                .help("Send the command so many times"),
            text("interval", "SECONDS")
                .short('i')
                .default_value("0")
                .value_parser(words::interval)
                .help("Wait so long between them"),
            flag("json").long("json").help("Print replies as JSON (and speak RESP3)"),
            flag("raw").long("raw").conflicts_with("json").help("Print bytes as they are, also on a terminal"),
            flag("no-raw")
                .long("no-raw")
                .conflicts_with_all(["json", "raw"])
                .help("Print as on a terminal, also into a pipe"),
        ])
        .args(tls_options::args())
        .args([
            Arg::new("help").long("help").action(ArgAction::Help).help("Print help"),
            Arg::new("words")
                .value_name("COMMAND")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(OsString))
                .help("The command and its arguments; without one, lines are read from standard input"),
        ])
        .after_help(AFTER)
}

/// How replies are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// As redis-cli on a terminal.
    Pretty,
    /// Bytes.
    Raw,
    /// One JSON value per line.
    Json,
}

struct Client {
    /// Who was named: who is a member is what it says.
    named: Target,
    /// Whom it talks to, who may be somebody else by now.
    target: Target,
    members: Members,
    connection: Option<Connection>,
    style: Style,
    follows: bool,
}

/// Runs one command, or all lines of standard input.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let json = matches.get_flag("json");
    let pretty = matches.get_flag("no-raw") || std::io::stdout().is_terminal();
    let raw = matches.get_flag("raw") || !pretty;
    let named = Target {
        host: matches.get_one::<String>("host").cloned().unwrap_or_default(),
        port: *matches.get_one("port").expect("it has a default"),
        socket: matches.get_one("socket").cloned(),
        user: matches.get_one("user").cloned(),
        password: std::env::var("REDISCLI_AUTH").ok(),
        database: *matches.get_one("database").expect("it has a default"),
        resp3: matches.get_flag("resp3") || json,
        tls: tls_options::read(matches),
        within: None,
    };
    let mut client = Client {
        target: named.clone(),
        named,
        members: Members::default(),
        connection: None,
        style: if json {
            Style::Json
        } else if raw {
            Style::Raw
        } else {
            Style::Pretty
        },
        follows: matches.get_flag("cluster"),
    };
    let words = match words::of_command(matches) {
        Ok(words) => words,
        Err(problem) => return exit::with(exit::USAGE, &problem),
    };
    let times = *matches.get_one::<u64>("times").expect("it has a default");
    let interval = *matches.get_one::<Duration>("interval").expect("it has a default");
    match words.is_empty() {
        false => client.run_often(&words, times, interval),
        true if std::io::stdin().is_terminal() => client.run_prompt(),
        true => client.run_lines(),
    }
}

/// A server that stops because it was told to says so by closing.
fn is_what_was_asked_for(words: &[Vec<u8>], problem: &str) -> bool {
    problem == CLOSED && words.first().is_some_and(|word| word.eq_ignore_ascii_case(b"shutdown"))
}

impl Client {
    /// An error reply does not stop it, but shows in the exit code.
    fn run_often(&mut self, words: &[Vec<u8>], times: u64, interval: Duration) -> ExitCode {
        let mut code = self.run_once(words);
        for _ in 1..times {
            if self.connection.is_none() {
                break;
            }
            std::thread::sleep(interval);
            let next = self.run_once(words);
            code = if next == ExitCode::SUCCESS { code } else { next };
        }
        code
    }

    fn run_once(&mut self, words: &[Vec<u8>]) -> ExitCode {
        match self.call(words) {
            Err(problem) if is_what_was_asked_for(words, &problem) => ExitCode::SUCCESS,
            Err(problem) => exit::with(exit::FAILED, &problem),
            Ok(reply) => {
                self.show(words, &reply);
                ExitCode::from(if matches!(reply, Value::Error(_)) { exit::FAILED } else { 0 })
            }
        }
    }

    /// Every line of standard input, to the end. An error reply does not stop it, but shows in the exit code.
    fn run_lines(&mut self) -> ExitCode {
        let mut code = ExitCode::SUCCESS;
        for line in std::io::stdin().lock().split(b'\n') {
            let words = match line.map_err(|error| error.to_string()).and_then(|line| words_of(&line)) {
                Ok(words) if words.is_empty() => continue,
                Ok(words) => words,
                Err(problem) => return exit::with(exit::FAILED, &problem),
            };
            match self.call(&words) {
                Err(problem) if is_what_was_asked_for(&words, &problem) => return code,
                Err(problem) => return exit::with(exit::FAILED, &problem),
                Ok(reply) => {
                    if matches!(reply, Value::Error(_)) {
                        code = ExitCode::from(exit::FAILED);
                    }
                    self.show(&words, &reply);
                }
            }
        }
        code
    }

    fn run_prompt(&mut self) -> ExitCode {
        // Connected before the first command, so that a wrong port shows at once.
        if let Err(problem) = self.connected().map(drop) {
            return exit::with(exit::FAILED, &problem);
        }
        let mut input = std::io::stdin().lock();
        loop {
            let mut output = std::io::stdout().lock();
            write!(output, "{}> ", self.target).and_then(|()| output.flush()).ok();
            drop(output);
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => {
                    say::line("");
                    return ExitCode::SUCCESS;
                }
                Ok(_) => {}
            }
            let words = match words_of(&line) {
                Ok(words) => words,
                Err(problem) => {
                    say::line(&problem);
                    continue;
                }
            };
            let first = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
            match (first.as_slice(), words.get(1)) {
                (b"", _) => {}
                (b"exit" | b"quit", _) => return ExitCode::SUCCESS,
                (b"help" | b"?", about) => explain(about.map(Vec::as_slice)),
                _ => match self.call(&words) {
                    Ok(reply) => self.show(&words, &reply),
                    Err(problem) => say::line(&format!("{problem}; the next command connects again")),
                },
            }
        }
    }

    fn connected(&mut self) -> Result<&mut Connection, String> {
        if self.connection.is_none() {
            self.connection = Some(Connection::open(&self.target)?);
        }
        Ok(self.connection.as_mut().expect("it was just made"))
    }

    /// Sends a command and waits for its reply, following redirects when asked to.
    fn call(&mut self, words: &[Vec<u8>]) -> Result<Value, String> {
        for followed in 0..=REDIRECTS_MAX {
            let reply = self.connected()?.call(words);
            if reply.is_err() {
                self.connection = None;
            }
            let reply = reply?;
            let redirect = moved(&reply, &self.target.host).filter(|_| self.follows);
            let Some(redirect) = redirect else { return Ok(reply) };
            if followed == REDIRECTS_MAX {
                break;
            }
            if followed > 0 {
                std::thread::sleep(REDIRECT_PAUSE * 2u32.pow(followed - 1));
            }
            self.follow(redirect)?;
        }
        Err(format!("redirected {REDIRECTS_MAX} times; the nodes disagree about who owns the key"))
    }

    fn follow(&mut self, redirect: Redirect) -> Result<(), String> {
        let Redirect { slot, place, .. } = redirect;
        self.members.check(&place, &self.named)?;
        self.target.socket = None;
        (self.target.host, self.target.port) = (place.host, place.port);
        self.connection = None;
        if self.style == Style::Pretty {
            say::line(&format!("-> Redirected to slot [{}] located at {}", slot.number(), self.target));
        }
        Ok(())
    }

    fn show(&self, words: &[Vec<u8>], reply: &Value) {
        let mut text = Vec::new();
        match self.style {
            Style::Pretty if !print::is_text_for_people(words) => print::pretty(reply, &mut text),
            Style::Pretty | Style::Raw => print::raw(reply, &mut text),
            Style::Json => json::write(reply, &mut text),
        }
        if text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
        let mut output = std::io::stdout().lock();
        output.write_all(&text).and_then(|()| output.flush()).ok();
    }
}

/// The words of a line, quotes as in redis-cli.
fn words_of(line: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    match wire::request::unquote_inline(line, &mut bytes, &mut spans) {
        Err(wire::request::ProtocolError::UnbalancedQuotes) => {
            Err("the quotes of this line are not balanced".to_owned())
        }
        // What a browser would send is harmless when a person types it: the server refuses it.
        Ok(()) | Err(_) => Ok(spans.iter().map(|span| span.of(&bytes).to_vec()).collect()),
    }
}

/// `help` and `help COMMAND`.
fn explain(name: Option<&[u8]>) {
    let Some(name) = name else {
        return say::line("help COMMAND explains a command; exit leaves. Quotes: \"a b\\n\" or 'a b'.");
    };
    match wire::registry::lookup(name) {
        None => say::line("there is no such command"),
        Some(spec) => {
            say::line(&format!("  {} {}", spec.full_name.to_uppercase(), spec.syntax));
            say::line(&format!("  {}", spec.summary));
            say::line(&format!("  group {}, since {}, {}", spec.group.name(), spec.since, spec.complexity));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_become_words() {
        let words = words_of(b"set k \"a \\\"b\\x00\" 'c d'\r\n").unwrap();
        assert_eq!(words, [&b"set"[..], b"k", b"a \"b\0", b"c d"]);
        assert!(words_of(b"get \"k").unwrap_err().contains("balanced"));
        assert_eq!(words_of(b"  \n").unwrap(), Vec::<Vec<u8>>::new());
    }
}
