//! The result of a run, for people and for programs.

use std::fmt;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Latency of the measured requests, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 % are at most this.
    pub p90: f64,
    /// 99 % are at most this.
    pub p99: f64,
    /// 99.9 % are at most this.
    pub p99_9: f64,
    /// 99.99 % are at most this.
    pub p99_99: f64,
    /// Longest.
    pub max: f64,
}

impl Latency {
    /// From a histogram of nanoseconds; `None` of one without a sample.
    pub fn of(histogram: &Histogram<u64>) -> Option<Latency> {
        let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
        (!histogram.is_empty()).then(|| Latency {
            mean: histogram.mean() / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: histogram.max() as f64 / 1e3,
        })
    }
}

/// What the server's process spent in the window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerCost {
    /// Process id.
    pub pid: u32,
    /// CPU time per request, microseconds, user and kernel, all threads.
    pub us_per_request: f64,
    /// Share of it in user space (from 10 ms ticks).
    pub user_us_per_request: f64,
    /// Share of it in the kernel (from 10 ms ticks).
    pub system_us_per_request: f64,
    /// Context switches per request.
    pub context_switches_per_request: f64,
    /// Cores kept busy.
    pub cores: f64,
}

/// Little's law: requests in flight = throughput x mean latency. In a closed loop both sides are known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LittlesLaw {
    /// Connections x pipeline.
    pub in_flight: f64,
    /// Throughput x mean latency.
    pub throughput_times_latency: f64,
}

impl LittlesLaw {
    /// Whether the two sides agree within 10 %: if not, the generator itself holds requests back or miscounts.
    pub fn holds(&self) -> bool {
        (self.throughput_times_latency / self.in_flight - 1.0).abs() <= 0.10
    }
}

/// Open loop: how well the offered load was met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offered {
    /// Intended requests per second.
    pub per_second: f64,
    /// Intended starts within the window that were never sent.
    pub unsent: u64,
    /// How far behind its schedule the generator was at the end, milliseconds.
    pub behind_ms: f64,
}

/// How much of its schedule a load may have before it at the end and still be called sustained, milliseconds.
const BACKLOG_MS_MAX: f64 = 10.0;

