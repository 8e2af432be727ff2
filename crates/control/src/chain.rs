//! The chain of a slot: who has it, in order. The first writes, the second's acknowledgement is waited for.

use base::limits::CHAIN_MEMBERS_MAX;
use base::{CoreId, InstanceName, NodeId};

/// One member of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which instance.
    pub place: InstanceName,
    /// Whether it has everything that was acknowledged before it came; otherwise it is being filled.
    pub whole: bool,
}

impl Member {
    /// A member that has everything.
    pub fn whole(place: InstanceName) -> Member {
        Member { place, whole: true }
    }

    /// A member that is being filled.
    pub fn filling(place: InstanceName) -> Member {
        Member { place, whole: false }
    }
}

/// What stands in the unused places of a chain, so that equal chains are equal bytes.
const NOBODY: Member = Member { place: InstanceName { node: NodeId(0), core: CoreId(0) }, whole: false };

/// Up to five members, in order; none: nobody serves the slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    members: [Member; CHAIN_MEMBERS_MAX],
    count: u8,
}

impl Chain {
    /// Nobody.
    pub const EMPTY: Chain = Chain { members: [NOBODY; CHAIN_MEMBERS_MAX], count: 0 };

    /// The chain of these members.
    ///
    /// # Panics
    /// More than [`CHAIN_MEMBERS_MAX`] members: who calls has counted them.
    pub fn of(members: &[Member]) -> Chain {
        let mut chain = Chain::EMPTY;
        members.iter().for_each(|&member| chain.push(member));
        chain
    }

    /// Append a member.
    ///
    /// # Panics
    /// The chain is full: who calls has asked [`Chain::is_full`].
    pub fn push(&mut self, member: Member) {
        assert!(!self.is_full(), "a chain has room for who is added");
        self.members[usize::from(self.count)] = member;
        self.count += 1;
    }

    /// Whether nobody can be added.
    pub fn is_full(&self) -> bool {
        usize::from(self.count) == CHAIN_MEMBERS_MAX
    }

    /// Who writes.
    pub fn primary(&self) -> Option<InstanceName> {
        self.first().map(|member| member.place)
    }

    /// The member that is on `node`.
    pub fn member(&self, node: NodeId) -> Option<Member> {
        self.iter().copied().find(|member| member.place.node == node)
    }

    /// Whether a member is on `node`.
    pub fn has(&self, node: NodeId) -> bool {
        self.member(node).is_some()
    }

    /// Its members without the one on `node`.
    pub fn without(&self, node: NodeId) -> Chain {
        let mut chain = Chain::EMPTY;
        self.iter().filter(|member| member.place.node != node).for_each(|&member| chain.push(member));
        chain
    }

    /// The same members, the one on `node` marked as whole.
    pub fn with_whole(&self, node: NodeId) -> Chain {
        let mut chain = *self;
        for member in &mut chain.members[..usize::from(self.count)] {
            member.whole |= member.place.node == node;
        }
        chain
    }

    /// The same members, the one on `node` and all behind it marked as being filled: replies did not wait for those.
    pub fn doubted(&self, node: NodeId) -> Chain {
        let mut chain = *self;
        let from = self.iter().position(|member| member.place.node == node).unwrap_or(self.len());
        chain.members[from..usize::from(self.count)].iter_mut().for_each(|member| member.whole = false);
        chain
    }

    /// The members that are whole before those that are being filled, otherwise in the order they have.
    pub fn whole_first(&self) -> Chain {
        let mut chain = Chain::EMPTY;
        self.iter().filter(|member| member.whole).for_each(|&member| chain.push(member));
        self.iter().filter(|member| !member.whole).for_each(|&member| chain.push(member));
        chain
    }

    /// How many members are whole.
    pub fn whole_count(&self) -> usize {
        self.iter().filter(|member| member.whole).count()
    }

    /// Whether the same instances stand in the same order, whole or not.
    pub fn has_same_places(&self, other: &Chain) -> bool {
        self.iter().map(|member| member.place).eq(other.iter().map(|member| member.place))
    }
}

impl std::ops::Deref for Chain {
    type Target = [Member];

    fn deref(&self) -> &[Member] {
        &self.members[..usize::from(self.count)]
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "[")?;
        for (number, member) in self.iter().enumerate() {
            let (space, filling) = (if number == 0 { "" } else { " " }, if member.whole { "" } else { "~" });
            write!(formatter, "{space}{filling}{}.{}", member.place.node.0, member.place.core.0)?;
        }
        write!(formatter, "]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(node: u32) -> InstanceName {
        InstanceName { node: NodeId(node), core: CoreId(0) }
    }

    #[test]
    fn chains_with_the_same_members_are_equal_however_they_came_to_be() {
        let long = Chain::of(&[Member::whole(place(1)), Member::whole(place(2)), Member::filling(place(3))]);
        let cut = long.without(NodeId(3));
        assert_eq!(cut, Chain::of(&[Member::whole(place(1)), Member::whole(place(2))]));
        assert_eq!(format!("{long:?}"), "[1.0 2.0 ~3.0]");
        assert!(long.has_same_places(&long.with_whole(NodeId(3))) && long != long.with_whole(NodeId(3)));
    }

    #[test]
    fn who_is_whole_comes_before_who_is_filled() {
        let mixed = Chain::of(&[Member::filling(place(1)), Member::whole(place(2)), Member::whole(place(3))]);
        assert_eq!(format!("{:?}", mixed.whole_first()), "[2.0 3.0 ~1.0]");
    }
}
