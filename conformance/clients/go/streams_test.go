package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

func TestLogs(t *testing.T) {
	_, client, namespace := connect(t)
	script := "echo one; echo two; sleep 1; echo three"
	pod := runningPod(t, client, namespace, corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "c", Image: "busybox", Command: []string{"sh", "-c", script}}},
	})
	stream, err := client.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	must(t, err)
	defer stream.Close()
	text, err := io.ReadAll(stream)
	must(t, err)
	if string(text) != "one\ntwo\nthree\n" {
		t.Errorf("read %q", text)
	}
}

// Both ways in which Go's clients run commands: over WebSockets and over SPDY.
func TestCommands(t *testing.T) {
	config, client, namespace := connect(t)
	pod := runningPod(t, client, namespace, corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "nginx"}},
	})
	overWebSocket := func(target *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(config, "GET", target.String())
	}
	overSPDY := func(target *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewSPDYExecutor(config, "POST", target)
	}
	for name, connect := range map[string]func(*url.URL) (remotecommand.Executor, error){"websocket": overWebSocket, "spdy": overSPDY} {
		t.Run(name, func(t *testing.T) {
			run := func(input io.Reader, argv ...string) (string, string, error) {
				options := &corev1.PodExecOptions{Command: argv, Stdin: input != nil, Stdout: true, Stderr: true}
				executor, err := connect(execURL(client, pod, options))
				must(t, err)
				var out, complaints bytes.Buffer
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stdout: &out, Stderr: &complaints})
				return out.String(), complaints.String(), err
			}
			out, _, err := run(nil, "echo", "hello")
			if out != "hello\n" || err != nil {
				t.Errorf("echo: %q, %v", out, err)
			}
			long := strings.Repeat("0123456789\n", 50_000)
			out, _, err = run(strings.NewReader(long), "cat")
			if out != long || err != nil {
				t.Errorf("cat: %d of %d bytes, %v", len(out), len(long), err)
			}
			_, complaints, err := run(nil, "sh", "-c", "echo no >&2; exit 7")
			var code exec.CodeExitError
			if complaints != "no\n" || !errors.As(err, &code) || code.Code != 7 {
				t.Errorf("exit: %q, %v", complaints, err)
			}
		})
	}
}

func execURL(client *kubernetes.Clientset, pod *corev1.Pod, options *corev1.PodExecOptions) *url.URL {
	request := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec")
	return request.VersionedParams(options, scheme.ParameterCodec).URL()
}

// Ports over SPDY, and over SPDY within a WebSocket.
func TestPortForward(t *testing.T) {
	config, client, namespace := connect(t)
	pod := runningPod(t, client, namespace, corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "nginx", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
	})
	target := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod.Name).SubResource("portforward").URL()
	for _, tunnel := range []bool{false, true} {
		t.Run(fmt.Sprintf("tunnel=%v", tunnel), func(t *testing.T) {
			forward(t, config, target, tunnel, namespace+"/"+pod.Name)
		})
	}
}

func forward(t *testing.T, config *rest.Config, target *url.URL, tunnel bool, expected string) {
	roundTripper, upgrader, err := spdy.RoundTripperFor(config)
	must(t, err)
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: roundTripper}, "POST", target)
	if tunnel {
		dialer, err = portforward.NewSPDYOverWebsocketDialer(target, config)
		must(t, err)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	defer close(stop)
	forwarder, err := portforward.New(dialer, []string{"0:80"}, stop, ready, io.Discard, io.Discard)
	must(t, err)
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		t.Fatalf("forward: %v", err)
	}
	ports, err := forwarder.GetPorts()
	must(t, err)
	for range 5 {
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/path", ports[0].Local))
		must(t, err)
		text, err := io.ReadAll(response.Body)
		must(t, err)
		response.Body.Close()
		if response.StatusCode != 200 || !strings.Contains(string(text), expected) {
			t.Errorf("answered %d: %q", response.StatusCode, text)
		}
	}
}
