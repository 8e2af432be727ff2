//! A client of the protocol, byte by byte.

#![allow(clippy::unwrap_used)]
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread;

use super::super::disk::{BLOCK_BYTES, Disk};
use super::{EINVAL, FLUSH, OPTION_EXPORT_NAME, OPTION_MAGIC, READ, REPLY_MAGIC, REQUEST_MAGIC, WRITE, serve};
use crate::process::new_directory;

fn disk() -> Mutex<Disk> {
    let path = new_directory().unwrap().join("disk");
    std::fs::write(&path, vec![0; 4 * BLOCK_BYTES]).unwrap();
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    Mutex::new(Disk::new(file, 1).unwrap())
}

fn read(stream: &mut UnixStream, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    stream.read_exact(&mut data).unwrap();
    data
}

fn send(stream: &mut UnixStream, kind: u16, offset: u64, bytes: usize, data: &[u8]) {
    let head = [&REQUEST_MAGIC.to_be_bytes()[..], &[0, 0], &kind.to_be_bytes(), &7u64.to_be_bytes()].concat();
    let place = [&offset.to_be_bytes()[..], &(bytes as u32).to_be_bytes()].concat();
    stream.write_all(&[&head[..], &place, data].concat()).unwrap();
}

fn reply(stream: &mut UnixStream) -> u32 {
    let head = read(stream, 16);
    assert_eq!((&head[..4], &head[8..]), (&REPLY_MAGIC.to_be_bytes()[..], &7u64.to_be_bytes()[..]));
    u32::from_be_bytes(head[4..8].try_into().unwrap())
}

fn export(stream: &mut UnixStream) {
    read(stream, 18);
    let option = |number: u32| [&OPTION_MAGIC.to_be_bytes()[..], &number.to_be_bytes(), &[0; 4]].concat();
    stream.write_all(&[&3u32.to_be_bytes()[..], &option(8), &option(OPTION_EXPORT_NAME)].concat()).unwrap();
    assert_eq!(read(stream, 20)[12..16], 0x8000_0001u32.to_be_bytes(), "structured replies are not known");
    assert_eq!(read(stream, 10)[..8], (4 * BLOCK_BYTES as u64).to_be_bytes());
}

#[test]
fn blocks_are_written_flushed_and_read_until_the_power_fails() {
    let (disk, (ours, mut stream)) = (disk(), UnixStream::pair().unwrap());
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(ours, &disk, 0));
        export(&mut stream);
        send(&mut stream, WRITE, BLOCK_BYTES as u64, BLOCK_BYTES, &[5; BLOCK_BYTES]);
        send(&mut stream, FLUSH, 0, 0, &[]);
        assert_eq!((reply(&mut stream), reply(&mut stream)), (0, 0));
        send(&mut stream, READ, 0, 2 * BLOCK_BYTES, &[]);
        assert_eq!(reply(&mut stream), 0);
        assert_eq!(read(&mut stream, 2 * BLOCK_BYTES), [[0; BLOCK_BYTES], [5; BLOCK_BYTES]].concat());
        for (kind, offset, bytes) in [(READ, 1, BLOCK_BYTES), (READ, 4 * BLOCK_BYTES as u64, BLOCK_BYTES), (9, 0, 0)] {
            send(&mut stream, kind, offset, bytes, &[]);
            assert_eq!(reply(&mut stream), EINVAL, "{kind} {offset} {bytes}");
        }
        disk.lock().unwrap().cut_now();
        send(&mut stream, WRITE, 0, BLOCK_BYTES, &[6; BLOCK_BYTES]);
        send(&mut stream, READ, 0, BLOCK_BYTES, &[]);
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(server.join().unwrap().is_err(), "the machine is gone");
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "nothing was answered");
    });
    assert_eq!(disk.lock().unwrap().read(0, 1).unwrap(), [0], "nor done");
}
