//! Users and what they may do: conversations of several connections that have to be answered as Valkey answers them, and
//! the file that users are kept in.
//!
//! Connections of one conversation are on whatever core takes them: what one of them changes, all have to know when it is
//! answered.

mod file;
mod maker;

use std::collections::BTreeMap;
use std::io;

use base::rng::Rng;
use clap::Args;

use crate::commands::Counts;
use crate::connection::Connection;
use crate::process::Server;
use crate::reply::{Reply, decode, show};

use maker::{CONNECTIONS, Step, conversation};

/// Differences printed in full.
const PRINTED_MAX: u64 = 5;
/// Stands for the reply of a connection that was closed instead.
const CLOSED: &[u8] = b"(closed)";

/// Arguments of `acl`.
#[derive(Args)]
pub struct AclArguments {
    /// The binary zerohop.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: String,
    /// What moves its bytes.
    #[arg(long, default_value = "auto")]
    io: String,
    /// The binary valkey-server.
    #[arg(long, default_value = "valkey-server")]
    valkey_server: String,
    /// Draws the conversations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many.
    #[arg(long, default_value_t = 300)]
    conversations: u64,
    /// Only the conversation with this number, shown.
    #[arg(long)]
    only: Option<u64>,
}

/// Each conversation is a test, and each case about the file.
///
/// # Errors
/// When a server cannot be started or does not answer.
pub fn acl(arguments: &AclArguments) -> io::Result<Counts> {
    let mut counts = Counts { passed: 0, failed: 0 };
    let valkey = Server::start_redis(&arguments.valkey_server, false)?;
    let zerohop = Server::start_zerohop(&arguments.zerohop, &["--cores", "2", "--io", &arguments.io], None)?;
    let mut sides = [Side::new(&valkey), Side::new(&zerohop)];
    let numbers = arguments.only.map_or(0..arguments.conversations, |number| number..number + 1);
    for number in numbers {
        let steps = conversation(&mut Rng::new(arguments.seed << 32 | number));
        let difference = compare(&mut sides, &steps, arguments.only.is_some())?;
        counts.passed += u64::from(difference.is_none());
        counts.failed += u64::from(difference.is_some());
        if let Some(text) = difference.filter(|_| counts.failed <= PRINTED_MAX) {
            println!("conversation {number} of seed {}:\n{text}", arguments.seed);
        }
    }
    for (name, passed) in file::cases(&arguments.zerohop, &arguments.io)? {
        if !passed {
            println!("the file of users: {name}");
        }
        counts.passed += u64::from(passed);
        counts.failed += u64::from(!passed);
    }
    Ok(counts)
}

/// One server with the connections of a conversation.
struct Side<'a> {
    server: &'a Server,
    connections: Vec<Connection>,
}

impl<'a> Side<'a> {
    fn new(server: &'a Server) -> Side<'a> {
        Side { server, connections: Vec::new() }
    }

    /// No user but the default one, no keys, no refusals, new connections.
    fn begin(&mut self) -> io::Result<()> {
        let mut admin = self.server.connect()?;
        forget_users(&mut admin)?;
        admin.call_line("FLUSHALL")?;
        admin.call_line("ACL LOG RESET")?;
        self.connections = (0..CONNECTIONS).map(|_| self.server.connect()).collect::<io::Result<_>>()?;
        Ok(())
    }

    /// The reply; a connection that was closed is replaced.
    fn say(&mut self, step: &Step) -> io::Result<Vec<u8>> {
        let words: Vec<&[u8]> = step.words.iter().map(Vec::as_slice).collect();
        match self.connections[step.connection].call(&words) {
            Ok(reply) => Ok(reply),
            Err(error) if is_end(&error) => {
                self.connections[step.connection] = self.server.connect()?;
                Ok(CLOSED.to_vec())
            }
            Err(error) => Err(error),
        }
    }

    /// What was refused, how often. Cores count on their own, so equal ones are summed up.
    fn refusals(&mut self) -> io::Result<BTreeMap<Vec<String>, i64>> {
        let mut admin = self.server.connect()?;
        let reply = admin.call_line("ACL LOG 1000")?;
        let Ok(Some((Reply::Array(entries), _))) = decode(&reply) else { return Err(unexpected(&reply)) };
        let mut refusals = BTreeMap::new();
        for entry in entries {
            let Reply::Array(fields) = entry else { return Err(unexpected(&reply)) };
            let [_, Reply::Integer(count), rest @ ..] = fields.as_slice() else { return Err(unexpected(&reply)) };
            let text = |field: &Reply| if let Reply::Bulk(text) = field { show(text) } else { format!("{field:?}") };
            let named = rest.iter().take(8).map(text).collect();
            *refusals.entry(named).or_default() += count;
        }
        Ok(refusals)
    }
}

fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn unexpected(reply: &[u8]) -> io::Error {
    io::Error::other(format!("an unexpected reply: {}", show(reply)))
}

/// The lines of ACL LIST.
fn list(admin: &mut Connection) -> io::Result<Vec<Vec<u8>>> {
    let reply = admin.call_line("ACL LIST")?;
    let Ok(Some((Reply::Array(lines), _))) = decode(&reply) else { return Err(unexpected(&reply)) };
    let text = |line| if let Reply::Bulk(text) = line { Ok(text) } else { Err(unexpected(&reply)) };
    lines.into_iter().map(text).collect()
}

fn forget_users(admin: &mut Connection) -> io::Result<()> {
    admin.call_line("ACL SETUSER default reset on nopass allkeys allchannels +@all")?;
    for line in list(admin)? {
        let name = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        if name != b"default" {
            admin.call(&[b"ACL", b"DELUSER", name])?;
        }
    }
    Ok(())
}

/// Where the sides differ; the first is right.
fn compare(sides: &mut [Side<'_>; 2], steps: &[Step], is_shown: bool) -> io::Result<Option<String>> {
    sides.iter_mut().try_for_each(Side::begin)?;
    let mut said = String::new();
    for step in steps {
        let [expected, found] = [sides[0].say(step)?, sides[1].say(step)?];
        said.push_str(&format!("  {step}\n"));
        if is_shown {
            println!("{step}\n    {}", show(&found));
        }
        if expected != found && !step.is_private {
            return Ok(Some(format!("{said}    expected {}\n    found    {}", show(&expected), show(&found))));
        }
    }
    let [expected, found] = [sides[0].refusals()?, sides[1].refusals()?];
    if expected != found {
        return Ok(Some(format!("{said}    refusals expected {expected:?}\n    found    {found:?}")));
    }
    // Rules that were shown make the same users elsewhere.
    let (mut valkey, mut zerohop) = (sides[0].server.connect()?, sides[1].server.connect()?);
    let lines = list(&mut zerohop)?;
    forget_users(&mut valkey)?;
    for line in &lines {
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let request: Vec<&[u8]> =
            [&b"ACL"[..], b"SETUSER", words[1], b"reset"].into_iter().chain(words[2..].iter().copied()).collect();
        let reply = valkey.call(&request)?;
        if reply != b"+OK\r\n" {
            return Ok(Some(format!("{said}    {} is not understood: {}", show(line), show(&reply))));
        }
    }
    let again = list(&mut valkey)?;
    let text = |lines: &[Vec<u8>]| show(&lines.join(&b'\n'));
    Ok((again != lines)
        .then(|| format!("{said}    rules are not understood:\n{}\n    as\n{}", text(&lines), text(&again))))
}
