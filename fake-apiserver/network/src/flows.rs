//! The flows of datagrams, as a node's connection tracking knows them: a sender's datagrams to a Service go to the endpoint that its
//! first one went to, and answers come from the address that was asked.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

/// For how long Linux remembers a flow that was answered (`nf_conntrack_udp_timeout_stream`).
const REMEMBERED: Duration = Duration::from_secs(120);
/// How many flows are remembered.
const FLOWS_MAX: usize = 10_000;

/// The flows of one network.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    /// The endpoint by the sender and the address that it sent to, and the last time.
    there: BTreeMap<(SocketAddr, SocketAddr), (SocketAddr, Instant)>,
    /// The address that was sent to, by the sender and the endpoint.
    back: BTreeMap<(SocketAddr, SocketAddr), SocketAddr>,
}

impl Flows {
    /// The endpoint that a sender's datagrams to an address go to, if the last one is not too long ago.
    pub(crate) fn endpoint(&self, sender: SocketAddr, to: SocketAddr, now: Instant) -> Option<SocketAddr> {
        let (endpoint, last) = self.there.get(&(sender, to))?;
        (now.duration_since(*last) <= REMEMBERED).then_some(*endpoint)
    }

    /// Takes note of a datagram from a sender to an address, which stands for an endpoint or is its own.
    pub(crate) fn sent(&mut self, sender: SocketAddr, to: SocketAddr, endpoint: SocketAddr, now: Instant) {
        if self.there.len() >= FLOWS_MAX {
            self.there
                .retain(|_, (_, last)| now.duration_since(*last) <= REMEMBERED);
        }
        if self.there.len() >= FLOWS_MAX {
            self.there.clear();
        }
        if let Some((old, _)) = self.there.insert((sender, to), (endpoint, now))
            && old != endpoint
        {
            self.back.remove(&(sender, old));
        }
        self.back.insert((sender, endpoint), to);
        if self.back.len() > 2 * FLOWS_MAX {
            let there = &self.there;
            self.back.retain(|(sender, endpoint), to| {
                there.get(&(*sender, *to)).is_some_and(|(at, _)| at == endpoint)
            });
        }
    }

    /// The address that a datagram of an endpoint seems to come from, if it is an answer to this sender: the one that was asked. The
    /// answer keeps the flow.
    pub(crate) fn answered(
        &mut self,
        endpoint: SocketAddr,
        sender: SocketAddr,
        now: Instant,
    ) -> Option<SocketAddr> {
        let asked = *self.back.get(&(sender, endpoint))?;
        let (at, last) = self.there.get_mut(&(sender, asked))?;
        if *at != endpoint || now.duration_since(*last) > REMEMBERED {
            return None;
        }
        *last = now;
        Some(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[tokio::test(start_paused = true)]
    async fn a_flow_keeps_its_endpoint_and_its_source() {
        let mut flows = Flows::default();
        let (sender, service) = (at("10.244.1.2:40000"), at("10.96.0.9:53"));
        let (first, second) = (at("10.244.1.9:5353"), at("10.244.2.9:5353"));
        assert_eq!(flows.endpoint(sender, service, Instant::now()), None);
        flows.sent(sender, service, first, Instant::now());
        assert_eq!(flows.endpoint(sender, service, Instant::now()), Some(first));
        assert_eq!(flows.answered(first, sender, Instant::now()), Some(service));
        assert_eq!(
            flows.answered(second, sender, Instant::now()),
            None,
            "another endpoint speaks for itself"
        );
        assert_eq!(
            flows.endpoint(at("10.244.1.2:40001"), service, Instant::now()),
            None,
            "another port is another flow"
        );

        tokio::time::sleep(Duration::from_secs(121)).await;
        assert_eq!(
            flows.endpoint(sender, service, Instant::now()),
            None,
            "too long ago"
        );
        assert_eq!(
            flows.answered(first, sender, Instant::now()),
            None,
            "it is no answer any more"
        );
        flows.sent(sender, service, second, Instant::now());
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(
                flows.answered(second, sender, Instant::now()),
                Some(service),
                "answers keep the flow"
            );
        }
        assert_eq!(flows.answered(first, sender, Instant::now()), None);
        assert_eq!(flows.answered(second, sender, Instant::now()), Some(service));
    }

    #[tokio::test(start_paused = true)]
    async fn old_flows_make_room() {
        let mut flows = Flows::default();
        for port in 0..FLOWS_MAX + 5 {
            let port = u16::try_from(port).expect("a port");
            let sender = SocketAddr::new(at("10.244.1.2:1").ip(), port);
            flows.sent(sender, at("10.96.0.9:53"), at("10.244.1.9:5353"), Instant::now());
        }
        assert!(flows.there.len() <= FLOWS_MAX);
        assert!(flows.back.len() <= 2 * FLOWS_MAX);
    }
}
