"""An operator written with kopf runs beside a served cluster, and answers its webhook as the pod of a Service: the pod's annotation
says that it stands for a port of this machine. KUBECONFIG names the cluster."""

import base64
import os
import socket
import subprocess
import sys
import tempfile
import unittest

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from test_clients import eventually

OPERATOR = """
import os, kopf

@kopf.on.startup()
def serve(settings, **_):
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1", port=int(os.environ["PORT"]), certfile="cert.pem", pkeyfile="key.pem", host=os.environ["NAME"])

@kopf.on.validate("configmaps", id="check")
def check(body, **_):
    if "bad" in body.get("data", {}):
        raise kopf.AdmissionError("kopf says no")
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Webhook(unittest.TestCase):
    def setUp(self):
        config.load_kube_config()
        self.core, self.admission = client.CoreV1Api(), client.AdmissionregistrationV1Api()
        self.namespace = self.core.create_namespace({"metadata": {"generateName": "kopf-"}}).metadata.name
        self.name, self.port = f"hooks.{self.namespace}.svc", free_port()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
             "-subj", "/CN=hooks", "-addext", f"subjectAltName=DNS:{self.name}", "-keyout", "key.pem", "-out", "cert.pem"],
            cwd=self.folder, check=True, stderr=subprocess.DEVNULL)
        with open(f"{self.folder}/webhooks.py", "w") as file:
            file.write(OPERATOR)
        environment = {**os.environ, "PORT": str(self.port), "NAME": self.name, "KUBECONFIG": os.path.abspath(os.environ["KUBECONFIG"])}
        command = [sys.executable, "-m", "kopf", "run", "webhooks.py", "--namespace", self.namespace]
        operator = subprocess.Popen(command, cwd=self.folder, env=environment, stderr=subprocess.DEVNULL)
        self.addCleanup(operator.wait)
        self.addCleanup(operator.terminate)

    def tearDown(self):
        self.admission.delete_validating_webhook_configuration(self.namespace)
        self.core.delete_namespace(self.namespace)

    def install(self):
        probe = {"tcpSocket": {"port": 443}, "periodSeconds": 1}
        self.core.create_namespaced_pod(self.namespace, {
            "metadata": {"name": "operator", "labels": {"app": "operator"},
                         "annotations": {"network.fake-apiserver/dial": f"127.0.0.1:{self.port}"}},
            "spec": {"containers": [{"name": "c", "image": "example.com/operator", "readinessProbe": probe}]},
        })
        self.core.create_namespaced_service(self.namespace, {
            "metadata": {"name": "hooks"}, "spec": {"selector": {"app": "operator"}, "ports": [{"port": 443}]}})
        with open(f"{self.folder}/cert.pem", "rb") as file:
            bundle = base64.b64encode(file.read()).decode()
        service = {"name": "hooks", "namespace": self.namespace, "path": "/check"}
        self.admission.create_validating_webhook_configuration({
            "metadata": {"name": self.namespace},
            "webhooks": [{
                "name": "check.kopf.dev", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"caBundle": bundle, "service": service},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            }],
        })

    def make(self, name, data):
        try:
            self.core.create_namespaced_config_map(self.namespace, {"metadata": {"name": name}, "data": data})
        except ApiException as refusal:
            return refusal.body
        return "made"

    def test_a_webhook_answers_from_a_pod(self):
        self.install()
        # The pod is ready once the operator listens.
        self.assertIn("no endpoints available", self.make("early", {}))
        ready = lambda pod: any(status.ready for status in pod.status.container_statuses or [])
        eventually(lambda: ready(self.core.read_namespaced_pod("operator", self.namespace)))
        eventually(lambda: self.make("good", {"a": "b"}) == "made")
        self.assertIn("denied the request: kopf says no", self.make("bad", {"bad": "yes"}))


if __name__ == "__main__":
    unittest.main(verbosity=2)
