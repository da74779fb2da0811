//! Images: lists, statuses, pulls.

use prost::Message;

use super::sandboxes::PodSandboxConfig;
use crate::call::Call;

/// The reference of an image.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ImageSpec {
    /// The reference: `nginx:1.25`, `nginx@sha256:…`.
    #[prost(string, tag = "1")]
    pub image: String,
}

/// An image on the node.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Image {
    /// Its id: `sha256:…`.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Its references with tags.
    #[prost(string, repeated, tag = "2")]
    pub repo_tags: Vec<String>,
    /// Its references with digests.
    #[prost(string, repeated, tag = "3")]
    pub repo_digests: Vec<String>,
    /// Its size in bytes.
    #[prost(uint64, tag = "4")]
    pub size: u64,
}

/// Asks for the images of the node.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ListImagesRequest {}

/// The images of the node.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ListImagesResponse {
    /// The images.
    #[prost(message, repeated, tag = "1")]
    pub images: Vec<Image>,
}

impl Call for ListImagesRequest {
    const METHOD: &'static str = "/runtime.v1.ImageService/ListImages";
    type Answer = ListImagesResponse;
}

/// Asks for one image.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ImageStatusRequest {
    /// The image.
    #[prost(message, optional, tag = "1")]
    pub image: Option<ImageSpec>,
}

/// The image that was asked for.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ImageStatusResponse {
    /// The image; none if the node does not have it.
    #[prost(message, optional, tag = "1")]
    pub image: Option<Image>,
}

impl Call for ImageStatusRequest {
    const METHOD: &'static str = "/runtime.v1.ImageService/ImageStatus";
    type Answer = ImageStatusResponse;
}

/// The credential for a registry.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct AuthConfig {
    /// The name.
    #[prost(string, tag = "1")]
    pub username: String,
    /// The password.
    #[prost(string, tag = "2")]
    pub password: String,
}

/// Gets an image onto the node.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PullImageRequest {
    /// The image.
    #[prost(message, optional, tag = "1")]
    pub image: Option<ImageSpec>,
    /// The credential.
    #[prost(message, optional, tag = "2")]
    pub auth: Option<AuthConfig>,
    /// The sandbox for which the image is pulled.
    #[prost(message, optional, tag = "3")]
    pub sandbox_config: Option<PodSandboxConfig>,
}

/// The image that was pulled.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PullImageResponse {
    /// Its id or digest.
    #[prost(string, tag = "1")]
    pub image_ref: String,
}

impl Call for PullImageRequest {
    const METHOD: &'static str = "/runtime.v1.ImageService/PullImage";
    type Answer = PullImageResponse;
}

/// Asks for the file systems of the images.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ImageFsInfoRequest {}

/// The use of a file system.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FilesystemUsage {
    /// When it was measured, in nanoseconds.
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
}

/// The file systems of the images.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ImageFsInfoResponse {
    /// The file systems.
    #[prost(message, repeated, tag = "1")]
    pub image_filesystems: Vec<FilesystemUsage>,
}

impl Call for ImageFsInfoRequest {
    const METHOD: &'static str = "/runtime.v1.ImageService/ImageFsInfo";
    type Answer = ImageFsInfoResponse;
}
