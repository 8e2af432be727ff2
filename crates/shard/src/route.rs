//! Route: which core has what a request needs.

use base::{CoreId, Database, Door, Slot};
use storage::{Key, Store};
use wire::Arguments;
use wire::registry::{CommandSpec, KeyPosition, Spread, key_positions};

use placement::NodeTable;

/// Where a request belongs.
#[derive(Clone, Copy, Debug)]
pub enum Route<'a> {
    /// This core, and everything is here. With the first key if there is one.
    Here(Option<Key<'a>>),
    /// This core, but a group is lent: wait until it is back.
    Parked,
    /// Another core of this node alone.
    Hop(CoreId),
    /// Several cores: a unit. Bit i of a core's mask is slot group i.
    Spread,
    /// The client is to ask the slot's owner.
    Moved(Slot),
    /// Keys of different slots, on a port where that is not served.
    CrossSlot,
    /// A key above [`base::limits::KEY_BYTES_MAX`].
    KeyTooLong,
}

/// A request's first key, when the decoder computed it.
#[derive(Clone, Copy, Debug)]
pub struct Hint {
    /// Slot of the first key.
    pub slot: Slot,
    /// Its hash in `database`.
    pub hash: u64,
    /// What the connection had selected when the request was decoded.
    pub database: Database,
}

/// Slot groups by core, as a unit needs them.
pub type GroupMasks = Vec<(CoreId, u64)>;

/// Scratch of [`route`]; kept between requests.
#[derive(Default)]
pub struct RouteScratch {
    positions: Vec<KeyPosition>,
    /// The last routed request's groups by core, ascending.
    pub masks: GroupMasks,
}

/// How a connection may name keys.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// Which personality answers.
    pub door: Door,
    /// What the connection has selected.
    pub database: Database,
    /// All keys of a request are of one slot.
    pub one_slot: bool,
}

/// Where a data command belongs. `hint` is for commands with a single key.
#[inline]
pub fn route<'a>(
    spec: &CommandSpec,
    arguments: Arguments<'a>,
    hint: Option<Hint>,
    asking: Asking,
    (core, table, store): (CoreId, &NodeTable, &Store),
    scratch: &mut RouteScratch,
) -> Route<'a> {
    let Asking { door, database, .. } = asking;
    let Some(Hint { slot, hash, .. }) = hint.filter(|hint| hint.database == database) else {
        return route_many(spec, arguments, asking, (core, table, store), scratch);
    };
    let bytes = arguments.get(spec.first_key as usize).expect("the decoder found the key there");
    if bytes.len() > base::limits::KEY_BYTES_MAX {
        return Route::KeyTooLong;
    }
    if store.group(slot.group()).is_some() && table.owner(slot) == core {
        return Route::Here(Some(Key { bytes, database, slot, hash }));
    }
    route_away(slot, door, core, table)
}

fn route_away<'a>(slot: Slot, door: Door, core: CoreId, table: &NodeTable) -> Route<'a> {
    let owner = table.owner(slot);
    match door {
        _ if owner == core => Route::Parked,
        Door::Cluster | Door::Node => Route::Moved(slot),
        Door::Standalone => Route::Hop(owner),
    }
}

#[inline(never)]
fn route_many<'a>(
    spec: &CommandSpec,
    arguments: Arguments<'a>,
    Asking { door, one_slot, .. }: Asking,
    (core, table, store): (CoreId, &NodeTable, &Store),
    scratch: &mut RouteScratch,
) -> Route<'a> {
    scratch.positions.clear();
    scratch.masks.clear();
    // A request that contradicts itself runs here: it gets its own error and touches nothing.
    if key_positions(spec, arguments, &mut scratch.positions).is_err() || scratch.positions.is_empty() {
        return Route::Here(None);
    }
    let mut first_slot = None;
    for position in &scratch.positions {
        let name = arguments.get(position.index).expect("positions are within the arguments");
        if name.len() > base::limits::KEY_BYTES_MAX {
            return Route::KeyTooLong;
        }
        let slot = placement::slot_of(name);
        if *first_slot.get_or_insert(slot) != slot && one_slot {
            return Route::CrossSlot;
        }
        add_group(&mut scratch.masks, table, slot);
    }
    let first_slot = first_slot.expect("there is a key");
    scratch.masks.sort_unstable_by_key(|(owner, _)| *owner);
    match scratch.masks[..] {
        [(owner, mask)] if owner == core && has_all(store, mask) => Route::Here(None),
        [_] => route_away(first_slot, door, core, table),
        _ => Route::Spread,
    }
}

/// Add a slot's group to the masks.
pub fn add_group(masks: &mut GroupMasks, table: &NodeTable, slot: Slot) {
    let owner = table.owner(slot);
    let bit = 1u64 << slot.group().number();
    match masks.iter_mut().find(|(core, _)| *core == owner) {
        Some((_, mask)) => *mask |= bit,
        None => masks.push((owner, bit)),
    }
}

/// All slot groups of all cores.
pub fn all_groups(table: &NodeTable) -> GroupMasks {
    let masks = table.instances().iter().map(|instance| (instance.core, table.group_mask_of(instance.core)));
    masks.collect()
}

/// Whether all groups of `mask` are here.
pub fn has_all(store: &Store, mask: u64) -> bool {
    base::SlotGroupId::all().filter(|group| mask >> group.number() & 1 == 1).all(|group| store.group(group).is_some())
}

/// Whether a command is routed by one key at a fixed place.
#[inline]
pub fn is_single_key(spec: &CommandSpec) -> bool {
    spec.spread == Spread::SingleKey && spec.first_key > 0
}
