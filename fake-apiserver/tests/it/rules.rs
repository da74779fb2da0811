//! Rules over objects: CEL in custom resources and in policies, quotas, limits, pod security, disruption budgets.

use rstest::rstest;
use shared_json::{Value, json};

use crate::support::play;

const CORE: &str = "/api/v1/namespaces/default";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/e.com/v1/namespaces/default/widgets";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";

/// A definition of widgets with rules over their spec.
fn definition(rules: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.e.com"},
        "spec": {
            "group": "e.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {
                    "type": "object", "x-kubernetes-validations": rules,
                    "properties": {"n": {"type": "integer"}, "max": {"type": "integer"}, "a-b": {"type": "string"},
                        "namespace": {"type": "string"},
                        "at": {"type": "string", "format": "date-time"},
                        "tags": {"type": "array", "items": {"type": "string"}}},
                }},
            }}}],
        },
    })
}

fn ruled(rules: Value, steps: &[Value]) -> Value {
    let mut all = vec![json!({"do": format!("POST {CRDS}"), "body": definition(rules), "code": 201})];
    all.extend(steps.iter().cloned());
    Value::from(all)
}

fn refused(rules: Value, field: &str, message: &str) -> Value {
    let field =
        format!("spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].{field}");
    json!([{"do": format!("POST {CRDS}"), "body": definition(rules), "code": 422,
        "has": {"/details/causes/0/field": field, "/details/causes/0/message": message}}])
}

fn widget(spec: Value, code: u16, has: Value) -> Value {
    let body = json!({"apiVersion": "e.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    json!({"do": format!("POST {WIDGETS}"), "body": body, "code": code, "has": has})
}

fn change(spec: Value, code: u16, has: Value) -> Value {
    json!({"do": format!("PATCH {WIDGETS}/w"), "type": "merge", "body": {"spec": spec}, "code": code, "has": has})
}

fn cause(field: &str, message: &str) -> Value {
    json!({"/details/causes/0/field": field, "/details/causes/0/message": message})
}

#[rstest]
#[case::a_message(ruled(json!([{"rule": "self.n <= self.max", "message": "n is too much", "fieldPath": ".n", "reason": "FieldValueForbidden"}]), &[
    widget(json!({"n": 2, "max": 1}), 422, cause("spec.n", "Forbidden: n is too much")),
    widget(json!({"n": 1, "max": 1}), 201, json!({})),
]))]
#[case::no_message(ruled(json!([{"rule": "self.tags.all(t, t.startsWith('x'))"}]), &[
    widget(json!({"tags": ["x", "y"]}), 422,
        cause("spec", "Invalid value: failed rule: self.tags.all(t, t.startsWith('x'))")),
]))]
#[case::a_message_that_is_made(ruled(json!([{"rule": "self.n < 5", "messageExpression": "'not ' + self.a__dash__b"}]), &[
    widget(json!({"n": 7, "a-b": "so"}), 422, cause("spec", "Invalid value: not so")),
]))]
#[case::reserved_words(ruled(json!([{"rule": "has(self.namespace) && self.namespace == 'a'", "message": "not a"}]), &[
    widget(json!({"namespace": "b"}), 422, cause("spec", "Invalid value: not a")),
    widget(json!({"namespace": "a"}), 201, json!({})),
]))]
#[case::zones_by_name(ruled(json!([{"rule": "self.at.getHours('America/New_York') == 8", "message": "too soon"}]), &[
    widget(json!({"at": "2024-02-01T12:00:00Z"}), 422, cause("spec", "Invalid value: too soon")),
    widget(json!({"at": "2024-07-01T12:00:00Z"}), 201, json!({})),
]))]
#[case::a_transition(ruled(json!([{"rule": "self.n >= oldSelf.n", "message": "n only grows"}]), &[
    widget(json!({"n": 3}), 201, json!({})),
    change(json!({"n": 2}), 422, cause("spec", "Invalid value: n only grows")),
    change(json!({"n": 4}), 200, json!({})),
]))]
#[case::a_transition_from_nothing(
    ruled(json!([{"rule": "oldSelf.hasValue() || self.n == 0", "optionalOldSelf": true, "message": "begins at 0"}]), &[
    widget(json!({"n": 3}), 422, cause("spec", "Invalid value: begins at 0")),
    widget(json!({"n": 0}), 201, json!({})),
    change(json!({"n": 4}), 200, json!({})),
]))]
#[case::escaped_names_and_times(
    ruled(json!([{"rule": "self.a__dash__b == 'x' && self.at < timestamp('2020-01-01T00:00:00Z')"}]), &[
    widget(json!({"a-b": "x", "at": "2019-05-05T00:00:00Z"}), 201, json!({})),
]))]
#[case::an_error_while_it_runs(ruled(json!([{"rule": "1 / self.n > 0"}]), &[
    widget(json!({"n": 0}), 422, cause("spec", "Invalid value: \"object\": division by zero evaluating rule: 1 / self.n > 0")),
]))]
#[case::not_run_on_broken_objects(ruled(json!([{"rule": "self.n > 0"}]), &[
    widget(json!({"n": "x"}), 422, json!({"/details/causes/1/message": "Invalid value: null: some validation rules were \
        not checked because the object was invalid; correct the existing errors to complete validation"})),
]))]
#[case::an_unknown_field(refused(json!([{"rule": "self.zz == 1"}]), "rule", "Invalid value: {\"Rule\":\"self.zz == 1\",\
    \"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation \
    failed: ERROR: <input>:1:5: undefined field 'zz'\n | self.zz == 1\n | ....^"))]
