//! What goes wrong in a run, and how the node comes back: crashes, planned faults, broken links, rotten bytes.

use super::{CRASH, INTERVAL_US, Phase, RESTART, Run, SILENCE_US};
use crate::checker::Base;
use crate::checker::loss::Loss;
use crate::damage;
use crate::disk::CrashKind;
use crate::faults::Fault;
use crate::network::Socket;
use crate::node::{Durability, Node, Refusal};
use crate::street::CrashPoint;

impl<N: Node> Run<N> {
    // --- the node's life ---

    pub(super) fn crashed(&mut self, kind: CrashKind) {
        let lossy = match self.swarm.durability {
            Durability::Memory => Some(Loss { safe_until_us: None }),
            Durability::Interval if kind == CrashKind::PowerCut => {
                let weather = &self.swarm.weather;
                // A sync may start late, behind a slow write or in a slow tick.
                let window_us = INTERVAL_US + 2 * (weather.sync_us_max + weather.tick_us_max + weather.write_us_max);
                // A core syncs nothing any more once its log failed, nor does a dead node: the last second is the one
                // before that.
                let died_us = if self.phase == Phase::Down { self.died_us } else { self.street.now_us() };
                let end_us = self.street.log_failed_us().unwrap_or(u64::MAX).min(died_us);
                Some(Loss { safe_until_us: Some(end_us.saturating_sub(window_us)) })
            }
            Durability::Interval | Durability::Commit => None,
        };
        self.note_loss(lossy);
        self.down();
    }

    pub(super) fn down(&mut self) {
        if self.swarm.durability == Durability::Memory {
            self.note_loss(Some(Loss { safe_until_us: None }));
        }
        if self.phase != Phase::Down {
            self.died_us = self.street.now_us();
        }
        self.phase = Phase::Down;
        let delay_us = 1 + self.rng.below(50_000);
        self.street.timer(delay_us, RESTART);
    }

    /// The span ends at the first crash that may lose something; an audit that a further crash cuts short is none.
    pub(super) fn note_loss(&mut self, lossy: Option<Loss>) {
        if self.loss.is_none() && lossy.is_some() {
            self.loss = lossy;
            self.span_end = self.operations.len();
        }
    }

    pub(super) fn restart(&mut self) {
        if self.wish.faults && self.wish.cores.is_none() && self.street.durable_steps() > 0 && self.rng.chance(1, 4) {
            let cores = [1, 2, 4][self.rng.below(3) as usize].min(self.street.node.abilities().cores_max);
            if cores != self.swarm.cores {
                self.swarm.cores = cores;
                self.street.faults.fired(Fault::CoresChange);
                self.clients.iter_mut().for_each(|client| client.adapt(cores));
            }
        }
        if self.wish.faults && self.rng.chance(1, 4) {
            let operations = self.rng.below(4);
            self.street.disk.crash_recovery_after(operations);
        }
        let started = self.street.start(self.swarm.cores, self.swarm.durability, self.swarm.segment_bytes);
        self.street.disk.forget_recovery_crash();
        if self.street.log_failure_is_waiting() {
            self.street.timer(20_000, CRASH | u64::from(self.street.boot));
        }
        match started {
            Ok(()) if self.loss.is_some() => self.begin_audit(false),
            Ok(()) => self.phase = Phase::Working,
            Err(Refusal::Crashed) => {
                let kind = self.street.random_crash_kind();
                self.street.disk.crash(kind, &mut self.rng);
                self.crashed(kind);
            }
            Err(Refusal::Damaged(words)) => self.violate(format!("the node does not start again: {words}")),
        }
    }

    /// A log that failed stays failed: the operator restarts the node.
    pub(super) fn crash_after_failure(&mut self, token: u64) {
        if !self.street.is_up() || token != CRASH | u64::from(self.street.boot) {
            return;
        }
        let waits = self.street.log_failure_is_waiting() && !self.street.log_failed();
        if waits {
            return self.street.timer(20_000, token);
        }
        let outlives = self.street.node.abilities().outlives_syncs;
        if let Some(failed_us) = self.street.sync_failed_us().filter(|_| outlives) {
            let left_us = (failed_us + SILENCE_US).saturating_sub(self.street.now_us());
            if left_us > 0 {
                return self.street.timer(left_us, token);
            }
            self.check_silence(failed_us);
        }
        let kind = self.street.random_crash_kind();
        self.street.crash(kind);
    }

