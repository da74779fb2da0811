//! Images of the node.

use controller::daemon::{ImageService, PullRequest};
use cri::messages::{AuthConfig, ImageSpec, ImageStatusRequest, PodSandboxConfig, PullImageRequest};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{CALL_LIMIT, Runtime, Runtimes};

impl Runtimes {
    /// The runtime for images: the first.
    fn first(&self) -> Result<&Runtime, String> {
        self.0
            .first()
            .ok_or_else(|| "there is no image service".to_owned())
    }
}

impl ImageService for Runtimes {
    fn status<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Result<Option<String>, String>> {
        async move {
            let request = ImageStatusRequest {
                image: Some(ImageSpec {
                    image: image.to_owned(),
                }),
            };
            let client = &self.first()?.client;
            let answer = client.call(&request, Some(CALL_LIMIT)).await;
            let answer = answer.map_err(|status| status.to_string())?;
            Ok(answer.image.map(|image| image.id))
        }
        .boxed()
    }

    fn pull<'a>(&'a self, request: &'a PullRequest) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let auth = request.credential.as_ref().map(|credential| AuthConfig {
                username: credential.username.clone(),
                password: credential.password.clone(),
            });
            let request = PullImageRequest {
                image: Some(ImageSpec {
                    image: request.image.clone(),
                }),
                auth,
                sandbox_config: Some(PodSandboxConfig {
                    labels: request.labels.clone(),
                    annotations: request.annotations.clone(),
                    ..PodSandboxConfig::default()
                }),
            };
            // The daemon gives up by itself, when the time of the attempt is over.
            let pulled = self.first()?.client.call(&request, None).await;
            pulled.map(|_| ()).map_err(|status| status.to_string())
        }
        .boxed()
    }
}
