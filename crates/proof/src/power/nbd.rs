//! How the machine reaches its disk: the server of the Network Block Device protocol, as much of it as QEMU asks for.
//!
//! ```text
//!   greeting   NBDMAGIC IHAVEOPT flags        options, each with its answer, until GO or EXPORT_NAME
//!   request    magic u32 · flags u16 · type u16 · cookie u64 · offset u64 · bytes u32 [· data]       all big-endian
//!   reply      magic u32 · error u32 · cookie u64 [· data]
//! ```
//!
//! When the power has failed nothing is answered any more: an error would be something that the machine could act upon.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::disk::{BLOCK_BYTES, Disk, Part};

const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const OPTION_REPLY_MAGIC: u64 = 0x3_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;

/// Fixed newstyle, no zeroes behind an export.
const GREETING_FLAGS: u16 = 1 | 2;
/// It has flags, and it knows flush. Not FUA: a machine flushes instead.
const EXPORT_FLAGS: u16 = 1 | 4;
const OPTION_EXPORT_NAME: u32 = 1;
const OPTION_ABORT: u32 = 2;
const OPTION_GO: u32 = 7;
const ANSWER_DONE: u32 = 1;
const ANSWER_INFO: u32 = 3;
const ANSWER_UNSUPPORTED: u32 = (1 << 31) | 1;
const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
/// Invalid argument.
const EINVAL: u32 = 22;
/// Largest request.
const REQUEST_BYTES_MAX: u32 = 32 << 20;
/// No option of a client is longer.
const OPTION_BYTES_MAX: u32 = 4 << 10;

/// Serves a part to one machine until it goes, or asks what it must not.
///
/// # Errors
/// Those of the socket, also when the machine dies.
pub fn serve(mut stream: UnixStream, disk: &Mutex<Disk>, part: u64) -> io::Result<()> {
    let part = lock(disk).part(part);
    if !greet(&mut stream, part.bytes)? {
        return Ok(());
    }
    loop {
        let request = Request::read(&mut stream)?;
        if request.kind == DISCONNECT {
            return Ok(());
        }
        let data = if request.kind == WRITE { read_bytes(&mut stream, request.bytes)? } else { Vec::new() };
        if let Some(reply) = answer(&request, &data, part, disk)? {
            stream.write_all(&reply)?;
        }
    }
}

fn lock(disk: &Mutex<Disk>) -> MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Request {
    kind: u16,
    cookie: u64,
    offset: u64,
    bytes: u32,
}

impl Request {
    fn read(stream: &mut UnixStream) -> io::Result<Request> {
        let (magic, _flags, kind) = (read_u32(stream)?, read_u16(stream)?, read_u16(stream)?);
        let request = Request { kind, cookie: read_u64(stream)?, offset: read_u64(stream)?, bytes: read_u32(stream)? };
        let is_good = magic == REQUEST_MAGIC && request.bytes <= REQUEST_BYTES_MAX;
        if is_good { Ok(request) } else { Err(io::Error::new(io::ErrorKind::InvalidData, "no request of NBD")) }
    }

    fn is_possible(&self, disk_bytes: u64) -> bool {
        let is_whole = |number: u64| number.is_multiple_of(BLOCK_BYTES as u64);
        let end = self.offset.checked_add(u64::from(self.bytes));
        let is_inside = end.is_some_and(|end| end <= disk_bytes);
        match self.kind {
            READ | WRITE => is_whole(self.offset) && is_whole(u64::from(self.bytes)) && is_inside,
            kind => kind == FLUSH,
        }
    }
}

/// The reply; `None` if the power has failed.
fn answer(request: &Request, data: &[u8], part: Part, disk: &Mutex<Disk>) -> io::Result<Option<Vec<u8>>> {
    let mut disk = lock(disk);
    let is_possible = request.is_possible(part.bytes);
    let mut read = Vec::new();
    let is_answered = match request.kind {
        READ if is_possible => {
            read = disk.read(part.first_byte + request.offset, request.bytes as usize)?;
            !disk.is_cut()
        }
        WRITE if is_possible && !disk.is_cut() => disk.write(part.first_byte + request.offset, data),
        FLUSH if !disk.is_cut() => disk.flush(part),
        _ => !disk.is_cut(),
    };
    let error = if is_possible { 0 } else { EINVAL };
    let head = [&REPLY_MAGIC.to_be_bytes()[..], &error.to_be_bytes(), &request.cookie.to_be_bytes()].concat();
    Ok(is_answered.then(|| [head, read].concat()))
}

/// Returns whether requests follow.
fn greet(stream: &mut UnixStream, disk_bytes: u64) -> io::Result<bool> {
    let greeting = [&MAGIC.to_be_bytes()[..], &OPTION_MAGIC.to_be_bytes(), &GREETING_FLAGS.to_be_bytes()].concat();
    stream.write_all(&greeting)?;
    let _client_flags = read_u32(stream)?;
    let export = [&disk_bytes.to_be_bytes()[..], &EXPORT_FLAGS.to_be_bytes()].concat();
    loop {
        let (magic, option, bytes) = (read_u64(stream)?, read_u32(stream)?, read_u32(stream)?);
        if magic != OPTION_MAGIC || bytes > OPTION_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no option of NBD"));
        }
        let _data = read_bytes(stream, bytes)?;
        match option {
            OPTION_EXPORT_NAME => {
                stream.write_all(&export)?;
                return Ok(true);
            }
            OPTION_GO => {
                tell(stream, option, ANSWER_INFO, &[&INFO_EXPORT.to_be_bytes()[..], &export].concat())?;
                tell(stream, option, ANSWER_INFO, &block_sizes())?;
                tell(stream, option, ANSWER_DONE, &[])?;
                return Ok(true);
            }
            OPTION_ABORT => {
                tell(stream, option, ANSWER_DONE, &[])?;
                return Ok(false);
            }
            _ => tell(stream, option, ANSWER_UNSUPPORTED, &[])?,
        }
    }
}

fn block_sizes() -> Vec<u8> {
    let block = (BLOCK_BYTES as u32).to_be_bytes();
    [&INFO_BLOCK_SIZE.to_be_bytes()[..], &block, &block, &REQUEST_BYTES_MAX.to_be_bytes()].concat()
}

fn tell(stream: &mut UnixStream, option: u32, answer: u32, data: &[u8]) -> io::Result<()> {
    let bytes = data.len() as u32;
    let head = [&OPTION_REPLY_MAGIC.to_be_bytes()[..], &option.to_be_bytes(), &answer.to_be_bytes()].concat();
    stream.write_all(&[&head[..], &bytes.to_be_bytes(), data].concat())
}

fn read_bytes(stream: &mut UnixStream, bytes: u32) -> io::Result<Vec<u8>> {
    let mut data = vec![0; bytes as usize];
    stream.read_exact(&mut data)?;
    Ok(data)
}

fn read_array<const BYTES: usize>(stream: &mut UnixStream) -> io::Result<[u8; BYTES]> {
    let mut data = [0; BYTES];
    stream.read_exact(&mut data)?;
    Ok(data)
}

fn read_u16(stream: &mut UnixStream) -> io::Result<u16> {
    read_array(stream).map(u16::from_be_bytes)
}

fn read_u32(stream: &mut UnixStream) -> io::Result<u32> {
    read_array(stream).map(u32::from_be_bytes)
}

fn read_u64(stream: &mut UnixStream) -> io::Result<u64> {
    read_array(stream).map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests;
