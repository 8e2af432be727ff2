//! A slot range on its way from one instance to another.

use placement::SlotRange;

use base::InstanceName;

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MoveState {
    /// The destination is in the chain and is being filled.
    Wanted = 1,
    /// The destination is first; the source stands behind it until the destination ends the move.
    HandingOver = 2,
}

/// One move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Version of the table that began it: no two moves have the same.
    pub id: u64,
    /// What moves.
    pub slots: SlotRange,
    /// Who was first of all of it.
    pub from: InstanceName,
    /// Who becomes that.
    pub to: InstanceName,
    /// How far it is.
    pub state: MoveState,
}
