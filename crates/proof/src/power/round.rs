//! One round: the machine starts, shows what the last cut left, works, and loses its power.
//!
//! ```text
//!   a start that is cut ─► start: zerohop check, serve ─► every key judged ─► load ─► cut, at one of the disk's requests
//! ```

use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::thread;

use super::clock::Clock;
use super::console;
use super::disk::Lost;
use super::guest::Guest;
use super::node::Campaign;
use super::plan::{Cut, Plan, Promise, Stop};
use super::rig::{LOOK_EVERY, LOOKS_MAX, Rig, UNPROVEN, well};
use crate::kill::load::{self, Gauge};
use crate::kill::told::{self, Recovery};
use crate::kill::verdict::CLIENTS;

/// Up to where each client's requests were acknowledged.
type Marks = [u64; CLIENTS];

/// What came of a round, for people.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Units of watched keys acknowledged.
    pub units: u64,
    /// Requests of the bulk acknowledged.
    pub bulk_requests: u64,
    /// What its cuts took.
    pub lost: Lost,
    /// The cut of a start came before it served.
    pub broken_starts: u64,
    /// Clean stops that came to their end before the cut.
    pub stops: u64,
}

impl Campaign {
    /// One round.
    ///
    /// # Errors
    /// What must not be.
    pub fn planned_round(&mut self, plan: &Plan) -> Result<(Recovery, Tally), Vec<String>> {
        let mut tally = Tally::default();
        if let Some(cut) = plan.broken_start {
            tally.broken_starts = u64::from(self.break_start(plan, cut)?);
        }
        let (mut guest, recovery) = self.start_and_judge(plan)?;
        self.load_and_cut(plan, &mut guest, &mut tally)?;
        Ok((recovery, tally))
    }

    /// Cuts the power of a machine that starts; returns whether it did not serve yet.
    fn break_start(&mut self, plan: &Plan, cut: Cut) -> Result<bool, Vec<String>> {
        let mut guest = self.boot(plan, "broken start", Some(cut.after_requests))?;
        let ready = self.rig.until(&mut guest, |output| output.contains(plan.ready()));
        self.rig.disk().cut_now();
        guest.end();
        let is_ready = ready.map_err(|problem| vec![format!("a start that is cut: {problem}")])?;
        well(&guest.output())?;
        self.rig.after_cut(cut)?;
        Ok(!is_ready)
    }

