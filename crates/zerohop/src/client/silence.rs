//! Nodes of a cluster that say nothing: another one is asked who has their slots, and who waits before them goes there.
//!
//! ```text
//!   asked, nobody looks ─► background thread ── four times a second ──► a link owes a reply for half a second?
//!                                ▲                                        │ yes
//!                                └── rests when nothing is asked          ├─► the table says that its slots are another's: left at once
//!                                                                         ├─► another member is asked for the table, on a thread of its own
//!                                                                         └─► a Zerohop is told after 1.5 s, on a connection of its own
//! ```
//!
//! A node that stands still, or is gone without a word, ends no connection: without this its callers would wait until their time is over.

use super::background::{Core, HURRIES};
use super::link::Link;
use super::reply::Reply;
use super::request::Request;
use base::limits::{NODE_SILENT_US_MAX, TABLE_ANSWER_US_MAX};
use client::Qos;
use client::cluster::{Learning, NodeNumber, QUESTION, Report, Silence, Suspicion};
use client::desk::Ask;
use io::clock::monotonic_us;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// How often it is looked, microseconds.
const LOOK_US: u64 = NODE_SILENT_US_MAX / 2;

/// How long what a report finds is waited for, microseconds.
const REPORTED_US_MAX: u64 = 10_000_000;

/// Who looks, and when.
pub(super) struct Watch {
    /// Nobody looks, because nothing was asked: the next one who asks something wakes the background thread.
    rests: AtomicBool,
    /// When it is looked next, microseconds, and how much had been asked when it was looked last.
    look_us: AtomicU64,
    asked: AtomicU64,
    /// A thread asks for the table.
    is_asking: AtomicBool,
    suspicion: Mutex<Suspicion>,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            rests: AtomicBool::new(true),
            look_us: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            is_asking: AtomicBool::new(false),
            suspicion: Mutex::default(),
        }
    }
}

impl Core {
    /// Something was asked, under a link's lock: it is to be looked at that link from now on.
    #[inline]
    pub(super) fn mind_silence(self: &Arc<Core>) {
        if let Some(cluster) = self.known_cluster()
            && cluster.watch.rests.load(Ordering::Relaxed)
            && cluster.watch.rests.swap(false, Ordering::AcqRel)
        {
            self.wake_background();
        }
    }

    /// Looks whether a node is silent, if it is time to; when to look again. Of the background thread.
    pub(super) fn look_for_silence(self: &Arc<Core>) -> Option<u64> {
        let watch = &self.known_cluster()?.watch;
        if watch.rests.load(Ordering::Acquire) {
            return None;
        }
        let (now_us, look_us) = (monotonic_us(), watch.look_us.load(Ordering::Relaxed));
        if now_us < look_us {
            return Some(look_us);
        }
        watch.look_us.store(now_us + LOOK_US, Ordering::Relaxed);
        let links = self.all_links();
        let asked = links.iter().map(|(_, link)| link.asked.load(Ordering::Relaxed)).sum();
        if watch.asked.swap(asked, Ordering::Relaxed) == asked {
            // Before it is looked: who asks after the look at his link sees it.
            watch.rests.store(true, Ordering::Release);
        }
        let silences = links.iter().map(|(number, link)| (*number, *link.lock().desk.silence()));
        let silences: Vec<_> = silences.filter(|(_, silence)| silence.due_us().is_some()).collect();
        if silences.is_empty() {
            return (!watch.rests.load(Ordering::Relaxed)).then_some(now_us + LOOK_US);
        }
        watch.rests.store(false, Ordering::Release);
        let silent: Vec<_> = silences.into_iter().filter(|(_, silence)| silence.is_long(now_us)).collect();
        if let Some((number, _)) = silent.first() {
            self.leave_silent();
            self.ask_others(number / HURRIES);
        }
        for (number, silence) in silent {
            self.suspect(now_us, NodeNumber::of(number / HURRIES), &silence);
        }
        Some(now_us + LOOK_US)
    }

