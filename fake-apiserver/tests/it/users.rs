//! Whose requests of the same process are, and what they may do.

use fake_apiserver::{Cluster, Server};
use rstest::rstest;
use shared_json::json;
use tower::ServiceExt as _;

use crate::support::simulate;

const ROBOT: &str = "system:serviceaccount:default:robot";

/// A cluster with an account that may list pods.
async fn cluster() -> Cluster {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let objects = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}),
        json!({"apiVersion": version, "kind": "Role", "metadata": {"name": "robot", "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}),
        json!({"apiVersion": version, "kind": "RoleBinding", "metadata": {"name": "robot", "namespace": "default"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "robot"},
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]}),
    ];
    let mut builder = Cluster::builder().nodes(0);
    for object in objects {
        builder = builder.object(object);
    }
    builder.start().await.expect("a cluster")
}

async fn get(server: Server, path: &str, headers: &[(&str, &str)]) -> u16 {
    let mut asked = http::Request::get(path);
    for (name, value) in headers {
        asked = asked.header(*name, *value);
    }
    let asked = asked
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .expect("a request");
    let Ok(answer) = server.oneshot(asked).await;
    answer.status().as_u16()
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Who asks: the user that the server's handle acts as, if any, and the headers.
#[rstest]
#[case::an_administrator(None, &[], MAPS, 200)]
#[case::a_user_lists_what_its_role_has(Some(ROBOT), &[], PODS, 200)]
#[case::and_nothing_else(Some(ROBOT), &[], MAPS, 403)]
#[case::but_sees_which_kinds_are_served(Some(ROBOT), &[], "/apis/apps/v1", 200)]
#[case::nobody_else_has_the_role(Some("system:serviceaccount:default:other"), &[], PODS, 403)]
#[case::a_user_may_not_be_another(Some(ROBOT), &[("impersonate-user", "jane")], PODS, 403)]
#[case::an_administrator_may(None, &[("impersonate-user", ROBOT)], PODS, 200)]
#[case::and_has_the_rights_of_that_user(None, &[("impersonate-user", ROBOT)], MAPS, 403)]
#[case::a_token_that_is_not_good(None, &[("authorization", "Bearer nonsense")], PODS, 401)]
fn a_request_of_the_same_process(
    #[case] user: Option<&'static str>,
    #[case] headers: &'static [(&'static str, &'static str)],
    #[case] path: &'static str,
    #[case] expected: u16,
) {
    simulate(move || async move {
        let cluster = cluster().await;
        let server = match user {
            Some(user) => cluster.server().acting_as(user),
            None => cluster.server().clone(),
        };
        assert_eq!(get(server, path, headers).await, expected);
    });
}
