//! The way to the cluster.

use hyper::Request;
use hyper::header::{HeaderValue, USER_AGENT};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::limit::ConcurrencyLimitLayer;
use tower::{ServiceBuilder, service_fn};

use super::ProcessError;
use super::older_versions::in_known_versions;

/// How many requests of the controllers wait for an answer at once. Each has a connection of its own, which takes 90 KB: a set that
/// makes 500 pods at once would open 500. Watches do not count.
const REQUESTS_MAX: usize = 64;

/// A client of the cluster that the kubeconfig at a path names; without a path, of the one that the surroundings name: the usual
/// kubeconfig, or a pod's service account. Requests carry `user_agent`. Kinds that the cluster serves in older versions alone are brought to
/// those that the controllers know.
///
/// # Errors
/// If there is no cluster to speak to. Nothing is asked of the cluster yet.
pub async fn connect(kubeconfig: &str, user_agent: &'static str) -> Result<Client, ProcessError> {
    let failed = |error: &dyn std::fmt::Display| ProcessError::Config(error.to_string());
    let mut config = match kubeconfig {
        "" => Config::infer().await.map_err(|error| failed(&error))?,
        path => {
            let file = Kubeconfig::read_from(path).map_err(|error| failed(&error))?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(|error| failed(&error))?
        }
    };
    let agent = (USER_AGENT, HeaderValue::from_static(user_agent));
    config.headers.push(agent);
    let builder = ClientBuilder::try_from(config).map_err(|error| failed(&error))?;
    Ok(in_known_versions(builder.build()))
}

/// A client of the same cluster for the controllers: few of its requests are sent at once, the others wait in the order in which
/// they came.
///
/// The renewal of the lease and the requests of webhooks must not wait with them: a set that makes 10,000 pods has thousands of
/// requests waiting, each of which the API server may ask a webhook of this process about.
pub(crate) fn queued(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let limited = ServiceBuilder::new()
        .layer(ConcurrencyLimitLayer::new(REQUESTS_MAX))
        .service(service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        }));
    Client::new(limited, namespace)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hyper::Response;

    use super::*;

    async fn ask(client: Client, path: String) {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        let _answer = client.request_text(request).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_controllers_wait_in_a_queue_that_the_lease_is_not_in() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        // Pods are never answered, leases at once.
        let server = service_fn(move |request: Request<Body>| {
            let is_pod = request.uri().path() == "/pods";
            count.fetch_add(usize::from(is_pod), Ordering::SeqCst);
            async move {
                if is_pod {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        });
        let client = Client::new(server, "default");
        let of_controllers = queued(client.clone());
        for _ in 0..1000 {
            tokio::spawn(ask(of_controllers.clone(), "/pods".to_owned()));
        }
        let renewal = ask(client, "/lease".to_owned());
        let renewed = tokio::time::timeout(std::time::Duration::from_secs(1), renewal).await;
        assert!(renewed.is_ok(), "the lease waits behind the pods");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(asked.load(Ordering::SeqCst), REQUESTS_MAX);
    }
}
