"""Drives a served cluster with the Python client; KUBECONFIG names it (conformance/clients/run starts one)."""

import io
import json
import os
import tarfile
import threading
import time
import unittest

import yaml
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import portforward, stream

PATIENCE_SECONDS = 30


def eventually(condition):
    """What the condition gives, once that is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError("not in time")
        time.sleep(0.05)


class Clients(unittest.TestCase):
    def setUp(self):
        config.load_kube_config()
        self.core = client.CoreV1Api()
        made = self.core.create_namespace({"metadata": {"generateName": "python-"}})
        self.namespace = made.metadata.name

    def tearDown(self):
        self.core.delete_namespace(self.namespace)

    def running_pod(self, name, container):
        pod = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", **container}]}}
        self.core.create_namespaced_pod(self.namespace, pod)
        eventually(lambda: self.core.read_namespaced_pod(name, self.namespace).status.phase == "Running")

    def refused(self, call, *arguments, **options):
        with self.assertRaises(ApiException) as caught:
            call(*arguments, **options)
        return caught.exception.status, json.loads(caught.exception.body)["reason"]

    def test_objects(self):
        one = {"metadata": {"name": "one"}, "data": {"a": "1"}}
        made = self.core.create_namespaced_config_map(self.namespace, one)
        self.assertTrue(made.metadata.uid and made.metadata.creation_timestamp)
        again = self.refused(self.core.create_namespaced_config_map, self.namespace, one)
        self.assertEqual(again, (409, "AlreadyExists"))
        made.data["a"] = "2"
        newer = self.core.replace_namespaced_config_map("one", self.namespace, made)
        self.assertNotEqual(newer.metadata.resource_version, made.metadata.resource_version)
        stale = self.refused(self.core.replace_namespaced_config_map, "one", self.namespace, made)
        self.assertEqual(stale, (409, "Conflict"))
        patched = self.core.patch_namespaced_config_map("one", self.namespace, {"data": {"b": "3"}})
        self.assertEqual(patched.data, {"a": "2", "b": "3"})
        page = self.core.list_namespaced_config_map(self.namespace, limit=1)
        self.assertEqual(len(page.items), 1)
        self.core.delete_namespaced_config_map("one", self.namespace)
        gone = self.refused(self.core.read_namespaced_config_map, "one", self.namespace)
        self.assertEqual(gone, (404, "NotFound"))
        invalid = self.refused(self.core.create_namespaced_service, self.namespace, {"metadata": {"name": "X"}})
        self.assertEqual(invalid, (422, "Invalid"))

    def test_watch(self):
        begin = self.core.list_namespaced_secret(self.namespace).metadata.resource_version

        def act():
            self.core.create_namespaced_secret(self.namespace, {"metadata": {"name": "s"}})
            self.core.patch_namespaced_secret("s", self.namespace, {"metadata": {"labels": {"a": "b"}}})
            self.core.delete_namespaced_secret("s", self.namespace)

        actor = threading.Thread(target=act)
        actor.start()
        seen = []
        events = watch.Watch().stream(
            self.core.list_namespaced_secret, self.namespace, resource_version=begin, timeout_seconds=PATIENCE_SECONDS
        )
        for event in events:
            seen.append(event["type"])
            if event["type"] == "DELETED":
                break
        actor.join()
        self.assertEqual(seen, ["ADDED", "MODIFIED", "DELETED"])

    def test_server_side_apply(self):
        def apply(manager, data, force=False):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
            return configs.server_side_apply(body=body, namespace=self.namespace, field_manager=manager, force_conflicts=force)

        configs = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="ConfigMap")
        apply("ours", {"a": "1"})
        with self.assertRaises(dynamic.exceptions.ConflictError):
            apply("theirs", {"a": "2"})
        made = apply("theirs", {"a": "2", "b": "1"}, force=True)
        self.assertEqual(made.data.to_dict(), {"a": "2", "b": "1"})
        self.assertEqual([entry.manager for entry in made.metadata.managedFields], ["theirs"])

    def test_dynamic_client_and_custom_resources(self):
        plural = "things" + self.namespace.replace("-", "")
        group = "python.seatrial.test"
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": plural.capitalize()},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
            },
        }
        utils.create_from_dict(client.ApiClient(), definition)
        self.addCleanup(client.ApiextensionsV1Api().delete_custom_resource_definition, f"{plural}.{group}")
        resources = dynamic.DynamicClient(client.ApiClient()).resources
        things = eventually(lambda: resources.search(api_version=f"{group}/v1", kind=plural.capitalize()))[0]
        thing = {"apiVersion": f"{group}/v1", "kind": plural.capitalize(), "metadata": {"name": "t"}, "spec": {"size": 3}}
        things.create(body=thing, namespace=self.namespace)
        self.assertEqual(things.get(name="t", namespace=self.namespace).spec.size, 3)
        with self.assertRaises(dynamic.exceptions.UnprocessibleEntityError):
            things.create(body={**thing, "metadata": {"name": "u"}, "spec": {"size": "big"}}, namespace=self.namespace)

    def test_a_deployment_rolls_out(self):
        apps = client.AppsV1Api()
        labels = {"app": "web"}
        apps.create_namespaced_deployment(self.namespace, {
            "metadata": {"name": "web"},
            "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}}},
        })
        eventually(lambda: apps.read_namespaced_deployment("web", self.namespace).status.available_replicas == 3)
        scale = apps.patch_namespaced_deployment_scale("web", self.namespace, {"spec": {"replicas": 1}})
        self.assertEqual(scale.spec.replicas, 1)
        eventually(lambda: len(self.core.list_namespaced_pod(self.namespace, label_selector="app=web").items) == 1)

    def test_logs_and_commands(self):
        self.running_pod("p", {"image": "busybox", "command": ["sh", "-c", "echo up; sleep 1000"]})
        # Unless it is asked for the bytes, this client gives their representation.
        read = self.core.read_namespaced_pod_log
        eventually(lambda: read("p", self.namespace, _preload_content=False).data == b"up\n")
        run = self.core.connect_get_namespaced_pod_exec
        options = {"stderr": True, "stdin": False, "stdout": True, "tty": False}
        out = stream(run, "p", self.namespace, command=["sh", "-c", "echo answer $((6*7))"], **options)
        self.assertEqual(out, "answer 42\n")
        options["stdin"] = True
        shell = stream(run, "p", self.namespace, command=["sh"], _preload_content=False, **options)
        shell.write_stdin("echo first\n")
        self.assertEqual(shell.readline_stdout(timeout=PATIENCE_SECONDS), "first")
        shell.write_stdin("exit 3\n")
        shell.run_forever(timeout=PATIENCE_SECONDS)
        self.assertEqual(shell.returncode, 3)
        shell.close()

    def test_copying_out_of_a_container(self):
        self.running_pod("p", {"image": "nginx"})
        run = self.core.connect_get_namespaced_pod_exec
        options = {"stderr": True, "stdin": False, "stdout": True, "tty": False}
        stream(run, "p", self.namespace, command=["sh", "-c", "mkdir /d; echo one > /d/a; echo two > /d/b"], **options)
        packed = stream(run, "p", self.namespace, command=["tar", "cf", "-", "/d"], binary=True, **options)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            self.assertEqual(sorted(archive.getnames()), ["d", "d/a", "d/b"])
            self.assertEqual(archive.extractfile("d/b").read(), b"two\n")

    def test_port_forward(self):
        self.running_pod("p", {"image": "nginx", "ports": [{"containerPort": 80}]})
        forward = portforward(self.core.connect_get_namespaced_pod_portforward, "p", self.namespace, ports="80")
        socket = forward.socket(80)
        socket.setblocking(True)
        socket.settimeout(PATIENCE_SECONDS)
        socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b""
        while piece := socket.recv(4096):
            answer += piece
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK"), answer)
        self.assertIn(f"pod: {self.namespace}/p".encode(), answer)


class Time(unittest.TestCase):
    """The cluster's time jumps: what would take hours takes less than a second, or a few on a busy machine."""

    def setUp(self):
        config.load_kube_config()
        self.core, self.apps, self.batch = client.CoreV1Api(), client.AppsV1Api(), client.BatchV1Api()
        self.namespace = self.core.create_namespace({"metadata": {"generateName": "time-"}}).metadata.name
        self.began = time.monotonic()

    def tearDown(self):
        took = time.monotonic() - self.began
        self.core.delete_namespace(self.namespace)
        self.assertLess(took, 5)

    def clock(self, method="GET", body=None):
        return client.ApiClient().call_api(
            "/fake/clock", method, body=body, response_types_map={200: "object"}, _return_http_data_only=True
        )

    def advance(self, by):
        return self.clock("POST", {"advance": by})

    def test_a_schedule(self):
        container = {"name": "c", "image": "busybox:1", "command": ["echo", "hello"]}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        spec = {"schedule": "*/10 * * * *", "jobTemplate": {"spec": {"template": template}}}
        self.batch.create_namespaced_cron_job(self.namespace, {"metadata": {"name": "hello"}, "spec": spec})
        eventually(lambda: any(due["what"] == f"{self.namespace}/hello" for due in self.clock()["next"]))
        self.advance("30m")
        jobs = self.batch.list_namespaced_job(self.namespace).items
        self.assertEqual([job.status.succeeded for job in jobs], [1, 1, 1])

    def test_a_rollout(self):
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
        spec = {"minReadySeconds": 300, "replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        self.apps.create_namespaced_deployment(self.namespace, {"metadata": {"name": "web"}, "spec": spec})
        status = lambda: self.apps.read_namespaced_deployment_status("web", self.namespace).status
        eventually(lambda: status().ready_replicas == 2)
        self.assertIsNone(status().available_replicas)
        self.advance("5m10s")
        self.assertEqual(status().available_replicas, 2)

    def test_a_request_for_a_certificate(self):
        certificates = client.CertificatesV1Api()
        with open(f"{os.path.dirname(__file__)}/../../../docs/src/certificate-request.yaml") as file:
            request = yaml.safe_load(file)
        certificates.create_certificate_signing_request(request)
        approved = {"type": "Approved", "status": "True", "reason": "Test", "message": "approved by a test"}
        certificates.patch_certificate_signing_request_approval("jane", {"status": {"conditions": [approved]}})
        eventually(lambda: certificates.read_certificate_signing_request("jane").status.certificate)
        self.advance("61m")
        with self.assertRaises(ApiException) as caught:
            certificates.read_certificate_signing_request("jane")
        self.assertEqual(caught.exception.status, 404)


if __name__ == "__main__":
    unittest.main(verbosity=2)
