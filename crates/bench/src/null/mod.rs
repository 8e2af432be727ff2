//! A server that does nothing: it counts the bytes of fixed-length requests and answers each with the same bytes,
//! without looking at either. What it costs is what the kernel costs, so no store on the same backend can be cheaper,
//! and a store's own cost is its distance from here.

mod account;
mod epoll;
mod fan_out;
mod log;
mod long;
mod owed;
mod uring;

use std::convert::Infallible;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Instant;

pub use fan_out::{FanOutPlan, fan_out};
pub use log::LogPlan;
use log::NullLog;
pub use long::LongPlan;
use long::Pace;

/// How the server waits for and moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// One read and one write per connection with bytes.
    Epoll,
    /// Multishot receive into a ring of provided buffers; sends queued, and submitted once per turn.
    Uring,
}

/// What every request is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedReply {
    /// A bulk string of 132 bytes.
    Get,
    /// So many of them: what an `MGET` is answered with.
    GetMany(usize),
    /// `+OK`.
    Set,
}

impl FixedReply {
    /// The bytes of one reply.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            FixedReply::Get => [b"$132\r\n".as_slice(), &[b'x'; 132], b"\r\n"].concat(),
            FixedReply::GetMany(keys) => {
                [format!("*{keys}\r\n").into_bytes(), FixedReply::Get.bytes().repeat(keys)].concat()
            }
            FixedReply::Set => b"+OK\r\n".to_vec(),
        }
    }

    /// Length of the request of the load generator's default key (15 bytes) and value (132 bytes).
    pub fn default_request_bytes(self) -> usize {
        match self {
            FixedReply::Get => "*2\r\n$3\r\nGET\r\n$15\r\n\r\n".len() + 15,
            FixedReply::GetMany(keys) => {
                format!("*{}\r\n$4\r\nMGET\r\n", keys + 1).len() + keys * ("$15\r\n\r\n".len() + 15)
            }
            FixedReply::Set => "*3\r\n$3\r\nSET\r\n$15\r\n\r\n$132\r\n\r\n".len() + 15 + 132,
        }
    }
}

/// A null server before it starts.
#[derive(Clone, Debug)]
pub struct NullPlan {
    /// Backend.
    pub backend: Backend,
    /// Port on the loopback address; 0 lets the kernel choose.
    pub port: u16,
    /// Length of every request, bytes.
    pub request_bytes: usize,
    /// The reply.
    pub reply: FixedReply,
    /// What is written to the disk, if anything is.
    pub log: Option<LogPlan>,
    /// Who sets and gets long values beside, if anybody does.
    pub long: Option<LongPlan>,
}

/// Serves until the process ends. `on_ready` hears the port once connections are accepted.
pub fn run(plan: &NullPlan, on_ready: impl FnOnce(u16)) -> Result<Infallible, String> {
    if plan.request_bytes == 0 {
        return Err("a request has at least one byte".into());
    }
    let listen = |port| {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| format!("cannot listen on port {port}: {error}"))
    };
    let listeners = Listeners { short: listen(plan.port)?, long: plan.long.map(|long| listen(long.port)).transpose()? };
    let port = listeners.short.local_addr().map_err(|error| error.to_string())?.port();
    let log = plan.log.as_ref().map(NullLog::start).transpose().map_err(|error| format!("no log: {error}"))?;
    let begun = Instant::now();
    let pace = plan.long.map(|long| Pace::new(&long, begun.elapsed()));
    let request_bytes = plan.request_bytes as u64;
    let mut turns = Turns { log, pace, begun, request_bytes, received: 0, received_long: 0 };
    let Err(error) = match plan.backend {
        Backend::Epoll => epoll::serve(&listeners, plan, &mut turns, || on_ready(port)),
        Backend::Uring => uring::serve(&listeners, plan, &mut turns, || on_ready(port)),
    };
    // A thread of the log that ended knows why; the turn behind it only that it did.
    let error = turns.log.and_then(|log| log.finish().err()).unwrap_or(error);
    Err(format!("the null server stopped: {error}"))
}

/// Where callers come.
struct Listeners {
    short: TcpListener,
    long: Option<TcpListener>,
}

/// What came in a turn, for the log.
struct Turns {
    log: Option<NullLog>,
    pace: Option<Pace>,
    begun: Instant,
    request_bytes: u64,
    received: u64,
    received_long: u64,
}

impl Turns {
    /// All that came in a turn is known.
    fn end(&mut self) -> std::io::Result<()> {
        if let Some(pace) = &mut self.pace {
            pace.took(self.received_long, self.begun.elapsed());
        }
        let Some(log) = &mut self.log else { return Ok(()) };
        log.append(self.received / self.request_bytes)?;
        self.received %= self.request_bytes;
        log.append_bytes(std::mem::take(&mut self.received_long))
    }

    /// Whether nothing more of long values is taken for now.
    fn holds_long(&self) -> bool {
        self.log.as_ref().is_some_and(NullLog::is_behind) || self.pace.as_ref().is_some_and(Pace::is_used_up)
    }
}
