//! The real node: opens a directory as start-up does and makes one [`Shard`] per core.
//!
//! ```text
//!  manifest, segments ─ recover ─► stores        rewrite what counts · manifest (not serving) · first segments · manifest
//! ```
//!
//! What counts and is not known to be on the disk is written again and synced before the new manifest promises it:
//! after `kill -9` it may be in the page cache only, and after a failed sync the kernel would not even write it.

use std::sync::Arc;

use base::rng::Rng;
use base::{CoreId, SegmentNumber};
use placement::NodeTable;
use shard::{NodeState, Shard, ShardConfig};
use storage::ColdValue;
use storage::log::format::segment_file_name;
use storage::log::manifest::ManifestError;
use storage::log::{LogIdentity, LogWriter, MANIFEST_FILE_NAME, Manifest, Recovery, Replayed, recover};
use wire::trust::Token;

use crate::disk::Disk;
use crate::fickle_watch::FickleWatch;
use crate::node::{Abilities, Boot, CLUSTER_PORT_BASE, Durability, MemoryLimit, Node, Refusal};

/// Most bytes of log between two runs, and bytes of their slices: with the first, one run follows the other.
const RUN_BOUNDS: [(u64, usize); 3] = [(1, 1), (200, 40), (u64::MAX, 1 << 16)];
/// How soon a log is quiet that hardly grows, microseconds.
const LOG_QUIET_US: [u64; 2] = [30_000, 30_000_000];

/// What the nodes of a town share.
const TOKEN: Token = Token::new(*b"a key to a dream");

/// See the module.
#[derive(Default)]
pub struct ShardNode {
    incarnation: u64,
    password: Option<Vec<u8>>,
    /// In a cluster: how long it keeps what it is no member of, microseconds.
    stray_quiet_us: Option<u64>,
    /// Changes of logs that the last start performed.
    pub(crate) replayed_records: u64,
}

impl ShardNode {
    /// A node that asks for a password.
    pub fn with_password(password: &[u8]) -> ShardNode {
        ShardNode { password: Some(password.to_vec()), ..ShardNode::default() }
    }

    /// A node of a cluster; it serves nothing before a table and a lease have come.
    pub fn member(stray_quiet_us: u64) -> ShardNode {
        ShardNode { stray_quiet_us: Some(stray_quiet_us), ..ShardNode::default() }
    }
}

impl Node for ShardNode {
    type Machine = Shard;

    fn open(&mut self, boot: Boot, disk: &mut Disk) -> Result<Vec<Shard>, Refusal> {
        if boot.durability == Durability::Memory {
            return Ok(self.shards(boot, None));
        }
        let old = read_manifest(disk, boot.seed)?;
        self.incarnation = old.incarnation + 1;
        let mut shards = self.shards(boot, Some(old.store_id));
        let recovery = replay(&old, disk, &mut shards)?;
        self.replayed_records = recovery.records;
        for unsure in &recovery.unsure {
            disk.rewrite(&unsure.file, unsure.from, unsure.to)?;
            disk.sync(&unsure.file)?;
        }
        let mut new = Manifest {
            store_id: old.store_id,
            incarnation: self.incarnation,
            cores: boot.cores,
            serving: false,
            closed: recovery.chains.clone(),
            cuts: recovery.cuts.all(),
        };
        disk.replace(MANIFEST_FILE_NAME, &new.encode())?;
        for core in 0..boot.cores {
            let header = LogWriter::first_segment(&self.identity(old.store_id, core, boot.cores), boot.segment_bytes);
            disk.create(&header.file_name(), &header.encode(), boot.segment_bytes)?;
        }
        new.serving = true;
        disk.replace(MANIFEST_FILE_NAME, &new.encode())?;
        recovery.ends.iter().try_for_each(|end| disk.trim(&end.file, end.bytes))?;
        recovery.stale.iter().try_for_each(|name| disk.remove_stale(name))?;
        shards.iter_mut().for_each(|shard| shard.set_recovered(&recovery));
        Ok(shards)
    }

    fn file_name(&self, core: u16, segment: SegmentNumber) -> String {
        segment_file_name(self.incarnation, core, segment)
    }

    fn another(&self) -> Option<ShardNode> {
        Some(ShardNode { password: self.password.clone(), ..ShardNode::default() })
    }

    fn abilities(&self) -> Abilities {
        Abilities { cores_max: 4, cluster: true, waits: true, blocks: true, keyspace: true, outlives_syncs: true }
    }
}

impl ShardNode {
    fn identity(&self, store_id: [u8; 16], core: u16, cores: u16) -> LogIdentity {
        LogIdentity { store_id, incarnation: self.incarnation, core, cores }
    }

    fn state(&self, memory: Option<MemoryLimit>) -> NodeState {
        let mut state = NodeState::anonymous();
        if let Some(password) = &self.password {
            state.set_password(password);
        }
        if let Some(MemoryLimit { bytes, policy }) = memory {
            let bytes = bytes.to_string();
            state.config.preset("maxmemory", bytes.as_bytes()).expect("a number of bytes");
            let (name, value) =
                if policy == "tier" { ("zerohop-when-full", policy) } else { ("maxmemory-policy", policy) };
            state.config.preset(name, value.as_bytes()).expect("the swarm draws policies that exist");
        }
        state
    }

