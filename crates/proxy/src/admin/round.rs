//! The admin port of a proxy as a machine: its pages, and one round of questions to the cores at a time for their numbers.
//!
//! ```text
//!   collector ─ HTTP ─► port ─► round: a question to each core ─► answers, or a second without ─► Sample ─► page
//! ```

use admin::exposition::Format;
use admin::http::{Request, Response, Status};
use admin::port::{Found, Port};
use base::CoreId;
use base::limits::{ADMIN_ANSWER_MS_MAX, ADMIN_ROUND_MS_MIN};
use base::street::{Effect, Event, Machine, TickInput, TickOutput};

use super::registry;
use super::sample::Sample;
use crate::standing::{CoreStanding, Word};

/// What there is to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Metrics,
    /// Whether it may be given work, or whether all of it runs.
    Health {
        is_of_store: bool,
    },
}

/// See the module.
pub(crate) struct Admin {
    port: Port<Page>,
    backend: &'static str,
    /// When the proxy began to run, microseconds.
    started_us: u64,
    /// By core: since when it owes an answer, microseconds.
    owed_since_us: Vec<Option<u64>>,
    /// Of the round under way, and when it began.
    answers: Vec<Option<Box<CoreStanding>>>,
    began_us: Option<u64>,
    next_us: u64,
    /// Another process takes over; whether its listener is given up.
    leaving: Option<bool>,
}

impl Admin {
    /// Beside so many cores, which run on that since then.
    pub fn new(cores: usize, backend: &'static str, started_us: u64) -> Admin {
        Admin {
            port: Port::new(find),
            backend,
            started_us,
            owed_since_us: vec![None; cores],
            answers: Vec::new(),
            began_us: None,
            next_us: 0,
            leaving: None,
        }
    }

    /// Whoever answers has ticked just now, whichever question it was.
    fn heed(&mut self, input: &mut TickInput<'_, Word>) {
        for (from, word) in input.hops.drain(..) {
            let core = usize::from(from.0);
            if let Word::Leave { .. } = word {
                self.leaving = Some(false);
                self.port.effects.push(Effect::StopListening);
            }
            if let (Word::Standing(standing), Some(owed)) = (word, self.owed_since_us.get_mut(core)) {
                *owed = None;
                self.answers[core] = Some(standing);
            }
        }
    }

    /// The round under way ends when all have answered, or after a second.
    fn end(&mut self, now_us: u64) {
        let Some(began_us) = self.began_us else { return };
        if self.owed_since_us.iter().any(Option::is_some) && now_us < began_us + ADMIN_ANSWER_MS_MAX * 1000 {
            return;
        }
        self.began_us = None;
        let owed = self.owed_since_us.iter().map(|owed| owed.map_or(0, |since_us| now_us.saturating_sub(since_us)));
        let sample = Sample {
            uptime_us: now_us.saturating_sub(self.started_us),
            backend: self.backend,
            owed_us: owed.collect(),
            cores: std::mem::take(&mut self.answers),
            own: self.port.own,
        };
        self.port.tell(|page, request| answer(&sample, page, request));
    }

    fn begin(&mut self, now_us: u64, hops: &mut Vec<(CoreId, Word)>) {
        if self.began_us.is_some() || now_us < self.next_us || !self.port.is_waited_for() {
            return;
        }
        self.port.begin();
        (self.began_us, self.next_us) = (Some(now_us), now_us + ADMIN_ROUND_MS_MIN * 1000);
        self.answers = self.owed_since_us.iter().map(|_| None).collect();
        for (core, owed) in self.owed_since_us.iter_mut().enumerate().filter(|(_, owed)| owed.is_none()) {
            *owed = Some(now_us);
            hops.push((CoreId(core as u16), Word::Ask));
        }
    }

    fn deadline_us(&self) -> Option<u64> {
        let round_us = match self.began_us {
            Some(began_us) => Some(began_us + ADMIN_ANSWER_MS_MAX * 1000),
            None => self.port.is_waited_for().then_some(self.next_us),
        };
        self.port.deadline_us().into_iter().chain(round_us).min()
    }
}

impl Machine for Admin {
    type Message = Word;

    fn tick(&mut self, mut input: TickInput<'_, Word>, output: &mut TickOutput<Word>) {
        let now_us = input.now.monotonic_us;
        self.heed(&mut input);
        if input.events.iter().any(|event| matches!(event, Event::ListeningStopped)) {
            self.leaving = Some(true);
        }
        self.port.receive(now_us, input.received, input.events);
        self.end(now_us);
        self.begin(now_us, &mut output.hops);
        output.effects.append(&mut self.port.effects);
        output.deadline_us = self.deadline_us();
        if self.port.is_stopping || (self.leaving == Some(true) && self.port.is_empty()) {
            output.effects.push(Effect::Stop);
        }
    }
}

fn find(path: &str) -> Found<Page> {
    match path {
        "/metrics" => Found::Page(Page::Metrics),
        "/healthz" => Found::Page(Page::Health { is_of_store: true }),
        "/livez" => Found::Page(Page::Health { is_of_store: false }),
        _ => Found::Nothing("there are /metrics, /healthz and /livez"),
    }
}

fn answer(sample: &Sample, page: Page, request: &Request) -> Response {
    match page {
        Page::Metrics => {
            let format = Format::accepted(&request.accept);
            let body = registry::write(sample, format);
            Response { status: Status::Ok, content_type: format.content_type(), body }
        }
        Page::Health { is_of_store } => {
            let reasons = sample.reasons(is_of_store);
            match reasons.is_empty() {
                true => Response::text(Status::Ok, "ok"),
                false => Response::text(Status::Unhealthy, &reasons.join("\n")),
            }
        }
    }
}
