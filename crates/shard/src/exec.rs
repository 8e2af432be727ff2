//! EXEC: the requests that a connection queued, and the long values among their arguments.
//!
//! ```text
//!   MULTI … queued: bytes in one arena, long arguments in the blocks in which they came
//!   EXEC ─► upload   all its keys are of this core: the log gets the blocks, a slice per tick; the connection waits
//!        ─► unit     runs in its turn; its changes name what the log has, or bring their bytes along
//! ```

use session::{QueuedCommand, QueuedLong, Transaction};
use wire::registry::CommandSpec;

use crate::memory::taken_by;
use crate::owned_request::LongValue;

/// See the module.
pub struct Exec {
    transaction: Box<Transaction>,
    /// In the order of the requests.
    long: Vec<LongValue>,
}

impl Exec {
    pub(crate) fn new(mut transaction: Box<Transaction>) -> Exec {
        let queued = transaction.take_long();
        let value = |QueuedLong { command, argument, blocks }| {
            let request = transaction.command(command).expect("it was queued with its request");
            let key = commands::key_of_long(request.spec.id, argument);
            let name = request.arguments.get(key).expect("the arity covers the key");
            LongValue { command, ..LongValue::new(argument, placement::slot_of(name), blocks) }
        };
        let long = queued.into_iter().map(value).collect();
        Exec { transaction, long }
    }

    pub(crate) fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// The requests in order, each with its long values.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (QueuedCommand<'_>, &[LongValue])> {
        let mut rest = &self.long[..];
        self.transaction.commands().enumerate().map(move |(number, command)| {
            let count = rest.iter().take_while(|value| value.command == number).count();
            let (own, behind) = rest.split_at(count);
            rest = behind;
            (command, own)
        })
    }

    /// What each of them takes, about, bytes.
    pub(crate) fn taken(&self) -> Vec<(&'static CommandSpec, usize)> {
        let bytes_of = |long: &[LongValue]| long.iter().map(LongValue::new_bytes).sum::<usize>();
        self.commands().map(|(command, long)| (command.spec, taken_by(command.arguments) + bytes_of(long))).collect()
    }

    pub(crate) fn long(&self) -> &[LongValue] {
        &self.long
    }

    pub(crate) fn set_long(&mut self, values: Vec<LongValue>) {
        self.long = values;
    }

    pub(crate) fn take_long(&mut self) -> Vec<LongValue> {
        std::mem::take(&mut self.long)
    }
}

#[cfg(test)]
mod tests;
