//! The log's files: order, content, sync, failure.

use crate::line_machine::checksum;
use crate::node::{Node, Scratch, SegmentName, Setup, on_each_backend};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

fn node_with_log(scratch: &Scratch, backend: io::ChosenBackend, quiet: bool) -> Node {
    let log = Some((scratch.path().to_owned(), (|segment| format!("log-{}", segment.0)) as SegmentName));
    Node::start(backend, quiet, Setup { log, ..Setup::default() })
}

#[test]
fn segments_are_made_written_and_synced_in_order() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("order");
        let node = node_with_log(&scratch, backend, quiet);
        let mut client = node.client();
        for segment in [1, 2] {
            assert_eq!(client.ask(&format!("CREATE {segment}")), "created");
            assert_eq!(client.ask("LOG first"), "logged");
            // What a reply promised is in the file, whether or not it was synced.
            assert!(fs::read(scratch.path().join(format!("log-{segment}"))).unwrap().starts_with(b"headfirst\n"));
            assert_eq!(client.ask("LOG second"), "logged");
        }
        assert_eq!(client.ask("SYNC"), "synced");
        let path = |segment: u32| scratch.path().join(format!("log-{segment}"));
        let contents = [1, 2].map(|segment| fs::read(path(segment)).unwrap());
        let reserved_bytes = [1, 2].map(|segment| fs::metadata(path(segment)).unwrap().blocks() * 512);
        let trace = node.stop().remove(0).trace;
        assert_eq!(
            trace,
            ["ready 1", "written 1", "written 2", "ready 2", "written 3", "written 4", "synced 4"].map(String::from)
        );
        // Of one that was cut off nobody could tell that there was more.
        assert_eq!(contents.each_ref().map(Vec::len), [3 << 20, 3 << 20]);
        for content in contents {
            assert!(content.starts_with(b"headfirst\nsecond\n"));
            assert!(content[17..].iter().all(|&byte| byte == 0));
        }
        assert!(reserved_bytes.iter().all(|bytes| *bytes >= 3 << 20), "{reserved_bytes:?}");
    });
}

#[test]
fn room_is_reserved_behind_a_segment_or_refused_and_nothing_is_lost() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("room");
        let node = node_with_log(&scratch, backend, quiet);
        let mut client = node.client();
        assert_eq!(client.ask("CREATE 1"), "created");
        assert_eq!(client.ask("LOG first"), "logged");
        // More than any disk has.
        assert_eq!(client.ask(&format!("EXTEND {}", 1u64 << 62)), "refused");
        assert_eq!(client.ask(&format!("EXTEND {}", 5 << 20)), "extended");
        assert_eq!(client.ask("LOG second"), "logged");
        let path = scratch.path().join("log-1");
        let content = fs::read(&path).unwrap();
        assert!(content.starts_with(b"headfirst\nsecond\n") && content.len() == 5 << 20);
        assert!(fs::metadata(&path).unwrap().blocks() * 512 >= 5 << 20);
        let trace = node.stop().remove(0).trace;
        assert!(trace[2].starts_with("failed ") && trace[2].contains("log-1: "), "{trace:?}");
        assert_eq!(trace[3], format!("room 1 {}", 5 << 20));
    });
}

#[test]
fn a_log_left_by_an_earlier_run_is_continued() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("continue");
        fs::write(scratch.path().join("log-0"), b"................").unwrap();
        let node = node_with_log(&scratch, backend, quiet);
        let mut client = node.client();
        assert_eq!(client.ask("LOG new"), "logged");
        assert_eq!(client.ask("SYNC"), "synced");
        assert_eq!(fs::read(scratch.path().join("log-0")).unwrap(), b"new\n............", "written in place");
        node.stop();
    });
}

#[test]
fn a_segment_that_was_removed_unwritten_is_made_again_and_written() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("again");
        let node = node_with_log(&scratch, backend, quiet);
        let mut client = node.client();
        for _ in 0..2 {
            assert_eq!(client.ask("REMOVE log-1"), "asked");
            assert_eq!(client.ask("CREATE 1"), "created");
        }
        assert_eq!((client.ask("LOG first"), client.ask("SYNC")), ("logged".to_owned(), "synced".to_owned()));
        assert!(
            fs::read(scratch.path().join("log-1")).unwrap().starts_with(b"headfirst\n"),
            "not in a file without a name"
        );
        node.stop();
    });
}

#[test]
fn a_segment_that_exists_is_never_overwritten() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("exists");
        fs::write(scratch.path().join("log-1"), b"precious").unwrap();
        let node = node_with_log(&scratch, backend, quiet);
        assert_eq!(node.client().ask("CREATE 1"), "refused");
        let trace = node.stop().remove(0).trace;
        assert!(trace[0].starts_with("failed ") && trace[0].contains("log-1: "), "{trace:?}");
        assert_eq!(fs::read(scratch.path().join("log-1")).unwrap(), b"precious");
    });
}

