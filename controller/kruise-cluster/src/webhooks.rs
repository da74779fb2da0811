//! The webhooks of OpenKruise, answered in this process.

use std::sync::{Arc, OnceLock};

use client_kit::{SharedClock, TokioClock};
use controller::gates::FeatureGates;
use controller::metrics::Metrics;
use controller::process::install::{self, NAMESPACE};
use controller::webhook::{Shared, Surroundings, WebhookCaches};
use fake_apiserver::{Webhook, WebhookKind, WebhookRule};
use jiff::Timestamp;

/// The clock of a cluster, once it has started.
pub(crate) type LateClock = Arc<OnceLock<SharedClock>>;

/// The webhooks of OpenKruise with these gates. Their clients have the rights of the manager's role alone.
pub(crate) fn webhooks(
    gates: &FeatureGates,
    clock: &LateClock,
    metrics: &Arc<Metrics>,
    shared: &Shared,
) -> Vec<Webhook> {
    let caches = WebhookCaches::default();
    controller::webhook::rules()
        .map(|rule| {
            let (path, gates) = (rule.path.to_owned(), gates.clone());
            let (caches, clock) = (caches.clone(), Arc::clone(clock));
            let (metrics, shared) = (Arc::clone(metrics), shared.clone());
            let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            Webhook {
                name: rule.name.to_owned(),
                kind: match rule.kind {
                    controller::webhook::WebhookKind::Mutating => WebhookKind::Mutating,
                    controller::webhook::WebhookKind::Validating => WebhookKind::Validating,
                },
                rules: vec![WebhookRule {
                    groups: list(rule.groups),
                    versions: list(rule.versions),
                    resources: list(rule.resources),
                    operations: list(rule.operations),
                }],
                user: Some(install::user(NAMESPACE)),
                handler: Arc::new(move |client, review| {
                    let path = path.clone();
                    let unset =
                        || -> SharedClock { Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)) };
                    let surroundings = Surroundings {
                        client: Some(client),
                        gates: gates.clone(),
                        namespace: NAMESPACE.to_owned(),
                        caches: caches.clone(),
                        clock: clock.get().cloned().unwrap_or_else(unset),
                        metrics: Arc::clone(&metrics),
                        shared: shared.clone(),
                    };
                    Box::pin(async move {
                        controller::webhook::review(&path, &review.into(), &surroundings)
                            .await
                            .into()
                    })
                }),
            }
        })
        .collect()
}
