//! Statuses that say no more than that an object was seen: of service networks.

use async_trait::async_trait;
use machinery::meta::ObjectMeta as _;
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, is_true};

const CIDR_FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

/// The status of service networks, and the finalizer that keeps them while they are used.
pub(super) struct ServiceCidrs;

#[async_trait]
impl Controller for ServiceCidrs {
    fn name(&self) -> &'static str {
        "service-cidrs-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::ServiceCidrs]
    }

    fn affected(&self, _: &Cache, _: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        vec![Key::of(object)]
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(mut network) = cx.cache.get(Res::ServiceCidrs, "", &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let held = network.finalizers().contains(&CIDR_FINALIZER);
        let mut finalizers: Vec<String> = network.finalizers().into_iter().map(str::to_owned).collect();
        if network.is_terminating() {
            if held {
                finalizers.retain(|name| name != CIDR_FINALIZER);
                let patch = json!({"metadata": {"finalizers": finalizers}});
                cx.patch(Res::ServiceCidrs, &network, "", patch).await?;
            }
            return Ok(Next::Change);
        }
        if !held {
            finalizers.push(CIDR_FINALIZER.to_owned());
            let patch = json!({"metadata": {"finalizers": finalizers}});
            network = std::sync::Arc::new(cx.patch(Res::ServiceCidrs, &network, "", patch).await?);
        }
        if !is_true(&network, "Ready") {
            let ready = json!({
                "type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready",
                "lastTransitionTime": cx.stamp(),
            });
            cx.set_status(Res::ServiceCidrs, &network, &json!({"conditions": [ready]}))
                .await?;
        }
        Ok(Next::Change)
    }
}
