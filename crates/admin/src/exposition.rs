//! The text that collectors read: a sample through the registry, as OpenMetrics 1.0 or in Prometheus's older format.
//!
//! ```text
//!   # HELP zerohop_reply_bytes Bytes sent to clients.        the older format repeats `_total` here
//!   # TYPE zerohop_reply_bytes counter
//!   # UNIT zerohop_reply_bytes bytes                         OpenMetrics only
//!   zerohop_reply_bytes_total{core="0"} 1234
//!   # EOF                                                    OpenMetrics only
//! ```

use std::fmt::{Display, Write};

use crate::registry::{Kind, Read, Unit, all};
use crate::sample::Sample;

/// How the text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `text/plain; version=0.0.4`.
    Prometheus,
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
}

impl Format {
    /// What a collector says it takes.
    pub fn accepted(accept: &str) -> Format {
        if accept.contains("application/openmetrics-text") { Format::OpenMetrics } else { Format::Prometheus }
    }

    /// As HTTP calls it.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A number of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// As it is.
    Whole(u64),
    /// Microseconds, shown as seconds.
    Micros(u64),
    /// Milliseconds, shown as seconds.
    Millis(u64),
    /// There is none, so that no line is written.
    Absent,
}

impl Value {
    fn write(self, out: &mut String) {
        let written = match self {
            Value::Whole(number) => write!(out, "{number}"),
            Value::Micros(us) => write!(out, "{}.{:06}", us / 1_000_000, us % 1_000_000),
            Value::Millis(ms) => write!(out, "{}.{:03}", ms / 1000, ms % 1000),
            Value::Absent => unreachable!("no line is written for it"),
        };
        written.expect("writing to a String cannot fail");
    }
}

/// What a metric's lines have in common.
#[derive(Clone, Copy)]
pub struct Family {
    /// Its name, without what a kind puts behind it.
    pub name: &'static str,
    /// What it does.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// One sentence.
    pub help: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
}

/// Where the lines of one metric go.
pub struct Series<'a> {
    family: Family,
    out: &'a mut String,
}

impl<'a> Series<'a> {
    /// Writes the head of a metric; its lines come next.
    pub fn begin(family: Family, format: Format, out: &'a mut String) -> Series<'a> {
        let Family { name, kind, unit, help, .. } = family;
        let suffix = if format == Format::Prometheus { kind.suffix() } else { "" };
        let written = write!(out, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {}\n", kind.word());
        written.expect("writing to a String cannot fail");
        if let (Format::OpenMetrics, Some(unit)) = (format, unit.word()) {
            writeln!(out, "# UNIT {name} {unit}").expect("writing to a String cannot fail");
        }
        Series { family, out }
    }

    /// A line; `labels` are the values of the metric's labels, in their order.
    ///
    /// # Panics
    /// When there are not as many as the registry says.
    pub fn put(&mut self, labels: &[&dyn Display], value: Value) {
        self.line(self.family.kind.suffix(), labels, None, value);
    }

    /// The lines of a histogram: how many were at most as long as each bound, and longer; bounds and their sum in microseconds.
    pub fn put_histogram(&mut self, labels: &[&dyn Display], buckets: &[(u64, u64)], longer: u64, sum_us: u64) {
        let mut count = 0;
        for (bound_us, more) in buckets {
            count += more;
            let mut bound = String::new();
            Value::Micros(*bound_us).write(&mut bound);
            self.line("_bucket", labels, Some(&bound), Value::Whole(count));
        }
        count += longer;
        self.line("_bucket", labels, Some("+Inf"), Value::Whole(count));
        self.line("_sum", labels, None, Value::Micros(sum_us));
        self.line("_count", labels, None, Value::Whole(count));
    }

    fn line(&mut self, suffix: &str, labels: &[&dyn Display], bound: Option<&str>, value: Value) {
        let Family { name, labels: names, .. } = self.family;
        assert_eq!(labels.len(), names.len(), "the labels of {name}");
        if value == Value::Absent {
            return;
        }
        self.out.push_str(name);
        self.out.push_str(suffix);
        let mut begin = '{';
        let named = names.iter().copied().zip(labels.iter().map(ToString::to_string));
        for (name, label) in named.chain(bound.map(|bound| ("le", bound.to_owned()))) {
            self.out.push(begin);
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape(&label, self.out);
            self.out.push('"');
            begin = ',';
        }
        self.out.push_str(if begin == '{' { " " } else { "} " });
        value.write(self.out);
        self.out.push('\n');
    }
}

/// Both formats escape the same three in values of labels.
fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

/// The whole text.
pub(crate) fn write(sample: &Sample, format: Format) -> String {
    let mut out = String::new();
    for metric in all() {
        let mut series = Series::begin(metric.family(), format, &mut out);
        match metric.read {
            Read::Core(read) => {
                sample.answered().for_each(|(core, standing)| series.put(&[&core], read(standing)));
            }
            Read::Node(read) => read(sample, &mut series),
        }
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use shard::beside::CoreStanding;

    fn sample() -> Sample {
        let mut sample = Sample { cores: vec![Some(Box::new(CoreStanding::default())), None], ..Sample::default() };
        sample.identity.io_driver = "a\"b\\c\nd".to_owned();
        sample.identity.started.unix_ms = 1_700_000_000_007;
        sample.process.cpu_user_us = 2_000_001;
        sample
    }

    #[test]
    fn values_of_labels_are_escaped_and_times_are_seconds() {
        let text = write(&sample(), Format::Prometheus);
        assert!(text.contains(r#",io_driver="a\"b\\c\nd",durability="""#), "{text}");
        assert!(text.contains("\nprocess_start_time_seconds 1700000000.007\n"));
        assert!(text.contains("\nprocess_cpu_seconds_total 2.000001\n"));
        assert!(
            text.contains("\nzerohop_core_up{core=\"1\"} 0\n") && !text.contains("zerohop_ticks_total{core=\"1\"}")
        );
    }

    #[test]
    fn each_format_has_its_head_and_its_end() {
        let (old, open) = (write(&sample(), Format::Prometheus), write(&sample(), Format::OpenMetrics));
        let head = "# HELP zerohop_reply_bytes_total Bytes sent to clients.\n# TYPE zerohop_reply_bytes_total counter\nzerohop";
        assert!(old.contains(head) && !old.contains("# UNIT") && !old.contains("# EOF"));
        let head = "# HELP zerohop_reply_bytes Bytes sent to clients.\n# TYPE zerohop_reply_bytes counter\n# UNIT zerohop_reply_bytes bytes\n";
        assert!(open.contains(head) && open.ends_with("\n# EOF\n"));
        let lines =
            |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&old), lines(&open));
    }

    #[test]
    fn a_collector_gets_the_format_that_it_takes() {
        assert_eq!(
            Format::accepted("application/openmetrics-text;version=1.0.0,text/plain;q=0.3"),
            Format::OpenMetrics
        );
        assert_eq!([Format::accepted("text/plain"), Format::accepted("")], [Format::Prometheus; 2]);
    }
}