    fn shards(&self, boot: Boot, store_id: Option<[u8; 16]>) -> Vec<Shard> {
        let table = Arc::new(table_of(store_id.unwrap_or_default(), boot.cores));
        let shard = |core| {
            let config = ShardConfig {
                core: CoreId(core),
                table: Arc::clone(&table),
                seed: boot.seed,
                durability: match boot.durability {
                    Durability::Memory => shard::Durability::Memory,
                    Durability::Interval => shard::Durability::Interval,
                    Durability::Commit => shard::Durability::Commit,
                },
                log: store_id.map(|store_id| self.identity(store_id, core, boot.cores)),
                node: self.state(boot.memory),
            };
            let mut shard = Shard::new(config);
            shard.set_segment_bytes(boot.segment_bytes);
            let (stride_bytes_max, slice_bytes) = RUN_BOUNDS[(boot.seed % RUN_BOUNDS.len() as u64) as usize];
            shard.set_run_bounds(stride_bytes_max, slice_bytes);
            shard.set_log_quiet_us(LOG_QUIET_US[(boot.seed / RUN_BOUNDS.len() as u64 % 2) as usize]);
            if let Some(watch) = FickleWatch::draw(boot.seed ^ u64::from(core)) {
                shard.set_stopwatch(Box::new(watch));
            }
            if let Some(quiet_us) = self.stray_quiet_us {
                shard.join(boot.seed ^ 0x11_4C5, &TOKEN);
                shard.set_stray_quiet_us(quiet_us);
            }
            shard
        };
        (0..boot.cores).map(shard).collect()
    }
}

fn table_of(store_id: [u8; 16], cores: u16) -> NodeTable {
    NodeTable::even(store_id, cores, "127.0.0.1", CLUSTER_PORT_BASE).expect("the swarm draws possible numbers of cores")
}

/// The manifest of the directory, or that of a store that is about to begin.
fn read_manifest(disk: &Disk, seed: u64) -> Result<Manifest, Refusal> {
    let mut files = disk.files();
    match files.find(|(name, _)| *name == MANIFEST_FILE_NAME) {
        Some((_, bytes)) => Manifest::decode(bytes)
            .map_err(|error: ManifestError| Refusal::Damaged(format!("{MANIFEST_FILE_NAME} at offset 0: {error:?}"))),
        None if disk.files().next().is_some() => {
            Err(Refusal::Damaged(format!("{MANIFEST_FILE_NAME} at offset 0: missing although logs exist")))
        }
        None => {
            let mut rng = Rng::new(seed);
            let mut store_id = [0; 16];
            store_id[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
            store_id[8..].copy_from_slice(&rng.next_u64().to_le_bytes());
            Ok(Manifest { store_id, incarnation: 0, cores: 0, serving: false, closed: Vec::new(), cuts: Vec::new() })
        }
    }
}

fn recovered_files(disk: &Disk) -> Vec<String> {
    disk.files().map(|(name, _)| name.to_owned()).filter(|name| name != MANIFEST_FILE_NAME).collect()
}

/// Hand every change that counts to the shard that owns its key now.
fn replay(manifest: &Manifest, disk: &Disk, shards: &mut [Shard]) -> Result<Recovery, Refusal> {
    let names = recovered_files(disk);
    let table = table_of(manifest.store_id, shards.len() as u16);
    let mut read = |name: &str, bytes: &mut Vec<u8>| {
        let found = disk.files().find(|(file, _)| *file == name);
        let (_, found) = found.ok_or_else(|| "no such file".to_owned())?;
        bytes.clear();
        bytes.extend_from_slice(found);
        Ok(())
    };
    let mut read_cold = |cold: &ColdValue| {
        let found = disk.files().find(|(file, _)| *file == cold.file);
        let record = found.and_then(|(_, bytes)| bytes.get(cold.offset as usize..cold.offset as usize + cold.bytes));
        record.map(<[u8]>::to_vec).ok_or_else(|| "no such record".to_owned())
    };
    let mut apply = |replayed: Replayed<'_>| match replayed {
        Replayed::Change { slot, database, key, version, change, may_be_known } => {
            let store = shards[usize::from(table.owner(slot).0)].store_mut();
            let key = store.key(key, database, slot);
            store.replay_reading(&key, (&change, version), may_be_known, &mut read_cold)
        }
        Replayed::Known { slot, database, key, version } => {
            let store = shards[usize::from(table.owner(slot).0)].store_mut();
            store.replay_known(&store.key(key, database, slot), version)
        }
        Replayed::Ahead { .. } => Ok(()),
        Replayed::Run { group, keys } => {
            shards[usize::from(table.group_owner(group).0)].store_mut().expect_keys(group, keys);
            Ok(())
        }
        Replayed::Loaded { slot, database, key, version, change, place } => {
            let store = shards[usize::from(table.owner(slot).0)].store_mut();
            let key = store.key(key, database, slot);
            store.load(&key, (&change, version), place)
        }
        Replayed::Versions { group, versions } => {
            shards[usize::from(table.group_owner(group).0)].store_mut().set_versions(group, versions);
            Ok(())
        }
        Replayed::Forget { slot } => {
            shards[usize::from(table.owner(slot).0)].store_mut().replay_forget(slot);
            Ok(())
        }
        Replayed::Clear { core, cores, database, spared } => {
            let groups = table_of(manifest.store_id, cores);
            for group in groups.groups_of(CoreId(core)).filter(|group| spared >> group.number() & 1 == 0) {
                shards[usize::from(table.group_owner(group).0)].store_mut().replay_clear_group(group, database);
            }
            Ok(())
        }
    };
    let groups_of = |core, cores| table_of(manifest.store_id, cores).group_mask_of(CoreId(core));
    recover(manifest, &names, &groups_of, &mut read, &mut apply).map_err(|damage| Refusal::Damaged(damage.to_string()))
}
