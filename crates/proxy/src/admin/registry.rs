//! The registry: every metric of a proxy, once. What collectors read and docs/proxy-metrics.md are made from it.

use admin::exposition::{Family, Format, Series, Value};
use admin::registry::{Kind, unit_of};

use super::sample::Sample;
use crate::standing::{ClassStanding, CoreStanding, DestinationStanding};

/// One metric, and where its numbers come from.
pub(crate) struct Metric {
    pub family: Family,
    read: fn(&Sample, &mut Series<'_>),
}

/// What belongs together on the page.
pub(crate) struct Group {
    pub heading: &'static str,
    pub about: &'static str,
    pub metrics: &'static [Metric],
}

const fn metric(
    kind: Kind,
    (name, help): (&'static str, &'static str),
    labels: &'static [&'static str],
    read: fn(&Sample, &mut Series<'_>),
) -> Metric {
    Metric { family: Family { name, kind, unit: unit_of(name), help, labels }, read }
}

/// A line for each core that answered and each class.
macro_rules! of_class {
    ($kind:ident, $name:literal, $help:literal, $value:expr) => {
        metric(Kind::$kind, ($name, $help), &["class", "core"], |sample, series| {
            let value: fn(&ClassStanding) -> Value = $value;
            for (core, standing) in sample.answered() {
                standing.classes.iter().for_each(|class| series.put(&[&class.class.name, &core], value(class)));
            }
        })
    };
}

/// A line for each core that answered.
macro_rules! of_core {
    ($kind:ident, $name:literal, $help:literal, $value:expr) => {
        metric(Kind::$kind, ($name, $help), &["core"], |sample, series| {
            let value: fn(&CoreStanding) -> u64 = $value;
            sample.answered().for_each(|(core, standing)| series.put(&[&core], Value::Whole(value(standing))));
        })
    };
}

/// A line for each core that answered and each node that it asked something of.
macro_rules! of_destination {
    ($kind:ident, $name:literal, $help:literal, $value:expr) => {
        metric(Kind::$kind, ($name, $help), &["destination", "core"], |sample, series| {
            let value: fn(&DestinationStanding) -> Value = $value;
            for (core, standing) in sample.answered() {
                standing.destinations.iter().for_each(|one| series.put(&[&one.address, &core], value(one)));
            }
        })
    };
}

static OF_PROXY: [Metric; 6] = [
    metric(
        Kind::Gauge,
        ("zerohop_proxy_info", "Always 1; the labels say what runs."),
        &["version", "io_driver"],
        |sample, series| series.put(&[&env!("CARGO_PKG_VERSION"), &sample.backend], Value::Whole(1)),
    ),
    metric(
        Kind::Gauge,
        (
            "zerohop_proxy_core_up",
            "1 if the core answered this scrape in time; of one that did not, there are no other lines.",
        ),
        &["core"],
        |sample, series| {
            for (core, standing) in sample.cores.iter().enumerate() {
                series.put(&[&core], Value::Whole(u64::from(standing.is_some())));
            }
        },
    ),
    metric(Kind::Gauge, ("zerohop_proxy_uptime_seconds", "How long the proxy has run."), &[], |sample, series| {
        series.put(&[], Value::Micros(sample.uptime_us))
    }),
    metric(
        Kind::Counter,
        ("zerohop_proxy_admin_requests", "Requests to the admin port, of whatever kind."),
        &[],
        |sample, series| series.put(&[], Value::Whole(sample.own.requests)),
    ),
    of_core!(
        Counter,
        "zerohop_proxy_failed_logins",
        "Logins with a wrong name or password, of a proxy with users of its own.",
        |core| core.failed_logins
    ),
    of_core!(
        Counter,
        "zerohop_proxy_refused_requests",
        "Requests that the proxy's users may not make, and those of clients that had to log in first.",
        |core| core.refused_requests
    ),
];

static OF_CLASSES: [Metric; 12] = [
    of_class!(Gauge, "zerohop_proxy_class_weight", "Weight of the class, see docs/proxy-file.md.", |one| {
        Value::Whole(one.class.weight.into())
    }),
    of_class!(Gauge, "zerohop_proxy_class_callers", "Clients that are in the class.", |one| Value::Whole(one.callers)),
    of_class!(Gauge, "zerohop_proxy_class_callers_waiting", "Clients whose next request has to wait.", |one| {
        Value::Whole(one.callers_waiting)
    }),
    of_class!(Counter, "zerohop_proxy_class_requests", "Requests that were taken.", |one| {
        Value::Whole(one.counts.requests)
    }),
    of_class!(Counter, "zerohop_proxy_class_request_bytes", "Bytes of requests that were taken.", |one| {
        Value::Whole(one.counts.request_bytes)
    }),
    of_class!(Counter, "zerohop_proxy_class_replies", "Replies that clients were given.", |one| {
        Value::Whole(one.counts.replies)
    }),
    of_class!(Counter, "zerohop_proxy_class_reply_bytes", "Bytes of replies that clients were given.", |one| {
        Value::Whole(one.counts.reply_bytes)
    }),
    of_class!(Counter, "zerohop_proxy_class_replies_with_deadline", "Replies that were wanted by some time.", |one| {
        Value::Whole(one.counts.wanted)
    }),
    of_class!(Counter, "zerohop_proxy_class_replies_late", "Those of them that came later than wanted.", |one| {
        Value::Whole(one.counts.late)
    }),
    of_class!(Gauge, "zerohop_proxy_class_requests_outstanding", "Requests that are not answered.", |one| {
        Value::Whole(one.outstanding.requests)
    }),
    of_class!(
        Gauge,
        "zerohop_proxy_class_oldest_seconds",
        "How long ago the oldest of them was taken; 0 without one.",
        |one| { Value::Micros(one.outstanding.oldest_us) }
    ),
    metric(
        Kind::Histogram,
        (
            "zerohop_proxy_class_latency_seconds",
            "From when a request was taken until its reply was there, of requests that the store answered.",
        ),
        &["class", "core"],
        |sample, series| {
            for (core, standing) in sample.answered() {
                for one in standing.classes.iter().filter(|one| one.counts.replies > 0) {
                    let latency = &one.counts.latency;
                    series.put_histogram(&[&one.class.name, &core], &latency.buckets(), latency.longer, latency.sum_us);
                }
            }
        },
    ),
];

static OF_DESTINATIONS: [Metric; 15] = [
    of_destination!(Gauge, "zerohop_proxy_destination_open", "Connections on which requests flow.", |one| {
        Value::Whole(one.open)
    }),
    of_destination!(
        Gauge,
        "zerohop_proxy_destination_down",
        "Connections that nobody answered when they were dialed last.",
        |one| { Value::Whole(one.down) }
    ),
    of_destination!(
        Counter,
        "zerohop_proxy_destination_requests",
        "Requests that were handed to its lanes: enqueued.",
        |one| { Value::Whole(one.counts.requests) }
    ),
    of_destination!(Counter, "zerohop_proxy_destination_requests_sent", "Requests that left.", |one| {
        Value::Whole(one.counts.requests_sent)
    }),
    of_destination!(Counter, "zerohop_proxy_destination_batches_sent", "Writes in which they left.", |one| {
        Value::Whole(one.counts.batches_sent)
    }),
    of_destination!(Counter, "zerohop_proxy_destination_sent_bytes", "Bytes of requests that left.", |one| {
        Value::Whole(one.counts.bytes_sent)
    }),
    of_destination!(Counter, "zerohop_proxy_destination_replies", "Replies that came.", |one| {
        Value::Whole(one.counts.replies)
    }),
    of_destination!(
        Counter,
        "zerohop_proxy_destination_batches_done",
        "Batches of which the last reply came.",
        |one| { Value::Whole(one.counts.batches_done) }
    ),
    of_destination!(
        Counter,
        "zerohop_proxy_destination_first_reply_seconds",
        "From when each of these left until its first reply, added up.",
        |one| { Value::Micros(one.counts.first_reply_us) }
    ),
    of_destination!(
        Counter,
        "zerohop_proxy_destination_done_seconds",
        "From when each of these left until its last reply, added up.",
        |one| { Value::Micros(one.counts.done_us) }
    ),
    of_destination!(
        Gauge,
        "zerohop_proxy_destination_requests_outstanding",
        "Requests that are not answered, waiting or sent.",
        |one| { Value::Whole(one.outstanding.requests) }
    ),
    of_destination!(
        Gauge,
        "zerohop_proxy_destination_oldest_seconds",
        "How long ago the oldest of them was taken; 0 without one.",
        |one| { Value::Micros(one.outstanding.oldest_us) }
    ),
    of_destination!(
        Counter,
        "zerohop_proxy_destination_connections",
        "Connections that were opened: beyond the first of each lane, reconnects.",
        |one| { Value::Whole(one.counts.connections) }
    ),
    of_destination!(
        Counter,
        "zerohop_proxy_destination_redirects",
        "Replies that sent their requests elsewhere: MOVED, ASK and the like.",
        |one| { Value::Whole(one.redirects) }
    ),
    of_destination!(
        Counter,
        "zerohop_proxy_destination_retries",
        "Reads that were sent again because their connection was lost.",
        |one| { Value::Whole(one.retries) }
    ),
];

/// All groups, in the order of the page and of the exposition.
pub(crate) static GROUPS: [Group; 3] = [
    Group { heading: "The proxy", about: "What runs, and whether its cores do.", metrics: &OF_PROXY },
    Group {
        heading: "Classes",
        about: "Tenants, by the names of [the proxy's file](proxy-file.md#which-class-counts); callers of whom nothing is said are in `default`. \
                What becomes a connection of its own for good, as by `SUBSCRIBE`, is counted up to there.",
        metrics: &OF_CLASSES,
    },
    Group {
        heading: "Destinations",
        about: "Nodes of the store, by address: what is handed to their lanes is enqueued, leaves in a batch, has its first reply and its last.",
        metrics: &OF_DESTINATIONS,
    },
];

/// The whole text.
pub(crate) fn write(sample: &Sample, format: Format) -> String {
    let mut out = String::new();
    for metric in GROUPS.iter().flat_map(|group| group.metrics) {
        (metric.read)(sample, &mut Series::begin(metric.family, format, &mut out));
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}
