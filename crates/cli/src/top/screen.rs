//! The screen: frames one over the other, keys, and the terminal as it was when all is over.

use std::io::{Read, Write, stdin, stdout};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use server::stop_signals::on_request;

use super::frame::Frame;
use super::text;

/// Between two frames.
const PAUSE: Duration = Duration::from_secs(1);
/// Ctrl-C as a terminal sends it that is told to make no signal of it.
const CONTROL_C: u8 = 3;

/// What is written to have a screen of one's own without a cursor, and to give it back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The terminal while it is ours. Dropped, it is as it was.
struct Screen(Termios);

impl Screen {
    fn enter() -> std::io::Result<Screen> {
        let before = tcgetattr(stdin())?;
        let mut ours = before.clone();
        // Keys come one by one, unseen, and Ctrl-C is one of them: a signal would end us with the screen still ours.
        ours.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        ours.special_codes[SpecialCodeIndex::VMIN] = 0;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Now, &ours)?;
        let screen = Screen(before.clone());
        // Whoever ends us from outside is to find the terminal as it was, too.
        on_request(move |_| {
            restore(&before);
            std::process::exit(0);
        })?;
        write(ENTER)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(&self.0);
    }
}

fn restore(before: &Termios) {
    // There is nobody to tell if the terminal is gone.
    write(LEAVE).ok();
    tcsetattr(stdin(), OptionalActions::Now, before).ok();
}

fn write(text: &str) -> std::io::Result<()> {
    let mut output = stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Shows a frame each second, the first one at once, until q or Ctrl-C.
///
/// # Errors
/// The terminal does not do what it is told.
pub fn show(first: Frame, mut next: impl FnMut() -> Frame, has_colours: bool) -> std::io::Result<()> {
    let _screen = Screen::enter()?;
    let mut frame = first;
    loop {
        let size = tcgetwinsize(stdout())?;
        let lines = text::lines(&frame, has_colours);
        write(&picture(lines, usize::from(size.ws_col), usize::from(size.ws_row)))?;
        if is_ended_within(PAUSE)? {
            return Ok(());
        }
        frame = next();
    }
}

/// What is written for a frame on a screen of that size: each line cut to it, and what was there before wiped out.
fn picture(mut lines: Vec<String>, columns: usize, rows: usize) -> String {
    lines.push(String::new());
    lines.push("q ends".to_owned());
    lines.truncate(rows);
    let lines: Vec<String> = lines.iter().map(|line| format!("{}\x1b[K", cut(line, columns))).collect();
    format!("\x1b[H{}\x1b[J", lines.join("\r\n"))
}

/// As much of a line as fits; sequences of colours take no room, and are ended.
fn cut(line: &str, columns: usize) -> String {
    let (mut shown, mut room, mut is_sequence) = (String::new(), columns, false);
    for character in line.chars() {
        match character {
            '\x1b' => is_sequence = true,
            _ if is_sequence => is_sequence = character != 'm',
            _ if room == 0 => return shown + "\x1b[0m",
            _ => room -= 1,
        }
        shown.push(character);
    }
    shown
}

/// Whether a key that ends comes within so long. Without a terminal any more, it does.
fn is_ended_within(time: Duration) -> std::io::Result<bool> {
    let until = Instant::now() + time;
    loop {
        let input = stdin();
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut keys = [0; 64];
        let count = input.lock().read(&mut keys)?;
        if count == 0 || keys[..count].iter().any(|key| matches!(*key, b'q' | b'Q' | CONTROL_C)) {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_where_they_are_seen_and_colours_end() {
        assert_eq!([cut("abc", 3), cut("abcd", 3)], ["abc", "abc\x1b[0m"]);
        assert_eq!(cut("a\x1b[31mbc\x1b[0md", 2), "a\x1b[31mb\x1b[0m");
        assert_eq!(cut("a\x1b[31mbc\x1b[0m", 3), "a\x1b[31mbc\x1b[0m", "nothing of it takes room");
    }

    #[test]
    fn a_picture_wipes_out_what_was_there_and_has_no_more_rows_than_the_screen() {
        let lines = || vec!["one".to_owned(), "two".to_owned()];
        assert_eq!(picture(lines(), 80, 24), "\x1b[Hone\x1b[K\r\ntwo\x1b[K\r\n\x1b[K\r\nq ends\x1b[K\x1b[J");
        assert_eq!(picture(lines(), 80, 1), "\x1b[Hone\x1b[K\x1b[J");
    }
}
