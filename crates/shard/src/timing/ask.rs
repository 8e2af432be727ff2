//! What SLOWLOG and LATENCY ask of every core, and how the answers become a reply.

use super::events::{ByEvent, Event, Samples};
use super::graph::graph;
use super::slow_log::SlowEntry;
use crate::gather::{Answer, Purpose, Question};
use crate::shard::Shard;
use base::Door;
use wire::Reply;

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimingRequest {
    /// So many entries, the latest first; `None`: all.
    SlowGet(Option<usize>),
    /// How many there are.
    SlowLen,
    /// Forget them. The reply is written.
    SlowReset,
    /// The latest sample of each event.
    Latest,
    /// All samples of an event.
    History(Event),
    /// A picture of them.
    Graph(Event),
    /// A report for people.
    Doctor,
    /// Forget these events; how many there were.
    Reset(Vec<Event>),
}

/// What a core is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimingQuestion {
    /// Entries of the slow log.
    SlowLog,
    /// Forget them.
    ResetSlowLog,
    /// Samples.
    Events,
    /// Samples of these, and forget them.
    TakeEvents(Vec<Event>),
}

/// What it answers.
#[derive(Clone, Debug)]
pub enum TimingAnswer {
    /// Entries, the latest first.
    SlowLog(Vec<SlowEntry>),
    /// Samples by event.
    Events(ByEvent),
}

impl TimingRequest {
    fn question(&self) -> TimingQuestion {
        match self {
            TimingRequest::SlowGet(_) | TimingRequest::SlowLen => TimingQuestion::SlowLog,
            TimingRequest::SlowReset => TimingQuestion::ResetSlowLog,
            TimingRequest::Latest | TimingRequest::History(_) | TimingRequest::Graph(_) | TimingRequest::Doctor => {
                TimingQuestion::Events
            }
            TimingRequest::Reset(events) => TimingQuestion::TakeEvents(events.clone()),
        }
    }
}

impl Shard {
    /// Asks the cores that the connection's door shows: a cluster client asks each instance for itself.
    pub(crate) fn start_timing_request(&mut self, index: u32, request: TimingRequest) {
        let question = Question::Timing(request.question());
        let here_alone = self.door(index) == Door::Cluster;
        match request {
            TimingRequest::SlowReset if here_alone => drop(self.answer_question(question)),
            TimingRequest::SlowReset => self.tell_all(&question),
            request if here_alone => self.start_gather_here(index, question, Purpose::Timing(request)),
            request => self.start_gather(index, &question, Purpose::Timing(request)),
        }
    }

    /// What this core knows.
    pub(crate) fn answer_timing(&mut self, question: TimingQuestion) -> Answer {
        match question {
            TimingQuestion::SlowLog => {
                Answer::Timing(TimingAnswer::SlowLog(self.timing.slow_log.entries().cloned().collect()))
            }
            TimingQuestion::ResetSlowLog => {
                self.timing.slow_log.reset();
                Answer::Count(0)
            }
            TimingQuestion::Events => Answer::Timing(TimingAnswer::Events(self.timing.events.all().clone())),
            TimingQuestion::TakeEvents(events) => {
                Answer::Timing(TimingAnswer::Events(self.timing.events.take(&events)))
            }
        }
    }
}

/// What a reply says beyond the answers.
pub(crate) struct Setting {
    /// Entries that the node shows.
    pub entries_max: usize,
    /// Waits that long are events, milliseconds; 0: none is.
    pub threshold_ms: i64,
    /// Unix time.
    pub now_unix_s: u64,
}

