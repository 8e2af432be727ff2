//! What a manager writes, on its way to the street: that takes a bounded number of writes at a time, and ends a log that asks for more.
//!
//! ```text
//!  agreement ─► waiting, in order ─► under way ─► durable │ failed           who the node is goes first, while there is room
//! ```

use std::collections::VecDeque;

use base::Effect;

use crate::inside::IDENTITY_TOKEN;

/// Writes under way behind which those of the agreement wait: half of what the street's disk thread takes.
const UNDER_WAY_MAX: usize = 32;
/// And those behind which who the node is waits.
const IDENTITY_UNDER_WAY_MAX: usize = 56;

/// See the module. What waits is bounded by the agreement's proposals under way; of the file that says who this node is only the newest
/// waits.
#[derive(Default)]
pub(crate) struct Writes {
    waiting: VecDeque<Effect>,
    identity: Option<Effect>,
    under_way: usize,
}

impl Writes {
    /// A write is over, one way or the other.
    pub fn on_done(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Leaves of `effects` what the street may begin now; the rest waits, writes of the agreement in their order. They were asked for
    /// behind who the node is, and stay behind it.
    pub fn pace(&mut self, effects: &mut Vec<Effect>) {
        let is_write = |effect: &mut Effect| matches!(effect, Effect::WriteFile { .. } | Effect::ReplaceFile { .. });
        let writes: Vec<Effect> = effects.extract_if(.., is_write).collect();
        for write in writes {
            match write {
                Effect::ReplaceFile { token: IDENTITY_TOKEN, .. } => self.identity = Some(write),
                _ => self.waiting.push_back(write),
            }
        }
        if self.under_way < IDENTITY_UNDER_WAY_MAX {
            self.under_way += usize::from(self.identity.is_some());
            effects.extend(self.identity.take());
        }
        let room = UNDER_WAY_MAX.saturating_sub(self.under_way).min(self.waiting.len());
        self.under_way += room;
        effects.extend(self.waiting.drain(..room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(token: u64) -> Effect {
        Effect::WriteFile { token, name: "log".to_owned(), offset: 0, bytes: Vec::new() }
    }

    fn identity(byte: u8) -> Effect {
        Effect::ReplaceFile { token: IDENTITY_TOKEN, name: "cluster".to_owned(), bytes: vec![byte] }
    }

    fn begun(writes: &mut Writes, mut effects: Vec<Effect>) -> Vec<u64> {
        writes.pace(&mut effects);
        let token = |effect: &Effect| match effect {
            Effect::WriteFile { token, .. } => Some(*token),
            Effect::ReplaceFile { bytes, .. } => Some(1000 + u64::from(bytes[0])),
            _ => None,
        };
        effects.iter().filter_map(token).collect()
    }

    #[test]
    fn what_the_disk_does_not_take_at_once_waits_in_its_order() {
        let mut writes = Writes::default();
        let all = (0..UNDER_WAY_MAX as u64 + 2).map(write).collect();
        assert_eq!(begun(&mut writes, all), (0..UNDER_WAY_MAX as u64).collect::<Vec<_>>());
        assert!(begun(&mut writes, vec![write(90)]).is_empty());
        writes.on_done();
        assert_eq!(begun(&mut writes, Vec::new()), [UNDER_WAY_MAX as u64]);
        (0..3).for_each(|_| writes.on_done());
        assert_eq!(begun(&mut writes, Vec::new()), [UNDER_WAY_MAX as u64 + 1, 90]);
    }

    #[test]
    fn of_what_the_node_is_only_the_newest_waits() {
        let mut writes = Writes::default();
        assert_eq!(
            begun(&mut writes, vec![identity(1), write(69)]),
            [1001, 69],
            "it stays in front of what is of that name"
        );
        begun(&mut writes, (2..UNDER_WAY_MAX as u64).map(write).collect());
        for _ in UNDER_WAY_MAX..IDENTITY_UNDER_WAY_MAX {
            assert_eq!(begun(&mut writes, vec![identity(2), write(70)]), [1002]);
        }
        assert!(begun(&mut writes, vec![identity(3), write(71), identity(4)]).is_empty());
        (0..IDENTITY_UNDER_WAY_MAX).for_each(|_| writes.on_done());
        assert_eq!(begun(&mut writes, Vec::new())[..2], [1004, 70]);
    }

    #[test]
    fn what_is_no_write_goes_at_once() {
        let mut writes = Writes::default();
        begun(&mut writes, (0..=UNDER_WAY_MAX as u64).map(write).collect());
        let mut effects = vec![write(80), Effect::Stop];
        writes.pace(&mut effects);
        assert!(matches!(effects[..], [Effect::Stop]));
    }
}
