//! What runs met: an empty line is a blind spot.

seeds::coverage! {
    /// Terms that had a leader.
    elections,
    /// Tables that were seen.
    tables,
    /// Nodes that became one of the cluster.
    joins,
    /// Nodes that were fenced.
    fences,
    /// Slot groups that got another first.
    promotions,
    /// Nodes that were down and came back.
    returns,
    /// Members that became whole.
    whole,
    /// Cores whose lease was over before it was renewed, or was taken back.
    leases_lost,
    /// Moments in which a core served a slot group, as far as they were judged.
    served,
    /// Moves whose slots a core kept still.
    sealed,
    /// Moves whose slots it served again, because another table came before the hand-over.
    released,
    /// Moves that were handed over.
    handed_over,
    /// Moves that were over.
    moved,
    /// What operators wanted,
    orders,
    /// what of it was agreed,
    obeyed,
    /// and what was not.
    declined,
    /// Nodes that clients said do not answer, and what was found.
    looked_at,
    /// Questions about followers.
    asked_held,
    /// Nodes that came back at another port.
    wandered,
    /// Ways that were cut.
    partitions,
    /// Connections that were broken.
    resets,
    /// Processes that stood still.
    pauses,
    /// Processes that died by a signal.
    kills,
    /// Machines that lost their power.
    power_cuts,
    /// Power cuts that left a write cut short.
    torn,
    /// Writes that failed.
    failed_writes,
    /// Nodes that ended by themselves.
    ended,
    /// Ticks.
    ticks,
}
