//! How a store begins: the directory is held, everything in it is loaded, and its log goes on in a new incarnation.

use std::path::Path;
use std::sync::Arc;

use base::CoreId;
use base::limits::LOG_PIECE_BYTES_MAX;
use directory::{DataDirectory, apply, read_cold};
use io::{LogFilesConfig, LogStreet};
use placement::NodeTable;
use storage::ColdValue;
use storage::log::format::segment_file_name;
use storage::log::{LogIdentity, Recovery};

use crate::engine::{Engine, empty_data};
use crate::journal::Journal;
use crate::keeper::Bell;
use crate::tiering::{begin_tiering, end_loading};
use crate::{Durability, Error, Options, Store};

impl Store {
    pub(crate) fn open_with(path: &Path, options: &Options) -> Result<Store, Error> {
        let about = format!("pid {} (a program that embeds the store)\n", std::process::id());
        let directory = DataDirectory::open(path, &about)?;
        let logs = options.durability != Durability::Memory;
        let mut data = empty_data(random_seed()?, logs);
        begin_tiering(&mut data, options)?;
        let fresh_id = [random_seed()?, random_seed()?].map(u64::to_le_bytes);
        let fresh_id: [u8; 16] = fresh_id.as_flattened().try_into().expect("two times eight bytes");
        let store_id = directory.store_id(fresh_id);
        let table = NodeTable::even(store_id, 1, "", 1).map_err(|error| Error::Io(error.to_string()))?;
        let mut read = |cold: &ColdValue| read_cold(directory.path(), cold);
        let recovery =
            directory.replay(&mut |_, _| {}, &mut |replayed| apply(&mut [&mut data], &table, replayed, &mut read))?;
        end_loading(&mut data, options);
        let bell = Arc::new(Bell::default());
        let journal = match logs {
            true => Some(begin_journal(&directory, store_id, options, (&recovery, &data), &bell)?),
            false => None,
        };
        Store::start(Engine::new(data, journal), bell, Some(directory))
    }
}

fn begin_journal(
    directory: &DataDirectory,
    store_id: [u8; 16],
    options: &Options,
    (recovery, data): (&Recovery, &storage::Store),
    bell: &Arc<Bell>,
) -> Result<Journal, Error> {
    let identities = directory.begin(store_id, 1, recovery)?;
    let identity: LogIdentity = identities[0];
    let files = LogFilesConfig {
        directory: directory.path().to_owned(),
        file_name: Box::new(move |segment| segment_file_name(identity.incarnation, identity.core, segment)),
    };
    let bell = Arc::clone(bell);
    let street = LogStreet::start(files, CoreId(0), Arc::new(move || bell.ring()));
    let street = street.map_err(|error| Error::Io(format!("cannot start a thread: {error}")))?;
    let mut journal = Journal::new(identity, options.durability, street, (recovery, data));
    if let Some(bytes) = options.checkpoint_bytes {
        journal.checkpoints.set_bounds(bytes, LOG_PIECE_BYTES_MAX);
    }
    Ok(journal)
}

pub(crate) fn random_seed() -> Result<u64, Error> {
    io::thread::random_seed().map_err(|error| Error::Io(format!("no randomness: {error}")))
}
