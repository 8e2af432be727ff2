//! What a base has already, and what has to be copied: names and lengths only.
//!
//! ```text
//!  base      g17-….run ████      …4.log ██████
//!  now       g17-….run ████      …4.log █████████     …5.log ██
//!  copied                                     ░░░            ░░
//! ```

use storage::log::MANIFEST_FILE_NAME;

use super::BackupError;
use super::description::{Base, ChainPoint, Description, Part};
use super::source::Listed;

/// How much at the end of a file tells one history from another, bytes: a log group with its time, or a run's versions.
pub const TAIL_BYTES: u64 = 64 << 10;

/// One file of the backup to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// Those that bases have.
    pub(super) parts: Vec<Part>,
    /// From here to the end is copied.
    pub(super) from: u64,
    /// What the store's file must have before `from`, if the base is of its history.
    pub(super) tail: Option<String>,
}

/// The plan for these files.
pub(super) fn plan(files: &[Listed], base: Option<&Description>) -> Vec<Planned> {
    let planned = |listed: &Listed| {
        let shared = base.filter(|_| listed.name != MANIFEST_FILE_NAME).and_then(|base| {
            let known = base.file(&listed.name).filter(|known| known.bytes <= listed.bytes)?;
            let part = |part: &Part| {
                let backup = if part.backup.is_empty() { base.id.clone() } else { part.backup.clone() };
                Part { backup, ..part.clone() }
            };
            Some((known.parts.iter().map(part).collect(), known.bytes, Some(known.tail.clone())))
        });
        let (parts, from, tail) = shared.unwrap_or_default();
        Planned { name: listed.name.clone(), bytes: listed.bytes, parts, from, tail }
    };
    files.iter().map(planned).collect()
}

/// The bases that the plan needs: that one, and those it names.
pub(super) fn bases_of(planned: &[Planned], base: Option<(&Description, String)>) -> Vec<Base> {
    let Some((base, directory)) = base else { return Vec::new() };
    let all = base.bases.iter().cloned().chain([Base { id: base.id.clone(), directory }]);
    let is_needed = |base: &Base| planned.iter().flat_map(|file| &file.parts).any(|part| part.backup == base.id);
    all.filter(is_needed).collect()
}

/// The base must be an earlier point of the same history.
pub(super) fn check_history(base: &Description, store: &str, point: &[ChainPoint]) -> Result<(), BackupError> {
    if base.store != store {
        let text =
            format!("the base is of store {}, this is store {store}: make a full backup, without --since", base.store);
        return Err(BackupError::Failed(text));
    }
    let newest = |point: &[ChainPoint]| point.iter().map(|chain| chain.incarnation).max().unwrap_or_default();
    let is_above = |known: &ChainPoint| {
        let now = point.iter().find(|now| (now.incarnation, now.core) == (known.incarnation, known.core));
        now.is_some_and(|now| now.ordinal < known.ordinal)
    };
    if newest(&base.point) > newest(point) || base.point.iter().any(is_above) {
        return Err(another_way("its point is behind the base's"));
    }
    Ok(())
}

/// The base is of another history of the same store.
pub(super) fn another_way(why: &str) -> BackupError {
    BackupError::Failed(format!(
        "this store went another way since the base was taken ({why}; one of them was restored from a backup): \
         make a full backup, without --since"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::description::part_name;
    use crate::backup::description::tests::{description, part};

    const RUN: &str = "g17-00000001-0000000000000812.run";
    const LOG: &str = "00000001-000-0000000004.log";

    fn listed(files: &[(&str, u64)]) -> Vec<Listed> {
        files.iter().map(|(name, bytes)| Listed { name: (*name).to_owned(), bytes: *bytes }).collect()
    }

    #[test]
    fn what_the_base_has_is_not_copied_again() {
        let base = description(1, vec![(RUN, vec![part("", RUN, 1000)]), (LOG, vec![part("", LOG, 300)])]);
        let files = [(MANIFEST_FILE_NAME, 52), (RUN, 1000), (LOG, 500), ("00000001-000-0000000005.log", 64)];
        let planned = plan(&listed(&files), Some(&base));
        assert_eq!(planned.iter().map(|file| file.from).collect::<Vec<_>>(), [0, 1000, 300, 0]);
        assert_eq!(planned[1].parts, [part(&base.id, RUN, 1000)]);
        assert_eq!(bases_of(&planned, Some((&base, "/b".to_owned())))[0].id, base.id);

        // The next one names where the parts lie, not where they were found.
        let second = description(2, vec![(LOG, vec![part(&base.id, LOG, 300), part("", &part_name(LOG, 300), 200)])]);
        let third = plan(&listed(&[(LOG, 500)]), Some(&second));
        assert_eq!(third[0].parts, [part(&base.id, LOG, 300), part(&second.id, &part_name(LOG, 300), 200)]);
        assert_eq!(third[0].from, 500);

        // Shorter than the base has it: not the same any more.
        assert_eq!(plan(&listed(&[(LOG, 299)]), Some(&base))[0].from, 0);
        assert!(bases_of(&plan(&listed(&[(LOG, 299)]), Some(&base)), Some((&base, String::new()))).is_empty());
    }

    #[test]
    fn a_base_of_another_store_or_of_the_future_is_refused() {
        let base = description(1, Vec::new());
        let at = |incarnation, ordinal| [ChainPoint { incarnation, core: 0, ordinal }];
        assert_eq!(check_history(&base, &base.store, &at(1, 5)), Ok(()));
        assert_eq!(check_history(&base, &base.store, &at(2, 1)), Ok(()));
        assert!(check_history(&base, &base.store, &at(1, 4)).is_err());
        assert!(check_history(&base, &base.store, &[]).is_err());
        assert!(check_history(&base, "another", &at(1, 5)).is_err());
    }
}
