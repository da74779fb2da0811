//! Images: lists, statuses, pulls.

use std::sync::Arc;

use client_kit::Credential;
use cri::messages::{
    FilesystemUsage, Image, ImageFsInfoRequest, ImageFsInfoResponse, ImageStatusRequest, ImageStatusResponse,
    ListImagesRequest, ListImagesResponse, PullImageRequest, PullImageResponse,
};
use cri::{Code, Service, Status};
use nodes::canonical;

use super::Node;

/// The same service, which answers calls about the images of a node.
pub(super) fn on(service: Service, node: &Arc<Node>) -> Service {
    let [listed, shown, pulled] = [(); 3].map(|()| Arc::clone(node));
    service
        .on(|_: ImageFsInfoRequest| async {
            Ok(ImageFsInfoResponse {
                image_filesystems: vec![FilesystemUsage::default()],
            })
        })
        .on(move |_: ListImagesRequest| {
            let references = listed.images.names_on(&listed.name);
            let images = references
                .iter()
                .filter_map(|name| image(&listed, name))
                .collect();
            async { Ok(ListImagesResponse { images }) }
        })
        .on(move |request: ImageStatusRequest| {
            let image = image(&shown, &request.image.unwrap_or_default().image);
            async { Ok(ImageStatusResponse { image }) }
        })
        .on(move |request| pull(Arc::clone(&pulled), request))
}

/// The image of a reference, if the node has it.
fn image(node: &Node, reference: &str) -> Option<Image> {
    let id = node.images.digest_on(&node.name, reference)?;
    let name = canonical(reference);
    let tags = (!name.contains('@')).then_some(name);
    Some(Image {
        repo_tags: tags.into_iter().collect(),
        repo_digests: vec![node.images.image_id(reference)],
        size: node.images.get(reference).size_bytes,
        id,
    })
}

async fn pull(node: Arc<Node>, request: PullImageRequest) -> Result<PullImageResponse, Status> {
    let reference = request.image.unwrap_or_default().image;
    tokio::time::sleep(node.images.pull_time(&node.name, &reference)).await;
    let credential = request.auth.map(|auth| Credential {
        username: auth.username,
        password: auth.password,
    });
    let pulled = node.images.pulled(&node.name, &reference, credential.as_slice());
    pulled.map_err(|error| {
        let code = if error.code == "NotFound" {
            Code::NOT_FOUND
        } else {
            Code::UNKNOWN
        };
        Status::new(code, error.message)
    })?;
    Ok(PullImageResponse {
        image_ref: node.images.digest_on(&node.name, &reference).unwrap_or_default(),
    })
}
