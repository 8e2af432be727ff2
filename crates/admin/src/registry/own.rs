//! The admin port itself.

use super::Value::{Micros, Whole};
use super::{Metric, counter, gauge};

pub(super) static METRICS: [Metric; 4] = [
    counter("zerohop_admin_requests", "Requests to the admin port, this one included.")
        .of_node(&[], |sample, series| series.put(&[], Whole(sample.own.requests))),
    counter("zerohop_admin_refused", "Of those, with an error for an answer: malformed, too long, unknown.")
        .of_node(&[], |sample, series| series.put(&[], Whole(sample.own.refused))),
    counter(
        "zerohop_admin_connections_ended",
        "Connections of the admin port that took too long, or were in others' way.",
    )
    .of_node(&[], |sample, series| series.put(&[], Whole(sample.own.ended))),
    gauge("zerohop_admin_round_seconds", "How long the cores took to answer this scrape.")
        .of_node(&[], |sample, series| series.put(&[], Micros(sample.own.round_us))),
];
