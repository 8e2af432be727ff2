//! The store as its users see it: a handle, and one function per operation.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use base::Version;
use directory::DataDirectory;
use storage::{Key, NotApplied};
use types::{Change, Expiry};

use crate::checks::{check_key, check_value, key_of, read};
use crate::engine::{Engine, empty_data};
use crate::keeper::{Bell, keep};
use crate::open::random_seed;
use crate::value::is_equal;
use crate::{Error, Options, Value};

/// Why a lock of this crate is never poisoned while a store is used.
pub(crate) const POISONED: &str = "a panic under the lock has ended the store";

/// A key-value store in a directory, or in memory alone; see the [crate] for what it promises.
///
/// A clone is another handle. When the last one is dropped, the store ends as by [`Store::close`], without its errors.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Handle>,
}

/// What the handles share; the last one ends the store.
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Who wants to know calls `close`; nothing that was acknowledged is at stake.
        drop(self.shared.end());
    }
}

/// What the handles and the keeper share.
pub(crate) struct Shared {
    engine: Mutex<Engine>,
    /// A sync, a step of a checkpoint, a failure, the end.
    pub progress: Condvar,
    pub keeper_bell: Arc<Bell>,
    pub keeper: Mutex<Option<JoinHandle<()>>>,
    /// Held until the end.
    pub directory: Mutex<Option<DataDirectory>>,
}

impl Shared {
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().expect(POISONED)
    }
}

