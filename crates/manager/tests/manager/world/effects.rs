//! What a manager asks for is done, and what it says and writes is seen.

use base::Effect;
use manager::Files;
use manager::identity::Identity;

use super::{Item, World};
use crate::judge::Judged;

impl World {
    pub(super) fn perform(&mut self, id: usize, effect: Effect) -> Judged {
        match effect {
            Effect::Send { connection, buffer } => {
                self.note(format_args!("{id} sends {} bytes, {:08x}", buffer.len(), base::checksum::crc32c(&buffer)));
                self.send(id, connection, buffer);
                Ok(())
            }
            Effect::Dial { token, address } => {
                self.dial(id, token, &address);
                Ok(())
            }
            Effect::Close { connection } => {
                self.close(id, connection);
                Ok(())
            }
            Effect::WriteFile { .. } | Effect::ReplaceFile { .. } => self.write(id, effect),
            Effect::Stop => {
                let failure = self.running(id).manager.failure().map(str::to_owned);
                self.note(format_args!("{id} ends: {failure:?}"));
                self.coverage.ended += 1;
                self.nodes[id].failure = failure;
                self.die(id, false, 1_000_000);
                Ok(())
            }
            other => Err(format!("{id} asks for what managers do not need: {other:?}")),
        }
    }

    fn write(&mut self, id: usize, effect: Effect) -> Judged {
        if let Effect::ReplaceFile { name, bytes, .. } = &effect
            && name == Files::NAMES[0]
        {
            let identity =
                Identity::decode(bytes).map_err(|words| format!("{id} writes what nobody reads: {words}"))?;
            self.on_identity(id, identity)?;
        }
        let now_us = self.agenda.now_us();
        let mut write_us = 50 + self.rng.below(self.swarm.write_us_max);
        if !self.peace && self.rng.chance(1, 100) {
            write_us *= 10;
        }
        let (life, node) = (self.nodes[id].life, &mut self.nodes[id]);
        node.disk.begin(effect);
        node.stored_at_us = node.stored_at_us.max(now_us) + write_us;
        let delay_us = node.stored_at_us - now_us;
        self.plan(delay_us, Item::Stored { id, life });
        if self.is_troubled() && self.swarm.crashes && self.rng.chance(1, 100) {
            // The power goes in the middle of it.
            self.plan(delay_us.saturating_sub(write_us / 2), Item::Darken { id, life });
        }
        Ok(())
    }

    /// What a node knows is judged before its file says it.
    pub(super) fn look_at_table(&mut self, id: usize) -> Judged {
        let versions = |known: &Identity| (known.table.version(), known.voters.version);
        let before = self.nodes[id].known.as_ref().map(versions);
        let known = self.running(id).manager.known().filter(|known| Some(versions(known)) != before).cloned();
        known.map_or(Ok(()), |known| self.on_identity(id, known))
    }

    /// A node writes down who it is and what it knows, or will.
    fn on_identity(&mut self, id: usize, identity: Identity) -> Judged {
        let version = identity.table.version();
        self.note(format_args!("{id} knows table {version}, voters {:?}", identity.voters));
        if let Some(known) = &self.nodes[id].known
            && (known.table.version() > version || known.voters.version > identity.voters.version)
        {
            return Err(format!("one table: {id} goes back from table {} to {version}", known.table.version()));
        }
        self.judge.on_table(&identity.table)?;
        self.nodes[id].number = Some(identity.node);
        self.nodes[id].known = Some(identity);
        Ok(())
    }

    /// What is sent is looked at by who has no key.
    ///
    /// # Panics
    /// The token is in it.
    pub(super) fn witness(&self, buffer: &[u8]) {
        if let Some(known) = &self.nodes[0].known {
            let token = known.token.bytes();
            assert!(!buffer.windows(token.len()).any(|bytes| bytes == token), "the token never travels");
        }
    }

    /// Whoever leads a term leads it alone.
    pub(super) fn look_at_lead(&mut self, id: usize) -> Judged {
        let manager = &self.running(id).manager;
        let led = manager.known().map(|known| u64::from(known.node.0)).zip(manager.leads());
        led.map_or(Ok(()), |(node, term)| self.judge.on_leader(term, node))
    }
}
