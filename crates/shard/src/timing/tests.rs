//! SLOWLOG and LATENCY by a clock of which every reading is later than the one before.

use base::{Event, Now, Stopwatch, TickGap};

use crate::Durability;
use crate::one_core::{Core, request, turn};

/// Every reading is so many microseconds later.
struct Slow {
    by_us: u64,
    read: u64,
}

impl Stopwatch for Slow {
    fn elapsed_us(&mut self, _start: Now) -> u64 {
        0
    }

    fn measured_ns(&mut self, _start: Now) -> u64 {
        self.read += self.by_us * 1000;
        self.read
    }
}

/// A node on which everything that is timed takes so long.
fn slow(by_us: u64, clients: u32) -> Core {
    Core::with(Durability::Memory, clients, |shard| shard.set_stopwatch(Box::new(Slow { by_us, read: 0 })))
}

fn say(core: &mut Core, client: u32, line: &str) -> String {
    core.replies.clear();
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    core.tick(client, &request(&words));
    String::from_utf8_lossy(core.replies.get(&client).map_or(&[][..], Vec::as_slice)).into_owned()
}

/// First words of the commands in the slow log, the latest first.
fn logged(core: &mut Core) -> Vec<String> {
    let entries = core.shard.timing.slow_log.entries();
    entries
        .map(|entry| entry.words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn what_takes_long_is_logged_with_its_words_and_its_client() {
    let _turn = turn();
    let mut core = slow(12_345, 2);
    say(&mut core, 0, "CLIENT SETNAME me");
    say(&mut core, 0, "MSET a 1 b 2");
    say(&mut core, 0, "GET a");
    assert_eq!(logged(&mut core), ["MSET a 1 b 2"]);
    let told = say(&mut core, 1, "SLOWLOG GET");
    let rest =
        ":12345\r\n*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n$11\r\n127.0.0.1:5\r\n$2\r\nme\r\n";
    assert!(told.starts_with("*1\r\n*6\r\n:") && told.ends_with(rest), "{told}");
    // Who asks is logged behind what it is told.
    assert_eq!(say(&mut core, 1, "SLOWLOG LEN"), ":2\r\n");
    assert_eq!(say(&mut core, 1, "CONFIG SET slowlog-log-slower-than -1"), "+OK\r\n");
    assert_eq!(say(&mut core, 1, "SLOWLOG RESET"), "+OK\r\n");
    assert_eq!(say(&mut core, 1, "SLOWLOG LEN"), ":0\r\n");
}

#[test]
fn what_is_quick_is_not_logged_and_nothing_is_where_it_is_turned_off() {
    let _turn = turn();
    let mut core = slow(9_999, 1);
    say(&mut core, 0, "MSET a 1 b 2");
    assert!(logged(&mut core).is_empty());
    say(&mut core, 0, "CONFIG SET slowlog-log-slower-than 9999");
    say(&mut core, 0, "SLOWLOG RESET");
    say(&mut core, 0, "MSET a 1 b 2");
    say(&mut core, 0, "CONFIG SET slowlog-log-slower-than -1");
    say(&mut core, 0, "MSET c 1");
    assert_eq!(logged(&mut core), ["MSET a 1 b 2", "SLOWLOG RESET"]);
}

#[test]
fn below_a_millisecond_every_command_is_timed_and_those_of_exec_one_by_one() {
    let _turn = turn();
    let mut core = slow(1, 1);
    say(&mut core, 0, "CONFIG SET slowlog-log-slower-than 0");
    for line in ["SET k v", "GET k", "PING", "MULTI", "APPEND k w", "DBSIZE", "ECHO e", "EXEC"] {
        say(&mut core, 0, line);
    }
    let wanted = ["ECHO e", "DBSIZE", "APPEND k w", "MULTI", "PING", "GET k", "SET k v"];
    assert_eq!(logged(&mut core)[..7], wanted);
    say(&mut core, 0, "CONFIG SET slowlog-max-len 2");
    for line in ["GET a", "GET b", "KEYS *"] {
        say(&mut core, 0, line);
    }
    assert_eq!(logged(&mut core), ["KEYS *", "GET b"]);
}

#[test]
fn who_was_blocked_is_logged_once_when_it_wakes_up() {
    let _turn = turn();
    let mut core = slow(20_000, 2);
    say(&mut core, 0, "CONFIG SET slowlog-log-slower-than 100");
    say(&mut core, 0, "SLOWLOG RESET");
    say(&mut core, 0, "BLPOP list 0");
    assert!(!logged(&mut core).contains(&"BLPOP list 0".to_owned()));
    say(&mut core, 1, "LPUSH list a");
    assert_eq!(logged(&mut core).iter().filter(|words| *words == "BLPOP list 0").count(), 1);
}

#[test]
fn words_are_kept_as_far_as_redis_keeps_them_and_secrets_not_at_all() {
    let _turn = turn();
    let mut core = slow(20_000, 1);
    say(&mut core, 0, "CONFIG SET slowlog-log-slower-than 100");
    say(&mut core, 0, &format!("SET k {}", "v".repeat(200)));
    let many: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    say(&mut core, 0, &format!("DEL {}", many.join(" ")));
    say(&mut core, 0, "CONFIG SET maxmemory 0 requirepass secret");
    say(&mut core, 0, "ACL SETUSER somebody on >secret ~*");
    say(&mut core, 0, "AUTH somebody secret");
    say(&mut core, 0, "HELLO 2 AUTH somebody secret");
    let log = logged(&mut core);
    assert_eq!(log[0], "HELLO 2 (redacted) (redacted) (redacted)");
    assert_eq!(log[1], "AUTH (redacted) (redacted)");
    assert_eq!(log[2], "ACL SETUSER somebody (redacted) (redacted) (redacted)");
    assert_eq!(log[3], "CONFIG SET maxmemory 0 requirepass (redacted)");
    assert!(log[4].starts_with("DEL 0 1 2") && log[4].ends_with(" 28 29 ... (10 more arguments)"), "{}", log[4]);
    assert_eq!(log[5], format!("SET k {}... (72 more bytes)", "v".repeat(128)));
}

#[test]
fn events_are_kept_from_the_threshold_on() {
    let _turn = turn();
    let mut core = slow(20_000, 1);
    say(&mut core, 0, "MSET a 1 b 2");
    assert_eq!(say(&mut core, 0, "LATENCY LATEST"), "*0\r\n");
    assert!(say(&mut core, 0, "LATENCY DOCTOR").contains("CONFIG SET latency-monitor-threshold"));
    say(&mut core, 0, "CONFIG SET latency-monitor-threshold 20");
    say(&mut core, 0, "MSET a 1 b 2");
    core.events.push(Event::TickGap(TickGap { begin_us: 1, us: 19_999 }));
    say(&mut core, 0, "PING");
    let told = say(&mut core, 0, "LATENCY LATEST");
    assert!(told.starts_with("*1\r\n*4\r\n$7\r\ncommand\r\n:") && told.ends_with(":20\r\n:20\r\n"), "{told}");
    core.events.push(Event::TickGap(TickGap { begin_us: 1, us: 31_000 }));
    say(&mut core, 0, "PING");
    let history = say(&mut core, 0, "LATENCY HISTORY tick-gap");
    assert!(history.starts_with("*1\r\n*2\r\n:") && history.ends_with(":31\r\n"), "{history}");
    assert!(say(&mut core, 0, "LATENCY GRAPH tick-gap").contains("tick-gap - high 31 ms, low 31 ms"));
    assert!(say(&mut core, 0, "LATENCY DOCTOR").contains("tick-gap: 1 seconds with one, 31 ms"));
    assert_eq!(say(&mut core, 0, "LATENCY RESET tick-gap fork"), ":1\r\n");
    assert_eq!(say(&mut core, 0, "LATENCY HISTORY tick-gap"), "*0\r\n");
    let none = "-ERR No samples available for event 'tick-gap'\r\n";
    assert_eq!(say(&mut core, 0, "LATENCY GRAPH tick-gap"), none);
    assert_eq!(say(&mut core, 0, "LATENCY RESET"), ":1\r\n");
    assert_eq!(say(&mut core, 0, "LATENCY RESET"), ":0\r\n");
}

#[test]
fn a_slow_sync_is_an_event() {
    let _turn = turn();
    let mut core = Core::new(Durability::Commit, 1);
    say(&mut core, 0, "CONFIG SET latency-monitor-threshold 1");
    core.disk_is_slow();
    say(&mut core, 0, "SET k v");
    core.pass_us(7_000);
    core.disk_is_quick();
    core.tick(0, b"");
    let told = say(&mut core, 0, "LATENCY LATEST");
    assert!(told.contains("$8\r\nlog-sync\r\n"), "{told}");
}

#[test]
fn while_it_is_tracked_every_command_is_counted_by_how_long_it_took() {
    let _turn = turn();
    let mut core = slow(3, 1);
    say(&mut core, 0, "GET a");
    assert_eq!(say(&mut core, 0, "LATENCY HISTOGRAM"), "*0\r\n");
    say(&mut core, 0, "CONFIG SET latency-tracking yes");
    for line in ["GET a", "GET b", "SET a 1", "CONFIG GET timeout"] {
        say(&mut core, 0, line);
    }
    let get = "$3\r\nget\r\n*4\r\n$5\r\ncalls\r\n:2\r\n$14\r\nhistogram_usec\r\n*2\r\n:4\r\n:2\r\n";
    assert_eq!(say(&mut core, 0, "LATENCY HISTOGRAM get nosuch"), format!("*2\r\n{get}"));
    let config = say(&mut core, 0, "LATENCY HISTOGRAM config");
    assert!(config.contains("$10\r\nconfig|get\r\n") && config.contains("$10\r\nconfig|set\r\n"), "{config}");
    assert!(!config.contains("get\r\n*4\r\n$5\r\ncalls\r\n:2"), "{config}");
    let info = say(&mut core, 0, "INFO everything");
    assert!(info.contains("\r\nlatency_percentiles_usec_get:p50=4,p99=4,p99.9=4\r\n"), "{info}");
    assert!(info.contains("\r\ncmdstat_get:calls=3,usec=6,usec_per_call=3.00,"), "{info}");
    say(&mut core, 0, "CONFIG RESETSTAT");
    say(&mut core, 0, "CONFIG SET latency-tracking no");
    say(&mut core, 0, "GET a");
    assert!(!say(&mut core, 0, "LATENCY HISTOGRAM").contains("get"));
}
