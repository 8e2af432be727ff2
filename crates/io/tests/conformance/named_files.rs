//! Files that a machine writes and replaces by name: content, order, failure.

use crate::node::{Node, Scratch, Setup, on_each_backend};
use base::street::UNFINISHED_SUFFIX;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

fn node_with_files(directory: &Path, backend: io::ChosenBackend, quiet: bool) -> Node {
    Node::start(backend, quiet, Setup { files: Some(directory.to_owned()), ..Setup::default() })
}

#[test]
fn a_replaced_file_is_there_whole_and_under_its_name_only() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("replaced");
        fs::write(scratch.path().join(format!("log{UNFINISHED_SUFFIX}")), b"of an attempt that a crash cut short")
            .unwrap();
        let node = node_with_files(scratch.path(), backend, quiet);
        let mut client = node.client();
        assert_eq!(client.ask("REPLACE log the first content"), "0 durable");
        assert_eq!(fs::read(scratch.path().join("log")).unwrap(), b"the first content");
        let first = fs::File::open(scratch.path().join("log")).unwrap();
        assert_eq!(client.ask("REPLACE log another"), "1 durable");
        assert_eq!(fs::read(scratch.path().join("log")).unwrap(), b"another");
        assert_eq!(client.ask("REPLACE who n1"), "2 durable");
        assert_eq!(io::files::list_directory(scratch.path()).unwrap(), ["log", "who"]);
        // Never changed in place: a crash in the middle would leave neither.
        assert_eq!((first.metadata().unwrap().len(), first.metadata().unwrap().nlink()), (17, 0));
        node.stop();
    });
}

#[test]
fn a_write_changes_its_bytes_only_and_extends_the_file() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("written");
        let path = scratch.path().join("log");
        fs::write(&path, b"0123456789").unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        let node = node_with_files(scratch.path(), backend, quiet);
        let mut client = node.client();
        assert_eq!(client.ask("PUT log 2 ab"), "0 durable");
        assert_eq!(fs::read(&path).unwrap(), b"01ab456789");
        assert_eq!(client.ask("PUT log 8 over the end"), "1 durable");
        assert_eq!(fs::read(&path).unwrap(), b"01ab4567over the end");
        assert_eq!(client.ask("PUT log 22 x"), "2 durable");
        assert_eq!(fs::read(&path).unwrap(), b"01ab4567over the end\0\0x");
        assert_eq!(fs::metadata(&path).unwrap().ino(), before, "written in place");
        assert_eq!(io::files::list_directory(scratch.path()).unwrap(), ["log"]);
        node.stop();
    });
}

#[test]
fn a_file_is_read_as_it_is_after_what_was_asked_before() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("read");
        let node = node_with_files(scratch.path(), backend, quiet);
        let mut client = node.client();
        client.send(b"LOAD log 100\nREPLACE log first\nLOAD log 100\nREPLACE log second\nLOAD log 6\nLOAD log 5\n");
        let absent = client.line();
        assert!(absent.starts_with("0 ") && absent.contains("log: No such file"), "{absent}");
        for expected in ["1 durable", "2 first", "3 durable", "4 second"] {
            assert_eq!(client.line(), expected);
        }
        let long = client.line();
        assert!(long.starts_with("5 ") && long.ends_with("log: longer than 5 bytes"), "{long}");
        node.stop();
    });
}

#[test]
fn a_replaced_file_keeps_its_permissions() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("permissions");
        let path = scratch.path().join("secrets");
        fs::write(&path, b"old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let node = node_with_files(scratch.path(), backend, quiet);
        assert_eq!(node.client().ask("REPLACE secrets new"), "0 durable");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        node.stop();
    });
}

/// As many as may be under way at once.
const AT_ONCE: usize = 64;

#[test]
fn they_are_performed_and_told_of_in_the_order_asked_for() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("file-order");
        let node = node_with_files(scratch.path(), backend, quiet);
        let mut client = node.client();
        // A long one first: if they went beside each other it would end last.
        let mut lines = format!("REPLACE log {}\n", "-".repeat(1 << 20));
        let mut expected = vec![b'-'; 1 << 20];
        for at in 1..AT_ONCE {
            if at % 16 == 0 {
                lines += &format!("REPLACE log {at:03}\n");
                expected = format!("{at:03}").into_bytes();
            } else {
                // Half over what the one before wrote, half behind the end.
                lines += &format!("PUT log {} {at:06}\n", expected.len() - 3);
                expected.truncate(expected.len() - 3);
                expected.extend(format!("{at:06}").bytes());
            }
        }
        client.send(lines.as_bytes());
        for at in 0..AT_ONCE {
            assert_eq!(client.line(), format!("{at} durable"));
        }
        assert!(fs::read(scratch.path().join("log")).unwrap() == expected);
        node.stop();
    });
}

