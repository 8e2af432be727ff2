//! A frame as lines of text, with or without colours.

use super::frame::{Class, Core, Destination, Frame, Source};

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

/// A cell, and how it is coloured if at all.
struct Cell(String, &'static str);

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell(text, "")
    }
}

/// The whole picture.
pub fn lines(frame: &Frame, has_colours: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for source in &frame.sources {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        of_source(source, has_colours, &mut lines);
    }
    lines
}

fn of_source(source: &Source, has_colours: bool, lines: &mut Vec<String>) {
    let (word, colour) = match (source.is_reachable, source.problems.is_empty()) {
        (true, true) => ("healthy", GREEN),
        (true, false) => ("not healthy", RED),
        (false, _) => ("not reached", RED),
    };
    let span = match (source.is_reachable, source.is_since_start) {
        (false, _) => String::new(),
        (true, true) => format!(", since its start {} ago", time(source.seconds)),
        (true, false) => format!(", the last {}", time(source.seconds)),
    };
    lines.push(format!("{}: {}{span}", paint(&source.address, BOLD, has_colours), paint(word, colour, has_colours)));
    lines.extend(source.problems.iter().map(|problem| format!("  {}", paint(problem, RED, has_colours))));
    if !source.classes.is_empty() {
        let head = [
            "class",
            "weight",
            "clients",
            "replies/s",
            "p50",
            "p99",
            "in time",
            "late",
            "waiting",
            "unanswered",
            "oldest",
        ];
        table(&head, source.classes.iter().map(class).collect(), has_colours, lines);
    }
    if !source.destinations.is_empty() {
        let head = ["destination", "health", "replies/s", "batch", "latency", "unanswered", "oldest"];
        table(&head, source.destinations.iter().map(destination).collect(), has_colours, lines);
    }
    if !source.cores.is_empty() {
        let head = ["core", "health", "requests/s", "in/s", "out/s", "log/s", "syncs/s", "hops/s", "clients", "memory"];
        table(&head, source.cores.iter().map(core).collect(), has_colours, lines);
    }
}

fn class(one: &Class) -> Vec<Cell> {
    let late = if one.late > 0.0 { RED } else { "" };
    vec![
        one.name.clone().into(),
        count(one.weight).into(),
        count(one.callers).into(),
        count(one.replies_per_second).into(),
        optional(one.p50, time).into(),
        optional(one.p99, time).into(),
        Cell(optional(one.in_time_percent, |percent| format!("{percent:.1} %")), late),
        Cell(count(one.late), late),
        count(one.callers_waiting).into(),
        count(one.outstanding).into(),
        age(one.outstanding, one.oldest_seconds).into(),
    ]
}

fn destination(one: &Destination) -> Vec<Cell> {
    let colour = if one.health() == "down" { RED } else { "" };
    vec![
        one.address.clone().into(),
        Cell(one.health().to_owned(), colour),
        count(one.replies_per_second).into(),
        optional(one.batch, |requests| format!("{requests:.1}")).into(),
        optional(one.latency, time).into(),
        count(one.outstanding).into(),
        age(one.outstanding, one.oldest_seconds).into(),
    ]
}

fn core(one: &Core) -> Vec<Cell> {
    let (word, colour) = if one.is_up { ("ok", "") } else { ("silent", RED) };
    vec![
        one.name.clone().into(),
        Cell(word.to_owned(), colour),
        count(one.requests_per_second).into(),
        bytes(one.received_bytes_per_second).into(),
        bytes(one.sent_bytes_per_second).into(),
        bytes(one.logged_bytes_per_second).into(),
        count(one.syncs_per_second).into(),
        count(one.hops_per_second).into(),
        count(one.clients).into(),
        bytes(one.memory_bytes).into(),
    ]
}

/// The first column to the left, the others to the right, as wide as they have to be.
fn table(head: &[&str], rows: Vec<Vec<Cell>>, has_colours: bool, lines: &mut Vec<String>) {
    let head = head.iter().map(|word| Cell((*word).to_owned(), BOLD)).collect();
    let rows: Vec<Vec<Cell>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].0.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    for row in &rows {
        let mut line = String::from(" ");
        for (column, (Cell(text, colour), width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width - text.chars().count());
            let text = paint(text, colour, has_colours);
            match column {
                0 => line.push_str(&format!(" {text}{space}")),
                _ => line.push_str(&format!("  {space}{text}")),
            }
        }
        lines.push(line.trim_end().to_owned());
    }
}

