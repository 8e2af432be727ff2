//! Users of an application: each has a count that is its own, raises it, reads it, and knows what it must be.
//!
//! ```text
//!   count acknowledged as 7 ─► read: 7 ─► count fails ─► read: 7 or 8 ─► count: 8 or 9
//!                                                                        less: something was lost; more: done twice
//! ```
//!
//! A request that fails is asked again, so often and no oftener. Where a primary that is killed takes what it acknowledged last with
//! it, a count may fall back once, but not below what it was when all of that had copies.

use std::fmt::Write;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::http;

/// Of each application.
const USERS: usize = 12;
/// Counts of each at its arrival, while the primary is killed before and after that, and at its end.
const COUNTS: usize = 8;
/// Failed requests in a row after which an application does not go on.
const ATTEMPTS_MAX: usize = 300;
/// Between a failed request and the next: who is refused tries again, and not at once.
const PAUSE: Duration = Duration::from_millis(200);

/// A part of a user's life in which nothing goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Logs in and counts.
    Arrival,
    /// Finds all as it was, counts, and logs out.
    End,
}

/// The kill, as the users see it.
pub(super) struct Kill {
    /// Whether what was acknowledged before may be lost with it.
    forgets: bool,
    is_over: AtomicBool,
    /// Users that have counted enough before, or given up.
    are_ready: AtomicUsize,
}

impl Kill {
    pub(super) fn new(forgets: bool) -> Kill {
        Kill { forgets, is_over: AtomicBool::new(false), are_ready: AtomicUsize::new(0) }
    }
}

/// One user, with what it knows of its count.
pub(super) struct User {
    name: String,
    port: u16,
    cookie: Option<String>,
    /// The last count that it was told, and how many may have been counted since.
    told: u64,
    unknown: u64,
    /// What no kill may undo; below `told` only while a kill may.
    floor: u64,
    may_fall_back: bool,
    requests: usize,
    failures: usize,
    failures_in_a_row_max: usize,
    wrong: Option<String>,
}

impl User {
    fn new(name: String, port: u16) -> User {
        User {
            name,
            port,
            cookie: None,
            told: 0,
            unknown: 0,
            floor: 0,
            may_fall_back: false,
            requests: 0,
            failures: 0,
            failures_in_a_row_max: 0,
            wrong: None,
        }
    }

    /// Does what it does at this moment.
    pub(super) fn live(&mut self, moment: &Moment) {
        if self.wrong.is_none() {
            self.wrong = self.try_to_live(*moment).err();
        }
    }

    fn try_to_live(&mut self, moment: Moment) -> Result<(), String> {
        match moment {
            Moment::Arrival => self.until_answered("/login", &mut |_| false).map(drop)?,
            Moment::End => self.read()?,
        }
        for _ in 0..COUNTS {
            self.count(&mut |_| false)?;
            self.read()?;
        }
        if moment == Moment::End {
            self.until_answered("/logout", &mut |_| false)?;
            let answer = http::get(self.port, &self.path("/read"), self.cookie.as_deref()).map_err(told)?;
            if answer.status != 401 {
                return Err(format!("it has logged out and reads {:?}", answer.body));
            }
        }
        Ok(())
    }

