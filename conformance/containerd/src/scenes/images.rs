//! Images that jobs ask for.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};

use super::{LIMIT, equal, image_id};
use crate::cluster::{NODE, cluster_objects, objects};
use crate::registry::{PASSWORD, USER};
use crate::{Failure, Proof, until};

/// Runs an ImagePullJob to its end. Gives the job's status, and the image's entry in the NodeImage.
async fn pull(proof: &Proof, job: &str, image: &str, secrets: &[&str]) -> Result<(Value, Value), Failure> {
    let jobs = objects(&proof.place.client, "v1beta1", "ImagePullJob");
    let (name, tag) = image.rsplit_once(':').ok_or("an image without a tag")?;
    let body: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": { "name": job },
        "spec": {
            "image": image, "pullSecrets": secrets, "imagePullPolicy": "Always",
            "pullPolicy": { "timeoutSeconds": 20, "backoffLimit": 0 },
            "completionPolicy": { "type": "Always", "activeDeadlineSeconds": 60 },
        },
    }))?;
    jobs.create(&PostParams::default(), &body).await?;
    let status = until(&format!("the job {job} to end"), LIMIT, async || {
        let status = jobs.get(job).await?.data["status"].clone();
        Ok(Some(status).filter(|status| !status["completionTime"].is_null()))
    })
    .await?;
    let lists = cluster_objects(&proof.place.client, "v1beta1", "NodeImage");
    let list = lists.get(NODE).await?;
    let tags = list.data["status"]["imageStatuses"][name]["tags"]
        .as_array()
        .cloned();
    let of_tag = tags.into_iter().flatten().find(|status| status["tag"] == tag);
    Ok((status, of_tag.unwrap_or_default()))
}

pub(super) async fn public(proof: &Proof) -> Result<String, Failure> {
    let image = format!("{}/app:2", proof.registry);
    equal("the image before the job", image_id(proof, &image).await?, None)?;
    let (status, tag) = pull(proof, "public", &image, &[]).await?;
    equal("status.succeeded", &status["succeeded"], &json!(1))?;
    let id = image_id(proof, &image)
        .await?
        .ok_or("the node does not have the image")?;
    equal(
        "imageID",
        &tag["imageID"],
        &json!(format!("{}/app@{id}", proof.registry)),
    )?;
    Ok(format!("NodeImage: {} {}", tag["phase"], tag["imageID"]))
}

pub(super) async fn refused(proof: &Proof) -> Result<String, Failure> {
    let image = format!("{}/private/app:1", proof.registry);
    let (status, tag) = pull(proof, "refused", &image, &[]).await?;
    equal("status.failed", &status["failed"], &json!(1))?;
    equal("the image after the job", image_id(proof, &image).await?, None)?;
    let message = tag["message"].as_str().unwrap_or_default();
    let begin = format!("Failed to pull image reference {image:?}: rpc error: code = ");
    equal(
        "whether the message begins with the call's error",
        message.starts_with(&begin),
        true,
    )?;
    Ok(message.to_owned())
}

pub(super) async fn private(proof: &Proof) -> Result<String, Failure> {
    let registry = &proof.registry;
    let config = json!({ "auths": { registry: { "username": USER, "password": PASSWORD } } });
    let secret: Secret = serde_json::from_value(json!({
        "metadata": { "name": "registry" }, "type": "kubernetes.io/dockerconfigjson",
        "stringData": { ".dockerconfigjson": config.to_string() },
    }))?;
    let secrets: Api<Secret> = Api::default_namespaced(proof.place.client.clone());
    secrets.create(&PostParams::default(), &secret).await?;
    let image = format!("{registry}/private/app:1");
    let (status, tag) = pull(proof, "private", &image, &["registry"]).await?;
    equal("status.succeeded", &status["succeeded"], &json!(1))?;
    let id = image_id(proof, &image)
        .await?
        .ok_or("the node does not have the image")?;
    Ok(format!(
        "NodeImage: {} version {}, containerd has {id}",
        tag["phase"], tag["version"]
    ))
}
