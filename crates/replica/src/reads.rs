//! Readers at an instance of what others serve: what is asked of the firsts, and what may be shown.

use base::Slot;
use wire::frame::Frame;

use crate::follow::Follow;
use crate::links::Links;
use crate::peer::Side;

impl Links {
    /// Somebody reads here what others serve, and may be shown what is as old as `bound_us`; `None`: nobody does. Before
    /// [`Links::go_on`].
    pub fn ask(&mut self, now_us: u64, bound_us: Option<u64>) {
        for (number, follow) in self.follows.iter_mut().enumerate() {
            let Some(bound_us) = bound_us else {
                follow.fresh.rest();
                continue;
            };
            let Some(peer) = self.peers.iter_mut().find(|peer| peer.side == Side::Follow(number)) else { continue };
            if let Some(stamp) = follow.ask(now_us, bound_us) {
                peer.send(&Frame::Ask { stamp });
            }
        }
    }

    /// When the next question is due while somebody reads, microseconds.
    pub fn ask_at_us(&self) -> Option<u64> {
        let is_connected = |number| self.peers.iter().any(|peer| peer.side == Side::Follow(number));
        let connected = self.follows.iter().enumerate().filter(|(number, _)| is_connected(*number));
        connected.filter_map(|(_, follow)| follow.fresh.ask_at_us()).min()
    }

    /// Whether this instance may show its copy of `slot` now: it is a whole member of the chain, and heard of its first what it
    /// takes to be no older than `bound_us`.
    pub fn may_show(&self, slot: Slot, now_us: u64, bound_us: u64) -> bool {
        let Some(chain) = self.view.as_ref().map(|view| view.chain(slot)) else { return false };
        let is_whole = chain.members.iter().take(chain.whole).skip(1).any(|member| *member == self.me);
        let of_first = |follow: &&Follow| chain.members.first() == Some(&follow.from());
        is_whole
            && self.follows.iter().find(of_first).is_some_and(|follow| follow.fresh.may_show(slot, now_us, bound_us))
    }
}