/// Writes the reply that all answers make.
pub(crate) fn write(request: &TimingRequest, answers: Vec<TimingAnswer>, setting: &Setting, reply: &mut Reply<'_>) {
    let (mut entries, mut events) = (Vec::new(), ByEvent::new());
    for answer in answers {
        match answer {
            TimingAnswer::SlowLog(more) => entries.extend(more),
            TimingAnswer::Events(more) => {
                more.into_iter().for_each(|(event, samples)| events.entry(event).or_default().merge(samples));
            }
        }
    }
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.id));
    entries.truncate(setting.entries_max);
    match request {
        TimingRequest::SlowGet(count) => {
            entries.truncate(count.unwrap_or(usize::MAX));
            reply.array(entries.len());
            entries.iter().for_each(|entry| entry.write(reply));
        }
        TimingRequest::SlowLen => reply.integer(entries.len() as i64),
        TimingRequest::SlowReset => {}
        TimingRequest::Latest => write_latest(&events, reply),
        TimingRequest::History(event) => write_history(events.get(event), reply),
        TimingRequest::Graph(event) => match events.get(event) {
            Some(samples) => reply.verbatim(b"txt", graph(*event, samples, setting.now_unix_s).as_bytes()),
            None => no_samples(event.name().as_bytes(), reply),
        },
        TimingRequest::Doctor => reply.verbatim(b"txt", report(&events, setting.threshold_ms).as_bytes()),
        TimingRequest::Reset(_) => reply.integer(events.len() as i64),
    }
}

/// Redis's answer to who wants a picture of nothing.
pub(crate) fn no_samples(event: &[u8], reply: &mut Reply<'_>) {
    reply.error_bytes("ERR", &[b"No samples available for event '", event, b"'"].concat());
}

fn write_latest(events: &ByEvent, reply: &mut Reply<'_>) {
    let latest: Vec<_> =
        events.iter().filter_map(|(event, samples)| Some((event, samples, samples.latest()?))).collect();
    reply.array(latest.len());
    for (event, samples, latest) in latest {
        reply.array(4);
        reply.bulk(event.name().as_bytes());
        for number in [latest.unix_s, latest.ms, samples.ms_max()] {
            reply.integer(number as i64);
        }
    }
}

fn write_history(samples: Option<&Samples>, reply: &mut Reply<'_>) {
    reply.array(samples.map_or(0, |samples| samples.kept().len()));
    for sample in samples.into_iter().flat_map(Samples::kept) {
        reply.array(2);
        reply.integer(sample.unix_s as i64);
        reply.integer(sample.ms as i64);
    }
}

fn report(events: &ByEvent, threshold_ms: i64) -> String {
    if threshold_ms == 0 && events.is_empty() {
        return "Nothing is watched: CONFIG SET latency-monitor-threshold <milliseconds> says from which length on a wait is \
                kept.\n"
            .into();
    }
    if events.is_empty() {
        return format!("Nothing has taken {threshold_ms} ms or more since it is watched.\n");
    }
    events.iter().map(|(event, samples)| line(*event, samples)).collect()
}

fn line(event: Event, samples: &Samples) -> String {
    let (seconds, sum) = samples.kept().fold((0, 0), |(seconds, sum), sample| (seconds + 1, sum + sample.ms));
    let mean = sum / u64::max(seconds, 1);
    let advice = match event {
        Event::Command => {
            "SLOWLOG GET says which commands; smaller pieces (SCAN, LRANGE of a part) let others in between"
        }
        Event::FastCommand => {
            "the command does little, so the processor or memory was taken away: look for neighbours and swap"
        }
        Event::LogSync => "the disk is slow or shared; in durability commit every write waits for it",
        Event::TickGap => "a core served nobody; INFO zerohop lists its longest gaps with their times",
    };
    let name = event.name();
    format!(
        "{name}: {seconds} seconds with one, {mean} ms in the mean of their longest, {} ms at most. {advice}.\n",
        samples.ms_max()
    )
}

impl Shard {
    /// What the settings say.
    pub(crate) fn timing_setting(&self) -> Setting {
        let config = &self.node.config;
        Setting {
            entries_max: usize::try_from(config.integer("slowlog-max-len")).unwrap_or(usize::MAX),
            threshold_ms: config.integer("latency-monitor-threshold"),
            now_unix_s: self.now.unix_ms / 1000,
        }
    }
}
