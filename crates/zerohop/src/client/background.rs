//! The links of a client in one process, and the thread that drives them while tasks wait and no caller does.

use super::cluster::{Cluster, Way};
use super::error::Error;
use super::gathering::{Gatherer, Round};
use super::link::{Actor, Link, Locked, Reader};
use super::options::Settings;
use super::request::Request;
use super::seat::Seat;
use base::limits::HURRY_US_MAX;
use client::Qos;
use client::desk::{Ask, Place};
use io::clock::monotonic_us;
use io::stream::{Bell, Stream, Watched, wait};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;
use std::time::Duration;

/// Links to one server: what is in a hurry does not stand behind a long batch of what is not.
pub(super) const HURRIES: usize = 2;

/// See the module.
pub(crate) struct Core {
    pub(super) settings: Arc<Settings>,
    links: [Link; HURRIES],
    /// Other nodes, once there are any.
    cluster: OnceLock<Cluster>,
    seed: u64,
    bell: Bell,
    has_thread: AtomicBool,
    is_closed: AtomicBool,
    callers: AtomicU64,
    /// The process that this is of.
    process: u32,
    /// That of a child process, which begins anew.
    next: OnceLock<Option<Arc<Core>>>,
}

/// What is in a hurry has a link of its own, and waits for nobody.
#[inline]
pub(super) fn is_in_hurry(qos: Qos) -> bool {
    match qos {
        Qos::Single => true,
        Qos::Within { us } => us <= HURRY_US_MAX,
        Qos::Batch => false,
    }
}

/// What the thread knows of a link while it sleeps.
struct Plan {
    stream: Option<Arc<Stream>>,
    connection: u32,
    for_bytes: bool,
    for_room: bool,
    until_us: Option<u64>,
}

impl Core {
    pub fn new(settings: &Arc<Settings>) -> Result<Arc<Core>, Error> {
        let refused = |error: std::io::Error| Error::System(error.to_string());
        let seed = io::thread::random_seed().map_err(refused)?;
        Ok(Arc::new(Core {
            settings: Arc::clone(settings),
            links: [(seed, false), (seed.rotate_left(32), true)]
                .map(|(seed, hurries)| Link::new(settings, seed, hurries)),
            cluster: OnceLock::new(),
            seed,
            bell: Bell::new().map_err(refused)?,
            has_thread: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            callers: AtomicU64::new(0),
            process: io::fork::process(),
            next: OnceLock::new(),
        }))
    }

    /// The one of this process: in a child of `fork(2)` nothing of the parent's is touched, its locks neither.
    #[inline]
    pub fn current(self: &Arc<Core>) -> Result<&Arc<Core>, Error> {
        let mut core = self;
        while core.process != io::fork::process() {
            let next = core.next.get_or_init(|| Core::new(&core.settings).ok());
            core =
                next.as_ref().ok_or_else(|| Error::System("no descriptor is left for a forked client".to_owned()))?;
        }
        Ok(core)
    }

    /// Which link a request takes. The one place where a node is chosen: for a cluster by the request's key, which a plain command
    /// has behind its name.
    #[inline]
    pub fn choose(&self, request: &Request, is_plain: bool, qos: Qos) -> Way {
        let (slot, node) = self.cluster.get().map_or((None, 0), |cluster| cluster.holder(request, is_plain));
        Way { link: node * HURRIES + usize::from(is_in_hurry(qos)), is_ask: false, slot }
    }

    /// Whether the last handle is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The same, if it turned out to be of one.
    #[inline]
    pub(super) fn known_cluster(&self) -> Option<&Cluster> {
        self.cluster.get()
    }

    /// The nodes of the cluster that the server turned out to be of.
    pub(super) fn cluster(&self) -> &Cluster {
        self.cluster.get_or_init(|| Cluster::new(&self.settings, self.seed))
    }

