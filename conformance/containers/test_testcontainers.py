"""Starts the image of fake-apiserver with testcontainers for Python, and talks to the cluster with the Python client."""
import os
import unittest

import yaml
from kubernetes import client, config
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

IMAGE = os.environ["FAKE_APISERVER_IMAGE"]
PORT = 6443


class Cluster(DockerContainer):
    """A served cluster in a container."""

    def __init__(self, image=IMAGE):
        super().__init__(image)
        self.with_exposed_ports(PORT)
        self.waiting_for(LogMessageWaitStrategy("export KUBECONFIG="))

    def kubeconfig(self):
        """The container's kubeconfig, with the address at which this machine reaches its port."""
        stream, _ = self.get_wrapped_container().get_archive("/kubeconfig/admin.conf")
        read = yaml.safe_load(untar(b"".join(stream)))
        for cluster in read["clusters"]:
            cluster["cluster"]["server"] = f"https://127.0.0.1:{self.get_exposed_port(PORT)}"
        return read


def untar(archive):
    import io
    import tarfile

    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return files.extractfile(files.next()).read()


class Test(unittest.TestCase):
    def test_a_deployment_becomes_ready(self):
        with Cluster() as cluster:
            config.load_kube_config_from_dict(cluster.kubeconfig())
            labels = {"app": "web"}
            body = {
                "metadata": {"name": "web"},
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}},
                },
            }
            apps = client.AppsV1Api()
            apps.create_namespaced_deployment("default", body)
            from kubernetes import watch

            watcher = watch.Watch()
            for event in watcher.stream(apps.list_namespaced_deployment, "default", timeout_seconds=60):
                if event["object"].status.ready_replicas == 2:
                    watcher.stop()
            self.assertEqual(apps.read_namespaced_deployment("web", "default").status.ready_replicas, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