fn paint(text: &str, colour: &str, has_colours: bool) -> String {
    if has_colours && !colour.is_empty() { format!("{colour}{text}{PLAIN}") } else { text.to_owned() }
}

fn optional(value: Option<f64>, write: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), write)
}

fn age(outstanding: f64, seconds: f64) -> String {
    optional((outstanding > 0.0).then_some(seconds), time)
}

/// Without a fraction where that would not matter.
fn count(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        number if number < 10.0 && number.fract() != 0.0 => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.001 => format!("{:.0} us", seconds * 1e6),
        seconds if seconds < 1.0 => format!("{:.2} ms", seconds * 1e3),
        seconds if seconds < 100.0 => format!("{seconds:.1} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.0} h", seconds / 3600.0),
    }
}

fn bytes(number: f64) -> String {
    let mut number = number;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if number < 1024.0 {
            return if unit == "B" { format!("{number:.0} B") } else { format!("{number:.1} {unit}") };
        }
        number /= 1024.0;
    }
    format!("{number:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::super::reading::Reading;
    use super::*;

    const BEFORE: &str = "zerohop_proxy_core_up{core=\"0\"} 1
zerohop_proxy_uptime_seconds 300
zerohop_proxy_class_weight{class=\"fast\",core=\"0\"} 3
zerohop_proxy_class_weight{class=\"fast\",core=\"1\"} 3
zerohop_proxy_class_callers{class=\"fast\",core=\"0\"} 2
zerohop_proxy_class_callers{class=\"fast\",core=\"1\"} 5
zerohop_proxy_class_replies_total{class=\"fast\",core=\"0\"} 1000
zerohop_proxy_class_replies_total{class=\"fast\",core=\"1\"} 2000
zerohop_proxy_class_replies_with_deadline_total{class=\"fast\",core=\"0\"} 3000
zerohop_proxy_class_replies_late_total{class=\"fast\",core=\"0\"} 6
zerohop_proxy_class_requests_outstanding{class=\"fast\",core=\"0\"} 4
zerohop_proxy_class_oldest_seconds{class=\"fast\",core=\"0\"} 0.0125
zerohop_proxy_class_latency_seconds_bucket{class=\"fast\",core=\"0\",le=\"0.000032\"} 0
zerohop_proxy_class_latency_seconds_bucket{class=\"fast\",core=\"0\",le=\"0.000064\"} 3000
zerohop_proxy_class_latency_seconds_bucket{class=\"fast\",core=\"0\",le=\"+Inf\"} 3000
zerohop_proxy_destination_open{destination=\"10.0.0.1:6379\",core=\"0\"} 2
zerohop_proxy_destination_replies_total{destination=\"10.0.0.1:6379\",core=\"0\"} 3000
zerohop_proxy_destination_requests_sent_total{destination=\"10.0.0.1:6379\",core=\"0\"} 3000
zerohop_proxy_destination_batches_sent_total{destination=\"10.0.0.1:6379\",core=\"0\"} 240
zerohop_proxy_destination_batches_done_total{destination=\"10.0.0.1:6379\",core=\"0\"} 240
zerohop_proxy_destination_done_seconds_total{destination=\"10.0.0.1:6379\",core=\"0\"} 0.048
zerohop_proxy_destination_open{destination=\"10.0.0.2:6379\",core=\"0\"} 0
zerohop_proxy_destination_down{destination=\"10.0.0.2:6379\",core=\"0\"} 1
";

    fn frame(sources: Vec<Source>) -> Frame {
        Frame { sources }
    }

    fn proxy(now: &str, before: Option<(f64, &str)>) -> Source {
        let before = before.map(|(seconds, text)| (seconds, Reading::of(text).unwrap()));
        let before = before.as_ref().map(|(seconds, reading)| (*seconds, reading));
        Source::of("proxy:9122", Vec::new(), &Reading::of(now).unwrap(), before, 0.0)
    }

    #[test]
    fn a_proxy_since_its_start() {
        assert_eq!(
            lines(&frame(vec![proxy(BEFORE, None)]), false),
            [
                "proxy:9122: healthy, since its start 5 min ago",
                "  class  weight  clients  replies/s    p50    p99  in time  late  waiting  unanswered    oldest",
                "  fast        3        7         10  48 us  64 us   99.8 %     6        0           4  12.50 ms",
                "  destination    health  replies/s  batch  latency  unanswered  oldest",
                "  10.0.0.1:6379      ok         10   12.5   200 us           0       -",
                "  10.0.0.2:6379    down          0      -        -           0       -",
            ]
        );
    }

    #[test]
    fn a_second_later_only_what_is_new_counts_and_what_is_bad_is_red() {
        let now = BEFORE
            .replace("replies_total{class=\"fast\",core=\"1\"} 2000", "replies_total{class=\"fast\",core=\"1\"} 2500")
            .replace("deadline_total{class=\"fast\",core=\"0\"} 3000", "deadline_total{class=\"fast\",core=\"0\"} 3500")
            .replace("late_total{class=\"fast\",core=\"0\"} 6", "late_total{class=\"fast\",core=\"0\"} 256");
        let source = proxy(&now, Some((2.0, BEFORE)));
        let class = &source.classes[0];
        assert_eq!(
            (class.replies_per_second, class.in_time_percent, class.late, class.late_ever),
            (250.0, Some(50.0), 250.0, 256.0)
        );
        assert_eq!((class.p50, source.destinations[0].batch), (None, None), "nothing of these is new");
        let painted = lines(&frame(vec![source]), true);
        assert!(painted[0].ends_with("\x1b[32mhealthy\x1b[0m, the last 2.0 s"), "{painted:?}");
        assert!(painted[2].contains("  \x1b[31m50.0 %\x1b[0m   \x1b[31m250\x1b[0m  "), "{painted:?}");
        assert!(painted[5].contains("\x1b[31mdown\x1b[0m"), "{painted:?}");
    }

    #[test]
    fn counters_that_begin_anew_grew_from_nothing() {
        let anew = proxy(
            "zerohop_proxy_class_weight{class=\"a\",core=\"0\"} 1\nzerohop_proxy_class_replies_total{class=\"a\",core=\"0\"} 5\n",
            Some((1.0, "zerohop_proxy_class_replies_total{class=\"a\",core=\"0\"} 900\n")),
        );
        assert_eq!(anew.classes[0].replies_per_second, 5.0);
    }

    #[test]
    fn a_node_that_is_not_well_and_one_that_is_not_there() {
        let now = "process_start_time_seconds 1000
zerohop_core_up{core=\"0\"} 1
zerohop_core_up{core=\"1\"} 0
zerohop_execute_requests_total{core=\"0\"} 50000
zerohop_receive_bytes_total{core=\"0\"} 1048576
zerohop_reply_bytes_total{core=\"0\"} 20480
zerohop_append_bytes_total{core=\"0\"} 512
zerohop_commit_syncs_total{core=\"0\"} 15
zerohop_clients{core=\"0\"} 3
zerohop_memory_used_bytes{core=\"0\"} 3221225472
";
        let problems = vec!["core 1 does not tick: it has not answered for 1.0 s".to_owned()];
        let node = Source::of("node:9121", problems, &Reading::of(now).unwrap(), None, 1010.0);
        let gone = Source::unreachable("gone:9121", "nobody is there".to_owned());
        assert_eq!(
            lines(&frame(vec![node, gone]), false),
            [
                "node:9121: not healthy, since its start 10.0 s ago",
                "  core 1 does not tick: it has not answered for 1.0 s",
                "  core  health  requests/s       in/s    out/s  log/s  syncs/s  hops/s  clients   memory",
                "  0         ok        5000  102.4 KiB  2.0 KiB   51 B      1.5       0        3  3.0 GiB",
                "  1     silent           0        0 B      0 B    0 B        0       0        0      0 B",
                "",
                "gone:9121: not reached",
                "  nobody is there",
            ]
        );
    }

    #[test]
    fn all_of_it_is_there_for_programs() {
        let json = frame(vec![proxy(BEFORE, None), Source::unreachable("x:1", "no".to_owned())]).json();
        let (proxy, gone) = (&json["sources"][0], &json["sources"][1]);
        assert_eq!(proxy["classes"][0]["p99_seconds"].as_f64().map(|us| (us * 1e6).round()), Some(64.0));
        assert_eq!(
            (proxy["classes"][0]["late_ever"].as_f64(), &proxy["classes"][0]["class"]),
            (Some(6.0), &"fast".into())
        );
        assert_eq!((&proxy["destinations"][1]["health"], &proxy["since_start"]), (&"down".into(), &true.into()));
        assert_eq!((&gone["reachable"], &gone["problems"][0]), (&false.into(), &"no".into()));
    }
}
