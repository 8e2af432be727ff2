//! The suite about `zerohop demo`: with the peer, as its users see it.

use ports::PortBlock;
use serde_json::Value;

use super::{Company, Context, Counts, Suite, Turn};
use crate::{Outcome, needs, process};

/// `kill -9` under counters beside Valkey, and deadlines beside a bulk job on it.
pub const DEMO: Suite = Suite {
    name: "demo",
    about: "`zerohop demo failover` beside Valkey: nothing acknowledged is lost, every counter is read, both gaps are told; and `zerohop demo deadlines`: both ways are told",
    needs: &[&needs::VALKEY],
    budget_seconds: 60,
    turn: Turn::Shard("demos"),
    company: Company::SideBySide,
    run,
};

fn run(context: &Context) -> Outcome<Counts> {
    let zerohop = context.zerohop()?;
    let peer = needs::find("valkey-server").ok_or("valkey-server is not there")?;
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let mut counts = Counts::default();
    let mut judge = |demo: &[&str], judged: fn(&Value) -> [(&'static str, bool); 4]| -> Outcome<()> {
        let mut command = context.command(&zerohop.display().to_string());
        command.arg("demo").args(demo).arg(&peer).args(["--json", "--port", &block.first().to_string()]);
        let text = process::output(&mut command)?;
        let shown = serde_json::from_str(&text).map_err(|error| format!("{text:?} is not understood: {error}"))?;
        let verdicts = judged(&shown);
        for (what, is_so) in verdicts {
            println!("  {}: {what}", if is_so { "passed" } else { "FAILED" });
            counts.add(Counts::one(is_so));
        }
        if verdicts.iter().any(|(_, is_so)| !is_so) {
            println!("{text}");
        }
        Ok(())
    };
    judge(&["failover", "--peer"], judged)?;
    judge(&["deadlines", "--seconds", "2", "--server"], judged_deadlines)?;
    Ok(counts)
}

/// No verdict on how long anything took.
fn judged_deadlines(shown: &Value) -> [(&'static str, bool); 4] {
    let counts = |way: &Value| way["tenant"]["requests"].as_u64() > Some(0) && way["bulk_requests"].as_u64() > Some(0);
    let has_times =
        |way: &Value| ["p50_us", "p99_us", "p999_us"].iter().all(|key| way["tenant"][key].as_u64() > Some(0));
    let ways: &[Value] = shown["ways"].as_array().map_or(&[], Vec::as_slice);
    [
        ("nothing failed", shown["ok"] == true),
        ("both ways are told", ways.iter().map(|way| &way["way"]).eq(["directly", "through zerohop proxy"])),
        ("tenant and bulk job were answered both ways", ways.len() == 2 && ways.iter().all(counts)),
        ("what the tenant waited is told both ways", ways.len() == 2 && ways.iter().all(has_times)),
    ]
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
    use super::{judged, judged_deadlines};

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

    #[test]
    fn each_verdict_on_deadlines_sees_what_it_is_about() {
        let shown = |names: [&str; 2], requests: u64, p99: u64| {
            let ways = names.map(|name| {
                serde_json::json!({
                    "way": name, "bulk_requests": 5,
                    "tenant": { "requests": requests, "p50_us": 1, "p99_us": p99, "p999_us": 9 }
                })
            });
            judged_deadlines(&serde_json::json!({ "ok": true, "ways": ways })).map(|(_, is_so)| is_so)
        };
        let names = ["directly", "through zerohop proxy"];
        assert_eq!(shown(names, 1, 1), [true; 4]);
        assert_eq!(shown(["directly", "directly"], 1, 1), [true, false, true, true]);
        assert_eq!(shown(names, 0, 1), [true, true, false, true]);
        assert_eq!(shown(names, 1, 0), [true, true, true, false]);
        let nothing = judged_deadlines(&serde_json::json!({ "ok": false }));
        assert_eq!(nothing.map(|(_, is_so)| is_so), [false; 4]);
    }
}
