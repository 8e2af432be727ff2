//! One look at an admin port: its metrics, and whether it calls itself healthy.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::reading::Reading;

/// So long it may take to connect, and each read.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest answer that is read, bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// What was seen.
pub struct Scrape {
    /// Its numbers.
    pub reading: Reading,
    /// Why it is not healthy, a line each; empty: it is.
    pub health: Vec<String>,
}

/// Asks for both pages.
///
/// # Errors
/// For the person at the terminal: what is wrong, and what may help.
pub fn scrape(address: &str) -> Result<Scrape, String> {
    let (_, text) = get(address, "/metrics")?;
    let reading =
        Reading::of(&text).filter(|reading| reading.has("zerohop_proxy_core_up") || reading.has("zerohop_core_up"));
    let reading = reading.ok_or_else(|| {
        format!(
            "what answers at {address} is no admin port of Zerohop: name the port of --admin-port, which `zerohop proxy` and \
             `zerohop serve` say in the line that begins with `admin:`"
        )
    })?;
    let (is_healthy, text) = get(address, "/healthz")?;
    let health = if is_healthy { Vec::new() } else { text.lines().map(str::to_owned).collect() };
    Ok(Scrape { reading, health })
}

/// Whether the answer is 200, and its body.
fn get(address: &str, path: &str) -> Result<(bool, String), String> {
    let refused = |why: &dyn std::fmt::Display| {
        format!(
            "cannot read http://{address}{path}: {why}; is it HOST:PORT of an admin port? `zerohop proxy`, `serve` and `up` open one \
             with --admin-port"
        )
    };
    let mut places = address.to_socket_addrs().map_err(|error| refused(&error))?;
    let place = places.next().ok_or_else(|| refused(&"no address has that name"))?;
    let mut stream = TcpStream::connect_timeout(&place, PATIENCE).map_err(|error| refused(&error))?;
    let ask = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = ask(&mut stream).map_err(|error| refused(&error))?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok((head.starts_with("HTTP/1.1 200 "), body.to_owned()))
}