#[case::an_unknown_path(refused(json!([{"rule": "true", "fieldPath": ".zz"}]), "fieldPath",
    "Invalid value: \".zz\": must be a valid path"))]
#[case::no_rule(refused(json!([{"rule": " "}]), "rule", "Required value: rule is not specified"))]
fn custom_resources(#[case] steps: Value) {
    play(false, steps);
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    pod
}

fn container(resources: Value) -> Value {
    json!({"containers": [{"name": "c", "image": "i", "resources": resources}]})
}

fn create(kind: &str, body: Value, code: u16, has: Value) -> Value {
    json!({"do": format!("POST {CORE}/{kind}"), "body": body, "code": code, "has": has})
}

/// The account that pods run as.
fn account() -> Value {
    json!({"do": format!("POST {CORE}/serviceaccounts"), "body": {"metadata": {"name": "default"}}, "code": 201})
}

fn quota(hard: Value, used: Value) -> Vec<Value> {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    vec![
        create("resourcequotas", quota, 201, json!({})),
        json!({"do": format!("PATCH {CORE}/resourcequotas/q/status"), "type": "merge",
            "body": {"status": {"hard": hard, "used": used}}}),
    ]
}

#[test]
fn a_quota_counts_and_refuses() {
    let mut steps = quota(
        json!({"configmaps": "2", "requests.cpu": "1"}),
        json!({"configmaps": "1", "requests.cpu": "0"}),
    );
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    steps.extend([
        account(),
        create("configmaps", map("a"), 201, json!({})),
        create("configmaps", map("b"), 403, json!({"/message": "configmaps \"b\" is forbidden: exceeded quota: q, \
            requested: configmaps=1, used: configmaps=2, limited: configmaps=2"})),
        create("pods", pod("p", json!({})), 403, json!({"/message":
            "pods \"p\" is forbidden: failed quota: q: must specify requests.cpu for: c"})),
        create("pods", pod("p", container(json!({"requests": {"cpu": "600m"}}))), 201, json!({})),
        create("pods", pod("r", container(json!({"requests": {"cpu": "600m"}}))), 403, json!({})),
        json!({"do": format!("GET {CORE}/resourcequotas/q"), "has": {"/status/used": {"configmaps": "2", "requests.cpu": "600m"}}}),
    ]);
    play(false, Value::from(steps));
}

#[test]
fn a_limit_range_fills_in_and_refuses() {
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}}]}});
    play(
        false,
        json!([
            account(),
            create("limitranges", range, 201, json!({})),
            create(
                "pods",
                pod("a", json!({})),
                201,
                json!({
            "/spec/containers/0/resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}},
            "/metadata/annotations/kubernetes.io~1limit-ranger":
                "LimitRanger plugin set: cpu request for container c; cpu limit for container c"})
            ),
            create(
                "pods",
                pod("b", container(json!({"limits": {"cpu": "2"}}))),
                403,
                json!({"/message":
            "pods \"b\" is forbidden: maximum cpu usage per Container is 1, but limit is 2"})
            ),
        ]),
    );
}

