//! One picture: numbers of a moment, or of all since the start, out of what `/metrics` said. Arithmetic only.

use serde_json::{Value, json};

use super::histogram::Histogram;
use super::reading::Reading;

/// Everything that is shown at once.
pub struct Frame {
    /// By the addresses that were named.
    pub sources: Vec<Source>,
}

/// What one admin port says.
#[derive(Debug, PartialEq)]
pub struct Source {
    /// Its address.
    pub address: String,
    /// What is wrong with it, a line each.
    pub problems: Vec<String>,
    /// Whether it was read at all.
    pub is_reachable: bool,
    /// The time that rates are of, seconds.
    pub seconds: f64,
    /// Whether that is all since the start.
    pub is_since_start: bool,
    /// Of a proxy.
    pub classes: Vec<Class>,
    /// Of a proxy.
    pub destinations: Vec<Destination>,
    /// Of a node.
    pub cores: Vec<Core>,
}

/// A class of a proxy.
#[derive(Debug, PartialEq)]
pub struct Class {
    pub name: String,
    pub weight: f64,
    pub callers: f64,
    pub replies_per_second: f64,
    /// Seconds; `None` without a reply.
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    /// Of the replies with a deadline; `None` without one.
    pub in_time_percent: Option<f64>,
    /// In this time, and since the start.
    pub late: f64,
    pub late_ever: f64,
    /// Clients that have to wait, and requests that are not answered.
    pub callers_waiting: f64,
    pub outstanding: f64,
    pub oldest_seconds: f64,
}

/// A node of a proxy's store.
#[derive(Debug, PartialEq)]
pub struct Destination {
    pub address: String,
    pub replies_per_second: f64,
    /// Requests of one write; `None` without one.
    pub batch: Option<f64>,
    /// From a batch's leaving to its last reply, seconds, in the mean; `None` without one.
    pub latency: Option<f64>,
    pub outstanding: f64,
    pub oldest_seconds: f64,
    pub open: f64,
    pub down: f64,
}

/// A core of a node.
#[derive(Debug, PartialEq)]
pub struct Core {
    pub name: String,
    pub is_up: bool,
    pub requests_per_second: f64,
    pub received_bytes_per_second: f64,
    pub sent_bytes_per_second: f64,
    pub logged_bytes_per_second: f64,
    pub syncs_per_second: f64,
    pub hops_per_second: f64,
    pub clients: f64,
    pub memory_bytes: f64,
}

/// Two readings, or one.
struct Span<'a> {
    now: &'a Reading,
    before: Option<&'a Reading>,
    seconds: f64,
}

impl Span<'_> {
    /// By how much a counter grew. One that begins anew grew from nothing.
    fn growth(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let now = self.now.sum(name, labels);
        let before = self.before.map_or(0.0, |before| before.sum(name, labels));
        if now >= before { now - before } else { now }
    }

    fn rate(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        if self.seconds > 0.0 { self.growth(name, labels) / self.seconds } else { 0.0 }
    }

    /// One growth by another.
    fn ratio(&self, above: &str, below: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let below = self.growth(below, labels);
        (below > 0.0).then(|| self.growth(above, labels) / below)
    }
}

impl Source {
    /// Nobody is there who can be read.
    pub fn unreachable(address: &str, problem: String) -> Source {
        let (address, problems) = (address.to_owned(), vec![problem]);
        let (classes, destinations, cores) = (Vec::new(), Vec::new(), Vec::new());
        Source {
            address,
            problems,
            is_reachable: false,
            seconds: 0.0,
            is_since_start: false,
            classes,
            destinations,
            cores,
        }
    }

    /// What was read now, at that time since 1970, and so many seconds before.
    pub fn of(
        address: &str,
        problems: Vec<String>,
        now: &Reading,
        before: Option<(f64, &Reading)>,
        unix_seconds: f64,
    ) -> Source {
        let seconds = match before {
            Some((seconds, _)) => seconds,
            None if now.has("zerohop_proxy_uptime_seconds") => now.most("zerohop_proxy_uptime_seconds", &[]),
            None => unix_seconds - now.most("process_start_time_seconds", &[]),
        };
        let span = Span { now, before: before.map(|(_, reading)| reading), seconds };
        let names = |name: &str, label: &str| now.values(name, label).into_iter();
        let classes = names("zerohop_proxy_class_weight", "class").map(|name| Class::of(&span, name));
        let destinations =
            names("zerohop_proxy_destination_open", "destination").map(|address| Destination::of(&span, address));
        Source {
            address: address.to_owned(),
            problems,
            is_reachable: true,
            seconds,
            is_since_start: before.is_none(),
            classes: classes.collect(),
            destinations: destinations.collect(),
            cores: names("zerohop_core_up", "core").map(|name| Core::of(&span, name)).collect(),
        }
    }
}

