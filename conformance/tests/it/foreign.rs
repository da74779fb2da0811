//! Chainsaw tests as other projects write them: judged by their assertions alone.

use conformance::suite::SuiteOptions;
use rstest::rstest;
use shared_json::json;

use crate::support::{fixtures, run};

const HEAD: &str = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\nspec:\n";
const TEMPLATE: &str = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: StepTemplate\nmetadata: {name: s}\nspec:\n  bindings: [{name: data, value: theirs}]\n  try:\n  - apply: {file: ($file)}\n  - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: ($data)}}}\n";
const LIST: &str = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: ours}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: two, labels: {of: list-1}}}\n";

/// Passed, failed, skipped.
#[rstest]
#[case::without_snapshots("  steps:\n  - try:\n    - apply: {file: list.yaml}\n    - assert: {file: tree.yaml}\n", (1, 0, 0))]
#[case::wrong("  steps:\n  - try:\n    - assert: {file: tree.yaml, timeout: 1s}\n", (0, 1, 0))]
#[case::values_alone("  bindings: [{name: a, value: 1}]\n  steps:\n  - try:\n    - assert: {resource: {($a): 1}}\n    - error: {resource: {($a): 2}}\n", (1, 0, 0))]
#[case::unknown_field("  steps:\n  - try:\n    - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, x: y}, expect: [{check: {($error): 'ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"x\"'}}]}\n", (1, 0, 0))]
#[case::refused("  steps:\n  - try:\n    - apply: {resource: {apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {containers: []}}}\n", (0, 1, 0))]
#[case::values_that_cannot_be_had("  bindings: [{name: a, value: ($b)}]\n  steps: []\n", (0, 1, 0))]
#[case::labels_by_expression(
    "  steps:\n  - try:\n    - apply: {file: list.yaml}\n    - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {labels: {of: {\"(starts_with(@, 'list-'))\": true}}}}}\n",
    (1, 0, 0)
)]
#[case::template(
    "  steps:\n  - use: {template: step.yaml, with: {bindings: [{name: file, value: list.yaml}, {name: data, value: ours}]}}\n",
    (1, 0, 0)
)]
#[case::template_with_its_own_values(
    "  timeouts: {assert: 1s}\n  steps:\n  - use: {template: step.yaml, with: {bindings: [{name: file, value: list.yaml}]}}\n",
    (0, 1, 0)
)]
#[case::once_for_each("  scenarios: [{name: x, bindings: [{name: m, value: 1}]}, {bindings: [{name: m, value: 2}]}]\n  steps:\n  - try:\n    - assert: {resource: {($m): 1}, timeout: 1s}\n", (1, 1, 0))]
#[case::several("  steps: []\n---\napiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\nspec:\n  steps: []\n", (2, 0, 0))]
#[case::namespace_of_its_own(
    "  namespace: third\n  steps:\n  - try:\n    - apply: {file: list.yaml}\n    - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: third}}}\n",
    (1, 0, 0)
)]
#[case::namespace_by_template(
    "  namespaceTemplate: {metadata: {name: foo, annotations: {of: \"(join('-', [$test.metadata.name, 'x']))\"}}}\n  steps:\n  - try:\n    - assert: {resource: {apiVersion: v1, kind: Namespace, metadata: {name: ($namespace), annotations: {of: t-x}}}}\n",
    (1, 0, 0)
)]
#[case::outputs(
    "  steps:\n  - bindings: [{name: all, value: []}]\n    try:\n    - apply:\n        file: list.yaml\n        outputs:\n        - {name: \"(join('', ['o', to_string($operation.resourceId)]))\", value: (@)}\n        - {name: all, value: \"([$all, [metadata.name]][])\"}\n    - assert: {resource: {($all): [one, two], ($o2.metadata.name): two}}\n",
    (1, 0, 0)
)]
#[case::status("  steps:\n  - try:\n    - apply: {resource: {apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}}\n    - patch: {subresource: status, resource: {apiVersion: v1, kind: Service, metadata: {name: s}, status: {conditions: [{type: A, status: 'True', reason: R, message: m, lastTransitionTime: '2026-01-01T00:00:00Z'}]}}}\n    - wait: {apiVersion: v1, kind: Service, name: s, for: {condition: {name: A}}}\n    - wait: {apiVersion: v1, kind: Service, name: s, format: yaml, for: {creation: {}}}\n", (1, 0, 0))]
#[case::namespace_of_the_configuration("  steps:\n  - try:\n    - assert: {resource: {($namespace): other}}\n", (1, 0, 0))]
#[case::arithmetic("  bindings: [{name: a, value: 2}]\n  steps:\n  - try:\n    - assert: {resource: {\"($a * `3` + `1`)\": 7, \"(let $b = $a in $b - `1`)\": 1}}\n", (1, 0, 0))]
#[case::people_look("  catch: [{events: {}}, {podLogs: {selector: a=b}}]\n  steps:\n  - try:\n    - get: {apiVersion: v1, kind: Pod}\n    finally: [{describe: {apiVersion: v1, kind: Pod}}]\n    cleanup: [{script: {content: rm -f x}}]\n", (1, 0, 0))]
#[case::values("  steps:\n  - try:\n    - assert: {resource: {($values.image.tag): '01', ($values.count): 2}}\n", (1, 0, 0))]
#[case::setup("  steps:\n  - try:\n    - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: before, namespace: kube-system}}}\n", (1, 0, 0))]
#[case::asks_the_cluster("  steps:\n  - try:\n    - assert: {resource: {\"(length(x_k8s_list($client, 'v1', 'Node').items))\": 1, \"(x_k8s_exists($client, 'v1', 'ConfigMap', 'kube-system', 'before'))\": true, \"(x_k8s_exists($client, 'v1', 'ConfigMap', 'kube-system', 'no'))\": false}}\n    - assert: {resource: {\"(x_k8s_resource_exists($client, 'v1', 'Pod'))\": true, \"(x_k8s_resource_exists($client, 'v1', 'No'))\": false, \"(x_k8s_server_version($config).major)\": '1', \"(x_k8s_get($client, 'v1', 'ConfigMap', 'kube-system', 'before').data.a)\": b}}\n    - error: {resource: {\"(x_k8s_get($client, 'v1', 'ConfigMap', 'kube-system', 'no'))\": {}}, timeout: 1s}\n", (1, 0, 0))]
#[case::cel("  compiler: cel\n  bindings: [{name: a, value: 2}]\n  steps:\n  - try:\n    - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {cel: \"(string(bindings.resolve('a') + 1))\", jp: \"(jp; to_string($a))\"}}}\n    - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {cel: '3', jp: '2'}, (object.data.size()): 2}}\n    - compiler: jp\n      assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, (length(data)): 2}}\n", (1, 0, 0))]
#[case::cel_of_the_namespace("  namespaceTemplate: {metadata: {name: foo, annotations: {of: (\"a\" + \"b\")}}}\n  namespaceTemplateCompiler: cel\n  steps:\n  - try:\n    - assert: {resource: {apiVersion: v1, kind: Namespace, metadata: {name: foo, annotations: {of: ab}}}}\n", (1, 0, 0))]
#[case::only_tried("  steps:\n  - try:\n    - apply: {dryRun: true, resource: {apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}, outputs: [{name: kind, value: (spec.type)}]}\n    - error: {resource: {apiVersion: v1, kind: Service, metadata: {name: s}}}\n    - assert: {resource: {($kind): ClusterIP}}\n    - create: {dryRun: true, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}\n    - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}}\n    - patch: {dryRun: true, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: x}}}\n    - update: {dryRun: true, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: x}}}\n    - update: {dryRun: true, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: absent}, data: {}}, expect: [{check: {($error): 'configmaps \"absent\" not found'}}]}\n    - assert: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}}\n", (1, 0, 0))]
#[case::the_own_cluster("  scenarios: [{bindings: [{name: c, value: ''}]}, {bindings: [{name: c, value: other}]}]\n  cluster: ($c)\n  steps:\n  - try:\n    - assert: {resource: {($test.scenarioId): 1}}\n", (1, 0, 1))]
#[case::programs("  steps:\n  - try:\n    - script: {content: 'true'}\n", (0, 0, 1))]
#[case::skip("  skip: true\n  steps:\n  - try:\n    - proxy: {name: x}\n", (0, 0, 1))]
fn are_played(#[case] spec: &str, #[case] expected: (usize, usize, usize)) {
    let name = std::thread::current()
        .name()
        .unwrap_or_default()
        .replace(':', "-");
    let folder = std::env::temp_dir().join(format!("seatrial-foreign-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let files = [
        ("chainsaw-test.yaml", format!("{HEAD}{spec}")),
        ("list.yaml", LIST.to_owned()),
        (
            ".chainsaw.yaml",
            "apiVersion: chainsaw.kyverno.io/v1alpha2\nkind: Configuration\nspec: {namespace: {name: other}, timeouts: {assert: 2s}}\n".to_owned(),
        ),
        ("step.yaml", TEMPLATE.to_owned()),
        (
            "setup.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: before, namespace: kube-system}\ndata: {a: b}\n".to_owned(),
        ),
        (
            "tree.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n".to_owned(),
        ),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).expect("a file");
    }
    let options = SuiteOptions {
        scenarios: folder.clone(),
        recordings: fixtures().join("recordings"),
        divergences: fixtures().join("recordings/divergences.yaml"),
        play_scenarios: true,
        assertions_suffice: true,
        values: json!({"image": {"tag": "01"}, "count": 2}),
        nodes: Some(1),
        setup: Some(folder.join("setup.yaml")),
        ..SuiteOptions::default()
    };
    let (totals, text) = run(&options);
    let _gone = std::fs::remove_dir_all(&folder);
    let totals = totals.expect("tests that can be read");
    assert_eq!((totals.passed, totals.failed, totals.skipped), expected, "{text}");
}