#[test]
fn a_namespace_asks_for_a_security_standard() {
    let label = |level: &str| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    let namespace = "/api/v1/namespaces/default";
    play(
        false,
        json!([
            account(),
            {"do": format!("PATCH {namespace}"), "type": "merge", "body": label("nope"), "code": 422, "has": {"/message":
                "Namespace \"default\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \
                 \"nope\": must be one of privileged, baseline, restricted"}},
            {"do": format!("PATCH {namespace}"), "type": "merge", "body": label("baseline")},
            create("pods", pod("a", json!({"hostNetwork": true})), 403, json!({"/message":
                "pods \"a\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"})),
            create("pods", pod("b", json!({})), 201, json!({})),
        ]),
    );
}

#[test]
fn a_policy_judges_by_variables_and_the_old_object() {
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]},
            "matchConditions": [{"name": "not-exempt", "expression": "object.metadata.name != 'exempt'"}],
            "variables": [{"name": "bad", "expression": "object.metadata.name.contains('bad')"}],
            "validations": [
                {"expression": "!variables.bad", "message": "no bad names", "reason": "Forbidden"},
                {"expression": "request.operation != 'UPDATE' || object.data == oldObject.data", "message": "frozen"}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    play(
        false,
        json!([
            {"do": format!("POST {POLICIES}/validatingadmissionpolicies"), "body": policy, "code": 201},
            create("configmaps", map("bad"), 201, json!({})),
            {"do": format!("POST {POLICIES}/validatingadmissionpolicybindings"), "body": binding, "code": 201},
            create("configmaps", map("bad-too"), 403, json!({"/message": "configmaps \"bad-too\" is forbidden: \
                ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no bad names"})),
            create("configmaps", map("exempt"), 201, json!({})),
            create("configmaps", json!({"metadata": {"name": "good"}, "data": {"a": "a"}}), 201, json!({})),
            {"do": format!("PATCH {CORE}/configmaps/good"), "type": "merge", "body": {"data": {"a": "b"}}, "code": 422},
            {"do": format!("PATCH {CORE}/configmaps/good"), "type": "merge", "body": {"metadata": {"labels": {"a": "b"}}}},
        ]),
    );
}

#[test]
fn a_policy_asks_who_may_do_what() {
    let may = "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()";
    let account = "authorizer.serviceAccount('default', object.metadata.name).requestResource.check('create').allowed()";
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["*"],
                "operations": ["CREATE"], "resources": ["configmaps"]}]},
            "variables": [{"name": "mine", "expression": may}],
            "validations": [
                {"expression": "variables.mine && authorizer.requestResource.check('delete').allowed()"},
                {"expression": "authorizer.path('/healthz').check('get').allowed()"},
                {"expression": account.replace(".requestResource", ".group('').resource('configmaps')"), "message": "the account may not"}]}});
    let wrong = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "q"}, "spec": {"matchConstraints": policy["spec"]["matchConstraints"].clone(),
            "validations": [{"expression": account}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let undeclared = format!(
        "Invalid value: \"{account}\": compilation failed: ERROR: <input>:1:59: unexpected \
         failed resolution of 'kubernetes.authorization.Authorizer'\n | {account}\n | {}^",
        ".".repeat(58)
    );
    play(
        false,
        json!([
            {"do": format!("POST {POLICIES}/validatingadmissionpolicies"), "body": wrong, "code": 422,
                "has": {"/details/causes/0/message": undeclared}},
            {"do": format!("POST {POLICIES}/validatingadmissionpolicies"), "body": policy, "code": 201},
            {"do": format!("POST {POLICIES}/validatingadmissionpolicybindings"), "body": binding, "code": 201},
            create("configmaps", map, 422, json!({"/message": "configmaps \"a\" is forbidden: \
                ValidatingAdmissionPolicy 'p' with binding 'b' denied request: the account may not"})),
        ]),
    );
}

/// The authorizer gives its reason: the binding that allows it, or the missing role.
#[test]
fn a_policy_asks_why() {
    let asked = |verb: &str| {
        format!(
            "authorizer.serviceAccount('default', 'a').group('').resource('configmaps').namespace('default').check('{verb}')"
        )
    };
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let of_group = |kind: &str, name: &str, more: Value| {
        let mut object =
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
        for (field, value) in more.as_object().into_iter().flatten() {
            object[field] = value.clone();
        }
        object
    };
    let bound = |name: &str, role: &str| {
        of_group(
            "RoleBinding",
            name,
            json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "default"}]}),
        )
    };
    let allowed = "RBAC: allowed by RoleBinding \"b/default\" of Role \"r\" to ServiceAccount \"a/default\"";
    let missing = "RBAC: role.rbac.authorization.k8s.io \"none\" not found";
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["*"],
            "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "validations": [
            {"expression": format!("{}.reason() == '{allowed}'", asked("get")), "message": "why it is allowed"},
            {"expression": format!("{0}.reason() == '{missing}' && !{0}.errored()", asked("delete")), "message": "why it is not"},
            {"expression": format!("{}.error() == ''", asked("delete")), "message": "why it is an error"},
            {"expression": "authorizer.path('/healthz').check('get').reason() == ''", "message": "why all is"},
        ]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let role = of_group(
        "Role",
        "r",
        json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}),
    );
    let denied = |why: &str| {
        json!({"/message": format!("configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with \
        binding 'b' denied request: {why}")})
    };
    play(
        false,
        json!([
            {"do": format!("POST {POLICIES}/validatingadmissionpolicies"), "body": policy, "code": 201},
            {"do": format!("POST {POLICIES}/validatingadmissionpolicybindings"), "body": binding, "code": 201},
            {"do": format!("POST {rbac}/roles"), "body": role, "code": 201},
            create("configmaps", map("a"), 422, denied("why it is allowed")),
            {"do": format!("POST {rbac}/rolebindings"), "body": bound("b", "r"), "code": 201},
            create("configmaps", map("a"), 422, denied("why it is not")),
            {"do": format!("POST {rbac}/rolebindings"), "body": bound("c", "none"), "code": 201},
            create("configmaps", map("a"), 201, json!({})),
        ]),
    );
}