    /// Begins to ask others than that node who has its slots, unless somebody does.
    fn ask_others(self: &Arc<Core>, silent: usize) {
        let watch = &self.cluster().watch;
        if watch.is_asking.swap(true, Ordering::AcqRel) {
            return;
        }
        let core = Arc::clone(self);
        let begun = Builder::new().name("zerohop-table".to_owned()).spawn(move || {
            if core.learn_from_others(silent) {
                core.leave_silent();
            }
            core.cluster().watch.is_asking.store(false, Ordering::Release);
        });
        if begun.is_err() {
            // It is looked again soon.
            watch.is_asking.store(false, Ordering::Release);
        }
    }

    /// Asks one after the other until one says who has which slots. Whether one did.
    fn learn_from_others(self: &Arc<Core>, silent: usize) -> bool {
        let (cluster, mut learning) = (self.cluster(), Learning::default());
        cluster.with_table(|table| learning.doubt(NodeNumber::of(silent), table));
        while !self.is_closed() {
            let now_us = monotonic_us();
            let Some(node) = cluster.with_table(|table| learning.ask(now_us, table)) else {
                let Some(due_us) = learning.deadline_us() else { break };
                std::thread::sleep(Duration::from_micros(due_us.saturating_sub(now_us)));
                continue;
            };
            match self.table_of(node) {
                true => return true,
                false => cluster.with_table(|table| learning.missed(node, table)),
            }
        }
        false
    }

    /// Asks one node for the table, and takes it. Whether there was one.
    fn table_of(self: &Arc<Core>, node: NodeNumber) -> bool {
        let cluster = self.cluster();
        cluster.reach(&self.settings, node);
        // With those in a hurry: what others have there may take long.
        let link = self.link(node.index() * HURRIES + 1);
        let mut question = Request::new().word("CLUSTER").word("NODES");
        let Ok(request) = question.finish() else { return false };
        let (qos, deadline_us) = (Qos::Single, monotonic_us() + TABLE_ANSWER_US_MAX);
        let caller = self.next_caller();
        let ask = Ask { caller, qos, is_read: true, deadline_us, is_asking: false, slot: None, request };
        match link.call(self, ask) {
            Ok(Reply::BulkString(text) | Reply::VerbatimString(_, text)) => {
                cluster.learn(&self.settings, &String::from_utf8_lossy(&text), link.host())
            }
            _ => false,
        }
    }

    /// Who waits before a silent node for slots that are another one's by the table goes there.
    fn leave_silent(self: &Arc<Core>) {
        let table = self.cluster().with_table(|table| table.clone());
        let now_us = monotonic_us();
        let mut has_strays = false;
        for (number, link) in self.all_links() {
            has_strays |= link.desert(now_us, &table, NodeNumber::of(number / HURRIES));
        }
        if has_strays {
            self.wake_background();
        }
    }

    /// Has a node reported that says nothing for long, if it is time to.
    fn suspect(self: &Arc<Core>, now_us: u64, node: NodeNumber, silence: &Silence) {
        let cluster = self.cluster();
        let mut suspicion = cluster.watch.suspicion.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(report) = cluster.with_table(|table| suspicion.report(now_us, node, silence, table)) else { return };
        let core = Arc::clone(self);
        // Without a thread it is not reported, which nobody relies on.
        drop(Builder::new().name("zerohop-report".to_owned()).spawn(move || core.report(&report)));
    }

    /// Tells a node of Zerohop, on a connection that is nobody else's: the answer may take seconds.
    fn report(self: &Arc<Core>, report: &Report) {
        let address = self.cluster().with_table(|table| table.address(report.to).to_owned());
        let link = Link::new(&Arc::new(self.settings.of_node(&address)), u64::from(self.process()), true);
        let say = |words: [&str; 3]| {
            let mut request = words.into_iter().fold(Request::new(), |request, word| request.word(word));
            let request = request.finish().ok()?;
            let (qos, deadline_us) = (Qos::Single, monotonic_us() + REPORTED_US_MAX);
            let caller = self.next_caller();
            let ask = Ask { caller, qos, is_read: false, deadline_us, is_asking: false, slot: None, request };
            link.call(self, ask).ok()
        };
        if matches!(say(QUESTION), Some(Reply::Array(found)) if matches!(found[..], [Reply::Array(_) | Reply::Map(_)]))
        {
            say(report.words());
        }
        link.close();
    }
}
