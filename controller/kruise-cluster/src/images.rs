//! The images of simulated nodes, as OpenKruise's daemon asks for them.

use controller::daemon::{ImageService, PullRequest};
use fake_apiserver::nodes::ImageRegistry;
use futures::FutureExt as _;
use futures::future::BoxFuture;

/// The image service of a simulated node.
pub(crate) struct SimulatedImages {
    pub(crate) registry: ImageRegistry,
    pub(crate) node: String,
}

impl ImageService for SimulatedImages {
    fn status<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Result<Option<String>, String>> {
        async move { Ok(self.registry.digest_on(&self.node, image)) }.boxed()
    }

    fn pull<'a>(&'a self, request: &'a PullRequest) -> BoxFuture<'a, Result<(), String>> {
        let image = &request.image;
        async move {
            tokio::time::sleep(self.registry.pull_time(&self.node, image)).await;
            let credentials = request.credential.as_slice();
            let pulled = self.registry.pulled(&self.node, image, credentials);
            pulled.map_err(|error| error.to_string())
        }
        .boxed()
    }
}
