//! A request before it is asked: blocking, awaited, or submitted.

use super::Client;
use super::background::Core;
use super::cluster::{SentOn, Way};
use super::error::Error;
use super::from_reply::FromReply;
use super::gathering::Round;
use super::inbox::Ticket;
use super::parts::Parts;
use super::reply::Reply;
use super::request::{Request, ToArg};
use super::seat::{Answer, Seat, TaskSeat};
use super::whole::Whole;
use client::Qos;
use client::desk::{Ask, Place};
use io::clock::monotonic_us;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A request. Nothing happens until one [waits](Call::wait) for it, awaits it, or [submits](Call::submit) it.
///
/// Dropped while its reply is on its way, it leaves nothing behind: the reply is dropped when it comes. What was sent is carried out.
#[must_use = "nothing is sent before wait(), await or submit()"]
pub struct Call<'c, T> {
    client: &'c Client,
    request: Request,
    /// Unknown as long as words may be added.
    is_read: Option<bool>,
    qos: Qos,
    timeout: Duration,
    asked: Option<Asked>,
    sent_on: Option<SentOn>,
    times_sent_on: u8,
    in_parts: Option<Whole>,
    wanted: PhantomData<fn() -> T>,
}

/// Where a future's request is.
struct Asked {
    core: Arc<Core>,
    link: usize,
    place: Place,
    seat: Arc<TaskSeat>,
    is_answered: bool,
    /// It lets others ask, and sends when it is polled again.
    must_look: Option<Round>,
}

impl<'c, T: FromReply> Call<'c, T> {
    #[inline]
    pub(super) fn new(client: &'c Client, request: Request, is_read: Option<bool>) -> Call<'c, T> {
        let timeout = client.settings().timeout;
        Call {
            client,
            request,
            is_read,
            qos: Qos::Batch,
            timeout,
            asked: None,
            sent_on: None,
            times_sent_on: 0,
            in_parts: None,
            wanted: PhantomData,
        }
    }

    /// The reply is wanted within that time: the request waits for others only as long as that allows. It is no promise; less than
    /// a round trip means at once. [`Call::timeout`] says when to give up.
    pub fn within(mut self, time: Duration) -> Call<'c, T> {
        self.qos = Qos::Within { us: u64::try_from(time.as_micros()).unwrap_or(u64::MAX) };
        self
    }

    /// How long the reply is waited for, in place of the client's time.
    pub fn timeout(mut self, time: Duration) -> Call<'c, T> {
        self.timeout = time;
        self
    }

    /// Asks, and waits for the reply; the calling thread does the work where it can.
    ///
    /// # Errors
    /// [`Error`] says what happened, and whether the request was carried out.
    pub fn wait(mut self) -> Result<T, Error> {
        let client = self.client;
        let core = client.core()?;
        let is_read = self.is_read()?;
        let mut way = self.way(core);
        let in_parts = self.may_go_in_parts(core);
        let (qos, timeout) = (self.qos, self.timeout);
        let mut ask = ask(client.caller(), qos, is_read, timeout, self.request.finish()?);
        if in_parts && let Some(whole) = Whole::of(core, &ask, timeout) {
            return self.taken(whole.wait(None));
        }
        let mut times = 0;
        let answer = loop {
            (ask.is_asking, ask.slot) = (way.is_ask, way.slot);
            let answer = core.link(way.link).call(core, ask);
            if core.is_refused_whole(&answer)
                && let Some(whole) = Whole::of(core, &ask, timeout)
            {
                return self.taken(whole.wait(Some(way.link)));
            }
            match core.sent_on(&answer, way.link, &mut times)? {
                None => break answer,
                Some(sent_on) => way = core.follow(&sent_on)?,
            }
        };
        self.taken(answer)
    }

    /// Asks, and returns at once: the ticket is for the reply.
    ///
    /// # Errors
    /// As [`Call::wait`], for what is known at once; and [`Error::Unclaimed`] when too many replies wait to be taken.
    pub fn submit(mut self) -> Result<Ticket<T>, Error> {
        let client = self.client;
        let core = client.core()?;
        let is_read = self.is_read()?;
        let Way { link, slot, .. } = self.way(core);
        let in_parts = self.may_go_in_parts(core);
        let (qos, timeout) = (self.qos, self.timeout);
        let ask = Ask { slot, ..ask(client.caller(), qos, is_read, timeout, self.request.finish()?) };
        let inbox = client.inbox();
        let number = inbox.begin(client.settings().unclaimed_max, ask.request)?;
        let seat = Seat::Inbox(Arc::clone(inbox), number);
        let parts = if in_parts { Parts::of(&ask, timeout, seat.clone()) } else { None };
        let asked = match parts {
            Some(parts) => core.ask_parts(&parts).map_err(|full| full.error(core)),
            None => core.ask(link, ask, seat).map(drop),
        };
        match asked {
            Ok(()) => Ok(Ticket::new(number, Arc::clone(inbox))),
            Err(error) => {
                inbox.forget(number);
                Err(error)
            }
        }
    }

    /// Asks where `way` says, or where the key is.
    fn begin(&mut self, way: Option<Way>) -> Result<Asked, Error> {
        let client = self.client;
        let core = client.core()?;
        let is_read = self.is_read()?;
        let Way { link, is_ask, slot } = way.unwrap_or_else(|| self.way(core));
        let (qos, timeout) = (self.qos, self.timeout);
        let seat = Arc::new(TaskSeat::default());
        let ask =
            Ask { is_asking: is_ask, slot, ..ask(client.caller(), qos, is_read, timeout, self.request.finish()?) };
        let (place, must_look) = core.ask(link, ask, Seat::Task(Arc::clone(&seat)))?;
        Ok(Asked { core: Arc::clone(core), link, place, seat, is_answered: false, must_look })
    }

    /// Typed calls have their key behind the command's name.
    fn way(&self, core: &Core) -> Way {
        core.choose(&self.request, self.is_read.is_some(), self.qos)
    }

    /// Whether it has keys of which several nodes of a cluster may have some.
    #[inline]
    fn may_go_in_parts(&self, core: &Core) -> bool {
        core.known_cluster().is_some() && self.request.may_be_spread()
    }

    /// All of it in parts, if it has some.
    fn whole(&mut self, core: &Arc<Core>) -> Result<Option<Whole>, Error> {
        let (caller, is_read, qos, timeout) = (self.client.caller(), self.is_read()?, self.qos, self.timeout);
        Ok(Whole::of(core, &ask(caller, qos, is_read, timeout, self.request.finish()?), timeout))
    }

    fn is_read(&self) -> Result<bool, Error> {
        self.is_read.map_or_else(|| self.request.is_shared_read(), Ok)
    }

    fn taken(&self, answer: Answer) -> Result<T, Error> {
        match answer {
            Ok(reply) => T::from_reply(reply),
            Err(Error::TimedOut { address, .. }) => Err(Error::TimedOut { address, after: self.timeout }),
            Err(error) => Err(error),
        }
    }
}

