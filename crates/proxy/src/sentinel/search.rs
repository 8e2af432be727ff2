//! The search for the master: which sentinel is asked next, whom its word leads to, and when all of it begins again.
//!
//! ```text
//!  resting ──► asking ──► probing ──► resting, with a master, and the sentinel that named it watched for news
//!     ▲           │ no use   │ no master
//!     │           ▼          ▼
//!     └─ nobody ◄─ the next sentinel, until all were asked
//! ```

use super::OWN_DIALS;
use super::line::Line;
use super::words::{Answer, to_master, to_sentinel, to_watch};
use crate::upstream::MasterName;
use base::ConnectionId;
use base::limits::{
    SENTINEL_AGAIN_US, SENTINEL_ANSWER_US_MAX, SENTINEL_ASKED_US_MIN, SENTINEL_QUIET_US_MAX, SENTINELS_MAX,
};
use base::street::{Effect, Now};

/// What came of a search.
pub(super) enum News {
    /// The master is known; whether it is another one than before.
    Found { is_other: bool },
    /// It is not: what everybody said.
    Nobody(String),
}

/// Where a search stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nobody is asked.
    Resting,
    /// The sentinel is, until then.
    Asking { until_us: u64 },
    /// So is the server that it named.
    Probing { until_us: u64 },
}

/// See the module.
pub(super) struct Search {
    /// Those that were named, and behind them others that these know.
    sentinels: Vec<String>,
    named: usize,
    /// Whom the sentinel that is asked knows: believed once it led to a master.
    others: Vec<String>,
    name: MasterName,
    state: State,
    /// The sentinel that is asked first, and how many were asked in this search.
    first: usize,
    asked: usize,
    /// What was wrong with each of them.
    wrong: Vec<String>,
    /// To the sentinel that is asked, or was and is watched; how many answers came, and when it was last heard of.
    sentinel: Option<Line>,
    answers: usize,
    heard_us: u64,
    is_pinged: bool,
    /// To the server that is probed.
    probe: Option<Line>,
    master: Option<String>,
    is_doubted: bool,
    /// Somebody wants a search, not before this.
    due_us: Option<u64>,
    begun_us: Option<u64>,
    dials: u64,
    news: Option<News>,
}

impl Search {
    pub fn new(sentinels: Vec<String>, name: MasterName) -> Search {
        Search {
            named: sentinels.len(),
            others: Vec::new(),
            sentinels,
            name,
            state: State::Resting,
            first: 0,
            asked: 0,
            wrong: Vec::new(),
            sentinel: None,
            answers: 0,
            heard_us: 0,
            is_pinged: false,
            probe: None,
            master: None,
            is_doubted: false,
            due_us: None,
            begun_us: None,
            dials: OWN_DIALS,
            news: None,
        }
    }

    /// The last one that was found.
    pub fn master(&self) -> Option<&str> {
        self.master.as_deref()
    }

    /// The same, as long as nothing speaks against it.
    pub fn trusted(&self) -> Option<&str> {
        self.master().filter(|_| !self.is_doubted && self.sentinel.is_some() && self.state == State::Resting)
    }

    /// The master may be another one by now: before it is dialed again the sentinels are asked.
    pub fn doubt(&mut self) {
        self.is_doubted = true;
    }

    /// Begins with the next [`Search::pass`], or as soon as the last one is long enough ago.
    pub fn want(&mut self, now: Now) {
        if self.state == State::Resting {
            let earliest_us = self.begun_us.map_or(0, |begun_us| begun_us + SENTINEL_ASKED_US_MIN);
            self.want_at(earliest_us.max(now.monotonic_us));
        }
    }

    fn want_at(&mut self, due_us: u64) {
        self.due_us = Some(self.due_us.map_or(due_us, |before_us| before_us.min(due_us)));
    }

    /// What came of it, once.
    pub fn take_news(&mut self) -> Option<News> {
        self.news.take()
    }

    /// Whether a connection is the search's own.
    #[inline]
    pub fn holds(&self, connection: ConnectionId) -> bool {
        let has = |line: &Option<Line>| line.as_ref().is_some_and(|line| line.has(connection));
        has(&self.sentinel) || has(&self.probe)
    }

