//! Keys and instances: each of the instances has as many slots as every other, and they listen on consecutive ports.

use std::io;
use std::net::{Ipv4Addr, TcpStream};

use base::SLOT_COUNT;
use placement::slot_of;

const SLOTS: usize = SLOT_COUNT as usize;

/// Where the instances are.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Port of the first.
    pub first_port: u16,
    /// How many there are.
    pub instances: usize,
}

impl Route {
    /// Who has a key.
    pub fn of(&self, key: &[u8]) -> usize {
        usize::from(slot_of(key).number()) * self.instances / SLOTS
    }

    /// The slots of an instance: the first, and the one behind the last.
    pub fn slots(&self, instance: usize) -> (usize, usize) {
        let first = |instance: usize| (instance * SLOTS).div_ceil(self.instances);
        (first(instance), first(instance + 1))
    }

    /// The port of an instance.
    pub fn port(&self, instance: usize) -> u16 {
        self.first_port + instance as u16
    }

    /// A connection to an instance.
    pub fn connect(&self, instance: usize) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port(instance)))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// The request for one key.
pub fn append_get(key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n$");
    out.extend_from_slice(key.len().to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_where_its_slot_is() {
        let route = Route { first_port: 1, instances: 20 };
        for number in 0..1000 {
            let key = format!("key:{number}");
            let (first, end) = route.slots(route.of(key.as_bytes()));
            assert!((first..end).contains(&usize::from(slot_of(key.as_bytes()).number())), "{key}");
        }
        assert_eq!((route.slots(0).0, route.slots(19).1), (0, SLOTS));
    }
}
