//! The faults between the manager and the API server while a history is played.

use client_kit::Random;
use fake_apiserver::faults::{Effect, Fault, Requests};

/// The user agent that the faults are for.
const MANAGER: &str = "kruise-manager";

/// In every second history nothing; in the others requests of the manager that are refused, or done and not answered, and
/// watches that end or have to begin anew. No fault makes its view older than it thinks: a manager with an old view cannot keep
/// to a budget, and OpenKruise does not either.
pub(super) fn faults(random: &mut Random) -> Vec<Fault> {
    let writes = || {
        Requests::all()
            .user_agents([MANAGER])
            .verbs(["create", "update", "patch", "delete"])
    };
    let watches = || Requests::all().user_agents([MANAGER]).resources(["*"]);
    let all = [
        (
            Effect::refuse(409, "Conflict"),
            writes().verbs(["update", "patch"]),
        ),
        (Effect::refuse(500, "InternalError"), writes()),
        (Effect::refuse(429, "TooManyRequests"), writes()),
        (Effect::LoseAnswer, writes()),
        (Effect::EndWatch, watches()),
        (Effect::ExpireWatch, watches()),
    ];
    if random.below(2) == 0 {
        return Vec::new();
    }
    let mut out = Vec::new();
    for (effect, on) in all {
        let percent = u32::try_from(random.below(12)).unwrap_or_default();
        out.push(Fault::new(effect).on(on).chance(f64::from(percent) / 100.0));
    }
    out
}