impl Store {
    /// Opens the store in `directory` with the options that [`Options`] has if nothing is said, and makes both if they are not
    /// there.
    ///
    /// # Errors
    /// See [`Options::open`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Store, Error> {
        Store::options().open(directory)
    }

    /// How a store is to be opened.
    pub fn options() -> Options {
        Options::default()
    }

    /// A store without a directory: nothing of it survives.
    ///
    /// ```
    /// # fn main() -> Result<(), zerohop::Error> {
    /// let store = zerohop::Store::in_memory()?;
    /// store.put(b"key", b"value")?;
    /// assert_eq!(store.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] when the operating system has no thread or no randomness to give.
    pub fn in_memory() -> Result<Store, Error> {
        Store::start(Engine::new(empty_data(random_seed()?, false), None), Arc::default(), None)
    }

    pub(crate) fn start(
        engine: Engine,
        keeper_bell: Arc<Bell>,
        directory: Option<DataDirectory>,
    ) -> Result<Store, Error> {
        let shared = Arc::new(Shared {
            engine: Mutex::new(engine),
            progress: Condvar::new(),
            keeper_bell,
            keeper: Mutex::new(None),
            directory: Mutex::new(directory),
        });
        let kept = Arc::clone(&shared);
        let keeper = std::thread::Builder::new().name(String::from("zerohop-keeper")).spawn(move || keep(&kept));
        let keeper = keeper.map_err(|error| Error::Io(format!("cannot start a thread: {error}")))?;
        *shared.keeper.lock().expect(POISONED) = Some(keeper);
        Ok(Store { shared: Arc::new(Handle { shared }) })
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared.shared
    }

    /// The value of a key, and `None` when it does not exist.
    ///
    /// # Errors
    /// [`Error::WrongType`], [`Error::KeyTooLong`], [`Error::Closed`]; under a memory limit [`Error::Unreadable`]; in durability `Commit`, [`Error::LogFailed`] if it would
    /// show what may not survive.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>, Error> {
        check_key(key)?;
        let engine = self.shared().lock();
        engine.check_open()?;
        let mut engine = self.shared().with_value(engine, key)?;
        let now_ms = engine.read_ms();
        let key = key_of(&engine.data, key);
        let value = read(&mut engine.data, &key, now_ms)?.map(|present| present.to_value());
        // A key whose time was over has been removed, by record.
        if engine.has_to_end_read() {
            let now = engine.now();
            engine.end_change(now);
            self.shared().promise(engine)?;
        }
        Ok(value)
    }

    /// Sets a key, whatever it held; it does not expire any more. Returns the version that it has now.
    ///
    /// Values above 256 KiB go to the log in slices, between which others have their turn; the store shows the old value until
    /// the last one.
    ///
    /// # Errors
    /// [`Error::ValueTooLong`], [`Error::KeyTooLong`], and those of every write: [`Error::GroupFull`], [`Error::DiskFull`],
    /// [`Error::LogFailed`], [`Error::Closed`], and under a memory limit [`Error::MemoryFull`].
    #[inline]
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<Version, Error> {
        self.put_until(key, value, None)
    }

    /// As [`Store::put`], and the key is removed once `time_to_live` (counted in whole milliseconds, rounded up) is over.
    ///
    /// ```
    /// # fn main() -> Result<(), zerohop::Error> {
    /// # let store = zerohop::Store::in_memory()?;
    /// use std::time::Duration;
    /// store.put_with_expiry(b"session", b"token", Duration::from_secs(3600))?;
    /// assert!(store.get(b"session")?.expect("it was put").expires_at().is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Store::put`].
    pub fn put_with_expiry(&self, key: &[u8], value: &[u8], time_to_live: Duration) -> Result<Version, Error> {
        self.put_until(key, value, Some(time_to_live))
    }

    #[inline]
    fn put_until(&self, key: &[u8], value: &[u8], time_to_live: Option<Duration>) -> Result<Version, Error> {
        check_key(key)?;
        check_value(key, value.len() as u64)?;
        if value.len() > crate::long_put::SLICE_BYTES {
            return self.shared().put_long(key, value, time_to_live);
        }
        self.change(key.len() + value.len(), |engine, now| {
            let key = key_of(&engine.data, key);
            apply_change(&mut engine.data, &key, &Change::put_string(value, expiry(time_to_live, now)))
        })
    }

    /// Removes a key, whatever it held; whether it was there.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], and those of every write ([`Store::put`]).
    #[inline]
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        check_key(key)?;
        self.change(0, |engine, now| {
            let key = key_of(&engine.data, key);
            let is_there = engine.data.read(&key, now.unix_ms).is_some();
            if is_there {
                apply_change(&mut engine.data, &key, &Change::Remove)?;
            }
            Ok(is_there)
        })
    }

    /// Appends to a value, or sets it where there is none; its new length, bytes. An expiry stays. What is long is logged in slices,
    /// and others have their turn in between; they see the value without it until all of it is there.
    ///
    /// # Errors
    /// [`Error::WrongType`], [`Error::ValueTooLong`] when it would become so, [`Error::Unreadable`], and those of every write ([`Store::put`]).
    pub fn append(&self, key: &[u8], bytes: &[u8]) -> Result<u64, Error> {
        check_key(key)?;
        if bytes.len() > crate::long_put::SLICE_BYTES {
            check_value(key, bytes.len() as u64)?;
            return self.append_long(key, bytes);
        }
        self.change_value(key, key.len() + bytes.len(), |engine, now| {
            let key = key_of(&engine.data, key);
            let present_len = read(&mut engine.data, &key, now.unix_ms)?.map(|present| present.text.len() as u64);
            let len = present_len.unwrap_or(0) + bytes.len() as u64;
            check_value(key.bytes, len)?;
            let change = match present_len {
                Some(_) => Change::Append { bytes },
                None => Change::put_string(bytes, Expiry::Clear),
            };
            apply_change(&mut engine.data, &key, &change)?;
            Ok(len)
        })
    }

    /// Sets a key to `new` (`None`: removes it) if it holds `expected` (`None`: if it does not exist), in one step. The
    /// inner result is the version of that write, or what the key holds instead.
    ///
    /// ```
    /// # fn main() -> Result<(), zerohop::Error> {
    /// # let store = zerohop::Store::in_memory()?;
    /// assert!(store.compare_and_swap(b"leader", None, Some(b"a"))?.is_ok());
    /// let current = store.compare_and_swap(b"leader", None, Some(b"b"))?.expect_err("there is one");
    /// assert_eq!(current.expect("it exists"), b"a");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongType`], [`Error::ValueTooLong`], [`Error::Unreadable`], and those of every write ([`Store::put`]).
    pub fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Result<Version, Option<Value>>, Error> {
        self.swap_if(key, new, |present| match (present, expected) {
            (None, None) => true,
            (Some(present), Some(expected)) => is_equal(present.text, expected),
            _ => false,
        })
    }

    /// As [`Store::compare_and_swap`], if the key has the version `expected` ([`Version::ABSENT`]: if it does not exist).
    ///
    /// # Errors
    /// Those of [`Store::compare_and_swap`].
    pub fn compare_and_swap_version(
        &self,
        key: &[u8],
        expected: Version,
        new: Option<&[u8]>,
    ) -> Result<Result<Version, Option<Value>>, Error> {
        self.swap_if(key, new, |present| present.map_or(Version::ABSENT, |present| present.version) == expected)
    }

    fn swap_if(
        &self,
        key: &[u8],
        new: Option<&[u8]>,
        is_expected: impl FnOnce(Option<&crate::checks::Present<'_>>) -> bool,
    ) -> Result<Result<Version, Option<Value>>, Error> {
        check_key(key)?;
        check_value(key, new.map_or(0, |new| new.len() as u64))?;
        self.change_value(key, new.map_or(0, |new| key.len() + new.len()), |engine, now| {
            let key = key_of(&engine.data, key);
            let present = read(&mut engine.data, &key, now.unix_ms)?;
            if !is_expected(present.as_ref()) {
                return Ok(Err(present.map(|present| present.to_value())));
            }
            if present.is_none() && new.is_none() {
                return Ok(Ok(Version::ABSENT));
            }
            let change = new.map_or(Change::Remove, |new| Change::put_string(new, Expiry::Clear));
            apply_change(&mut engine.data, &key, &change).map(Ok)
        })
    }

    /// Keys, those included whose time is over and that nobody has touched since.
    pub fn len(&self) -> u64 {
        self.shared().lock().data.count(crate::checks::DATABASE).keys
    }

    /// What index, keys and values take in memory, bytes.
    pub fn memory_bytes(&self) -> usize {
        self.shared().lock().data.memory_bytes()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the store, for all handles: makes everything durable and checkpoints what changed, so that the next opening has
    /// nothing to replay. It takes as long as writing all slot groups that changed. Calls that are under way end first or return
    /// [`Error::Closed`], as all later ones do.
    ///
    /// # Errors
    /// [`Error::LogFailed`] when the log failed, now or before; [`Error::NotCheckpointed`] when only a checkpoint did.
    pub fn close(self) -> Result<(), Error> {
        self.shared().end()
    }

    /// One change that takes so many bytes: made under the lock, then as durable as promised.
    #[inline]
    pub(crate) fn change<R>(
        &self,
        bytes: usize,
        act: impl FnOnce(&mut Engine, base::Now) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.end_change(self.shared().lock_to_write(bytes)?, act)
    }

    /// The same, of a value that has to be in memory.
    pub(crate) fn change_value<R>(
        &self,
        key: &[u8],
        bytes: usize,
        act: impl FnOnce(&mut Engine, base::Now) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.end_change(self.shared().lock_to_change(key, bytes)?, act)
    }

    #[inline]
    fn end_change<R>(
        &self,
        (mut engine, now): (MutexGuard<'_, Engine>, base::Now),
        act: impl FnOnce(&mut Engine, base::Now) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let result = act(&mut engine, now);
        engine.end_change(now);
        // Also behind what was refused: a key whose time was over has been removed, and what was seen has to survive.
        self.shared().promise(engine)?;
        result
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Store").field("keys", &self.len()).finish()
    }
}

/// Performs a change on memory and appends it to the log's buffer.
#[inline]
pub(crate) fn apply_change(data: &mut storage::Store, key: &Key<'_>, change: &Change<'_>) -> Result<Version, Error> {
    data.apply(key, change).map_err(|error| match error {
        NotApplied::HeapFull => Error::GroupFull { key: key.bytes.to_vec() },
        NotApplied::UnitTooLong => unreachable!("the largest value and the largest batch fit a unit"),
    })
}

/// What a put does with a key's expiry.
#[inline]
pub(crate) fn expiry(time_to_live: Option<Duration>, now: base::Now) -> Expiry {
    time_to_live.map_or(Expiry::Clear, |time| {
        let ms = u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Expiry::At(now.unix_ms.saturating_add(ms))
    })
}