    #[inline]
    pub fn link(&self, number: usize) -> &Link {
        match self.links.get(number) {
            Some(link) => link,
            None => &self.cluster().links(number / HURRIES)[number % HURRIES],
        }
    }

    /// All of them, by number.
    pub fn all_links(&self) -> Vec<(usize, &Link)> {
        let mut links: Vec<(usize, &Link)> = self.links.iter().enumerate().collect();
        if let Some(cluster) = self.cluster.get() {
            cluster.all_links(&mut links);
        }
        links
    }

    /// A number for one more handle.
    pub fn next_caller(&self) -> u64 {
        self.callers.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks for somebody who does not wait here. A task that is to gather others [looks](Core::look) again when they had their turn.
    pub fn ask(self: &Arc<Core>, number: usize, ask: Ask<'_>, seat: Seat) -> Result<(Place, Option<Round>), Error> {
        self.start()?;
        let link = self.link(number);
        link.asked.fetch_add(1, Ordering::Relaxed);
        let is_task = matches!(seat, Seat::Task(_));
        let mut state = link.lock();
        let now_us = monotonic_us();
        let place = state.desk.ask(now_us, ask, seat).map_err(|why| link.refusal(&state, why))?;
        self.mind_silence();
        state.driven += 1;
        state.gathering.asked();
        let must_look = if is_task { state.begin_to_gather(Gatherer::Task) } else { None };
        self.drive(link, state, now_us);
        Ok((place, must_look))
    }

    /// Others had their turn: what they asked leaves.
    pub fn look(&self, number: usize, round: Round) {
        let link = self.link(number);
        let mut state = link.lock();
        if state.gathering.is_in(round) {
            state.gathering.end();
            self.drive(link, state, monotonic_us());
        }
    }

    /// Sends what is due, and sees to it that somebody does the rest.
    pub(super) fn drive<'a>(&'a self, link: &'a Link, state: Locked<'a>, now_us: u64) {
        let mut state = link.act(state, Actor::Task);
        let next_us = [state.act_us(now_us), state.desk.expiry_us()].into_iter().flatten().min();
        let is_early = next_us.is_some_and(|next_us| next_us < state.background_until_us);
        let is_stuck = state.unsent.is_some();
        let is_left = is_early || state.is_to_dial || state.reader == Reader::Nobody;
        if is_stuck || (is_left && state.driven > 0) {
            self.bell.ring();
        } else {
            state.wake_sleeper();
        }
        link.release(state);
    }

    /// Somebody who does not wait here waits no more.
    pub fn give_up(&self, number: usize, place: Place) {
        let mut state = self.link(number).lock();
        if state.desk.give_up(place).is_some() {
            state.driven -= 1;
        }
    }

    /// Begins the thread when it is needed for the first time.
    pub(super) fn start(self: &Arc<Core>) -> Result<(), Error> {
        if self.has_thread.load(Ordering::Relaxed) || self.has_thread.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let core = Arc::clone(self);
        let begun = Builder::new().name("zerohop-client".to_owned()).spawn(move || core.run());
        begun.map(drop).map_err(|error| {
            self.has_thread.store(false, Ordering::Relaxed);
            Error::System(error.to_string())
        })
    }

    /// Makes the thread look at what there is to do.
    pub fn wake_background(self: &Arc<Core>) {
        // Without a thread the caller who needs one waits until another one reads for it, or until its time is over.
        if self.start().is_ok() {
            self.bell.ring();
        }
    }