#[test]
fn a_disruption_budget_refuses_an_eviction() {
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let status = |allowed: u64| {
        json!({"do": format!("PATCH {budgets}/b/status"), "type": "merge",
        "body": {"status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1}}})
    };
    let evict = |code: u16, has: Value| json!({"do": format!("POST {CORE}/pods/p/eviction"), "body": eviction, "code": code, "has": has});
    play(
        false,
        json!([
            account(),
            create("pods", pod("p", json!({"nodeName": "nowhere"})), 201, json!({})),
            {"do": format!("PATCH {CORE}/pods/p/status"), "type": "merge",
                "body": {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}},
            {"do": format!("POST {budgets}"), "body": budget, "code": 201},
            evict(429, json!({"/details/retryAfterSeconds": 10})),
            status(0),
            evict(429, json!({"/details/causes/0/message": "The disruption budget b needs 1 healthy pods and has 1 currently"})),
            status(1),
            evict(201, json!({"/status": "Success"})),
            {"do": format!("GET {budgets}/b"), "has": {"/status/disruptionsAllowed": 0}},
            {"do": format!("GET {CORE}/pods/p"), "has": {"/status/conditions/1/reason": "EvictionByEvictionAPI"}},
        ]),
    );
}

/// A rule about a text whose cost grows with it: the pattern has two hundred characters.
fn costly(of: &str) -> String {
    format!("!{of}.matches('{}')", "x".repeat(200))
}

/// Texts of so many characters: what a rule of a definition says of one, and what a policy does.
#[rstest]
#[case::cheap(1000, None)]
#[case::too_expensive(300_000, Some("operation cancelled: actual cost limit exceeded"))]
fn what_an_expression_may_cost(#[case] length: usize, #[case] refusal: Option<&str>) {
    let text = "a".repeat(length);
    let rule = costly("self.text");
    let mut definition = definition(json!([{"rule": rule}]));
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let fields = definition.pointer_mut(spec).expect("the fields");
    fields["text"] = json!({"type": "string", "maxLength": 400_000});
    let expression = costly("object.data.text");
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {"matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": expression}]},
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    });
    let code = if refusal.is_some() { 422 } else { 201 };
    let of_rule = refusal.map(|why| {
        cause("spec", &format!(
            "Invalid value: \"object\": '{why}': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"
        ))
    });
    let of_policy = refusal.map(|why| json!({"/message": format!(
        "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression \
         '{expression}' resulted in error: {why}"
    )}));
    play(
        false,
        json!([
            {"do": format!("POST {CRDS}"), "body": definition, "code": 201},
            {"do": format!("POST {POLICIES}/validatingadmissionpolicies"), "body": policy, "code": 201},
            {"do": format!("POST {POLICIES}/validatingadmissionpolicybindings"), "body": binding, "code": 201},
            widget(json!({"text": text}), code, of_rule.unwrap_or_default()),
            {"do": format!("POST {CORE}/configmaps"), "body": {"metadata": {"name": "c"}, "data": {"text": text}}, "code": code,
                "has": of_policy.unwrap_or_default()},
        ]),
    );
}
