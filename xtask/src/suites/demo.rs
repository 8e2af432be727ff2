//! The suite about `zerohop demo`: with the peer, as its users see it.

use ports::PortBlock;
use serde_json::Value;

use super::{Context, Counts, Suite, Turn};
use crate::{Outcome, needs, process};

/// `kill -9` under counters beside Valkey.
pub const DEMO: Suite = Suite {
    name: "demo",
    about: "`zerohop demo failover` beside Valkey: nothing acknowledged is lost, every counter is read, both gaps are told",
    needs: &[&needs::VALKEY],
    budget_seconds: 60,
    turn: Turn::Shard("artefacts"),
    run,
};

fn run(context: &Context) -> Outcome<Counts> {
    let zerohop = context.zerohop()?;
    let peer = needs::find("valkey-server").ok_or("valkey-server is not there")?;
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let mut command = context.command(&zerohop.display().to_string());
    command.args(["demo", "failover", "--json", "--port", &block.first().to_string(), "--peer"]).arg(peer);
    let text = process::output(&mut command)?;
    let shown: Value = serde_json::from_str(&text).map_err(|error| format!("{text:?} is not understood: {error}"))?;
    let mut counts = Counts::default();
    for (what, is_so) in judged(&shown) {
        println!("  {}: {what}", if is_so { "passed" } else { "FAILED" });
        counts.add(Counts::one(is_so));
    }
    if counts.failed > 0 {
        println!("{text}");
    }
    Ok(counts)
}

/// No verdict on how long anything took, nor on what the peer lost.
fn judged(shown: &Value) -> [(&'static str, bool); 4] {
    let has_gap = |store: &str| shown[store]["gaps_ms"][0].as_f64().is_some_and(|gap| gap > 0.0);
    let (ours, theirs) = (&shown["zerohop"], &shown["peer"]);
    let is_read = |store: &Value| store["counters"].as_u64().is_some_and(|all| store["readable"].as_u64() == Some(all));
    [
        ("no acknowledged write is lost, and none is done twice", ours["lost"] == 0 && ours["unasked"] == 0),
        ("every counter can be read", is_read(ours) && shown["ok"] == true),
        ("the gap of ours is told", has_gap("zerohop")),
        ("the peer was killed as well and is served again", has_gap("peer") && is_read(theirs)),
    ]
}

#[cfg(test)]
mod tests {
    use super::judged;

    #[test]
    fn each_verdict_sees_what_it_is_about() {
        let shown = |lost: u64, readable: u64, gaps: &[f64], peer: u64| {
            let store = |lost: u64, readable: u64, gaps: &[f64]| {
                serde_json::json!({
                    "lost": lost, "unasked": 0, "counters": 2, "readable": readable, "gaps_ms": gaps
                })
            };
            let shown = serde_json::json!({
                "ok": true, "zerohop": store(lost, readable, gaps), "peer": store(7, peer, &[9.0])
            });
            judged(&shown).map(|(_, is_so)| is_so)
        };
        assert_eq!(shown(0, 2, &[1.0], 2), [true; 4]);
        assert_eq!(shown(1, 2, &[1.0], 2), [false, true, true, true]);
        assert_eq!(shown(0, 1, &[1.0], 2), [true, false, true, true]);
        assert_eq!(shown(0, 2, &[], 2), [true, true, false, true]);
        assert_eq!(shown(0, 2, &[1.0], 1), [true, true, true, false]);
    }
}