    /// A dial of the search's own is over.
    pub fn dialed(&mut self, now: Now, token: u64, dialed: Result<ConnectionId, String>, effects: &mut Vec<Effect>) {
        let is_of = |line: &Option<Line>| line.as_ref().is_some_and(|line| line.is_dialed_by(token));
        match dialed {
            Ok(connection) if is_of(&self.sentinel) => {
                let line = self.sentinel.as_mut().expect("it was just seen");
                line.begin(connection, to_sentinel(&self.name), effects);
            }
            Ok(connection) if is_of(&self.probe) => {
                let line = self.probe.as_mut().expect("it was just seen");
                line.begin(connection, to_master(), effects);
            }
            Ok(connection) => effects.push(Effect::Close { connection }),
            Err(reason) if is_of(&self.sentinel) => {
                self.refuse_sentinel(now, &format!("does not answer: {reason}"), effects)
            }
            Err(reason) if is_of(&self.probe) => {
                self.refuse_place(now, &format!("where nobody answers: {reason}"), effects);
            }
            Err(_) => {}
        }
    }

    /// Bytes of a connection of its own.
    pub fn received(&mut self, now: Now, connection: ConnectionId, bytes: &[u8], effects: &mut Vec<Effect>) {
        let is_probe = self.probe.as_ref().is_some_and(|probe| probe.has(connection));
        let line = if is_probe { &mut self.probe } else { &mut self.sentinel };
        let Some(taken) = line.as_mut().map(|line| line.take(bytes)) else { return };
        match taken {
            Err(_) if is_probe => self.refuse_place(now, "which does not speak as a store does", effects),
            Err(_) => self.refuse_sentinel(now, "does not answer as sentinels do", effects),
            Ok(answers) if is_probe => {
                if let Some(role) = answers.first() {
                    self.probed(now, role, effects);
                }
            }
            Ok(answers) => {
                (self.heard_us, self.is_pinged) = (now.monotonic_us, false);
                for answer in &answers {
                    self.sentinel_said(now, answer, effects);
                    if !self.holds(connection) {
                        // It is of no use; what else it says is nobody's answer.
                        break;
                    }
                }
            }
        }
    }

    /// A send is done.
    pub fn sent(&mut self, connection: ConnectionId) {
        for line in [&mut self.sentinel, &mut self.probe].into_iter().flatten() {
            if line.has(connection) {
                line.is_sending = false;
            }
        }
    }

    /// A connection of its own is gone.
    pub fn closed(&mut self, now: Now, connection: ConnectionId, effects: &mut Vec<Effect>) {
        match self.probe.as_ref().is_some_and(|probe| probe.has(connection)) {
            true => self.refuse_place(now, "which ended the connection", effects),
            false => self.refuse_sentinel(now, "ended the connection", effects),
        }
    }

    fn sentinel_said(&mut self, now: Now, answer: &Answer, effects: &mut Vec<Effect>) {
        let number = self.answers;
        self.answers += 1;
        let login = usize::from(self.name.login.is_some());
        if number < login {
            if let Answer::Error(text) = answer {
                self.refuse_sentinel(now, &format!("refuses the login of --sentinel-password-file: {text}"), effects);
            }
        } else if number == login {
            self.others = answer.others();
        } else if number == login + 1 {
            match answer.place() {
                Ok(place) => self.probe(now, place, effects),
                Err(reason) => self.refuse_sentinel(now, &reason, effects),
            }
        } else if answer.is_switch(&self.name.name) {
            // Only the occasion to ask again: that another one is the master now has to be seen.
            self.is_doubted = true;
            self.want(now);
        }
    }

    /// Is that one the master?
    fn probe(&mut self, now: Now, place: String, effects: &mut Vec<Effect>) {
        if !matches!(self.state, State::Asking { .. }) {
            return;
        }
        self.state = State::Probing { until_us: now.monotonic_us + SENTINEL_ANSWER_US_MAX };
        self.probe = Some(Line::dial(self.next_dial(), place, effects));
    }

    fn probed(&mut self, now: Now, role: &Answer, effects: &mut Vec<Effect>) {
        match role.is_master() {
            Err(reason) => self.refuse_place(now, &reason, effects),
            Ok(()) => {
                let probe = self.probe.take().expect("it said so");
                let place = probe.address.clone();
                probe.end(effects);
                let is_other = self.master.as_ref().is_some_and(|before| *before != place);
                self.know_others();
                (self.state, self.due_us, self.is_doubted) = (State::Resting, None, false);
                self.master = Some(place);
                self.news = Some(News::Found { is_other });
            }
        }
    }