impl Class {
    fn of(span: &Span<'_>, name: String) -> Class {
        let labels = [("class", name.as_str())];
        let sum = |metric: &str| span.now.sum(metric, &labels);
        let latency = Histogram::of(span.now, span.before, "zerohop_proxy_class_latency_seconds", &labels);
        let late = span.growth("zerohop_proxy_class_replies_late_total", &labels);
        let wanted = span.growth("zerohop_proxy_class_replies_with_deadline_total", &labels);
        Class {
            weight: span.now.most("zerohop_proxy_class_weight", &labels),
            callers: sum("zerohop_proxy_class_callers"),
            replies_per_second: span.rate("zerohop_proxy_class_replies_total", &labels),
            p50: latency.quantile(0.5),
            p99: latency.quantile(0.99),
            in_time_percent: (wanted > 0.0).then(|| 100.0 * (wanted - late) / wanted),
            late,
            late_ever: sum("zerohop_proxy_class_replies_late_total"),
            callers_waiting: sum("zerohop_proxy_class_callers_waiting"),
            outstanding: sum("zerohop_proxy_class_requests_outstanding"),
            oldest_seconds: span.now.most("zerohop_proxy_class_oldest_seconds", &labels),
            name,
        }
    }
}

impl Destination {
    fn of(span: &Span<'_>, address: String) -> Destination {
        let labels = [("destination", address.as_str())];
        let sum = |metric: &str| span.now.sum(metric, &labels);
        Destination {
            replies_per_second: span.rate("zerohop_proxy_destination_replies_total", &labels),
            batch: span.ratio(
                "zerohop_proxy_destination_requests_sent_total",
                "zerohop_proxy_destination_batches_sent_total",
                &labels,
            ),
            latency: span.ratio(
                "zerohop_proxy_destination_done_seconds_total",
                "zerohop_proxy_destination_batches_done_total",
                &labels,
            ),
            outstanding: sum("zerohop_proxy_destination_requests_outstanding"),
            oldest_seconds: span.now.most("zerohop_proxy_destination_oldest_seconds", &labels),
            open: sum("zerohop_proxy_destination_open"),
            down: sum("zerohop_proxy_destination_down"),
            address,
        }
    }

    /// In a word: whether it answers.
    pub fn health(&self) -> &'static str {
        match (self.open > 0.0, self.down > 0.0) {
            (_, true) => "down",
            (true, false) => "ok",
            (false, false) => "idle",
        }
    }
}

impl Core {
    fn of(span: &Span<'_>, name: String) -> Core {
        let labels = [("core", name.as_str())];
        let rate = |metric: &str| span.rate(metric, &labels);
        Core {
            is_up: span.now.sum("zerohop_core_up", &labels) > 0.0,
            requests_per_second: rate("zerohop_execute_requests_total"),
            received_bytes_per_second: rate("zerohop_receive_bytes_total"),
            sent_bytes_per_second: rate("zerohop_reply_bytes_total"),
            logged_bytes_per_second: rate("zerohop_append_bytes_total"),
            syncs_per_second: rate("zerohop_commit_syncs_total"),
            hops_per_second: rate("zerohop_route_hops_received_total"),
            clients: span.now.sum("zerohop_clients", &labels),
            memory_bytes: span.now.sum("zerohop_memory_used_bytes", &labels),
            name,
        }
    }
}

impl Frame {
    /// What to say if nobody could be read.
    pub fn problem_of_all(&self) -> Option<String> {
        let is_none_reachable = self.sources.iter().all(|source| !source.is_reachable);
        let problems = self.sources.iter().flat_map(|source| &source.problems).cloned();
        is_none_reachable.then(|| problems.collect::<Vec<_>>().join("\n"))
    }

    /// For programs: times in seconds.
    pub fn json(&self) -> Value {
        json!({ "sources": self.sources.iter().map(Source::json).collect::<Vec<_>>() })
    }
}

impl Source {
    fn json(&self) -> Value {
        let class = |one: &Class| {
            json!({
                "class": one.name, "weight": one.weight, "clients": one.callers, "replies_per_second": one.replies_per_second,
                "p50_seconds": one.p50, "p99_seconds": one.p99, "in_time_percent": one.in_time_percent,
                "late": one.late, "late_ever": one.late_ever, "clients_waiting": one.callers_waiting,
                "outstanding": one.outstanding, "oldest_seconds": one.oldest_seconds,
            })
        };
        let destination = |one: &Destination| {
            json!({
                "destination": one.address, "replies_per_second": one.replies_per_second, "requests_per_batch": one.batch,
                "batch_seconds": one.latency, "outstanding": one.outstanding, "oldest_seconds": one.oldest_seconds,
                "open": one.open, "down": one.down, "health": one.health(),
            })
        };
        let core = |one: &Core| {
            json!({
                "core": one.name, "up": one.is_up, "requests_per_second": one.requests_per_second,
                "received_bytes_per_second": one.received_bytes_per_second,
                "sent_bytes_per_second": one.sent_bytes_per_second,
                "logged_bytes_per_second": one.logged_bytes_per_second, "syncs_per_second": one.syncs_per_second,
                "hops_per_second": one.hops_per_second, "clients": one.clients, "memory_bytes": one.memory_bytes,
            })
        };
        json!({
            "address": self.address, "reachable": self.is_reachable, "problems": self.problems,
            "seconds": self.seconds, "since_start": self.is_since_start,
            "classes": self.classes.iter().map(class).collect::<Vec<_>>(),
            "destinations": self.destinations.iter().map(destination).collect::<Vec<_>>(),
            "cores": self.cores.iter().map(core).collect::<Vec<_>>(),
        })
    }
}