#[test]
fn after_a_failed_write_no_reply_leaves_any_more() {
    on_each_backend(|backend, quiet| {
        // Every write to this device fails with "no space left".
        let log = Some(("/dev".into(), (|_| String::from("full")) as SegmentName));
        let node = Node::start(backend, quiet, Setup { log, ..Setup::default() });
        let mut before = node.client();
        assert_eq!(before.ask("ECHO before"), "before");
        let mut writer = node.client();
        writer.send(b"LOG lost\nECHO same list\n");
        before.send(b"ECHO later list\n");
        for client in [&mut writer, &mut before] {
            client.stream.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
            let mut all = Vec::new();
            client.stream.read_to_end(&mut all).unwrap();
            if !all.is_empty() {
                // Its request may have been answered in a tick before the write.
                assert_eq!(all, b"later list\n");
            }
        }
        let mut after = node.client();
        after.send(b"ECHO after\n");
        after.stream.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
        let mut all = Vec::new();
        after.stream.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"", "the log refused a write, so nothing may be promised any more");
        let trace = node.stop().remove(0).trace;
        assert!(trace[0].starts_with("failed /dev/full: "), "{trace:?}");
    });
}

#[test]
fn a_failed_sync_is_told_and_no_later_one_succeeds() {
    on_each_backend(|backend, quiet| {
        // This device takes every write and knows no sync.
        let log = Some(("/dev".into(), (|_| String::from("null")) as SegmentName));
        let node = Node::start(backend, quiet, Setup { log, ..Setup::default() });
        let mut client = node.client();
        assert_eq!(client.ask("LOG taken"), "logged");
        assert_eq!(client.ask("SYNC"), "refused");
        client.send(b"SYNC\nECHO on\n");
        assert_eq!(client.line(), "on", "a reply that promises nothing may still leave");
        let trace = node.stop().remove(0).trace;
        assert_eq!(trace[0], "written 1");
        assert!(trace[1].starts_with("failed /dev/null: "), "{trace:?}");
        assert_eq!(trace.len(), 2, "{trace:?}");
    });
}

#[test]
fn a_node_without_a_directory_refuses_to_log() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        assert_eq!(node.client().ask("CREATE 1"), "refused");
        node.stop();
    });
}

#[test]
fn stretches_of_runs_are_read_as_they_are_however_many_at_once() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("runs");
        let content: Vec<u8> = (0..300_001u32).map(|at| (at / 3 * 7) as u8).collect();
        fs::write(scratch.path().join("run"), &content).unwrap();
        let node = node_with_log(&scratch, backend, quiet);
        let mut client = node.client();
        let stretches: Vec<(usize, usize)> =
            (0..300).map(|at| (at * 997, 1 + at * 2)).chain([(0, 300_001), (299_000, 1001), (4095, 2)]).collect();
        let lines: Vec<String> =
            stretches.iter().map(|(offset, bytes)| format!("READ run {offset} {bytes}\n")).collect();
        client.send(lines.concat().as_bytes());
        let mut answers: Vec<String> = stretches.iter().map(|_| client.line()).collect();
        // They end in any order.
        answers.sort_by_key(|line| line.split(' ').next().and_then(|number| number.parse::<usize>().ok()));
        for (number, (answer, (offset, bytes))) in answers.iter().zip(stretches).enumerate() {
            let expected = checksum(&content[offset..offset + bytes]);
            assert_eq!(*answer, format!("{number} {bytes} {expected}"), "{bytes} bytes at {offset}");
        }
        node.stop();
    });
}

#[test]
fn what_cannot_be_read_is_named() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("no-runs");
        fs::write(scratch.path().join("short"), vec![1; 5000]).unwrap();
        let node = node_with_log(&scratch, backend, quiet);
        let mut client = node.client();
        let missing = client.ask("READ missing 8192 10");
        assert!(missing.contains("missing at offset 8192: "), "{missing}");
        for stretch in ["4999 2", "5000 1", "90000 100"] {
            let answer = client.ask(&format!("READ short {stretch}"));
            let offset = stretch.split(' ').next().unwrap();
            assert!(answer.contains(&format!("short at offset {offset}: ")), "{answer}");
        }
        assert_eq!(client.ask("READ short 4998 2"), format!("4 2 {}", checksum(&[1, 1])));
        node.stop();
    });
}

#[test]
fn a_node_may_end_while_reads_are_under_way() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("reads-left");
        fs::write(scratch.path().join("run"), vec![9; 1 << 20]).unwrap();
        let node = node_with_log(&scratch, backend, quiet);
        let mut client = node.client();
        client.send("READ run 100 500000\n".repeat(50).as_bytes());
        client.send(b"ECHO on\n");
        node.stop();
    });
}
