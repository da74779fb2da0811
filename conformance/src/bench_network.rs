//! Measures the network in process: what pods that serve HTTP cost, and how many requests a second go between two of them.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fake_apiserver::Cluster;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::bench::{ms, simulate_on};
use crate::bench_cluster::{Maker, defect, nodes_for, resident, until_none};
use crate::error::Error;
use crate::report::stopwatch::Stopwatch;
use crate::suite::Simulate;

/// How much is asked.
#[derive(Clone, Copy)]
struct Work {
    /// How often each pod is asked, a second of virtual time after the other.
    rounds: u32,
    /// How many requests go between two pods over one connection.
    requests: u32,
    /// How many go over a connection each.
    connections: u32,
}

const WORK: Work = Work {
    rounds: 60,
    requests: 200_000,
    connections: 50_000,
};
/// The port of the pods' page.
const PORT: u16 = 80;

/// Measures clusters of `sizes` pods.
///
/// # Errors
/// If a cluster does not start, its pods do not run, or one does not answer.
pub fn run(sizes: &[u32], out: &mut (dyn Write + Send), simulate: Simulate<'_>) -> Result<(), Error> {
    for pods in sizes {
        let text = simulate_on(simulate, async || measure(*pods, WORK).await)?;
        writeln!(out, "{text}").map_err(|source| Error::Write {
            path: "standard output".into(),
            source,
        })?;
    }
    Ok(())
}

async fn measure(pods: u32, work: Work) -> Result<String, Error> {
    let cluster = Cluster::builder().nodes(nodes_for(pods)).start().await;
    let cluster = cluster.map_err(|error| defect("start a cluster", error))?;
    let api: Api<Pod> = Api::default_namespaced(cluster.client());
    let empty = resident();
    Maker::Client.create(&cluster.client(), pods).await?;
    until_none(&api, "status.phase!=Running").await?;
    let running = resident();
    let addresses = addresses(&api).await?;
    let (Some(first), Some(last)) = (addresses.first().copied(), addresses.last().copied()) else {
        return Err(defect("ask pods", "there are none"));
    };

    let stopwatch = Stopwatch::start();
    for _ in 0..work.rounds {
        for address in &addresses {
            let mut connection = connect(&cluster, first, *address).await?;
            ask(&mut connection).await?;
        }
        cluster.run_for(Duration::from_secs(1)).await;
    }
    let asked = stopwatch.elapsed();
    let after = resident();

    let mut kept = connect(&cluster, first, last).await?;
    let stopwatch = Stopwatch::start();
    for _ in 0..work.requests {
        ask(&mut kept).await?;
    }
    let over_one = stopwatch.elapsed();
    let stopwatch = Stopwatch::start();
    for _ in 0..work.connections {
        let mut connection = connect(&cluster, first, last).await?;
        ask(&mut connection).await?;
    }
    let over_many = stopwatch.elapsed();

    let each = |before: Option<u64>, after: Option<u64>| match before.zip(after) {
        Some((before, after)) => {
            let bytes = after.saturating_sub(before) / u64::from(pods.max(1));
            format!("{:.1} KiB", bytes as f64 / 1024.0)
        }
        None => "unknown on this system".to_owned(),
    };
    let rounds = work.rounds;
    let rate = |requests: u32, took: Duration| f64::from(requests) / took.as_secs_f64();
    Ok(format!(
        "{pods} pods that serve HTTP\n  \
         memory of a pod                           {}\n  \
         more, once each was asked {rounds} times        {} (asking took {})\n  \
         requests a second over one connection     {:.0}\n  \
         requests a second with a connection each  {:.0}",
        each(empty, running),
        each(running, after),
        ms(asked),
        rate(work.requests, over_one),
        rate(work.connections, over_many),
    ))
}

/// The addresses of the pods, by name.
async fn addresses(api: &Api<Pod>) -> Result<Vec<IpAddr>, Error> {
    let pods = api.list(&ListParams::default()).await;
    let pods = pods.map_err(|error| defect("list the pods", error))?;
    let address = |pod: Pod| {
        let text = pod.status.and_then(|status| status.pod_ip).unwrap_or_default();
        text.parse()
            .map_err(|error| defect("read the address of a pod", error))
    };
    pods.items.into_iter().map(address).collect()
}

async fn connect(cluster: &Cluster, from: IpAddr, to: IpAddr) -> Result<DuplexStream, Error> {
    let connected = cluster.network().connect(from, SocketAddr::new(to, PORT)).await;
    connected.map_err(|error| defect("connect to a pod", error))
}

/// Asks for the page, and reads it to its end. The client is no more than this: the network and the server are measured.
async fn ask(connection: &mut DuplexStream) -> Result<(), Error> {
    let failed = |error: std::io::Error| defect("ask a pod", error);
    connection
        .write_all(b"GET / HTTP/1.1\r\nhost: pod\r\n\r\n")
        .await
        .map_err(failed)?;
    let mut answer = Vec::with_capacity(1024);
    loop {
        if connection.read_buf(&mut answer).await.map_err(failed)? == 0 {
            return Err(defect("ask a pod", "the connection ended"));
        }
        if let Some(length) = answer_length(&answer)
            && answer.len() >= length
        {
            return match answer.starts_with(b"HTTP/1.1 200 ") {
                true => Ok(()),
                false => Err(defect("ask a pod", String::from_utf8_lossy(&answer))),
            };
        }
    }
}

/// The length of an answer, head and body, once its head is there.
fn answer_length(answer: &[u8]) -> Option<usize> {
    const END: &[u8] = b"\r\n\r\n";
    const LENGTH: &str = "content-length: ";
    let head = answer.windows(END.len()).position(|window| window == END)?;
    let text = std::str::from_utf8(answer.get(..head)?).ok()?;
    let length = text.lines().find_map(|line| line.strip_prefix(LENGTH))?;
    Some(head + END.len() + length.parse::<usize>().ok()?)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::no_end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", None)]
    #[case::whole("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", Some(40))]
    #[case::body_to_come("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", Some(40))]
    #[case::no_length("HTTP/1.1 200 OK\r\n\r\n", None)]
    fn lengths(#[case] answer: &str, #[case] expected: Option<usize>) {
        assert_eq!(answer_length(answer.as_bytes()), expected);
    }

    /// A few pods are asked and answer; the figures are there.
    #[test]
    fn pods_answer() {
        let work = Work {
            rounds: 2,
            requests: 3,
            connections: 2,
        };
        let simulate: Simulate<'_> = &|_, job| job();
        let text = simulate_on(simulate, async || measure(3, work).await).expect("figures");
        assert!(text.contains("more, once each was asked 2 times"), "{text}");
    }
}
