//! Ten seconds of the soak.

use std::time::Duration;

use conformance::soak::{self, SoakOptions};

#[test]
fn random_requests_leave_nothing_wrong() {
    let options = SoakOptions {
        duration: Duration::from_secs(10),
        clients: 16,
        seed: 7,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut told = Vec::new();
    let outcome = runtime.block_on(soak::run(&options, &mut told)).expect("a soak");
    let told = String::from_utf8_lossy(&told);
    assert!(outcome.problems.is_empty(), "{told}");
    assert!(outcome.requests() > 100, "{told}");
    for code in [200, 201, 400, 404, 409, 422] {
        assert!(outcome.answers.contains_key(&code), "no answer {code}: {told}");
    }
}
