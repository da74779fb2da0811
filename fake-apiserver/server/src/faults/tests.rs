use rstest::rstest;

use super::*;
use crate::message::request::Verb;

fn request(verb: Verb, resource: &str, subresource: &str, name: &str) -> ResourceRequest {
    ResourceRequest {
        verb,
        group: String::new(),
        version: "v1".to_owned(),
        namespace: "default".to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
    }
}

/// Whether a fault that concerns `on` strikes a kubelet's patch of `pods/web-0/status`.
#[rstest]
#[case("{}", true)]
#[case("{verbs: [patch]}", true)]
#[case("{verbs: [get, update]}", false)]
#[case("{verbs: ['*']}", true)]
#[case("{resources: [pods]}", false)]
#[case("{resources: [pods/status]}", true)]
#[case("{resources: ['*/status']}", true)]
#[case("{resources: ['pods/*']}", true)]
#[case("{resources: ['*']}", true)]
#[case("{groups: ['']}", true)]
#[case("{groups: [apps]}", false)]
#[case("{namespaces: [kube-system]}", false)]
#[case("{names: ['web-*']}", true)]
#[case("{names: [web]}", false)]
#[case("{userAgents: ['kube*']}", true)]
#[case("{userAgents: [kube-scheduler]}", false)]
#[case(
    "{verbs: [patch], resources: [pods/status], names: [web-0], userAgents: [kubelet]}",
    true
)]
fn what_a_fault_concerns(#[case] on: &str, #[case] expected: bool) {
    let faults = Faults::new(Seed(1));
    let text = format!("- {{on: {on}, do: loseAnswer}}");
    for fault in Fault::from_yaml(&text).expect("a fault") {
        faults.add(fault);
    }
    let request = request(Verb::Patch, "pods", "status", "web-0");
    let asked = Asked {
        request: &request,
        user_agent: "kubelet",
    };
    assert_eq!(faults.of_request(&asked).lose_answer, expected);
}

/// Which of eight equal requests are struck.
#[rstest]
#[case("", "11111111")]
#[case("times: 2", "11000000")]
#[case("skip: 3", "00011111")]
#[case("skip: 1, times: 2", "01100000")]
#[case("chance: 0", "00000000")]
#[case("chance: 1", "11111111")]
#[case("times: 0", "00000000")]
fn how_often_it_strikes(#[case] often: &str, #[case] expected: &str) {
    let faults = Faults::new(Seed(1));
    let text = format!("- {{do: loseAnswer, {often}}}");
    let handles: Vec<FaultHandle> = Fault::from_yaml(&text)
        .expect("a fault")
        .into_iter()
        .map(|fault| faults.add(fault))
        .collect();
    let request = request(Verb::Get, "pods", "", "web-0");
    let asked = Asked {
        request: &request,
        user_agent: "",
    };
    let struck: String = (0..8)
        .map(|_| {
            if faults.of_request(&asked).lose_answer {
                '1'
            } else {
                '0'
            }
        })
        .collect();
    assert_eq!(struck, expected);
    let strikes: u32 = handles.iter().map(FaultHandle::strikes).sum();
    assert_eq!(strikes as usize, expected.matches('1').count());
}

#[test]
fn chance_follows_the_seed() {
    let struck = |seed: u64| -> Vec<bool> {
        let faults = Faults::new(Seed(seed));
        faults.add(Fault::new(Effect::LoseAnswer).chance(0.5));
        let request = request(Verb::Get, "pods", "", "web-0");
        let asked = Asked {
            request: &request,
            user_agent: "",
        };
        (0..64).map(|_| faults.of_request(&asked).lose_answer).collect()
    };
    assert_eq!(struck(1), struck(1));
    assert_ne!(struck(1), struck(2));
    let often = struck(1).into_iter().filter(|struck| *struck).count();
    assert!((16..48).contains(&often), "{often} of 64");
}

