//! The proxy of Services: a client of the API that tells the network of Services, endpoints, policies and namespaces.

use client_kit::{JsonChange, watch_json};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, select_all};
use kube::Client;
use network::{Kind, Network};

/// The kinds, and where their objects are.
const KINDS: [(Kind, &str); 4] = [
    (Kind::Service, "/api/v1/services"),
    (Kind::EndpointSlice, "/apis/discovery.k8s.io/v1/endpointslices"),
    (Kind::NetworkPolicy, "/apis/networking.k8s.io/v1/networkpolicies"),
    (Kind::Namespace, "/api/v1/namespaces"),
];

/// What kube-proxy, the cluster's DNS and a network plug-in do on every node, once for all of them.
pub struct ServiceProxy {
    client: Client,
    network: Network,
}

impl ServiceProxy {
    /// A proxy for a network.
    #[must_use]
    pub fn new(client: Client, network: &Network) -> Self {
        Self {
            client,
            network: network.clone(),
        }
    }

    /// Follows the API until dropped.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, ()> {
        Box::pin(self.until_dropped())
    }

    async fn until_dropped(self) {
        let watches = KINDS.map(|(kind, path)| {
            let changes = watch_json(self.client.clone(), path, "", true);
            let told: BoxStream<'static, (Kind, JsonChange)> =
                changes.map(move |change| (kind, change)).boxed();
            told
        });
        let mut changes = select_all(watches);
        while let Some((kind, change)) = changes.next().await {
            match change {
                JsonChange::Present(object) => self.network.present(kind, &object),
                JsonChange::Gone(object) => self.network.gone(kind, &object),
                JsonChange::Synced => {}
            }
        }
    }
}
