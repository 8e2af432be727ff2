//! ZH.BACKUP: its words. The shard pins and names the files.

use base::limits::{BACKUP_LEASE_MS_DEFAULT, BACKUP_LEASE_MS_MAX, BACKUP_LEASE_MS_MIN};
use wire::number::parse_integer;
use wire::registry::{CommandId as Id, CommandSpec};
use wire::{Arguments, Reply, error};

use super::outcome::{BackupRequest, NodeOutcome};

/// ZH.BACKUP and its subcommands.
pub(super) fn execute(spec: &CommandSpec, arguments: Arguments<'_>, reply: &mut Reply<'_>) -> NodeOutcome {
    let number = arguments.get(2).map(parse_integer);
    let request = match (spec.id, number) {
        (Id::ZhBackupBegin, _) if arguments.len() > 3 => {
            error::wrong_arity(reply, spec.full_name);
            return NodeOutcome::Done;
        }
        (Id::ZhBackupBegin, None) => BackupRequest::Begin { lease_ms: BACKUP_LEASE_MS_DEFAULT },
        (Id::ZhBackupBegin, Some(Some(lease_ms))) => {
            BackupRequest::Begin { lease_ms: lease_ms.try_into().unwrap_or(0) }
        }
        (Id::ZhBackupKeep, Some(Some(id @ 0..))) => BackupRequest::Keep { id: id.cast_unsigned() },
        (Id::ZhBackupEnd, Some(Some(id @ 0..))) => BackupRequest::End { id: id.cast_unsigned() },
        _ => {
            error::NOT_INTEGER.write(reply);
            return NodeOutcome::Done;
        }
    };
    if let BackupRequest::Begin { lease_ms } = request
        && !(BACKUP_LEASE_MS_MIN..=BACKUP_LEASE_MS_MAX).contains(&lease_ms)
    {
        let text = format!("the lease is from {BACKUP_LEASE_MS_MIN} to {BACKUP_LEASE_MS_MAX} milliseconds");
        reply.error("ERR", &text);
        return NodeOutcome::Done;
    }
    NodeOutcome::Backup(request)
}
