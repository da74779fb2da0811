//! The work of a pass, in its order.

use client_kit::EventType;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::writes::{self, in_background};
use crate::api::labels;
use crate::api::v1alpha1::{UnitedDeployment, UnitedDeploymentStatus};
use crate::kit::expectations::{Expected, Member};
use crate::kit::{ActError, Kind, OnFailure, Owner, in_batches, requests, settled};
use crate::pods::actor::Actor;
use crate::pods::pod::Pod;
use crate::pods::{PodAction, PodRef};
use crate::workloads::uniteddeployment::children::Child;
use crate::workloads::uniteddeployment::kinds::ChildKind;
use crate::workloads::uniteddeployment::plan::{
    Failure, Labelled, PROVISIONED, Plan, SUBSETS_UPDATED, Wanted, apply, cut, prefix, set_condition,
};

/// How often a workload is written when somebody else wrote it meanwhile (OpenKruise: 5).
const TRIES_MAX: u32 = 5;

/// Acts for a UnitedDeployment.
pub(in crate::workloads::uniteddeployment) struct Performer<'a> {
    pub(in crate::workloads::uniteddeployment) actor: &'a Actor,
    pub(in crate::workloads::uniteddeployment) set: &'a UnitedDeployment,
    pub(in crate::workloads::uniteddeployment) owner: Owner,
    pub(in crate::workloads::uniteddeployment) kind: ChildKind,
}

/// The workload as a member of its UnitedDeployment.
pub(in crate::workloads::uniteddeployment) fn member(kind: ChildKind, name: String) -> Member {
    Member::Workload(kind.word(), name)
}

