//! A server that does nothing: it counts the bytes of fixed-length requests and answers each with the same bytes,
//! without looking at either. What it costs is what the kernel costs, so no store on the same backend can be cheaper,
//! and a store's own cost is its distance from here.

mod epoll;
mod fan_out;
mod log;
mod owed;
mod uring;

use std::convert::Infallible;
use std::net::{Ipv4Addr, TcpListener};

pub use fan_out::{FanOutPlan, fan_out};
pub use log::LogPlan;
use log::NullLog;

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
}

/// Serves until the process ends. `on_ready` hears the port once connections are accepted.
pub fn run(plan: &NullPlan, on_ready: impl FnOnce(u16)) -> Result<Infallible, String> {
    if plan.request_bytes == 0 {
        return Err("a request has at least one byte".into());
    }
    let failed = |error: std::io::Error| format!("cannot listen on port {}: {error}", plan.port);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, plan.port)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let log = plan.log.as_ref().map(NullLog::start).transpose().map_err(|error| format!("no log: {error}"))?;
    let mut turns = Turns { log, request_bytes: plan.request_bytes as u64, received: 0 };
    let Err(error) = match plan.backend {
        Backend::Epoll => epoll::serve(&listener, plan, &mut turns, || on_ready(port)),
        Backend::Uring => uring::serve(&listener, plan, &mut turns, || on_ready(port)),
    };
    // A thread of the log that ended knows why; the turn behind it only that it did.
    let error = turns.log.and_then(|log| log.finish().err()).unwrap_or(error);
    Err(format!("the null server stopped: {error}"))
}

/// What came in a turn, for the log.
struct Turns {
    log: Option<NullLog>,
    request_bytes: u64,
    received: u64,
}

impl Turns {
    /// All that came in a turn is known.
    fn end(&mut self) -> std::io::Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        log.append(self.received / self.request_bytes)?;
        self.received %= self.request_bytes;
        Ok(())
    }
}
