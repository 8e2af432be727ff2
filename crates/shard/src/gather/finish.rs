//! What becomes of the answers once all are here.

use super::{Answer, Gather, Purpose};
use crate::access::write_log;
use crate::order;
use crate::shard::Shard;
use crate::timing;
use crate::waiters::Target;

impl Shard {
    pub(super) fn finish_gather(&mut self, mut gather: Gather) {
        if let Purpose::Run(run) = gather.purpose {
            if gather.count < gather.cores as u64 {
                return; // A log failed, and no run is made any more.
            }
            return self.with_checkpoints(|checkpoints, view| checkpoints.on_settled(run, view));
        }
        if let Purpose::Pins(question) = gather.purpose {
            return self.finish_pins(gather, question);
        }
        if let Purpose::Spread { asker, answer } = gather.purpose {
            return self.give_answer(asker.0, asker.1, Answer::Acl(answer));
        }
        let Some(connection) = gather.connection else { return };
        let target = Target::Local(connection);
        match gather.purpose {
            Purpose::Nobody | Purpose::Run(_) | Purpose::Pins(_) | Purpose::Spread { .. } => {}
            Purpose::Acl => {
                let answer = gather.acl.take().expect("the decider answers once");
                self.answer(target, |reply| answer.write(reply));
                self.close_if_removed(connection);
            }
            Purpose::AclLog { count } => {
                let now = self.now;
                self.answer(target, |reply| write_log(gather.refused, count, now, reply));
            }
            Purpose::Timing(request) => {
                let setting = self.timing_setting();
                self.answer(target, |reply| timing::write(&request, gather.timed, &setting, reply));
            }
            Purpose::Keyspace(id) => self.finish_keyspace_in_parts(connection, id, gather.parts),
            Purpose::Order => self.answer(target, |reply| order::write(gather.ordered.as_ref(), reply)),
            Purpose::Durable { .. } => {
                let all = self.log.is_some() && gather.count == gather.cores as u64;
                self.answer(target, |reply| {
                    reply.array(2);
                    reply.integer(i64::from(all));
                    reply.integer(0);
                });
            }
            Purpose::List => {
                gather.lines.sort_unstable_by_key(|(id, _)| *id);
                let text: Vec<u8> = gather.lines.into_iter().flat_map(|(_, line)| line).collect();
                self.answer(target, |reply| reply.verbatim(b"txt", &text));
            }
            Purpose::Kill { by_address: true } if gather.count == 0 => {
                self.answer(target, |reply| reply.error("ERR", "No such client"));
            }
            Purpose::Kill { by_address: true } => self.answer(target, |reply| reply.ok()),
            Purpose::Kill { by_address: false } | Purpose::Sum => {
                self.answer(target, |reply| reply.integer(gather.count as i64));
            }
            Purpose::Node(request) => {
                let mut bytes = Vec::new();
                let begun = self.start_timing(request.spec);
                self.execute_node(request.spec, request.arguments(), connection, &gather.facts, &mut bytes);
                self.stop_timing(begun, Some(target), request.spec, request.arguments());
                self.deliver(target, bytes.into(), None);
            }
        }
    }
}
