//! `logs-generator`: lines like those of an API server.

use std::time::Duration;

use super::super::native::Container;
use super::{Flags, duration};

/// The letters of random names, as Kubernetes has them.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Prints so many lines in so long a time.
pub(super) async fn generate(container: &mut Container, flags: &Flags) -> i32 {
    let lines: u32 = flags
        .text(&["log-lines-total", "t"])
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let total = flags
        .text(&["run-duration", "d"])
        .and_then(duration)
        .unwrap_or_default();
    if lines == 0 {
        container.print_error("Invalid total number of lines: 0\n");
        return 255;
    }
    if total.is_zero() {
        container.print_error("Invalid duration: 0s\n");
        return 255;
    }
    let pause: Duration = total / lines;
    for number in 0..lines {
        let text = line(container, number);
        let now = container.now().strftime("%m%d %H:%M:%S.%6f");
        container.print_error(&format!("I{now}       1 logs_generator.go:76] {text}\n"));
        tokio::time::sleep(pause).await;
    }
    0
}

fn line(container: &mut Container, number: u32) -> String {
    let mut below = |bound: u64| container.random() % bound;
    let method = match below(3) {
        0 => "GET",
        1 => "POST",
        _ => "PUT",
    };
    let namespace = match below(3) {
        0 => "kube-system",
        1 => "default",
        _ => "ns",
    };
    let length = 3 + below(2);
    let mut pod = String::new();
    for _ in 0..length {
        let at = usize::try_from(below(LETTERS.len() as u64)).unwrap_or_default();
        pod.push(char::from(LETTERS.get(at).copied().unwrap_or(b'x')));
    }
    let status = 200 + below(400);
    format!("{number} {method} /api/v1/namespaces/{namespace}/pods/{pod} {status}")
}