#[test]
fn delays_add_up_and_the_first_refusal_counts() {
    let faults = Faults::new(Seed(1));
    faults.add(Fault::new(Effect::Delay(Duration::from_secs(1))));
    let lifted = faults.add(Fault::new(Effect::Delay(Duration::from_secs(100))));
    faults.add(Fault::new(Effect::Delay(Duration::from_secs(2))));
    faults.add(Fault::new(Effect::refuse(429, "")));
    faults.add(Fault::new(Effect::refuse(500, "")));
    lifted.lift();
    let request = request(Verb::Get, "pods", "", "web-0");
    let asked = Asked {
        request: &request,
        user_agent: "",
    };
    let fate = faults.of_request(&asked);
    assert_eq!(fate.delay, Duration::from_secs(3));
    assert_eq!(
        fate.refusal.map(|error| (error.reason, error.message)),
        Some((
            "TooManyRequests",
            "a fault of the test: get pods web-0".to_owned()
        ))
    );
    faults.clear();
    assert!(faults.of_request(&asked).refusal.is_none());
}

#[rstest]
#[case("{}", "DELETED", "a", EventFate::Dropped)]
#[case("{events: [DELETED]}", "DELETED", "a", EventFate::Dropped)]
#[case("{events: [DELETED]}", "MODIFIED", "a", EventFate::Sent(Duration::ZERO))]
#[case("{names: [b]}", "DELETED", "a", EventFate::Sent(Duration::ZERO))]
#[case("{resources: [nodes]}", "DELETED", "a", EventFate::Sent(Duration::ZERO))]
fn what_an_event_meets(
    #[case] on: &str,
    #[case] kind: &str,
    #[case] name: &str,
    #[case] expected: EventFate,
) {
    let faults = Faults::new(Seed(1));
    let text = format!("- {{on: {on}, do: dropEvents}}");
    for fault in Fault::from_yaml(&text).expect("a fault") {
        faults.add(fault);
    }
    let request = request(Verb::Watch, "pods", "", "");
    let watch = Asked {
        request: &request,
        user_agent: "kubelet",
    };
    let met = faults.of_event(&watch, kind, &ObjectKey::new("default", name));
    assert_eq!(met, expected);
    // What happens to events does not happen to requests.
    assert!(faults.of_request(&watch).refusal.is_none());
}

#[rstest]
#[case("- do: {delay: 3s}", "")]
#[case("- do: {delayEvents: 1m 30s}", "")]
#[case(
    "- {name: x, do: {refuse: {code: 409, reason: Conflict, message: no, retryAfterSeconds: 1}}}",
    ""
)]
#[case(
    "- do: {refuse: {code: 200}}",
    "do.refuse.code: 200 is no code of a refusal: 400 to 599"
)]
#[case(
    "- do: endWatch\n- do: {refuse: {code: 500, reason: Oops}}",
    "do.refuse.reason: \"Oops\" is none of BadRequest"
)]
#[case(
    "- {do: endWatch, on: {verbs: [post]}}",
    "on.verbs: \"post\" is none of get, list"
)]
#[case(
    "- {do: endWatch, on: {events: [GONE]}}",
    "on.events: \"GONE\" is none of ADDED"
)]
#[case(
    "- {do: loseAnswer, on: {events: [ADDED]}}",
    "on.events: what happens to a request has no events"
)]
#[case("- {do: endWatch, chance: 2}", "chance: must be between 0 and 1")]
#[case("- do: {delay: -3s}", "do.delay: must not be negative")]
#[case("- do: explode", "unknown variant `explode`")]
#[case("- {do: endWatch, on: {verb: [get]}}", "unknown field `verb`")]
#[case("do: endWatch", "line 1")]
fn files(#[case] text: &str, #[case] expected: &str) {
    match Fault::from_yaml(text) {
        Ok(_) => assert_eq!(expected, ""),
        Err(error) => {
            let error = error.to_string();
            assert!(!expected.is_empty() && error.contains(expected), "{error}");
        }
    }
}
