//! Units over several cores: parts that a crash lost take the whole unit along, and nothing that could have been
//! acknowledged.

use base::rng::Rng;

use crate::disk::Disk;
use crate::model::Model;
use crate::node::{Node, apply_to_model};

fn run(rng: &mut Rng, cores: u16) -> Node {
    let mut node = Node::open(Disk::default(), cores, 2048, true).unwrap();
    let mut model = Model::default();
    for _ in 0..30 {
        if rng.chance(2, 3) {
            let core = node.random_change(rng, &mut model, 40, 40);
            node.seal(core);
            continue;
        }
        let mut members: Vec<u16> = (0..cores).filter(|_| rng.chance(2, 3)).collect();
        if members.len() < 2 {
            members = vec![0, cores - 1];
        }
        node.unit(rng, &mut model, &members);
    }
    node
}

#[test]
fn an_incomplete_unit_goes_and_nothing_acknowledged_goes_with_it() {
    let mut rng = Rng::new(31);
    let mut cut = 0;
    for round in 0..150 {
        let node = run(&mut rng, 2 + round % 3);
        let mut disk = node.disk.clone();
        let mut written = Vec::new();
        for groups in &node.groups {
            // Each core lost some of its last groups, torn off in the middle of the first.
            let lost = rng.below(6).min(groups.len() as u64);
            written.push(groups.len() as u64 - lost);
            for (name, offset) in &groups[groups.len() - lost as usize..] {
                let file = disk.files.get_mut(name).unwrap();
                let keep = rng.below(40) as usize;
                let from = (offset + keep).min(file.len());
                file[from..].fill(0);
            }
        }
        let expected = node.acknowledged(written.clone());
        let mut model = Model::default();
        let recovery = disk.recover(&mut |replayed| apply_to_model(&mut model, replayed)).unwrap();
        assert_eq!(node.kept(&recovery), expected, "round {round}: written {written:?}, units {:?}", node.units);
        assert_eq!(model.keys, node.state_after(&expected));
        cut += recovery.torn.iter().filter(|cut| cut.incomplete_unit).count();
        let again = Node::open(disk, 1, 2048, false).unwrap();
        assert_eq!(again.snapshot(), model.keys);
        let third = Node::open(again.disk, 4, 2048, false).unwrap();
        assert_eq!(third.snapshot(), model.keys, "a cut stays cut");
    }
    assert!(cut > 50, "{cut} cuts before units");
}
