//! What migrates: two processes of this program, or Zerohop.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::end::{Migration, Order};
use super::pair::{self, order};
use super::product::{self, Product};
use super::way::Way;
use super::workers::Access;
use super::{Arm, Plan};
use crate::cluster::client::connect;
use crate::cluster::process::{kill, start};

const READY_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// See the module.
pub trait Subject {
    /// Its clients.
    type Client: Access + 'static;
    /// Puts everything at the source, which may serve `source` operations a second; clients, and the number that all keys say.
    ///
    /// # Errors
    /// What does not work.
    fn begin(&mut self, source: f64, plan: &Plan) -> Result<(Vec<Self::Client>, u64), String>;
    /// Moves everything.
    ///
    /// # Errors
    /// What does not work.
    fn migrate(&mut self, arm: Arm, plan: &Plan) -> Result<(), String>;
    /// Serves as fast as it goes.
    ///
    /// # Errors
    /// What does not work.
    fn unbind(&mut self) -> Result<(), String>;
    /// Its processes, where they are known.
    fn pids(&self) -> Vec<u32>;
}

/// Two ends on ports next to each other, source first.
pub struct Pair {
    source: u16,
    processes: Vec<Child>,
}

impl Pair {
    /// Starts both by `command`, which is told a port.
    ///
    /// # Errors
    /// When one does not listen.
    pub fn start(command: impl Fn(u16) -> Command, source: u16) -> Result<Pair, String> {
        let mut pair = Pair { source, processes: Vec::new() };
        for port in [source, source + 1] {
            let mut command = command(port);
            pair.processes.push(start(command.stdin(Stdio::null()).stdout(Stdio::null()), Signal::KILL)?);
            let begun = Instant::now();
            while connect(port).is_err() {
                if begun.elapsed() > READY_WITHIN {
                    return Err(format!("no end listens on port {port}"));
                }
                std::thread::sleep(LOOK_EVERY);
            }
        }
        Ok(pair)
    }

    /// Ends that serve on these two ports already.
    pub fn of(source: u16) -> Pair {
        Pair { source, processes: Vec::new() }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(kill);
    }
}

impl Subject for Pair {
    type Client = pair::Client;

    fn begin(&mut self, source: f64, plan: &Plan) -> Result<(Vec<pair::Client>, u64), String> {
        let tokens_per_pair = plan.copying * plan.per_second * plan.length.as_secs_f64() / f64::from(plan.keys);
        for (port, is_source, per_second) in [(self.source, true, source), (self.source + 1, false, plan.per_second)] {
            order(port, &Order::Reset { keys: plan.keys, is_source, per_second, tokens_per_pair })?;
        }
        let clients = (0..plan.workers).map(|_| pair::Client::new(self.source, self.source + 1));
        Ok((clients.collect::<Result<_, _>>()?, 1))
    }

    fn migrate(&mut self, arm: Arm, plan: &Plan) -> Result<(), String> {
        let (way, pieces) = match arm {
            Arm::SourceBased => (Way::Pieces, 1),
            Arm::Cursor => (Way::Pieces, plan.pieces),
            Arm::AtOnce => (Way::AtOnce, 1),
            Arm::Writes => (Way::Writes, 1),
            Arm::Stopped => (Way::Stopped, 1),
            Arm::ZerohopWhole | Arm::ZerohopPieces => return Err("this is not Zerohop".to_owned()),
        };
        let destination = self.source + 1;
        let pairs_per_second = f64::from(plan.keys) / plan.length.as_secs_f64();
        order(destination, &Order::Expect { way, source: self.source })?;
        order(self.source, &Order::Migrate(Migration { way, pieces, destination, pairs_per_second }))
    }

    fn unbind(&mut self) -> Result<(), String> {
        [self.source, self.source + 1].into_iter().try_for_each(|port| order(port, &Order::Rate { per_second: 1e9 }))
    }

    fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Child::id).collect()
    }
}

impl Subject for Product {
    type Client = product::Client;

    fn begin(&mut self, source: f64, plan: &Plan) -> Result<(Vec<product::Client>, u64), String> {
        Product::begin(self, (source, plan.per_second), plan.workers)
    }

    fn migrate(&mut self, arm: Arm, plan: &Plan) -> Result<(), String> {
        Product::migrate(self, if arm == Arm::ZerohopPieces { plan.orders } else { 1 })
    }

    fn unbind(&mut self) -> Result<(), String> {
        Product::unbind(self);
        Ok(())
    }

    fn pids(&self) -> Vec<u32> {
        Vec::new()
    }
}
