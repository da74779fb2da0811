//! The node authorizer: users `system:node:NAME` of the group `system:nodes` reach the objects that the pods on their node need,
//! and no objects of other nodes. [`crate::admission`] checks their writes.

mod pod_references;

use super::{Act, rbac};
use crate::authn::User;
use crate::server::ServerState;
use pod_references::{Reach, Sort};

const PREFIX: &str = "system:node:";
const GROUP: &str = "system:nodes";
/// The role whose rules hold for requests that the node authorizer does not restrict.
const ROLE: &str = "system:node";
const LEASES: &str = "kube-node-lease";

/// The node that a user is; empty for one without a name.
pub(crate) fn identity(user: &User) -> Option<&str> {
    let is_node = user.groups.iter().any(|group| group == GROUP);
    user.name.strip_prefix(PREFIX).filter(|_| is_node)
}

/// Whether a node may do something, or the reason for a refusal, where there is one. None for users that are no nodes.
pub(super) fn decide(state: &ServerState, user: &User, act: &Act) -> Option<Result<(), String>> {
    let node = identity(user)?;
    if node.is_empty() {
        return Some(Err(format!("unknown node for user {:?}", user.name)));
    }
    let judge = Judge { state, node, act };
    Some(match (act.group.as_str(), act.resource.as_str()) {
        ("", "secrets") => judge.reads(Sort::Secret),
        ("", "configmaps") => judge.reads(Sort::ConfigMap),
        ("", "persistentvolumeclaims") if act.subresource == "status" => judge.writes_status(),
        ("", "persistentvolumeclaims") => judge.gets(Sort::Claim),
        ("", "persistentvolumes") => judge.gets(Sort::Volume),
        ("resource.k8s.io", "resourceclaims") => judge.gets(Sort::ResourceClaim),
        ("storage.k8s.io", "volumeattachments") => judge.gets(Sort::Attachment),
        ("", "serviceaccounts") => judge.account(),
        ("coordination.k8s.io", "leases") => judge.lease(),
        ("storage.k8s.io", "csinodes") => judge.csi_node(),
        ("resource.k8s.io", "resourceslices") => judge.slice(),
        ("", "nodes") => judge.itself(),
        ("", "pods") => judge.pod(),
        ("certificates.k8s.io", "podcertificaterequests") => Err(String::new()),
        _ if rbac::role_allows(state, ROLE, act) => Ok(()),
        _ => Err(String::new()),
    })
}

type Judgement = Result<(), String>;

struct Judge<'a> {
    state: &'a ServerState,
    node: &'a str,
    act: &'a Act,
}

impl Judge<'_> {
    fn no(&self, why: &str) -> Judgement {
        Err(why.to_owned())
    }

    /// Allowed if a pod on the node, or the node itself, has to do with the object.
    fn related(&self, sort: Sort) -> Judgement {
        if self.act.name.is_empty() {
            return self.no("No Object name found");
        }
        let reach = Reach {
            state: self.state,
            node: self.node,
        };
        match reach.has(sort, &self.act.namespace, &self.act.name) {
            true => Ok(()),
            false => Err(format!(
                "no relationship found between node '{}' and this object",
                self.node
            )),
        }
    }

    fn reads(&self, sort: Sort) -> Judgement {
        if !matches!(self.act.verb.as_str(), "get" | "list" | "watch") {
            return self.no("can only read resources of this type");
        }
        if !self.act.subresource.is_empty() {
            return self.no("cannot read subresource");
        }
        if self.act.namespace.is_empty() {
            return self.no("can only read namespaced object of this type");
        }
        self.related(sort)
    }

    fn gets(&self, sort: Sort) -> Judgement {
        if self.act.verb != "get" {
            return self.no("can only get individual resources of this type");
        }
        if !self.act.subresource.is_empty() {
            return self.no("cannot get subresource");
        }
        self.related(sort)
    }

    fn writes_status(&self) -> Judgement {
        match self.act.verb.as_str() {
            "update" | "patch" => self.related(Sort::Claim),
            _ => self.no("can only get/update/patch this type"),
        }
    }

    fn account(&self) -> Judgement {
        if self.act.verb == "get" && self.act.subresource.is_empty() {
            return self.reads(Sort::Account);
        }
        if self.act.verb != "create" || self.act.name.is_empty() {
            return self.no("can only create tokens for individual service accounts");
        }
        if self.act.subresource != "token" {
            return self.no("can only create token subresource of serviceaccount");
        }
        self.related(Sort::Account)
    }

    fn lease(&self) -> Judgement {
        if !self.keeps_its_own() {
            return self.no("can only get, create, update, patch, or delete a node lease");
        }
        if self.act.namespace != LEASES {
            return Err(format!(
                "can only access leases in the {LEASES:?} system namespace"
            ));
        }
        if self.act.verb != "create" && self.act.name != self.node {
            return self.no("can only access node lease with the same name as the requesting node");
        }
        Ok(())
    }

    fn csi_node(&self) -> Judgement {
        if !self.keeps_its_own() {
            return self.no("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.act.subresource.is_empty() {
            return self.no("cannot authorize CSINode subresources");
        }
        if self.act.verb != "create" && self.act.name != self.node {
            return self.no("can only access CSINode with the same name as the requesting node");
        }
        Ok(())
    }

    fn keeps_its_own(&self) -> bool {
        let verbs = ["get", "create", "update", "patch", "delete"];
        verbs.contains(&self.act.verb.as_str())
    }

    /// Whether only objects are asked for that have this node in a field.
    fn selects_itself(&self, field: &str) -> bool {
        self.act.field_selector.split(',').any(|term| {
            let value = term.split_once('=').filter(|(name, _)| *name == field);
            value.is_some_and(|(_, value)| value.trim_start_matches('=') == self.node)
        })
    }

    fn slice(&self) -> Judgement {
        if !self.act.subresource.is_empty() {
            return self.no("cannot authorize ResourceSlice subresources");
        }
        match self.act.verb.as_str() {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(Sort::Slice),
            "watch" | "list" | "deletecollection" if self.selects_itself("spec.nodeName") => Ok(()),
            "watch" | "list" | "deletecollection" => {
                self.no("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => self.no(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, \
                 deletecollection",
            ),
        }
    }

    fn itself(&self) -> Judgement {
        match (self.act.subresource.as_str(), self.act.verb.as_str()) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
            ("", "get" | "list" | "watch") if self.act.name == self.node => Ok(()),
            ("", "get" | "list" | "watch") if self.act.name.is_empty() => Err(format!(
                "node '{}' cannot read all nodes, only its own Node object",
                self.node
            )),
            ("", "get" | "list" | "watch") => Err(format!(
                "node '{}' cannot read '{}', only its own Node object",
                self.node, self.act.name
            )),
            _ => Err(String::new()),
        }
    }

    fn pod(&self) -> Judgement {
        match (self.act.subresource.as_str(), self.act.verb.as_str()) {
            ("", "get") => self.gets(Sort::Pod),
            ("", "list" | "watch") if self.selects_itself("spec.nodeName") => Ok(()),
            ("", "list" | "watch") if !self.act.name.is_empty() => self.related(Sort::Pod),
            ("", "list" | "watch") => self.no("can only list/watch pods with spec.nodeName field selector"),
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Ok(()),
            _ => Err(String::new()),
        }
    }
}