    /// Starts the machine of the round, and judges what it shows.
    ///
    /// # Errors
    /// What must not be.
    pub fn start_and_judge(&mut self, plan: &Plan) -> Result<(Guest, Recovery), Vec<String>> {
        let mut guest = self.boot(plan, "guest", None)?;
        let ready = self.rig.until(&mut guest, |output| output.contains(plan.ready()));
        ready.map_err(|problem| vec![format!("the start: {problem}")])?;
        let output = guest.output();
        well(&output)?;
        let judged = self.books.judge(&self.address()).map_err(|error| vec![format!("reading back: {error}")]);
        let mut problems = judged?;
        let mut recovery = Recovery::default();
        if plan.is_zerohop() {
            problems.extend(self.check_problem(&output));
            recovery = Recovery::parse(&output).ok_or_else(|| vec![format!("it announced no recovery: {output}")])?;
            if self.is_left_clean && recovery.records > 0 {
                problems.push(format!("{} records were replayed behind a clean stop", recovery.records));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        self.rig.settle()?;
        Ok((guest, recovery))
    }

    fn boot(&self, plan: &Plan, what: &str, cut_after: Option<u64>) -> Result<Guest, Vec<String>> {
        let (console, forwards) = (format!("round {} {what}.txt", plan.round), [self.forward()]);
        self.rig.boot(&console, (&plan.variables(self.rig.planted.as_deref()), &forwards), cut_after)
    }

    fn address(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.forward().outside)
    }

    /// What `zerohop check` said before the server started.
    fn check_problem(&self, output: &str) -> Option<String> {
        let check = match console::checked(output) {
            // The very first start finds no directory, and a cut may take it before anything was promised.
            None => {
                let is_new = self.books.present() == 0 && output.contains("guest: new");
                return (!is_new).then(|| "the data directory is gone".to_owned());
            }
            Some(Err(told)) => return Some(format!("zerohop check: {told}")),
            Some(Ok(check)) => check,
        };
        let (keys, present) = (check.keys, self.books.present());
        (keys != present).then(|| format!("zerohop check counted {keys} keys, and {present} were found"))
    }

    /// Writes until the power fails as planned.
    fn load_and_cut(&mut self, plan: &Plan, guest: &mut Guest, tally: &mut Tally) -> Result<(), Vec<String>> {
        let (gauge, address, rig) = (Gauge::default(), self.address(), &self.rig);
        let ((promised, is_stopped), mut problems) =
            load::under(&mut self.books, (&address, plan.client_seed), &gauge, || {
                let clock = wait_for_cut(plan, guest, rig, &gauge);
                gauge.is_ending.store(true, Ordering::SeqCst);
                // The disk is dead before the machine: what the machine says in between it does not have from the disk.
                rig.disk().cut_now();
                guest.end();
                let is_stopped = console::ended_with(&guest.output()).is_some();
                let promised = clock.map(|clock| match plan.promise {
                    Promise::Interval if !is_stopped => clock.promised(guest.tick()),
                    _ => [u64::MAX; CLIENTS],
                });
                (promised, is_stopped)
            });
        (self.is_left_clean, tally.stops) = (is_stopped, u64::from(is_stopped));
        let output = guest.output();
        problems.extend(told::panic(&output));
        problems.extend(well(&output).err().into_iter().flatten());
        match promised {
            Ok(marks) => self.books.promise(&marks),
            Err(problem) => problems.push(problem),
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        tally.lost = self.rig.after_cut(plan.cut)?;
        tally.units = gauge.units.load(Ordering::SeqCst);
        tally.bulk_requests = gauge.bulk_requests.load(Ordering::SeqCst);
        Ok(())
    }
}

/// Waits until the load is what is planned, sets the cut up, and waits until it has come.
fn wait_for_cut(plan: &Plan, guest: &mut Guest, rig: &Rig, gauge: &Gauge) -> Result<Clock<Marks>, String> {
    let (mut clock, mut is_set_up, mut ticks_before) = (Clock::default(), false, None);
    for _ in 0..LOOKS_MAX {
        let marks: Marks = std::array::from_fn(|client| gauge.marks[client].load(Ordering::SeqCst));
        let tick = guest.tick();
        clock.look(marks, tick);
        let ticks = tick - *ticks_before.get_or_insert(tick);
        if rig.disk().is_cut() || gauge.is_failed.load(Ordering::SeqCst) {
            return Ok(clock); // what a client has met it tells itself
        }
        if !guest.is_well() {
            let is_stopped =
                is_set_up && plan.stop.is_some() && console::ended_with(&guest.output()).as_deref() == Some("0");
            return if is_stopped { Ok(clock) } else { Err(format!("under load: {}", guest.output())) };
        }
        let is_due = gauge.bulk_bytes.load(Ordering::Relaxed) >= plan.load_bytes && ticks >= plan.ticks;
        if is_due && !is_set_up {
            set_up(plan, guest, rig, gauge)?;
            is_set_up = true;
        }
        thread::sleep(LOOK_EVERY);
    }
    let bytes = gauge.bulk_bytes.load(Ordering::Relaxed);
    let output = guest.output();
    Err(format!("{UNPROVEN}after minutes of load {bytes} bytes were acknowledged, and the cut has not come: {output}"))
}

fn set_up(plan: &Plan, guest: &mut Guest, rig: &Rig, gauge: &Gauge) -> Result<(), String> {
    if plan.stop != Some(Stop::CutBehind) {
        rig.disk().cut_after(plan.cut.after_requests);
    }
    if plan.stop.is_some() {
        gauge.is_ending.store(true, Ordering::SeqCst);
        guest.stop().map_err(|error| format!("asking for a stop: {error}"))?;
    }
    Ok(())
}
