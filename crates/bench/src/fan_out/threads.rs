//! A thread for each client, which writes to all instances that it needs and then reads from one after the other. Connections to the store
//! are its own; whoever leaves leaves them to the next.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::gather::{answer, keys_of, value_bytes};
use super::route::{Route, append_get};
use super::strange;

/// Generous: a default stack of megabytes would cost it more.
const STACK_BYTES: usize = 256 << 10;
const READ_BYTES: usize = 64 << 10;

/// Connections to all instances, opened on first use.
type Instances = Vec<Option<TcpStream>>;

/// Serves until the process ends.
pub fn serve(listener: &TcpListener, route: Route) -> io::Result<Infallible> {
    let left: Arc<Mutex<Vec<Instances>>> = Arc::default();
    loop {
        let (client, _) = listener.accept()?;
        client.set_nodelay(true)?;
        let left = Arc::clone(&left);
        let work = move || {
            let lock = || left.lock().expect("no thread panics while it holds the lock");
            let free = lock().pop();
            let instances = free.unwrap_or_else(|| (0..route.instances).map(|_| None).collect());
            let mut worker = Worker { route, instances, buffer: vec![0; READ_BYTES] };
            match worker.work(client) {
                Ok(()) => lock().push(worker.instances),
                Err(error) => eprintln!("gateway: {error}"),
            }
        };
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?;
    }
}

struct Worker {
    route: Route,
    instances: Instances,
    buffer: Vec<u8>,
}

impl Worker {
    /// One request after the other, until the client leaves.
    fn work(&mut self, mut client: TcpStream) -> io::Result<()> {
        let mut input = Vec::new();
        loop {
            let bytes = match client.read(&mut self.buffer) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(bytes) => bytes,
            };
            input.extend_from_slice(&self.buffer[..bytes]);
            let Some((bytes, keys)) = keys_of(&input).map_err(|_| strange("a client asks for something else"))? else {
                continue;
            };
            let keys: Vec<&[u8]> = keys.iter().map(|(begin, end)| &input[*begin..*end]).collect();
            let replies = self.fetch(&keys)?;
            if client.write_all(&answer(&replies)).is_err() {
                return Ok(());
            }
            input.drain(..bytes);
        }
    }

    /// The values of all keys.
    fn fetch(&mut self, keys: &[&[u8]]) -> io::Result<Vec<Vec<u8>>> {
        let mut places = vec![Vec::new(); self.route.instances];
        for (place, key) in keys.iter().enumerate() {
            places[self.route.of(key)].push(place);
        }
        let needed = || places.iter().enumerate().filter(|(_, places)| !places.is_empty());
        for (instance, places) in needed() {
            let mut requests = Vec::new();
            places.iter().for_each(|place| append_get(keys[*place], &mut requests));
            if self.instances[instance].is_none() {
                self.instances[instance] = Some(self.route.connect(instance)?);
            }
            self.instances[instance].as_mut().expect("just connected").write_all(&requests)?;
        }
        let mut replies = vec![Vec::new(); keys.len()];
        for (instance, places) in needed() {
            let socket = self.instances[instance].as_mut().expect("it was written to");
            read_values(socket, &mut self.buffer, places, |place, value| replies[place].extend_from_slice(value))?;
        }
        Ok(replies)
    }
}

/// Waits for a value for each of `places`.
pub fn read_values(
    socket: &mut TcpStream,
    buffer: &mut [u8],
    places: &[usize],
    mut each: impl FnMut(usize, &[u8]),
) -> io::Result<()> {
    let (mut input, mut at) = (Vec::new(), 0);
    for &place in places {
        let bytes = loop {
            let whole = value_bytes(&input[at..]).map_err(|_| strange("an instance answers with no value"))?;
            if let Some(bytes) = whole {
                break bytes;
            }
            match socket.read(buffer)? {
                0 => return Err(strange("an instance is gone")),
                bytes => input.extend_from_slice(&buffer[..bytes]),
            }
        };
        each(place, &input[at..at + bytes]);
        at += bytes;
    }
    Ok(())
}
