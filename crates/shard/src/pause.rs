//! CLIENT PAUSE: requests that wait until it is over.

use wire::Arguments;
use wire::registry::CommandSpec;

use crate::connection::Stall;
use crate::shard::Shard;

impl Shard {
    /// True when the request has to wait.
    pub(crate) fn pauses(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        writes_only: bool,
    ) -> bool {
        let is_client = spec.full_name.starts_with("client");
        if is_client || (writes_only && !spec.is_write() && spec.full_name != "exec") {
            return false;
        }
        self.stall_and_repeat(index, spec, arguments, Stall::Parked);
        true
    }

    pub(crate) fn end_pause(&mut self) {
        self.paused_until = None;
        self.unpark();
    }
}