impl Performer<'_> {
    /// Does the work of a pass.
    ///
    /// # Errors
    /// The first failure, after which only the condition is written that says so.
    pub(in crate::workloads::uniteddeployment) async fn perform(&self, plan: &Plan) -> Result<(), ActError> {
        for name in &plan.history {
            let action = PodAction::DeleteRevision { name: name.clone() };
            self.actor.perform(&self.owner, &action).await?;
        }
        for child in &plan.duplicates {
            let deleted = self.delete(child).await;
            deleted.map_err(|error| self.duplicate_stays(&error))?;
        }
        for pod in &plan.labelled {
            self.label(pod).await?;
        }
        if let Some(failure) = &plan.failure {
            return Err(self.fail(failure));
        }
        if let Err(errors) = self.provision(plan).await {
            let error = ActError::joined(errors)
                .err()
                .unwrap_or_else(|| ActError::planned(""));
            let text = format!("fail to manage Subset provision: {error}");
            self.warn("FailedUpdateSubset", text.clone());
            self.blame(plan, PROVISIONED, &error.message).await;
            return Err(ActError {
                message: text,
                ..error
            });
        }
        if let Err(error) = self.update_all(plan).await {
            self.warn("FailedUpdateSubset", error.message.clone());
            self.blame(plan, SUBSETS_UPDATED, &error.message).await;
            return Err(error);
        }
        self.write_status(&plan.status).await
    }

    /// Records the events of a failure.
    pub(in crate::workloads::uniteddeployment) fn fail(&self, failure: &Failure) -> ActError {
        for (reason, message) in &failure.events {
            self.warn(reason, message.clone());
        }
        ActError::planned(&failure.error)
    }

    fn duplicate_stays(&self, error: &ActError) -> ActError {
        let (namespace, name) = (&self.owner.key.namespace, &self.owner.key.name);
        let text = format!("fail to manage duplicate Subset of UnitedDeployment {namespace}/{name}: {error}");
        self.warn("FailedDeleteDuplicatedSubsets", error.message.clone());
        self.warn("Failed FindSubsets", text.clone());
        ActError {
            message: text,
            kind: error.kind,
        }
    }

    fn warn(&self, reason: &str, message: String) {
        self.actor.event(&self.owner, EventType::Warning, reason, message);
    }

    fn tell(&self, message: String) {
        let reason = "SuccessfulUpdateSubset";
        self.actor.event(&self.owner, EventType::Normal, reason, message);
    }

    /// Makes and deletes workloads.
    async fn provision(&self, plan: &Plan) -> Result<(), Vec<ActError>> {
        let mut errors = Vec::new();
        let word = self.kind.word();
        if !plan.create.is_empty() {
            let results = in_batches(&plan.create, OnFailure::Stop, |wanted| self.create(wanted)).await;
            match results.into_iter().find_map(Result::err) {
                None => self.tell(format!("Create {} Subset ({word})", plan.create.len())),
                Some(error) => errors.push(error),
            }
        }
        let before = errors.len();
        for child in &plan.delete {
            let Err(error) = self.delete(child).await else {
                continue;
            };
            let (namespace, name, subset) = (&self.owner.key.namespace, &child.name, child.subset());
            errors.push(worded(
                format!("fail to delete Subset ({word}) {namespace}/{name} for {subset}: {error}"),
                &error,
            ));
        }
        if !plan.delete.is_empty() && errors.len() == before {
            self.tell(format!("Delete {} Subset ({word})", plan.delete.len()));
        }
        for child in &plan.others {
            let Err(error) = self.delete(child).await else {
                continue;
            };
            let (namespace, own) = (&self.owner.key.namespace, &self.owner.key.name);
            let (name, other) = (&child.name, child.kind.word());
            errors.push(worded(
                format!(
                    "fail to delete Subset {name} of other type {other} for UnitedDeployment {namespace}/{own}: {error}"
                ),
                &error,
            ));
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    async fn create(&self, wanted: &Wanted) -> Result<(), ActError> {
        let worded = |error: ActError| {
            let (word, subset) = (self.kind.word(), &wanted.subset);
            worded(
                format!("fail to create Subset ({word}) {subset}: {error}"),
                &error,
            )
        };
        let mut object = Value::Null;
        apply(self.set, self.kind, wanted, &mut object).map_err(|error| worded(ActError::planned(&error)))?;
        let prefix = prefix(self.set, &wanted.subset);
        let name = format!("{}{}", cut(&prefix), self.actor.names.suffix(&prefix));
        object["metadata"]["name"] = json!(name);
        let key = &self.owner.key;
        let member = member(self.kind, name.clone());
        let expectations = &self.actor.expectations;
        expectations.expect(key, Expected::Creation, member.clone());
        let created = writes::create(self.actor, self.kind, &key.namespace, &object).await;
        let Err(error) = created else { return Ok(()) };
        if error.kind == Kind::Unknown {
            let found = writes::get(self.actor, self.kind, &key.namespace, &name).await;
            match found.map(|_| ()).map_err(|error| error.kind) {
                Ok(()) => return Ok(()),
                Err(Kind::NotFound) => expectations.settle(key, Expected::Creation, member),
                Err(_) => expectations.doubt(key, Expected::Creation, member),
            }
        } else {
            expectations.settle(key, Expected::Creation, member);
        }
        Err(worded(error))
    }

    /// Deletes a workload, and its pods after it. One that is gone is as good as deleted.
    async fn delete(&self, child: &Child) -> Result<(), ActError> {
        let key = &self.owner.key;
        let member = member(child.kind, child.name.clone());
        let expectations = &self.actor.expectations;
        expectations.expect(key, Expected::Deletion, member.clone());
        let deleted = writes::delete(self.actor, &key.namespace, child).await;
        let Err(error) = deleted else { return Ok(()) };
        match error.kind {
            Kind::Unknown => expectations.doubt(key, Expected::Deletion, member),
            _ => expectations.settle(key, Expected::Deletion, member),
        }
        if error.is_about_another() {
            Ok(())
        } else {
            Err(error)
        }
    }

    /// Brings the workloads up to date, and deletes pods that would keep them from going on.
    async fn update_all(&self, plan: &Plan) -> Result<(), ActError> {
        let results = in_batches(&plan.update, OnFailure::Stop, |update| self.update(update)).await;
        results.into_iter().collect::<Result<(), _>>()?;
        for pod in &plan.stuck {
            self.delete_pod(pod).await?;
        }
        Ok(())
    }

    async fn update(&self, (child, wanted): &(Child, Wanted)) -> Result<(), ActError> {
        let result = self.try_to_update(child, wanted).await;
        if let Err(error) = &result {
            let (word, name) = (self.kind.word(), &child.name);
            self.warn(
                "FailedUpdateSubset",
                format!("Error updating PodSet ({word}) {name} when updating: {error}"),
            );
        }
        result
    }

    async fn try_to_update(&self, child: &Child, wanted: &Wanted) -> Result<(), ActError> {
        let namespace = &self.owner.key.namespace;
        let mut attempt = 1;
        loop {
            let found = writes::get(self.actor, self.kind, namespace, &child.name).await;
            let mut object = match found {
                Err(error) if error.kind == Kind::NotFound => return Ok(()),
                found => found?,
            };
            apply(self.set, self.kind, wanted, &mut object).map_err(|error| ActError::planned(&error))?;
            let replaced = writes::replace(self.actor, self.kind, namespace, &child.name, &object).await;
            match replaced {
                Ok(written) => {
                    let text = |pointer: &str| written.pointer(pointer).and_then(Value::as_str);
                    let [uid, version] = ["/metadata/uid", "/metadata/resourceVersion"].map(text);
                    let expectations = &self.actor.expectations;
                    expectations.expect_version(uid.unwrap_or_default(), version.unwrap_or_default());
                    return Ok(());
                }
                Err(error) if error.kind == Kind::Conflict && attempt < TRIES_MAX => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn delete_pod(&self, pod: &PodRef) -> Result<(), ActError> {
        let api: Api<Pod> = self.actor.api(&self.owner.key);
        settled(api.delete(&pod.name, &in_background(&pod.uid)).await)
    }

    /// Says on a pod whether it is reserved.
    async fn label(&self, (pod, is_reserved): &Labelled) -> Result<(), ActError> {
        let api: Api<Pod> = self.actor.api(&self.owner.key);
        let labels = json!({ labels::RESERVED_POD: is_reserved.to_string() });
        let patch = json!({ "metadata": { "uid": pod.uid, "labels": labels } });
        let params = PatchParams::default();
        settled(api.patch(&pod.name, &params, &Patch::Strategic(&patch)).await)
    }

    /// Makes a workload the UnitedDeployment's, beside owners that it has.
    pub(in crate::workloads::uniteddeployment) async fn adopt(&self, child: &Child) -> Result<(), ActError> {
        let reference = json!(self.owner.reference());
        writes::adopt(self.actor, &self.owner.key.namespace, child, reference).await
    }

    /// Writes the status as it was, with a condition about the failure. Only the failure itself is reported.
    async fn blame(&self, plan: &Plan, condition: &str, message: &str) {
        let mut status = self.set.status.clone().unwrap_or_default();
        let now = self.actor.clock.now();
        set_condition(&mut status, condition, false, ("Error", message.to_owned()), now);
        status.subset_statuses.clone_from(&plan.status.subset_statuses);
        if let Err(error) = self.write_status(&status).await {
            tracing::debug!(%error, "failed to write a condition");
        }
    }

    async fn write_status(&self, status: &UnitedDeploymentStatus) -> Result<(), ActError> {
        if self.set.status.as_ref() == Some(status) {
            return Ok(());
        }
        let api: Api<UnitedDeployment> = self.actor.api(&self.owner.key);
        let written = requests::write_status(&api, self.set, |latest| latest.status = Some(status.clone()));
        let written = written.await?;
        let version = written.resource_version().unwrap_or_default();
        self.actor.expectations.expect_version(&self.owner.uid, &version);
        Ok(())
    }
}

fn worded(message: String, error: &ActError) -> ActError {
    ActError {
        message,
        kind: error.kind,
    }
}
