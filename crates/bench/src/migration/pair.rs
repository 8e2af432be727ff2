//! A client of two ends: knows from every answer how far the migration has come, and asks where that says.

use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

use super::end::Order;
use super::way::{Place, Way};
use super::wire::{self, Head, VALUE_BYTES, Value, number, value};
use super::workers::Access;
use crate::cluster::client::connect;

/// Corrections of one request, after which it counts as failed.
const HOPS_MAX: u32 = 5;
/// Before a pair that was not there is asked for again.
const PAUSE: Duration = Duration::from_micros(200);
/// How often.
const PAUSES_MAX: u32 = 10_000;

/// See the module.
pub struct Client {
    source: TcpStream,
    destination: TcpStream,
    way: Way,
    cursor: u32,
    corrections: u64,
}

impl Client {
    /// Of the ends on these ports.
    ///
    /// # Errors
    /// When one does not listen.
    pub fn new(source: u16, destination: u16) -> Result<Client, String> {
        let open = |port| connect(port).map_err(|error| format!("no connection to the end on port {port}: {error}"));
        let (source, destination) = (open(source)?, open(destination)?);
        Ok(Client { source, destination, way: Way::Still, cursor: 0, corrections: 0 })
    }

    fn request(&mut self, key: u32, set: Option<&Value>) -> Result<Option<Value>, String> {
        let (mut hops, mut pauses) = (0, 0);
        while hops <= HOPS_MAX && pauses <= PAUSES_MAX {
            match self.ask(key, set).map_err(|error| error.to_string())? {
                (wire::DONE | wire::ABSENT, _) => return Ok(None),
                (wire::FOUND, value) => return Ok(value),
                (wire::MOVED, _) => hops += 1,
                (wire::LATER, _) => {
                    pauses += 1;
                    std::thread::sleep(PAUSE);
                }
                (kind, _) => return Err(format!("an answer of kind {kind}")),
            }
            self.corrections += 1;
        }
        Err(format!("corrected {hops} times, put off {pauses} times"))
    }

    /// Once, where it believes that the key is.
    fn ask(&mut self, key: u32, set: Option<&Value>) -> std::io::Result<(u8, Option<Value>)> {
        let kind = if set.is_some() { wire::SET } else { wire::GET };
        let place = self.way.place(set.is_some(), key < self.cursor);
        let head = Head { kind, way: self.way.byte(), number: key };
        let rest = set.map_or(&[][..], |value| &value[..]);
        if place != Place::Destination {
            wire::write(&mut self.source, head, rest)?;
        }
        if place != Place::Source {
            wire::write(&mut self.destination, head, rest)?;
        }
        let mut answer = (wire::ABSENT, None);
        if place != Place::Destination {
            answer = read(&mut self.source, (&mut self.way, &mut self.cursor))?;
        }
        if place != Place::Source {
            let newer = read(&mut self.destination, (&mut self.way, &mut self.cursor))?;
            // What the destination has is the newest.
            if newer.0 != wire::ABSENT || place == Place::Destination {
                answer = newer;
            }
        }
        Ok(answer)
    }
}

/// An answer; how far the migration has come stands on each.
fn read(from: &mut TcpStream, (way, cursor): (&mut Way, &mut u32)) -> std::io::Result<(u8, Option<Value>)> {
    let head = Head::read(from)?;
    let mut value = [0; VALUE_BYTES];
    if head.kind == wire::FOUND {
        from.read_exact(&mut value)?;
    }
    if let Some(known) = Way::of(head.way).filter(|known| *known != Way::Still) {
        (*way, *cursor) = (known, head.number.max(*cursor));
    }
    Ok((head.kind, (head.kind == wire::FOUND).then_some(value)))
}

impl Access for Client {
    fn get(&mut self, key: u32) -> Result<u64, String> {
        Ok(self.request(key, None)?.map_or(0, |value| number(&value)))
    }

    fn set(&mut self, key: u32, number: u64) -> Result<(), String> {
        self.request(key, Some(&value(number))).map(drop)
    }

    fn corrections(&self) -> u64 {
        self.corrections
    }
}

/// Tells the end on `port` what to do, and waits until it is done.
///
/// # Errors
/// Why it is not.
pub fn order(port: u16, order: &Order) -> Result<(), String> {
    let broken = |error: std::io::Error| format!("the end on port {port}: {error}");
    let mut stream = connect(port).map_err(broken)?;
    stream.set_read_timeout(None).map_err(broken)?;
    let bytes = serde_json::to_vec(order).map_err(|error| error.to_string())?;
    wire::write(&mut stream, Head { kind: wire::ORDER, way: 0, number: bytes.len() as u32 }, &bytes).map_err(broken)?;
    let head = Head::read(&mut stream).map_err(broken)?;
    let mut text = vec![0; head.number as usize];
    stream.read_exact(&mut text).map_err(broken)?;
    match text.is_empty() {
        true => Ok(()),
        false => Err(format!("the end on port {port}: {}", String::from_utf8_lossy(&text))),
    }
}