impl Offered {
    /// Whether the server kept up: at the end no more than the last 10 ms of the schedule were still to be started, or one start
    /// where the gaps are longer. Neither in number nor in time: starts that lie before the window are only in the second.
    pub fn sustained(&self) -> bool {
        let backlog_ms_max = BACKLOG_MS_MAX.max(1e3 / self.per_second);
        self.behind_ms <= backlog_ms_max && self.unsent as f64 <= self.per_second * backlog_ms_max / 1e3
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The load in one line.
    pub workload: String,
    /// Replies within the window.
    pub requests: u64,
    /// Length of the window, seconds.
    pub seconds: f64,
    /// Replies per second.
    pub per_second: f64,
    /// Latency of the requests that started within the window, microseconds; open loop: from the intended start. `None` when there
    /// was none.
    pub latency_us: Option<Latency>,
    /// Error replies within the window.
    pub errors: u64,
    /// Error replies before it and behind it.
    pub errors_outside: u64,
    /// Text of the first error reply: of one within the window, or else of one outside.
    pub first_error: Option<String>,
    /// Replies within the window that said "no such key".
    pub misses: u64,
    /// Those before it and behind it.
    pub misses_outside: u64,
    /// The server's cost, when its process can be seen.
    pub server: Option<ServerCost>,
    /// Cores the generator kept busy.
    pub generator_cores: f64,
    /// Cores kept busy by anything else (needs the server's process).
    pub foreign_cores: Option<f64>,
    /// Closed loop only.
    pub littles_law: Option<LittlesLaw>,
    /// Open loop only.
    pub offered: Option<Offered>,
}

impl Report {
    fn write_latency(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(latency) = &self.latency_us else {
            return writeln!(
                f,
                "latency     no sample: no request that was to start in the measured time was answered"
            );
        };
        writeln!(f, "latency us     mean      p50      p90      p99    p99.9   p99.99      max")?;
        let columns = [latency.mean, latency.p50, latency.p90, latency.p99, latency.p99_9, latency.p99_99, latency.max];
        write!(f, "          ")?;
        for column in columns {
            write!(f, " {column:8.1}")?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "load        {}", self.workload)?;
        writeln!(f, "requests    {} in {:.2} s: {:.0} per second", self.requests, self.seconds, self.per_second)?;
        self.write_latency(f)?;
        if let Some(server) = &self.server {
            writeln!(
                f,
                "server      {:.3} us CPU per request (user {:.2}, kernel {:.2}), {:.3} context switches, {:.2} cores",
                server.us_per_request,
                server.user_us_per_request,
                server.system_us_per_request,
                server.context_switches_per_request,
                server.cores
            )?;
        }
        write!(f, "generator   {:.2} cores", self.generator_cores)?;
        if let Some(foreign) = self.foreign_cores {
            write!(f, "; everything else on this machine {foreign:.2} cores")?;
        }
        writeln!(f)?;
        if let Some(law) = &self.littles_law {
            let verdict = if law.holds() { "agrees" } else { "DISAGREES: do not trust the latencies" };
            writeln!(
                f,
                "Little      {:.0} in flight, throughput x latency = {:.1}: {verdict}",
                law.in_flight, law.throughput_times_latency
            )?;
        }
        if let Some(offered) = &self.offered {
            let verdict = if offered.sustained() { "sustained" } else { "NOT sustained" };
            writeln!(
                f,
                "offered     {:.0} per second: {verdict} ({} never sent, {:.1} ms behind at the end)",
                offered.per_second, offered.unsent, offered.behind_ms
            )?;
        }
        if self.misses > 0 {
            writeln!(f, "misses      {} replies said there is no such key (--preload writes them all)", self.misses)?;
        }
        if let Some(error) = &self.first_error {
            write!(f, "ERRORS      {} of {}", self.errors, self.requests)?;
            if self.errors_outside > 0 {
                write!(f, " ({} more outside the measured time)", self.errors_outside)?;
            }
            writeln!(f, ", first: {error}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn a_load_is_sustained_when_at_most_ten_milliseconds_of_it_or_one_start_are_left() {
        let sustained = |per_second, unsent, behind_ms| Offered { per_second, unsent, behind_ms }.sustained();
        assert!(sustained(1000.0, 10, 10.0));
        assert!(!sustained(1000.0, 11, 10.0));
        assert!(!sustained(900_000.0, 0, 1156.5), "all that was sent belonged to the warm-up");
        assert!(sustained(2.0, 1, 400.0), "the next start of a slow load may wait for its only connection");
        assert!(!sustained(2.0, 2, 400.0) && !sustained(2.0, 1, 600.0));
    }

    #[test]
    fn latencies_without_a_sample_are_none_and_not_zero() {
        let mut histogram = Histogram::new(3).expect("three digits are a valid shape");
        assert_eq!(Latency::of(&histogram), None);
        let report = Report::default();
        assert!(report.to_string().contains("latency     no sample"), "{report}");
        let json = serde_json::to_value(&report).expect("a report is JSON");
        assert!(json["latency_us"].is_null(), "{json}");
        histogram.record(2_000).expect("it fits");
        assert_eq!(Latency::of(&histogram).map(|latency| latency.max.round()), Some(2.0));
    }

    /// Of requests that took so much each.
    pub(crate) fn cost(us_per_request: f64) -> ServerCost {
        ServerCost {
            pid: 1,
            us_per_request,
            user_us_per_request: us_per_request,
            system_us_per_request: 0.0,
            context_switches_per_request: 0.0,
            cores: 1.0,
        }
    }
}
