//! Random changes through the log and back, over many openings with different numbers of cores.

use base::Database;
use base::rng::Rng;

use crate::disk::Disk;
use crate::model::Model;
use crate::node::Node;

const SEGMENT_BYTES: u64 = 8 << 10;

/// Open, change, crash or stop, and open again with other cores; each time everything must be there.
pub fn round_trip(disk: Disk, seed: u64) -> Result<(), String> {
    let (mut rng, mut model, mut disk) = (Rng::new(seed), Model::default(), disk);
    for cores in [1, 2, 4, 8, 3, 1, 8, 2] {
        let mut node = Node::open(disk, cores, SEGMENT_BYTES, false).map_err(|damage| damage.to_string())?;
        if node.snapshot() != model.keys {
            return Err(format!("with {cores} cores: {} keys of {}", node.snapshot().len(), model.keys.len()));
        }
        for _ in 0..400 {
            let core = node.random_change(&mut rng, &mut model, 300, 200 << 10);
            if rng.chance(1, 3) {
                node.seal(core);
            }
            if rng.chance(1, 5) {
                node.sync(core);
            }
            if rng.chance(1, 300) {
                let database = [None, Some(Database(0)), Some(Database(1))][rng.below(3) as usize];
                node.stores.iter_mut().for_each(|store| store.clear(database));
                model.clear(database);
            }
            if cores > 1 && rng.chance(1, 20) {
                node.unit(&mut rng, &mut model, &[0, cores - 1]);
            }
        }
        for core in 0..usize::from(cores) {
            if rng.chance(1, 2) {
                node.stores[core].log_mut().unwrap().append_seal();
            }
            node.seal(core);
        }
        disk = node.disk;
    }
    Ok(())
}

#[test]
fn everything_comes_back_with_any_number_of_cores() {
    for seed in 1..=4 {
        assert_eq!(round_trip(Disk::default(), seed), Ok(()), "seed {seed}");
    }
}
