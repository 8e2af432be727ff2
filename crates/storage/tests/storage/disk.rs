//! A directory in memory, and recovery from it.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use base::SlotGroupId;
use base::planted::Bug;
use storage::log::{Damage, MANIFEST_FILE_NAME, Manifest, Recovery, Replayed, recover};

/// Files by name.
#[derive(Clone, Default)]
pub struct Disk {
    pub files: BTreeMap<String, Vec<u8>>,
    /// What recovery from this directory suffers from, in the build that can.
    pub planted: Option<Bug>,
}

/// A planted bug holds for the process: only its own recovery may run while it is there.
static PLANTED: RwLock<()> = RwLock::new(());

fn groups_of(core: u16, cores: u16) -> u64 {
    let own = SlotGroupId::all().filter(|group| crate::node::owner(group.slot(0), cores) == usize::from(core));
    own.fold(0, |mask, group| mask | 1 << group.number())
}

impl Disk {
    /// The manifest, if there is a whole directory; a damaged one is refused as the server does it.
    pub fn manifest(&self) -> Result<Option<Manifest>, Damage> {
        let refused = |reason: String| Damage { file: MANIFEST_FILE_NAME.into(), offset: 0, reason };
        match self.files.get(MANIFEST_FILE_NAME) {
            Some(bytes) => Manifest::decode(bytes).map(Some).map_err(|error| refused(format!("{error:?}"))),
            None if self.files.is_empty() => Ok(None),
            None => Err(refused("missing".into())),
        }
    }

    /// Replay everything that counts.
    pub fn recover(&self, apply: &mut dyn FnMut(Replayed<'_>) -> Result<(), String>) -> Result<Recovery, Damage> {
        self.recover_noting(&mut Vec::new(), apply)
    }

    /// The same, noting which files are read, in order.
    pub fn recover_noting(
        &self,
        read_names: &mut Vec<String>,
        apply: &mut dyn FnMut(Replayed<'_>) -> Result<(), String>,
    ) -> Result<Recovery, Damage> {
        let Some(manifest) = self.manifest()? else { return Ok(Recovery::default()) };
        let names: Vec<String> = self.files.keys().cloned().collect();
        let mut read = |name: &str, bytes: &mut Vec<u8>| {
            read_names.push(name.to_owned());
            self.files.get(name).map(|file| bytes.clone_from(file)).ok_or_else(|| "no such file".to_owned())
        };
        if self.planted.is_some() {
            let _alone = PLANTED.write().unwrap_or_else(PoisonError::into_inner);
            plant(self.planted);
            let result = recover(&manifest, &names, &groups_of, &mut read, apply);
            plant(None);
            return result;
        }
        let _others = PLANTED.read().unwrap_or_else(PoisonError::into_inner);
        recover(&manifest, &names, &groups_of, &mut read, apply)
    }

    /// Write at an offset; the file grows with zeros.
    pub fn write(&mut self, name: &str, offset: usize, bytes: &[u8]) {
        let file = self.files.entry(name.to_owned()).or_default();
        file.resize(file.len().max(offset + bytes.len()), 0);
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
}

#[cfg(feature = "planted")]
fn plant(bug: Option<Bug>) {
    base::planted::plant(bug);
}

#[cfg(not(feature = "planted"))]
fn plant(_: Option<Bug>) {
    panic!("this build carries no bugs");
}