/// A file that whoever opens it to write waits for until the test lets go: a disk thread that has much to do.
fn make_held_file(directory: &Path) -> PathBuf {
    let path = directory.join("held");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

#[test]
fn more_than_may_be_under_way_fail_at_once_by_name_and_the_others_are_done() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("file-crowd");
        let held = make_held_file(scratch.path());
        fs::write(scratch.path().join("log"), b"").unwrap();
        let node = node_with_files(scratch.path(), backend, quiet);
        let mut client = node.client();
        let mut lines = String::from("PUT held 0 x\n");
        (1..AT_ONCE + 3).for_each(|at| lines += &format!("PUT log {} {at:02}\n", at * 2));
        client.send(lines.as_bytes());
        for token in AT_ONCE..AT_ONCE + 3 {
            let answer = client.line();
            assert!(answer.starts_with(&format!("{token} log: more than {AT_ONCE} ")), "{answer}");
        }
        let reader = fs::File::open(held).unwrap();
        let answer = client.line();
        assert!(answer.starts_with("0 ") && answer.contains("held: Illegal seek"), "{answer}");
        (1..AT_ONCE).for_each(|token| assert_eq!(client.line(), format!("{token} durable")));
        let expected: String = (1..AT_ONCE).map(|at| format!("{at:02}")).collect();
        assert_eq!(fs::read_to_string(scratch.path().join("log")).unwrap(), format!("\0\0{expected}"));
        assert_eq!(client.ask("REPLACE log goes on"), format!("{} durable", AT_ONCE + 3));
        drop(reader);
        node.stop();
    });
}

#[test]
fn what_was_asked_for_before_the_machine_stopped_is_done() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("file-stop");
        let held = make_held_file(scratch.path());
        let node = node_with_files(scratch.path(), backend, quiet);
        let mut client = node.client();
        client.send(b"PUT held 0 x\nREPLACE log the whole\nPUT log 4 end\nECHO asked\n");
        assert_eq!(client.line(), "asked", "nobody waits for a disk");
        node.handle.request_shutdown();
        let reader = fs::File::open(held).unwrap();
        node.stop();
        assert_eq!(fs::read(scratch.path().join("log")).unwrap(), b"the endle");
        drop(reader);
    });
}

#[test]
fn a_write_into_no_file_makes_none() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("no-file");
        let node = node_with_files(scratch.path(), backend, quiet);
        let answer = node.client().ask("PUT log 0 x");
        assert!(answer.starts_with("0 ") && answer.contains("log: No such file"), "{answer}");
        assert_eq!(io::files::list_directory(scratch.path()).unwrap().len(), 0);
        node.stop();
    });
}

#[test]
fn a_full_disk_and_a_place_that_takes_nothing_are_told_by_name() {
    on_each_backend(|backend, quiet| {
        // Every write to this device fails with "no space left".
        let node = node_with_files(Path::new("/dev"), backend, quiet);
        let mut client = node.client();
        let answer = client.ask("PUT full 0 x");
        assert!(answer.starts_with("0 /dev/full: No space left"), "{answer}");
        assert_eq!(client.ask("ECHO on"), "on", "who has no log may still speak");
        node.stop();
        // Nobody makes a file in this one, whatever rights he has.
        let node = node_with_files(Path::new("/proc"), backend, quiet);
        let answer = node.client().ask("REPLACE log x");
        assert!(answer.starts_with("0 /proc/log: "), "{answer}");
        node.stop();
    });
}

#[test]
fn what_cannot_be_replaced_stays_and_nothing_is_left_beside_it() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("irreplaceable");
        fs::create_dir_all(scratch.path().join("log/inside")).unwrap();
        let node = node_with_files(scratch.path(), backend, quiet);
        let mut client = node.client();
        let answer = client.ask("REPLACE log x");
        assert!(answer.starts_with("0 ") && answer.contains("/log: "), "{answer}");
        assert_eq!(io::files::list_directory(scratch.path()).unwrap(), ["log"]);
        // A failure is that of one file at one time.
        assert_eq!(client.ask("REPLACE other x"), "1 durable");
        fs::remove_dir_all(scratch.path().join("log")).unwrap();
        assert_eq!(client.ask("REPLACE log x"), "2 durable");
        node.stop();
    });
}

#[test]
fn a_directory_that_is_not_there_fails_by_name() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("gone");
        let node = node_with_files(&scratch.path().join("nowhere"), backend, quiet);
        let mut client = node.client();
        for (token, line) in ["REPLACE log x", "PUT log 0 x"].into_iter().enumerate() {
            let answer = client.ask(line);
            assert!(
                answer.starts_with(&format!("{token} ")) && answer.contains("nowhere/log: No such file"),
                "{answer}"
            );
        }
        node.stop();
    });
}

#[test]
fn a_node_without_a_directory_has_no_files() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut client = node.client();
        assert_eq!(client.ask("REPLACE log x"), "0 this node has no data directory");
        assert_eq!(client.ask("PUT log 0 x"), "1 this node has no data directory");
        node.stop();
    });
}