impl<'c> Call<'c, Reply> {
    /// One more word.
    pub fn arg(mut self, word: impl ToArg) -> Call<'c, Reply> {
        self.request.push(&word);
        self
    }

    /// One more word for each of these.
    pub fn args<W: ToArg>(mut self, words: impl IntoIterator<Item = W>) -> Call<'c, Reply> {
        words.into_iter().for_each(|word| self.request.push(&word));
        self
    }

    /// What the reply is wanted as.
    pub fn query<T: FromReply>(mut self) -> Call<'c, T> {
        let request = std::mem::take(&mut self.request);
        Call { qos: self.qos, timeout: self.timeout, ..Call::new(self.client, request, self.is_read) }
    }
}

#[inline]
fn ask(caller: u64, qos: Qos, is_read: bool, timeout: Duration, request: &[u8]) -> Ask<'_> {
    let time_us = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
    let deadline_us = monotonic_us().saturating_add(time_us);
    Ask { caller, qos, is_read, deadline_us, is_asking: false, slot: None, request }
}

/// Asks when it is polled for the first time.
impl<T: FromReply> Future for Call<'_, T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let is_in_parts = self.in_parts.is_some();
        match &mut self.asked {
            Some(asked) => asked.look(),
            None if is_in_parts => {}
            None => match self.way_later(context) {
                None => return Poll::Pending,
                Some(way) => way.and_then(|way| self.ask_by(way, context))?,
            },
        }
        loop {
            if let Some(whole) = &mut self.in_parts {
                let answer = whole.poll(context.waker());
                return answer.map_or(Poll::Pending, |answer| Poll::Ready(self.taken(answer)));
            }
            let asked = self.asked.as_mut().expect("it was asked just now, or before");
            let Some((answer, leads)) = asked.seat.poll(context.waker()) else { return Poll::Pending };
            asked.is_answered = true;
            let (core, link) = (Arc::clone(&asked.core), asked.link);
            if leads {
                core.link(link).wake_chain();
            }
            if core.is_refused_whole(&answer)
                && let Some(whole) = self.whole(&core)?
            {
                whole.ask(Some(link))?;
                self.in_parts = Some(whole);
                continue;
            }
            self.sent_on = core.sent_on(&answer, link, &mut self.times_sent_on)?;
            if self.sent_on.is_none() {
                return Poll::Ready(self.taken(answer));
            }
            self.asked = None;
            match self.way_later(context) {
                None => return Poll::Pending,
                Some(way) => way.and_then(|way| self.ask_by(way, context))?,
            }
        }
    }
}

impl<T: FromReply> Call<'_, T> {
    /// By which way it goes that a node sent on, if that is known by now; of any other the key says it.
    fn way_later(&mut self, context: &Context<'_>) -> Option<Result<Option<Way>, Error>> {
        let Some(sent_on) = &self.sent_on else { return Some(Ok(None)) };
        let core = match self.client.core() {
            Ok(core) => core,
            Err(error) => return Some(Err(error)),
        };
        let way = core.follow_later(sent_on, context.waker())?;
        self.sent_on = None;
        Some(way.map(Some))
    }

    fn ask_by(&mut self, way: Option<Way>, context: &Context<'_>) -> Result<(), Error> {
        let core = self.client.core()?;
        if way.is_none()
            && self.may_go_in_parts(core)
            && let Some(whole) = self.whole(core)?
        {
            whole.ask(None)?;
            self.in_parts = Some(whole);
            return Ok(());
        }
        let asked = self.begin(way)?;
        if asked.must_look.is_some() {
            context.waker().wake_by_ref();
        }
        self.asked = Some(asked);
        Ok(())
    }
}

impl Asked {
    fn look(&mut self) {
        if let Some(round) = self.must_look.take() {
            self.core.look(self.link, round);
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.look();
        if !self.is_answered {
            self.core.give_up(self.link, self.place);
            if self.seat.leads() {
                self.core.link(self.link).wake_chain();
            }
        }
    }
}