    /// Counts until the primary is killed, and goes on.
    fn go_through(&mut self, kill: &Kill) {
        if self.wrong.is_some() || self.try_to_go_through(kill).map_err(|error| self.wrong = Some(error)).is_err() {
            kill.are_ready.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn try_to_go_through(&mut self, kill: &Kill) -> Result<(), String> {
        self.may_fall_back = kill.forgets;
        let (mut before, mut after) = (0, 0);
        while after < COUNTS {
            // Known at the beginning of the attempt that is answered: it reached nobody who was killed.
            let mut is_after = false;
            self.count(&mut |_| {
                is_after = kill.is_over.load(Ordering::SeqCst);
                is_after
            })?;
            if is_after {
                after += 1;
            } else {
                before += 1;
                if before == COUNTS {
                    kill.are_ready.fetch_add(1, Ordering::SeqCst);
                }
            }
            self.read()?;
        }
        Ok(())
    }

    /// Raises the count. `begins` is called at the beginning of each attempt, and says whether what was acknowledged by then is lost,
    /// if it ever is.
    fn count(&mut self, begins: &mut dyn FnMut(usize) -> bool) -> Result<(), String> {
        let (count, is_settled) = self.until_answered("/count", begins)?;
        let (least, most) = (self.least() + 1, self.told + self.unknown + 1);
        if count < least || count > most {
            return Err(format!("it is told {count}, and can be at {least} to {most} only"));
        }
        (self.told, self.unknown) = (count, 0);
        self.may_fall_back &= !is_settled;
        if !self.may_fall_back {
            self.floor = count;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), String> {
        let (count, _) = self.until_answered("/read", &mut |_| false)?;
        let (least, most) = (self.least(), self.told + self.unknown);
        if count < least || count > most {
            return Err(format!("it reads {count}, and can be at {least} to {most} only"));
        }
        Ok(())
    }

    fn least(&self) -> u64 {
        if self.may_fall_back { self.floor } else { self.told }
    }

    /// Asks until it is answered; with which count, and what `begins` said of that attempt.
    fn until_answered(&mut self, page: &str, begins: &mut dyn FnMut(usize) -> bool) -> Result<(u64, bool), String> {
        let mut last = String::new();
        for attempt in 0..ATTEMPTS_MAX {
            let is_settled = begins(attempt);
            self.requests += 1;
            let answer = http::get(self.port, &self.path(page), self.cookie.as_deref()).map_err(told)?;
            if answer.status == 200 {
                // A browser that is refused keeps what it had: Django takes the cookie of a session that it cannot read for one
                // that is none.
                self.cookie = answer.cookie.or_else(|| self.cookie.take());
                return Ok((self.own(page, &answer.body)?, is_settled));
            }
            self.failures += 1;
            self.failures_in_a_row_max = self.failures_in_a_row_max.max(attempt + 1);
            self.unknown += u64::from(page == "/count");
            last = format!("{} {}", answer.status, answer.body.chars().take(200).collect::<String>());
            thread::sleep(PAUSE);
        }
        Err(format!("{page} failed {ATTEMPTS_MAX} times in a row, at last with {last:?}"))
    }

    /// The count in an answer, which has to be this user's.
    fn own(&self, page: &str, body: &str) -> Result<u64, String> {
        if page == "/logout" && body == "bye" {
            return Ok(0);
        }
        let count =
            body.split_once(' ').filter(|(name, _)| *name == self.name).and_then(|(_, count)| count.parse().ok());
        count.ok_or_else(|| format!("{page} answers {body:?}, which is not its own"))
    }

    fn path(&self, page: &str) -> String {
        format!("{page}?user={}", self.name)
    }
}

/// All users of one application.
pub(super) struct Crowd(Vec<User>);

impl Crowd {
    pub(super) fn new(port: u16) -> Crowd {
        Crowd((0..USERS).map(|number| User::new(format!("user{number}"), port)).collect())
    }

    /// Those that ask while the primary is killed; the others come back later.
    pub(super) fn running(&mut self) -> &mut [User] {
        self.0.split_at_mut(USERS / 2).0
    }

    /// What was wrong with whom.
    pub(super) fn wrong(&self) -> Vec<String> {
        let of_user = |user: &User| user.wrong.as_ref().map(|wrong| format!("{}: {wrong}", user.name));
        self.0.iter().filter_map(of_user).collect()
    }

    /// How often they asked, and in vain.
    pub(super) fn tally(&self) -> String {
        let sum = |of: fn(&User) -> usize| self.0.iter().map(of).sum::<usize>();
        let (requests, failures) = (sum(|user| user.requests), sum(|user| user.failures));
        let mut text = format!("{USERS} users asked {requests} times");
        if failures > 0 {
            let most = self.0.iter().map(|user| user.failures_in_a_row_max).max().unwrap_or_default();
            write!(text, ", {failures} times in vain, at most {most} times in a row").expect("strings take all");
        }
        text
    }
}

/// All users of all crowds at the same time.
pub(super) fn side_by_side(crowds: &mut [Crowd], live: impl Fn(&mut User) + Sync) {
    thread::scope(|scope| {
        for user in crowds.iter_mut().flat_map(|crowd| &mut crowd.0) {
            scope.spawn(|| live(user));
        }
    });
}

/// These users count; when each has, somebody is killed, and they go on until each has counted as often again.
///
/// # Errors
/// When nobody can be killed.
pub(super) fn through<'a>(
    users: impl Iterator<Item = &'a mut User>,
    kill: &Kill,
    kills: impl FnOnce() -> io::Result<String>,
) -> io::Result<String> {
    thread::scope(|scope| {
        let started = users.map(|user| scope.spawn(|| user.go_through(kill))).count();
        while kill.are_ready.load(Ordering::SeqCst) < started {
            thread::yield_now();
        }
        let said = kills();
        kill.is_over.store(true, Ordering::SeqCst);
        said
    })
}

fn told(error: io::Error) -> String {
    format!("the application does not answer: {error}")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::User;

    /// A user of an application that gives these answers, one after the other.
    fn user_of(answers: &'static [(u16, &'static str)]) -> User {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let port = listener.local_addr().expect("it has one").port();
        thread::spawn(move || {
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().expect("the user comes");
                let head = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
                assert!(head.count() > 0, "it asks for something");
                write!(stream, "HTTP/1.0 {status} X\r\n\r\n{body}").expect("the user listens");
            }
        });
        User::new("ann".to_owned(), port)
    }

    #[test]
    fn a_count_is_raised_by_one_and_read_as_it_was_told() {
        let mut user = user_of(&[(200, "ann 1"), (200, "ann 1"), (200, "ann 3")]);
        assert!(user.count(&mut |_| true).is_ok() && user.read().is_ok());
        assert_eq!(user.count(&mut |_| true), Err("it is told 3, and can be at 2 to 2 only".to_owned()), "done twice");
    }

    #[test]
    fn what_another_is_told_is_noticed() {
        let mut user = user_of(&[(200, "bob 1")]);
        assert!(user.count(&mut |_| true).is_err_and(|error| error.contains("not its own")));
    }

    #[test]
    fn a_failed_count_may_have_counted_and_what_was_told_may_not_be_lost() {
        let mut user = user_of(&[(200, "ann 1"), (503, ""), (503, ""), (200, "ann 4"), (200, "ann 3")]);
        assert!(user.count(&mut |_| true).is_ok() && user.count(&mut |_| true).is_ok());
        assert_eq!((user.failures, user.failures_in_a_row_max), (2, 2));
        assert_eq!(user.read(), Err("it reads 3, and can be at 4 to 4 only".to_owned()));
    }

    #[test]
    fn a_count_falls_back_once_and_not_below_what_had_copies() {
        let mut user = user_of(&[(200, "ann 1"), (200, "ann 2"), (200, "ann 3"), (200, "ann 2"), (200, "ann 2")]);
        assert!(user.count(&mut |_| true).is_ok());
        user.may_fall_back = true;
        assert!(user.count(&mut |_| false).is_ok() && user.count(&mut |_| false).is_ok());
        assert!(user.count(&mut |_| true).is_ok(), "from 1, which had a copy");
        assert_eq!(user.count(&mut |_| true), Err("it is told 2, and can be at 3 to 3 only".to_owned()));
    }
}
