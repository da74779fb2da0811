//! An image of one layer, which has busybox and a page to serve.

use std::fmt::Write as _;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde_json::json;

/// The commands of busybox that the scenes use.
const COMMANDS: [&str; 8] = ["cat", "echo", "env", "false", "httpd", "sh", "sleep", "test"];
/// The length of a block of a tar archive.
const BLOCK: usize = 512;

/// A blob of an image.
#[derive(Clone)]
pub(crate) struct Blob {
    /// Its digest: `sha256:…`.
    pub(crate) digest: String,
    /// Its bytes.
    pub(crate) bytes: Bytes,
}

/// An image.
#[derive(Clone)]
pub(crate) struct Image {
    /// Its manifest.
    pub(crate) manifest: Blob,
    /// Its configuration, whose digest is the image's id.
    pub(crate) config: Blob,
    /// Its layer.
    pub(crate) layer: Blob,
}

impl Blob {
    fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let mut text = "sha256:".to_owned();
        for byte in digest(&SHA256, &bytes).as_ref() {
            // A String takes all that is written.
            let _infallible = write!(text, "{byte:02x}");
        }
        Self { digest: text, bytes }
    }
}

/// The layer with a static busybox.
pub(crate) fn layer(busybox: &[u8]) -> Blob {
    let mut tar = Vec::new();
    for folder in ["bin/", "tmp/", "www/"] {
        entry(&mut tar, folder, "", b'5', &[]);
    }
    entry(&mut tar, "bin/busybox", "", b'0', busybox);
    for command in COMMANDS {
        entry(&mut tar, &format!("bin/{command}"), "busybox", b'2', &[]);
    }
    entry(&mut tar, "www/index.html", "", b'0', b"welcome\n");
    // The end of an archive: two blocks of zeros.
    tar.resize(tar.len() + 2 * BLOCK, 0);
    Blob::new(tar)
}

/// An image with this layer. Images of different labels have different ids.
pub(crate) fn image(layer: &Blob, label: &str) -> Image {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let config = json!({
        "architecture": architecture, "os": "linux",
        "config": { "Env": ["PATH=/bin"], "Cmd": ["sleep", "1000000"], "Labels": { "name": label } },
        "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
    });
    let config = Blob::new(config.to_string());
    let part = |kind: &str, blob: &Blob| {
        json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": blob.digest, "size": blob.bytes.len(),
        })
    };
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": part("config.v1+json", &config), "layers": [part("layer.v1.tar", layer)],
    });
    Image {
        manifest: Blob::new(manifest.to_string()),
        config,
        layer: layer.clone(),
    }
}

/// The media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Appends a file (`0`), a link (`2`) or a folder (`5`) to an archive.
fn entry(tar: &mut Vec<u8>, name: &str, link: &str, kind: u8, content: &[u8]) {
    let mut head = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| {
        if let Some(field) = head.get_mut(at..at + text.len()) {
            field.copy_from_slice(text);
        }
    };
    put(0, name.as_bytes());
    put(100, b"0000755\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(157, link.as_bytes());
    put(257, b"ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    if let Some(field) = head.get_mut(148..156) {
        field.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    tar.extend_from_slice(&head);
    tar.extend_from_slice(content);
    tar.resize(tar.len().next_multiple_of(BLOCK), 0);
}
