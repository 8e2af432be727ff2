//! What SET and its kin say about a key's expiry: EX, PX, EXAT, PXAT, KEEPTTL, PERSIST.

use types::Expiry;
use wire::{Arguments, error};

use crate::arguments::{integer, is};
use crate::failure::Failure;

/// The part of a command's options that is about expiry, as written; its number is judged later.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lifetime<'a> {
    kept: bool,
    persisted: bool,
    term: Option<Term<'a>>,
}

/// A point in time as it was written.
#[derive(Clone, Copy, Debug)]
struct Term<'a> {
    unit: TimeUnit,
    text: &'a [u8],
}

/// The four ways to name a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    /// EX: seconds from now.
    Seconds,
    /// PX: milliseconds from now.
    Milliseconds,
    /// EXAT: Unix seconds.
    UnixSeconds,
    /// PXAT: Unix milliseconds.
    UnixMilliseconds,
}

impl TimeUnit {
    fn of_option(text: &[u8]) -> Option<TimeUnit> {
        match () {
            () if is(text, "EX") => Some(TimeUnit::Seconds),
            () if is(text, "PX") => Some(TimeUnit::Milliseconds),
            () if is(text, "EXAT") => Some(TimeUnit::UnixSeconds),
            () if is(text, "PXAT") => Some(TimeUnit::UnixMilliseconds),
            () => None,
        }
    }

    /// What an expiry counts from.
    pub(crate) fn base_ms(self, now_ms: u64) -> i64 {
        match self {
            TimeUnit::Seconds | TimeUnit::Milliseconds => now_ms as i64,
            TimeUnit::UnixSeconds | TimeUnit::UnixMilliseconds => 0,
        }
    }

    /// How many milliseconds one is.
    pub(crate) fn scale_ms(self) -> i64 {
        match self {
            TimeUnit::Seconds | TimeUnit::UnixSeconds => 1000,
            TimeUnit::Milliseconds | TimeUnit::UnixMilliseconds => 1,
        }
    }

    /// The absolute Unix milliseconds of `value`, which must be positive; `command` is for the error.
    pub(crate) fn deadline_ms(self, value: i64, now_ms: u64, command: &'static str) -> Result<u64, Failure> {
        let failure = Failure::ExpireTime(command);
        if value <= 0 {
            return Err(failure);
        }
        let scaled = value.checked_mul(self.scale_ms()).ok_or(failure)?;
        let at_ms = scaled.checked_add(self.base_ms(now_ms)).ok_or(failure)?;
        Ok(at_ms.unsigned_abs())
    }
}

impl<'a> Lifetime<'a> {
    /// Take the option at `*index` if it is one about expiry, and move `*index` past it.
    ///
    /// Like Redis, an option may be given again (the last counts), but not two different ones.
    pub(crate) fn take_option(&mut self, arguments: Arguments<'a>, index: &mut usize) -> Result<bool, Failure> {
        let Some(option) = arguments.get(*index) else { return Ok(false) };
        if is(option, "KEEPTTL") {
            refuse_if(self.persisted || self.term.is_some())?;
            self.kept = true;
        } else if let Some(unit) = TimeUnit::of_option(option) {
            let other_unit = self.term.is_some_and(|term| term.unit != unit);
            refuse_if(self.kept || self.persisted || other_unit)?;
            let text = arguments.get(*index + 1).ok_or(error::SYNTAX)?;
            self.term = Some(Term { unit, text });
            *index += 1;
        } else {
            return Ok(false);
        }
        *index += 1;
        Ok(true)
    }

    /// Take PERSIST at `*index`, which GETEX knows in addition.
    pub(crate) fn take_persist(&mut self, arguments: Arguments<'a>, index: &mut usize) -> Result<bool, Failure> {
        if !arguments.get(*index).is_some_and(|option| is(option, "PERSIST")) {
            return Ok(false);
        }
        refuse_if(self.kept || self.term.is_some())?;
        self.persisted = true;
        *index += 1;
        Ok(true)
    }

    /// Whether KEEPTTL was given.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    /// Whether PERSIST was given.
    pub(crate) fn is_persisted(&self) -> bool {
        self.persisted
    }

    /// Whether the point in time is an absolute one.
    pub(crate) fn is_absolute(&self) -> bool {
        self.term.is_some_and(|term| matches!(term.unit, TimeUnit::UnixSeconds | TimeUnit::UnixMilliseconds))
    }

    /// The absolute point in time, if one was given; `command` is for the error.
    #[inline]
    pub(crate) fn deadline_ms(&self, now_ms: u64, command: &'static str) -> Result<Option<u64>, Failure> {
        let Some(Term { unit, text }) = self.term else { return Ok(None) };
        unit.deadline_ms(integer(text)?, now_ms, command).map(Some)
    }

    /// What a whole write makes of the key's expiry.
    #[inline]
    pub(crate) fn expiry(&self, now_ms: u64, command: &'static str) -> Result<Expiry, Failure> {
        match self.deadline_ms(now_ms, command)? {
            Some(at_ms) => Ok(Expiry::At(at_ms)),
            None if self.kept => Ok(Expiry::Keep),
            None => Ok(Expiry::Clear),
        }
    }
}

fn refuse_if(conflict: bool) -> Result<(), Failure> {
    if conflict { Err(error::SYNTAX.into()) } else { Ok(()) }
}
