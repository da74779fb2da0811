//! The webhooks, one for each kind.

use futures::FutureExt as _;
use serde_json::Value;

use super::{definition, namespace};
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind};
use crate::kit::protection::{Protection, protected, workload};

/// The webhooks.
pub(crate) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: rule(
            "vnamespace.kb.io",
            "/validate-namespace",
            (&[""], &["v1"], &["namespaces"]),
        ),
        answer: |request| namespace::answer(request).boxed(),
    },
    Webhook {
        rule: rule(
            "vcustomresourcedefinition.kb.io",
            "/validate-customresourcedefinition",
            (
                &["apiextensions.k8s.io"],
                &["v1", "v1beta1"],
                &["customresourcedefinitions"],
            ),
        ),
        answer: |request| definition::answer(request).boxed(),
    },
    Webhook {
        rule: rule(
            "vbuiltindeployment.kb.io",
            "/validate-apps-deployment",
            (&["apps"], &["v1"], &["deployments"]),
        ),
        answer: |request| async { workload(request) }.boxed(),
    },
    Webhook {
        rule: rule(
            "vbuiltinreplicaset.kb.io",
            "/validate-apps-replicaset",
            (&["apps"], &["v1"], &["replicasets"]),
        ),
        answer: |request| async { workload(request) }.boxed(),
    },
    Webhook {
        rule: rule(
            "vbuiltinstatefulset.kb.io",
            "/validate-apps-statefulset",
            (&["apps"], &["v1"], &["statefulsets"]),
        ),
        answer: |request| async { workload(request) }.boxed(),
    },
    Webhook {
        rule: rule(
            "vservice.kb.io",
            "/validate-service",
            (&[""], &["v1"], &["services"]),
        ),
        answer: |request| async { always(request) }.boxed(),
    },
    Webhook {
        rule: rule(
            "vingress.kb.io",
            "/validate-ingress",
            (&["networking.k8s.io"], &["v1", "v1beta1"], &["ingresses"]),
        ),
        answer: |request| async { always(request) }.boxed(),
    },
];

/// Names in a rule.
type List = &'static [&'static str];

const fn rule(
    name: &'static str,
    path: &'static str,
    (groups, versions, resources): (List, List, List),
) -> Rule {
    Rule {
        name,
        path,
        kind: WebhookKind::Validating,
        groups,
        versions,
        resources,
        operations: &["DELETE"],
    }
}

/// The answer to the deletion of an object on which nothing hangs.
fn always(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    match protected(request) {
        Some((_, Protection::Always)) => Err(Refusal::new(403, Protection::Always.refusal())),
        _ => Ok(None),
    }
}