    /// Behind a failed sync everybody is answered, or sees the connection end. A long reply may still be on a slow network.
    fn check_silence(&mut self, failed_us: u64) {
        let is_told = |socket: &Socket| self.street.has_bytes_for_client(*socket);
        let links = self.clients.iter().flat_map(|client| &client.links);
        let silent = links.filter(|link| !link.socket.as_ref().is_some_and(is_told));
        let oldest = silent.filter_map(|link| link.pending.front()).map(|pending| &self.operations[pending.operation]);
        let waiting = oldest.filter(|operation| operation.invoked_us < failed_us + SILENCE_US / 4);
        if let Some(action) = waiting.map(|operation| format!("{:?}", operation.action)).next() {
            self.violate(format!(
                "a sync failed at {failed_us} us, and this is neither answered nor broken off: {action}"
            ));
        }
    }

    pub(super) fn fire_planned(&mut self) {
        while self.swarm.plan.first().is_some_and(|(at, _)| *at <= self.completed) {
            let (_, fault) = self.swarm.plan.remove(0);
            self.unfired.push(fault);
            self.last_fault_us = self.street.now_us();
            match fault {
                Fault::Kill | Fault::PowerCut => {
                    let kind = if fault == Fault::Kill { CrashKind::Kill } else { CrashKind::PowerCut };
                    let step = self.street.durable_steps() + 1 + self.rng.below(4);
                    // A world that does not log has no durable steps to crash at.
                    if self.swarm.durability == Durability::Memory
                        || self.street.crash_is_waiting()
                        || self.rng.chance(1, 3)
                    {
                        self.street.crash(kind);
                    } else {
                        self.street.plan_crash(CrashPoint { step, kind });
                    }
                }
                Fault::Reset | Fault::HalfClose => self.break_some_link(fault),
                Fault::Shutdown => {
                    self.street.faults.fired(Fault::Shutdown);
                    self.street.request_shutdown();
                }
                _ => {
                    self.street.plan_log_failure(fault);
                    self.street.timer(20_000, CRASH | u64::from(self.street.boot));
                }
            }
            if !self.street.is_up() {
                return;
            }
        }
    }

    pub(super) fn break_some_link(&mut self, fault: Fault) {
        let client = self.rng.below(self.clients.len() as u64) as usize;
        let Some(link) = self.clients[client].links.iter_mut().find(|link| link.socket.is_some() && !link.half_closed)
        else {
            self.unfired.pop();
            return;
        };
        let socket = link.socket.expect("this link was chosen for its socket");
        if fault == Fault::HalfClose {
            link.half_closed = true;
            self.street.half_close(socket);
        } else {
            self.street.faults.fired(Fault::Reset);
            let lost = link.break_off();
            self.street.reset(socket);
            self.lose(client, &lost, false);
        }
    }

    /// Let everything be closed by a start, then harm it, then start again.
    pub(super) fn rot(&mut self, found: Base) {
        self.base = found;
        self.span_start = self.operations.len();
        self.street.kill_silently();
        if let Err(refusal) = self.street.start(self.swarm.cores, self.swarm.durability, self.swarm.segment_bytes) {
            return self.violate(format!("the node does not start again: {refusal:?}"));
        }
        self.street.kill_silently();
        let Some(words) = damage::harm(&mut self.street.disk, &mut self.rng) else { return self.finished = true };
        self.street.faults.fired(Fault::Damage);
        match self.street.start(self.swarm.cores, self.swarm.durability, self.swarm.segment_bytes) {
            Ok(()) => {
                self.damage = Some(words);
                self.begin_audit(true);
            }
            // It says which file and where: that is what an operator needs.
            Err(Refusal::Damaged(said)) if said.contains(" at offset ") => self.finished = true,
            Err(refusal) => self.violate(format!("{words}: {refusal:?}")),
        }
    }
}
