//! Keys, and how they went.

use super::Value::Whole;
use super::{Metric, counter, counters, gauge};

pub(super) static METRICS: [Metric; 4] = [
    gauge("zerohop_keys", "Keys, copies of what others serve included, by numbered database; empty ones are left out.")
        .of_node(&["database"], |sample, series| {
            for (database, (keys, _)) in sample.keyspaces() {
                series.put(&[&database], Whole(keys));
            }
        }),
    gauge("zerohop_keys_expiring", "Of those, keys that will expire.").of_node(&["database"], |sample, series| {
        for (database, (_, expiring)) in sample.keyspaces() {
            series.put(&[&database], Whole(expiring));
        }
    }),
    counter("zerohop_keys_expired", "Keys removed because their time was up.")
        .info("expired_keys")
        .of_core(|core| Whole(counters(core).expired_keys)),
    counter("zerohop_keys_evicted", "Keys removed to make room.")
        .info("evicted_keys")
        .of_core(|core| Whole(counters(core).evicted_keys)),
];
