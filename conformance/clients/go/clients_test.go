// Package clients drives a served cluster with the clients that controllers in Go use.
//
// KUBECONFIG names the cluster; conformance/clients/run starts one and sets it.
package clients

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 30 * time.Second

// connect gives a configuration and a namespace of the test's own, which goes with it.
func connect(t *testing.T) (*rest.Config, *kubernetes.Clientset, string) {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Fatal("KUBECONFIG is not set: start conformance/clients/run")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	config.QPS, config.Burst = 1000, 1000
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "go-"}}
	namespace, err = client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		err := client.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{})
		if err != nil && !errors.IsNotFound(err) {
			t.Errorf("delete the namespace: %v", err)
		}
	})
	return config, client, namespace.Name
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition holds; what it returns is told if it never does.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// runningPod creates a pod and waits until it runs.
func runningPod(t *testing.T, client kubernetes.Interface, namespace string, spec corev1.PodSpec) *corev1.Pod {
	t.Helper()
	pods := client.CoreV1().Pods(namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"}, Spec: spec}
	pod, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	eventually(t, func() error {
		pod, err = pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("the pod is %s", pod.Status.Phase)
		}
		return nil
	})
	return pod
}
