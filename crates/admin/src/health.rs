//! Whether the node does its work, and if not, why: one sentence per reason.

use serde_json::json;

use crate::http::{Response, Status};
use crate::sample::{ManagerStanding, Sample};

/// Why a node is not healthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    /// Somebody of it stands still: a new start may help.
    pub is_stuck: bool,
    /// A sentence.
    pub text: String,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// `/healthz`: may it be given work?
    Healthy,
    /// `/livez`: does everything of it still run?
    Alive,
}

/// All reasons, of cores first.
pub(crate) fn reasons(sample: &Sample) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let seconds = |machine: usize| sample.owed_us.get(machine).copied().unwrap_or(0) as f64 / 1e6;
    for (core, standing) in sample.cores.iter().enumerate() {
        let Some(standing) = standing else {
            let text = format!("core {core} does not tick: it has not answered for {:.1} s", seconds(core));
            reasons.push(Reason { is_stuck: true, text });
            continue;
        };
        if let Some(failure) = &standing.log_failure {
            let text =
                format!("the log of core {core} has failed: {failure}; writes are refused until the node starts again");
            reasons.push(Reason { is_stuck: false, text });
        }
        if let Some(text) = standing.member.as_ref().and_then(without_lease) {
            reasons.push(Reason { is_stuck: false, text: format!("core {core} {text}") });
        }
    }
    match &sample.manager {
        ManagerStanding::Silent => {
            let text = format!("the manager does not answer: {:.1} s so far", seconds(sample.cores.len()));
            reasons.push(Reason { is_stuck: true, text });
        }
        ManagerStanding::Outside(why) => reasons.push(Reason { is_stuck: false, text: why.clone() }),
        ManagerStanding::None | ManagerStanding::Inside(_) => {}
    }
    reasons
}

fn without_lease(member: &shard::beside::MemberStanding) -> Option<String> {
    match (&member.view, member.lease_left_us) {
        (None, _) => Some("has no table of the cluster yet: requests for keys are refused".to_owned()),
        (Some(_), 0) => Some("has no lease: the managers renew none, and requests for keys are refused".to_owned()),
        (Some(_), _) => None,
    }
}

/// The answer.
pub(crate) fn response(sample: &Sample, wanted: Wanted, accept: &str) -> Response {
    let mut reasons = reasons(sample);
    reasons.retain(|reason| wanted == Wanted::Healthy || reason.is_stuck);
    let texts: Vec<&str> = reasons.iter().map(|reason| reason.text.as_str()).collect();
    let status = if texts.is_empty() { Status::Ok } else { Status::Unhealthy };
    if accept.contains("application/json") {
        let body = json!({ "ok": texts.is_empty(), "reasons": texts });
        return Response { status, content_type: "application/json", body: format!("{body}\n") };
    }
    match texts.is_empty() {
        true => Response::text(status, "ok"),
        false => Response::text(status, &texts.join("\n")),
    }
}
