//! The scheduler's intake of changes, and the pods that it tries again for them.

use std::sync::Arc;

use machinery::meta::{ObjectMeta as _, at};
use shared_json::Value;

use super::super::cluster::{PodInfo, text};
use super::super::hints::{Event, NodeEvent};
use super::{Kind, Scheduler, is_ours};

impl Scheduler {
    /// Tries the pods again that a change may help.
    pub(super) fn tell(&mut self, event: &Event<'_>) {
        let cluster = &self.cluster;
        self.queue
            .retry(self.clock.now(), event.concerns(), |filter, pod| {
                event.may_help(filter, pod, cluster)
            });
    }

    /// A pod no longer keeps room on a node: those that are no more important than it are tried again, as if it had been there.
    pub(super) fn gives_room(&mut self, pod: &PodInfo) {
        let cluster = &self.cluster;
        let event = Event::Pod(Some(pod), None);
        self.queue
            .retry(self.clock.now(), event.concerns(), |filter, other| {
                other.priority <= pod.priority && event.may_help(filter, other, cluster)
            });
    }

    /// A pod without a node has changed, and with it perhaps its nominated node, which another client may write, too.
    fn renominate(&mut self, old: Option<&PodInfo>, pod: &Arc<PodInfo>) {
        let was = old.map_or("", PodInfo::nominated);
        let is = pod.nominated();
        if !(was.is_empty() && is.is_empty()) {
            self.cluster
                .nominate(pod, Some(is).filter(|node| !node.is_empty()));
        }
        if let Some(old) = old.filter(|_| !was.is_empty() && was != is) {
            self.gives_room(old);
        }
    }

    pub(super) fn present(&mut self, kind: Kind, object: Arc<Value>) {
        let name = object.name().to_owned();
        match kind {
            Kind::Node => {
                let before = self.cluster.nodes.get(&name);
                let before = before
                    .filter(|_| self.queue.waits_for_changes())
                    .map(|node| Arc::clone(&node.object));
                let is_new = !self.cluster.nodes.contains_key(&name);
                self.cluster.put_node(Value::clone(&object));
                if is_new || before.is_some() {
                    self.tell(&Event::Node(NodeEvent::of(before.as_deref(), Some(&object))));
                }
            }
            Kind::Pod => self.pod(object),
            Kind::Claim => {
                let key = (object.namespace().to_owned(), name);
                let old = self.cluster.claims.insert(key, Value::clone(&object));
                self.tell(&Event::Claim(old.as_ref(), &object));
            }
            Kind::Volume => {
                let old = self.cluster.volumes.insert(name, Value::clone(&object));
                self.tell(&Event::Volume(old.as_ref(), &object));
            }
            Kind::Class => {
                let old = self.cluster.classes.insert(name, Value::clone(&object));
                self.tell(&Event::Class(old.as_ref(), &object));
            }
            Kind::Namespace => {
                let labels = at(&object, "metadata.labels").cloned().unwrap_or_default();
                self.cluster.namespaces.insert(name, labels);
            }
            Kind::Driver => {
                let old = self.cluster.drivers.insert(name, Value::clone(&object));
                self.tell(&Event::Drivers(old.as_ref(), &object));
            }
            Kind::DeviceClaim => {
                let key = (object.namespace().to_owned(), name);
                let old = self.cluster.device_claims.insert(key, Value::clone(&object));
                self.tell(&Event::DeviceClaim(old.as_ref(), &object));
            }
            Kind::DeviceClass => {
                let class = Value::clone(&object);
                let old = self.cluster.device_classes.insert(name, class);
                self.tell(&Event::DeviceClass(old.as_ref(), &object));
            }
            Kind::Slice => {
                self.cluster.slices.insert(name, Arc::unwrap_or_clone(object));
                self.tell(&Event::Slice);
            }
            Kind::Service => {
                let selector = at(&object, "spec.selector").cloned().unwrap_or_default();
                let key = (object.namespace().to_owned(), name);
                self.cluster.services.insert(key, selector);
            }
            Kind::Budget => {
                let key = (object.namespace().to_owned(), name);
                self.cluster.budgets.insert(key, Arc::unwrap_or_clone(object));
            }
        }
    }

    pub(super) fn gone(&mut self, kind: Kind, object: &Value) {
        let name = object.name();
        match kind {
            Kind::Node => {
                self.cluster.remove_node(name);
                self.tell(&Event::Node(NodeEvent::of(Some(object), None)));
            }
            Kind::Pod => {
                let uid = object.uid();
                self.queue.leave(uid);
                self.binding.remove(uid);
                self.reporter.forget(uid);
                let nominated = self.cluster.withdraw(uid);
                if let Some(pod) = nominated {
                    self.gives_room(&pod);
                }
                self.leave_node(uid);
            }
            Kind::Claim => {
                self.cluster
                    .claims
                    .remove(&(object.namespace().to_owned(), name.to_owned()));
            }
            Kind::Volume => {
                self.cluster.volumes.remove(name);
            }
            Kind::Class => {
                self.cluster.classes.remove(name);
            }
            Kind::Namespace => {
                self.cluster.namespaces.remove(name);
            }
            Kind::Driver => {
                self.cluster.drivers.remove(name);
            }
            Kind::DeviceClaim => {
                let key = (object.namespace().to_owned(), name.to_owned());
                self.cluster.device_claims.remove(&key);
            }
            Kind::DeviceClass => {
                self.cluster.device_classes.remove(name);
            }
            Kind::Slice => {
                self.cluster.slices.remove(name);
            }
            Kind::Service => {
                let key = (object.namespace().to_owned(), name.to_owned());
                self.cluster.services.remove(&key);
            }
            Kind::Budget => {
                let key = (object.namespace().to_owned(), name.to_owned());
                self.cluster.budgets.remove(&key);
            }
        }
    }

    /// A pod needs its node no longer.
    pub(super) fn leave_node(&mut self, uid: &str) {
        if let Some(pod) = self.cluster.placed(uid) {
            self.cluster.forget(uid);
            self.tell(&Event::Pod(Some(&pod), None));
        }
    }

    pub(super) fn pod(&mut self, pod: Arc<Value>) {
        let uid = pod.uid().to_owned();
        let node = text(&pod, "spec.nodeName").to_owned();
        let over = matches!(text(&pod, "status.phase"), "Succeeded" | "Failed");
        if over {
            self.queue.leave(&uid);
            self.leave_node(&uid);
        } else if !node.is_empty() {
            self.queue.leave(&uid);
            self.binding.remove(&uid);
            if !self.queue.waits_for_changes() {
                self.cluster.place_newest(pod, &node);
                return;
            }
            let before = self.cluster.placed(&uid).filter(|before| before.bound);
            self.cluster.place_newest(pod, &node);
            let now = self.cluster.placed(&uid);
            self.tell(&Event::Pod(before.as_deref(), now.as_deref()));
        } else if !is_ours(&pod) || pod.is_terminating() {
            self.queue.leave(&uid);
        } else if !self.cluster.is_placed(&uid) {
            let old = self.queue.pod(&uid).cloned();
            let cluster = &self.cluster;
            self.queue.put(pod, self.clock.now(), |filter, old, new| {
                let event = Event::Own(old, new);
                event.concerns().contains(&filter) && event.may_help(filter, new, cluster)
            });
            if let Some(new) = self.queue.pod(&uid).cloned() {
                self.renominate(old.as_deref(), &new);
            }
        }
    }
}