    /// The sentinel led to a master: those that it knows are asked, too, when those that were named say nothing. It is asked first
    /// the next time.
    fn know_others(&mut self) {
        let trusted = self.sentinels[(self.first + self.asked - 1) % self.sentinels.len()].clone();
        self.sentinels.truncate(self.named);
        for other in std::iter::once(trusted.clone()).chain(std::mem::take(&mut self.others)) {
            if self.sentinels.len() < SENTINELS_MAX && !self.sentinels.contains(&other) {
                self.sentinels.push(other);
            }
        }
        self.first = self.sentinels.iter().position(|sentinel| *sentinel == trusted).unwrap_or(0);
    }

    /// Where a sentinel leads to is no master.
    fn refuse_place(&mut self, now: Now, reason: &str, effects: &mut Vec<Effect>) {
        let Some(probe) = self.probe.take() else { return };
        let place = probe.address.clone();
        probe.end(effects);
        self.refuse_sentinel(now, &format!("names {place}, {reason}"), effects);
    }

    /// A sentinel is of no use: the next one is asked, or if it was only watched, all of them, soon.
    fn refuse_sentinel(&mut self, now: Now, reason: &str, effects: &mut Vec<Effect>) {
        let Some(sentinel) = self.sentinel.take() else { return };
        let told = format!("{} {reason}", sentinel.address);
        sentinel.end(effects);
        if let Some(probe) = self.probe.take() {
            probe.end(effects);
        }
        match self.state {
            State::Resting => {
                // Whoever is gone is asked last.
                self.first = (self.first + 1) % self.sentinels.len();
                self.want(now);
            }
            State::Asking { .. } | State::Probing { .. } => {
                self.wrong.push(told);
                self.ask_next(now, effects);
            }
        }
    }

    fn begin(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if let Some(watched) = self.sentinel.take() {
            watched.end(effects);
        }
        self.wrong.clear();
        (self.asked, self.due_us, self.begun_us) = (0, None, Some(now.monotonic_us));
        self.ask_next(now, effects);
    }

    fn ask_next(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.asked == self.sentinels.len() {
            self.state = State::Resting;
            self.is_doubted = true;
            self.want_at(now.monotonic_us + SENTINEL_AGAIN_US);
            let each = self.wrong.join("; ");
            self.news = Some(News::Nobody(format!("no sentinel leads to the master: {each}")));
            return;
        }
        let address = self.sentinels[(self.first + self.asked) % self.sentinels.len()].clone();
        self.asked += 1;
        self.answers = 0;
        self.others.clear();
        self.state = State::Asking { until_us: now.monotonic_us + SENTINEL_ANSWER_US_MAX };
        self.sentinel = Some(Line::dial(self.next_dial(), address, effects));
    }

    fn next_dial(&mut self) -> u64 {
        self.dials += 1;
        self.dials
    }

    /// Time has passed: who takes too long is given up, who is watched has to say something, and a search that is wanted begins.
    pub fn pass(&mut self, now: Now, effects: &mut Vec<Effect>) {
        match self.state {
            State::Asking { until_us } if until_us <= now.monotonic_us => {
                self.refuse_sentinel(now, "does not answer in time", effects);
            }
            State::Probing { until_us } if until_us <= now.monotonic_us => {
                self.refuse_place(now, "which does not answer in time", effects);
            }
            State::Resting if self.due_us.is_some_and(|due_us| due_us <= now.monotonic_us) => self.begin(now, effects),
            State::Resting if self.quiet_until_us().is_some_and(|until_us| until_us <= now.monotonic_us) => {
                self.watch(now, effects);
            }
            _ => {}
        }
    }

    /// When a sentinel that is watched and says nothing is to be looked at.
    fn quiet_until_us(&self) -> Option<u64> {
        self.sentinel.as_ref().map(|_| self.heard_us + SENTINEL_QUIET_US_MAX)
    }

    /// Asks whether it is there still; who has not answered that either is gone.
    fn watch(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Some(line) = &mut self.sentinel else { return };
        if self.is_pinged || line.is_sending {
            return self.refuse_sentinel(now, "is gone", effects);
        }
        line.ask(to_watch(), effects);
        (self.is_pinged, self.heard_us) = (true, now.monotonic_us);
    }

    /// When it wants to be looked at.
    pub fn deadline_us(&self) -> Option<u64> {
        match self.state {
            State::Asking { until_us } | State::Probing { until_us } => Some(until_us),
            State::Resting => [self.due_us, self.quiet_until_us()].into_iter().flatten().min(),
        }
    }
}
