//! The sockets of container runtimes.

use std::path::{Path, PathBuf};

use crate::error::DaemonError;

/// The host's `/var/run` in the daemon's pod.
pub const HOST_RUN: &str = "/hostvarrun";
/// The places of sockets there, in their order.
const PLACES: [&str; 6] = [
    "containerd.sock",
    "containerd/containerd.sock",
    "crio.sock",
    "crio/crio.sock",
    "cri-dockerd.sock",
    "cri-dockerd/cri-dockerd.sock",
];

/// The sockets to try: the one that is named, or all that are below `folder`.
///
/// # Errors
/// If there is none.
pub fn sockets(named: &str, folder: &Path) -> Result<Vec<PathBuf>, DaemonError> {
    if !named.is_empty() {
        // containerd's and crictl's way of writing an address.
        let path = PathBuf::from(named.strip_prefix("unix://").unwrap_or(named));
        return match path.exists() {
            true => Ok(vec![path]),
            false => Err(DaemonError::NoSocket(format!(
                "there is no socket {}",
                path.display()
            ))),
        };
    }
    let places = PLACES.iter().map(|place| folder.join(place));
    let found: Vec<PathBuf> = places.filter(|path| path.exists()).collect();
    if found.is_empty() {
        let looked = format!("there is no {} below {}", PLACES.join(", "), folder.display());
        return Err(DaemonError::NoSocket(looked));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The files below the folder, the flag (`.` is the folder), and the sockets or the error.
    #[rstest]
    #[case::nothing(
        "",
        "",
        "there is no containerd.sock, containerd/containerd.sock, crio.sock, crio/crio.sock, cri-dockerd.sock, \
        cri-dockerd/cri-dockerd.sock below ."
    )]
    #[case::one("containerd/containerd.sock", "", "containerd/containerd.sock")]
    #[case::in_their_order(
        "crio/crio.sock containerd.sock dockershim.sock",
        "",
        "containerd.sock crio/crio.sock"
    )]
    #[case::named("containerd.sock my.sock", "./my.sock", "my.sock")]
    #[case::named_as_an_address("my.sock", "unix://./my.sock", "my.sock")]
    #[case::named_and_missing("containerd.sock", "./my.sock", "there is no socket ./my.sock")]
    fn rows(#[case] files: &str, #[case] flag: &str, #[case] expect: &str) {
        let name = format!(
            "sockets-{}-{}",
            std::process::id(),
            files.len() * 100 + flag.len()
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        for file in files.split_whitespace() {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let root = folder.display().to_string();
        let shown = match sockets(&flag.replacen("./", &format!("{root}/"), 1), &folder) {
            Ok(found) => {
                let paths = found
                    .iter()
                    .map(|path| path.strip_prefix(&folder).unwrap().display().to_string());
                paths.collect::<Vec<_>>().join(" ")
            }
            Err(DaemonError::NoSocket(why)) => why.replace(&root, "."),
            Err(error) => error.to_string(),
        };
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(shown, expect);
    }
}
