//! The kubelet's port: the services of a node that an API server asks for (logs, commands, ports).
//!
//! [`logs`] are the logs of a container, [`forward`] is the server on its ports; commands are sessions of [`programs`]. [`machine`] is the
//! node on the network, and [`kubelet_service`] answers on the kubelet's own port there.

mod forward;
mod kubelet_service;
mod logs;
mod machine;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use machinery::meta::ObjectMeta as _;
use network::{Connection, Datagram};
use node_access::{LogQuery, NodeAccess, Refused, Session, Wants, dialled};
use shared_json::{Text, Value};
use tokio::io::DuplexStream;

use super::by_name::ByName;
use super::mail::Mailboxes;
use super::programs::{self, Output, Run};

use forward::join;
pub(super) use forward::{listens, serve};
pub(crate) use machine::NodePlace;

/// A simulated kubelet's port. Clones lead to the same node.
#[derive(Clone, Default)]
pub struct KubeletPort(Arc<Port>);

#[derive(Default)]
struct Port {
    pods: Mutex<Pods>,
    /// The pods that have addresses of their own.
    addresses: Mutex<BTreeMap<Ipv4Addr, Text>>,
    /// The ports on which programs listen, by the pod's uid.
    bound: Mutex<Listeners>,
    /// The ports whose datagrams programs receive, by the pod's uid.
    sockets: Mutex<Sockets>,
    /// The node's pods, in their newest versions.
    mailboxes: OnceLock<Mailboxes>,
    place: OnceLock<NodePlace>,
    preparation: OnceLock<Preparation>,
}

/// The work before a command runs in a container of a pod.
pub(super) type Preparation =
    Box<dyn Fn(&[String], &Value, &Arc<Run>) -> BoxFuture<'static, ()> + Send + Sync>;

/// Listeners by uid and port.
type Listeners = BTreeMap<(Text, u16), mpsc::UnboundedSender<Connection>>;

/// Receivers of datagrams by uid and port.
type Sockets = BTreeMap<(Text, u16), mpsc::Sender<Datagram>>;

/// By the pod's uid.
type Pods = BTreeMap<Box<str>, Pod>;

/// A pod that has containers.
#[derive(Default)]
struct Pod {
    /// None if it shares the node's.
    address: Option<Ipv4Addr>,
    containers: ByName<Runs>,
}

/// The runs of a container that are still known.
struct Runs {
    id: String,
    current: Arc<Run>,
    /// The output of the previous run.
    previous: Option<Output>,
}

impl KubeletPort {
    fn lock(&self) -> MutexGuard<'_, Pods> {
        self.0.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_addresses(&self) -> MutexGuard<'_, BTreeMap<Ipv4Addr, Text>> {
        self.0.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_bound(&self) -> MutexGuard<'_, Listeners> {
        self.0.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_sockets(&self) -> MutexGuard<'_, Sockets> {
        self.0.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees the node's pods in these mailboxes.
    pub(super) fn see(&self, mailboxes: &Mailboxes) {
        self.0.mailboxes.get_or_init(|| Arc::clone(mailboxes));
    }

    /// Does this before a command runs in a container.
    pub(super) fn prepare_by(&self, preparation: Preparation) {
        self.0.preparation.get_or_init(|| preparation);
    }

    /// Takes its place on the network.
    pub(super) fn settle(&self, place: NodePlace) {
        self.0.place.get_or_init(|| place);
    }

    pub(super) fn place(&self) -> Option<&NodePlace> {
        self.0.place.get()
    }

    /// A pod is about to run, at this address.
    pub(super) fn arrived(&self, pod: &Value, address: &str) {
        let own = Self::own_address(pod, address);
        if let Some(own) = own {
            self.lock_addresses().insert(own, pod.meta_text("uid"));
        }
        let mut pods = self.lock();
        match pods.get_mut(pod.uid()) {
            Some(known) => known.address = own,
            None => pods.entry(pod.uid().into()).or_default().address = own,
        }
    }

    /// A container runs, for the first time or again.
    pub(super) fn started(&self, uid: &str, container: &str, id: &str, run: Arc<Run>) {
        let mut pods = self.lock();
        let containers = match pods.get_mut(uid) {
            Some(pod) => &mut pod.containers,
            None => &mut pods.entry(uid.into()).or_default().containers,
        };
        let previous = containers.remove(container).map(|runs| runs.current.logs.clone());
        let runs = Runs {
            id: id.to_owned(),
            current: run,
            previous,
        };
        containers.insert(container, runs);
    }

    /// A pod is gone.
    pub(super) fn forget(&self, uid: &str) {
        let Some(pod) = self.lock().remove(uid) else {
            return;
        };
        let Some(address) = pod.address else { return };
        let mut addresses = self.lock_addresses();
        // Another pod may have the address by now.
        if addresses.get(&address).is_some_and(|owner| owner == uid) {
            addresses.remove(&address);
        }
    }

    /// The container's program, if it runs, and the container's id.
    fn running(&self, pod: &Value, container: &str) -> Result<(Arc<Run>, String), Refused> {
        let pods = self.lock();
        let runs = pods.get(pod.uid()).and_then(|pod| pod.containers.get(container));
        match runs {
            Some(runs) if !runs.current.is_over() => Ok((Arc::clone(&runs.current), runs.id.clone())),
            _ => Err(Refused::NoContainer(container.to_owned())),
        }
    }
}

