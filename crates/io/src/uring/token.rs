//! What an operation is about, packed into the 64 bits that come back with its completion.
//!
//! ```text
//!   63                      32 31    28 27                       0
//!   [ generation of the slot ][ kind  ][ index of the slot or listener ]
//! ```

use base::ids::ConnectionId;

const KIND_SHIFT: u32 = 28;
const INDEX_MASK: u64 = (1 << KIND_SHIFT) - 1;

/// The operations this crate submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Multishot receive of a connection.
    Receive(ConnectionId),
    /// Send of a connection.
    Send(ConnectionId),
    /// Multishot poll of a listener.
    Listener(usize),
    /// Multishot poll of the doorbell.
    Doorbell,
    /// Read of a run, by its place among those under way.
    RunRead(usize),
    /// A cancellation; its own result says nothing that the cancelled operation's does not.
    Cancel,
}

impl Operation {
    #[inline]
    pub fn pack(self) -> u64 {
        let connection =
            |kind: u64, id: ConnectionId| (u64::from(id.generation) << 32) | (kind << KIND_SHIFT) | u64::from(id.index);
        match self {
            Operation::Receive(id) => connection(0, id),
            Operation::Send(id) => connection(1, id),
            Operation::Listener(index) => (2 << KIND_SHIFT) | index as u64,
            Operation::Doorbell => 3 << KIND_SHIFT,
            Operation::Cancel => 4 << KIND_SHIFT,
            Operation::RunRead(place) => (5 << KIND_SHIFT) | place as u64,
        }
    }

    #[inline]
    pub fn unpack(token: u64) -> Operation {
        let index = token & INDEX_MASK;
        let id = ConnectionId { index: index as u32, generation: (token >> 32) as u32 };
        match (token >> KIND_SHIFT) & 0xf {
            0 => Operation::Receive(id),
            1 => Operation::Send(id),
            2 => Operation::Listener(index as usize),
            3 => Operation::Doorbell,
            4 => Operation::Cancel,
            5 => Operation::RunRead(index as usize),
            _ => unreachable!("a completion of an operation that was never submitted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_survives_packing() {
        let id = ConnectionId { index: 9_999, generation: u32::MAX };
        for operation in [
            Operation::Receive(id),
            Operation::Send(id),
            Operation::Listener(3),
            Operation::Doorbell,
            Operation::Cancel,
            Operation::RunRead(63),
        ] {
            assert_eq!(Operation::unpack(operation.pack()), operation);
        }
    }
}
