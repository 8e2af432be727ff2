//! The stage: what the network, the disk and the cores say.

use base::{ConnectionId, CoreId, Event, TickInput};
use shard::gather::Answer;
use shard::order::{Order, Ordered};
use shard::{Control, HopBatch};
use wire::trust::Party;

use super::{COPY, Manager};
use crate::inside::{COPY_TOKEN, IDENTITY_TOKEN};

impl Manager {
    pub(super) fn receive(&mut self, input: &mut TickInput<'_, HopBatch>) {
        let now_us = input.now.monotonic_us;
        if let Some(inside) = &self.inside {
            self.peers.set_name(inside.identity.cluster, Party::manager(inside.me(), inside.incarnation));
        }
        for event in input.events.drain(..) {
            match event {
                Event::Accepted { connection, peer, .. } => self.peers.on_accepted(now_us, connection, peer),
                Event::Dialed { token, connection } => self.on_dialed(now_us, token, connection.ok()),
                Event::Received { connection, span } => {
                    self.peers.receive(now_us, connection, span.of(input.received));
                }
                Event::SendDone { connection, .. } => self.peers.on_sent(connection),
                Event::PeerClosed { connection } => {
                    if let Some(address) = self.peers.unproven(connection) {
                        self.outside.on_closed(connection, address);
                    }
                    self.peers.close(connection);
                }
                Event::Closed { connection } => self.peers.on_closed(connection),
                Event::FileDurable { token } => self.on_durable(token),
                Event::FileFailed { reason, .. } => self.on_write_failed(reason),
                Event::ShutdownRequested => self.stopping = true,
                _ => {}
            }
        }
        for (from, batch) in input.hops.drain(..) {
            batch.controls.into_iter().for_each(|control| self.on_control(now_us, from, control));
        }
    }

    /// A core says something, or whoever else is in this node's mesh asks.
    fn on_control(&mut self, now_us: u64, from: CoreId, control: Control) {
        let Some(inside) = &mut self.inside else {
            if let Control::Order { gather, .. } = control {
                let why = "no node of the cluster has let this one in yet".to_owned();
                let mut batch = HopBatch::default();
                batch.controls.push(Control::Answer { gather, answer: Answer::Ordered(Ordered::Refused(why)) });
                self.refusals.push((from, batch));
            }
            return;
        };
        match control {
            Control::Held { table, held } => {
                inside.suspicion.on_core(from);
                inside.on_held(from, table, &held);
            }
            Control::Sealed { id, table } => inside.moving.on_sealed(from, id, table),
            Control::Order { gather, order: Order::Suspect(node) } => {
                inside.on_suspected(now_us, (from, gather), node);
            }
            Control::Order { gather, order } => inside.on_order(from, gather, order),
            Control::Distrusted { text } => eprintln!("zerohop: {text}"),
            Control::Unsealed { id } => inside.moving.on_unsealed(now_us, from, id),
            _ => {}
        }
    }

    fn on_dialed(&mut self, now_us: u64, token: u64, connection: Option<ConnectionId>) {
        let id = self.peers.on_dialed(now_us, token, connection);
        match id {
            _ if self.inside.is_some() => {}
            Some(id) => self.outside.on_dialed(id),
            None => self.outside.on_refused(),
        }
    }

    fn on_durable(&mut self, token: u64) {
        self.writes.on_done();
        let Some(inside) = &mut self.inside else { return };
        match token {
            IDENTITY_TOKEN => inside.is_written = true,
            COPY_TOKEN => self.fail(COPY.to_owned()),
            ordinal => inside.agreement.tell(consensus::Event::Durable { ordinal }),
        }
    }

    fn on_write_failed(&mut self, reason: String) {
        self.writes.on_done();
        if let Some(inside) = &mut self.inside {
            inside.agreement.tell(consensus::Event::WriteFailed { reason });
        }
    }
}