    /// The last handle is gone: the thread ends, and who still waits is told.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.all_links().into_iter().for_each(|(_, link)| link.close());
        self.bell.ring();
    }

    /// The same in a child process, which has connections of its own.
    pub fn close_next(&self) {
        let Some(Some(next)) = self.next.get() else { return };
        match next.process == io::fork::process() {
            true => next.close(),
            false => next.close_next(),
        }
    }

    /// The process that this is of.
    pub fn process(&self) -> u32 {
        self.process
    }

    fn run(self: &Arc<Core>) {
        while !self.is_closed() {
            let silence_us = self.look_for_silence();
            let links = self.all_links();
            let plans: Vec<Plan> = links.iter().map(|(_, link)| link.plan()).collect();
            for (number, link) in &links {
                self.send_strays_on(*number, link);
            }
            let until_us = plans.iter().filter_map(|plan| plan.until_us).chain(silence_us).min();
            let time = until_us.map(|us| Duration::from_micros(us.saturating_sub(monotonic_us())));
            let watches = |plan: &Plan| plan.for_bytes || plan.for_room;
            let chosen: Vec<usize> = (0..plans.len()).filter(|&link| watches(&plans[link])).collect();
            let of_plan = |&link: &usize| {
                let Plan { stream, for_bytes, for_room, .. } = &plans[link];
                stream.as_ref().map(|stream| Watched::new(stream, *for_bytes, *for_room))
            };
            let mut watched: Vec<Watched<'_>> = chosen.iter().filter_map(of_plan).collect();
            for &link in &chosen {
                links[link].1.reads.fetch_add(1, Ordering::Relaxed);
            }
            if wait(&mut watched, Some(&self.bell), time).is_err() {
                // No memory for a moment: who waits does so until its time is over.
                std::thread::yield_now();
                continue;
            }
            for (link, watched) in chosen.into_iter().zip(watched) {
                if watched.is_ready {
                    links[link].1.turn(&plans[link]);
                }
            }
        }
    }
}

impl Link {
    /// What the thread has to do for this link is done; what it has to wait for.
    fn plan(&self) -> Plan {
        let mut state = self.lock();
        state.break_chain(monotonic_us());
        self.expire(&mut state);
        state = self.act(state, Actor::Thread);
        let is_needed = state.driven > 0 || state.unsent.is_some();
        if state.reader == Reader::Nobody && is_needed && state.stream.is_some() {
            state.reader = Reader::Watch;
        }
        if state.reader == Reader::Watch && state.stream.is_none() {
            state.reader = Reader::Nobody;
        }
        state.wake_sleeper();
        let now_us = monotonic_us();
        let next_us = [state.act_us(now_us), state.desk.expiry_us()].into_iter().flatten().min();
        // Tasks that were answered together may gather at once, and rely on this thread without ringing.
        let gather_us = state.gathering.expected_until_us(now_us);
        // Threads have timers of their own, but none for what is held by somebody else: that may have been this thread.
        let next_us = next_us.filter(|_| state.driven > 0 || state.gathering.holds(now_us));
        let until_us = [next_us, gather_us, state.chain.until_us()].into_iter().flatten().min();
        state.background_until_us = until_us.unwrap_or(u64::MAX);
        let plan = Plan {
            stream: state.stream.clone(),
            connection: state.dials,
            for_bytes: state.reader == Reader::Watch,
            for_room: state.unsent.is_some(),
            until_us,
        };
        self.release(state);
        plan
    }

    /// The socket is ready for something.
    fn turn(&self, plan: &Plan) {
        let mut state = self.lock();
        let Some(stream) = state.stream.clone().filter(|_| state.dials == plan.connection) else { return };
        if plan.for_room {
            state = self.send_rest(state);
        }
        if state.reader == Reader::Watch && state.stream.is_some() {
            state.reader = Reader::Background;
            let mut buffer = state.take_buffer();
            drop(state);
            self.reads.fetch_add(1, Ordering::Relaxed);
            let received = stream.receive_now(&mut buffer);
            state = self.lock();
            state.reader = Reader::Watch;
            self.hear(&mut state, plan.connection, received, &buffer, None);
            state.buffer = buffer;
        }
        // Those who were answered hear of it when what waited for them is on its way.
        state = self.act(state, Actor::Thread);
        self.release_to_tasks(state);
    }
}
