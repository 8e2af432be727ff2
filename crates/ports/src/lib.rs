//! Blocks of ports for the servers that tests and chores start, one holder each.
//!
//! A port that the kernel gave for port 0 and took back is of the range from which it serves every outgoing connection of the
//! machine: when a server comes for it, or comes back to it after a kill, somebody else may have it. So blocks lie outside
//! that range, and a block belongs to its holder alone until it is dropped, whether a server runs on it or not.

mod local_range;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicUsize, Ordering};

use local_range::LocalRange;

/// Ports of a block: the server's own, those of its cores, and some that nobody needs yet.
pub const BLOCK_PORTS: u16 = 32;

/// From a port to the one for other nodes, ours as Redis's: a block has both.
const NODES_PORT_OFFSET: u16 = 10_000;

/// The lowest port of the first block.
const PORT_MIN: u16 = 10_240;

/// As many as there is room for below the ports for nodes of the first block.
const BLOCKS: usize = (NODES_PORT_OFFSET / BLOCK_PORTS) as usize;

/// Consecutive numbers of processes look this many blocks apart; it has no divisor in common with [`BLOCKS`], so that all have
/// their turn.
const STRIDE: usize = 61;

/// [`BLOCK_PORTS`] consecutive ports, and as many 10,000 further up, that no other holder on this machine has.
#[derive(Debug)]
pub struct PortBlock {
    first: u16,
    /// A name that only one process can have: the kernel frees it when the process ends, however that is. It lives in the
    /// network's own namespace, as the ports do.
    _name: UnixListener,
}

impl PortBlock {
    /// Takes a block of which no port has a listener, outside the range of outgoing connections wherever there is room.
    ///
    /// # Errors
    /// When all blocks are taken.
    pub fn take() -> io::Result<PortBlock> {
        static TAKEN: AtomicUsize = AtomicUsize::new(0);
        let process_id = usize::try_from(std::process::id()).unwrap_or_default();
        let drawn = process_id.wrapping_mul(STRIDE).wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let all = first_ports(LocalRange::of_this_machine());
        take_from(&all, drawn % all.len())
    }

    /// The first port: what `--port` is told.
    pub fn first(&self) -> u16 {
        self.first
    }
}

/// The first block that is free, from the one with this index on and round.
fn take_from(first_ports: &[u16], index: usize) -> io::Result<PortBlock> {
    let (before, after) = first_ports.split_at(index);
    let mut untried = after.iter().chain(before);
    let taken = || io::Error::new(io::ErrorKind::AddrInUse, "every block of ports is taken");
    untried.find_map(|first| claim(*first)).ok_or_else(taken)
}

/// The block from `first` on, unless somebody has its name or one of its ports.
fn claim(first: u16) -> Option<PortBlock> {
    let name = SocketAddr::from_abstract_name(format!("zerohop-ports-{first}")).expect("a short name is one");
    let name = UnixListener::bind_addr(&name).ok()?;
    all_ports(first).all(is_free).then_some(PortBlock { first, _name: name })
}

/// All ports of the block from `first` on.
fn all_ports(first: u16) -> impl Iterator<Item = u16> {
    [first, first + NODES_PORT_OFFSET].into_iter().flat_map(|start| start..start + BLOCK_PORTS)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The first ports of the blocks without a port of `range`; of all blocks where it leaves none.
fn first_ports(range: LocalRange) -> Vec<u16> {
    let all = (0..BLOCKS).map(|block| PORT_MIN + block as u16 * BLOCK_PORTS);
    let outside: Vec<u16> = all.clone().filter(|first| !all_ports(*first).any(|port| range.contains(port))).collect();
    if outside.is_empty() { all.collect() } else { outside }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    const USUAL: LocalRange = LocalRange { first: 32_768, last: 60_999 };

    #[test]
    fn no_two_blocks_have_a_port_in_common_and_none_is_a_client_s() {
        let mut seen = BTreeSet::new();
        for first in first_ports(USUAL) {
            for port in all_ports(first) {
                assert!(seen.insert(port), "{port} of {first}");
                assert!(!USUAL.contains(port), "{port} of {first}");
            }
        }
        assert_eq!(seen.len(), BLOCKS * 2 * usize::from(BLOCK_PORTS));
    }

    #[test]
    fn a_wider_range_of_clients_leaves_fewer_blocks_and_one_of_everything_leaves_all() {
        let narrow = first_ports(LocalRange { first: 25_000, last: 65_535 });
        assert_eq!(narrow.last().copied(), Some(10_240 + 147 * 32), "its last port for nodes is 24,975");
        assert_eq!(first_ports(LocalRange { first: 1024, last: 65_535 }).len(), BLOCKS);
    }

    #[test]
    fn holders_at_the_same_time_have_blocks_of_their_own() {
        const HOLDERS: usize = 40;
        let takers: Vec<_> = (0..HOLDERS).map(|_| std::thread::spawn(PortBlock::take)).collect();
        let blocks: Vec<PortBlock> = takers.into_iter().map(|taker| taker.join().unwrap().unwrap()).collect();
        let firsts: BTreeSet<u16> = blocks.iter().map(PortBlock::first).collect();
        assert_eq!(firsts.len(), HOLDERS);
    }

    #[test]
    fn a_block_is_held_without_a_server_on_it_and_given_back() {
        let held = PortBlock::take().unwrap();
        assert_eq!(take_from(&[held.first()], 0).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // If it were kept there would be none left in the end.
        for _ in 0..=BLOCKS {
            PortBlock::take().unwrap();
        }
    }

    #[test]
    fn a_block_with_a_port_in_use_is_passed_over() {
        for offset in [0, 5, BLOCK_PORTS - 1, NODES_PORT_OFFSET, NODES_PORT_OFFSET + BLOCK_PORTS - 1] {
            let block = PortBlock::take().unwrap();
            let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, block.first() + offset)).unwrap();
            let firsts = [block.first()];
            drop(block);
            assert!(take_from(&firsts, 0).is_err(), "offset {offset}");
            drop(stranger);
        }
    }
}