impl NodeAccess for KubeletPort {
    fn logs(
        &self,
        pod: &Value,
        container: &str,
        query: &LogQuery,
    ) -> Result<BoxStream<'static, Bytes>, Refused> {
        let pods = self.lock();
        let runs = pods.get(pod.uid()).and_then(|pod| pod.containers.get(container));
        let output = match runs {
            None => return Err(Refused::BadRequest(not_started(pod, container))),
            Some(runs) if query.previous => runs.previous.clone().ok_or_else(|| {
                let name = pod.name();
                Refused::BadRequest(format!(
                    "previous terminated container \"{container}\" in pod \"{name}\" not found"
                ))
            })?,
            Some(runs) => runs.current.logs.clone(),
        };
        drop(pods);
        Ok(logs::stream(output, query.clone()))
    }

    fn exec(
        &self,
        pod: &Value,
        container: &str,
        argv: Vec<String>,
        wants: Wants,
    ) -> Result<Box<dyn Session>, Refused> {
        let (run, id) = self.running(pod, container)?;
        let needs = match self.0.preparation.get() {
            Some(prepare) => prepare(&argv, pod, &run),
            None => std::future::ready(()).boxed(),
        };
        Ok(programs::exec_session(&run, id, (argv, needs), wants))
    }

    fn attach(&self, pod: &Value, container: &str, wants: Wants) -> Result<Box<dyn Session>, Refused> {
        let (run, _) = self.running(pod, container)?;
        Ok(programs::attach(&run, wants))
    }

    fn forward<'a>(
        &'a self,
        pod: &'a Value,
        port: u16,
        stream: DuplexStream,
    ) -> BoxFuture<'a, Result<(), String>> {
        async move {
        let elsewhere = dialled(pod, port).map_err(|error| error.to_string())?;
        if let Some(place) = elsewhere {
            return join(&place, stream).await;
        }
        let sender = self.lock_bound().get(&(pod.meta_text("uid"), port)).cloned();
        if let Some(sender) = sender {
            let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let connection = Connection { from: local(port.wrapping_add(30_000)), to: local(port), stream };
            // A program that ends just now drops the connection.
            let _ = sender.unbounded_send(connection);
            return Ok(());
        }
        let Some((run, who)) = self.listener(pod, port) else {
            let uid = pod.uid();
            return Err(format!(
                "error forwarding port {port} to pod {uid}, uid : failed to execute portforward in network namespace \
                 \"/var/run/netns/cni-{uid}\": failed to connect to localhost:{port} inside namespace \"{uid}\", IPv4: dial \
                 tcp4 127.0.0.1:{port}: connect: connection refused IPv6 dial tcp6: address localhost: no suitable address \
                 found "
            ));
        };
        forward::serve(run, who, stream).await;
        Ok(())
        }
        .boxed()
    }
}

/// The kubelet's error for the log of a container that has not run.
fn not_started(pod: &Value, container: &str) -> String {
    let name = pod.name();
    let status = [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ]
    .into_iter()
    .flat_map(|field| {
        let list = pod.pointer(&format!("/status/{field}")).and_then(Value::as_array);
        list.into_iter().flatten()
    })
    .find(|status| status.get("name").and_then(Value::as_str) == Some(container));
    let Some(status) = status else {
        return format!("container \"{container}\" in pod \"{name}\" is not available");
    };
    let begin = format!("container \"{container}\" in pod \"{name}\" is");
    match status.pointer("/state/waiting/reason").and_then(Value::as_str) {
        Some("ErrImagePull") => format!("{begin} waiting to start: image can't be pulled"),
        Some("ImagePullBackOff") => format!("{begin} waiting to start: trying and failing to pull image"),
        Some(reason) => format!("{begin} waiting to start: {reason}"),
        None => format!("{begin} not available"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({}), "container \"c\" in pod \"p\" is not available")]
    #[case(json!({"waiting": {"reason": "ContainerCreating"}}), "container \"c\" in pod \"p\" is waiting to start: ContainerCreating")]
    #[case(json!({"waiting": {"reason": "PodInitializing"}}), "container \"c\" in pod \"p\" is waiting to start: PodInitializing")]
    #[case(json!({"waiting": {"reason": "ErrImagePull"}}), "container \"c\" in pod \"p\" is waiting to start: image can't be pulled")]
    #[case(json!({"waiting": {"reason": "ImagePullBackOff"}}), "container \"c\" in pod \"p\" is waiting to start: trying and failing to pull image")]
    #[case(json!({"waiting": {"reason": "CreateContainerConfigError"}}), "container \"c\" in pod \"p\" is waiting to start: CreateContainerConfigError")]
    fn a_container_that_has_not_run_has_no_log(#[case] state: Value, #[case] expected: &str) {
        let pod = json!({"metadata": {"name": "p", "uid": "u"}, "status": {"containerStatuses": [{"name": "c", "state": state}]}});
        let refused = KubeletPort::default().logs(&pod, "c", &LogQuery::default()).err();
        assert_eq!(refused, Some(Refused::BadRequest(expected.to_owned())));
    }
}
