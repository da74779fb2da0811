package clients

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// copier keeps a secret with the content of each labelled config map, and owns it.
type copier struct{ client.Client }

func (c copier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var from corev1.ConfigMap
	if err := c.Get(ctx, request.NamespacedName, &from); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if from.Labels["copy"] == "" {
		return ctrl.Result{}, nil
	}
	to := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: from.Name, Namespace: from.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.Client, to, func() error {
		to.StringData = from.Data
		return controllerutil.SetControllerReference(&from, to, c.Scheme())
	})
	return ctrl.Result{}, err
}

// A manager as kubebuilder makes it: cached client, leader election, a controller that owns objects, a webhook.
func TestManagerWithWebhook(t *testing.T) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	config, _, namespace := connect(t)
	directory, authority := certificates(t)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "copier",
		LeaderElectionNamespace: namespace,
		WebhookServer:           webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: freePort(t), CertDir: directory}),
	})
	must(t, err)
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(copier{manager.GetClient()})
	must(t, err)
	server := manager.GetWebhookServer()
	server.Register("/check", &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		if strings.Contains(string(request.Object.Raw), "forbidden-word") {
			return admission.Denied("it has the word")
		}
		return admission.Allowed("")
	})})
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- manager.Start(ctx) }()
	defer func() {
		cancel()
		must(t, <-stopped)
	}()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache is not filled")
	}
	direct, err := client.New(config, client.Options{})
	must(t, err)
	eventually(t, func() error { return server.StartedChecker()(nil) })
	register(t, direct, namespace, authority, server.(*webhook.DefaultServer).Options.Port)

	one := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: namespace, Labels: map[string]string{"copy": "yes"}},
		Data:       map[string]string{"k": "v"},
	}
	must(t, direct.Create(ctx, one))
	var copied corev1.Secret
	eventually(t, func() error { return direct.Get(ctx, client.ObjectKeyFromObject(one), &copied) })
	if string(copied.Data["k"]) != "v" {
		t.Errorf("copied: %v", copied.Data)
	}
	bad := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "bad", Namespace: namespace},
		Data:       map[string]string{"k": "forbidden-word"},
	}
	err = direct.Create(ctx, bad)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "it has the word") {
		t.Errorf("the webhook says nothing: %v", err)
	}
	// What was removed by hand comes back; what is owned goes with its owner.
	must(t, direct.Delete(ctx, &copied))
	eventually(t, func() error { return direct.Get(ctx, client.ObjectKeyFromObject(one), &copied) })
	must(t, direct.Delete(ctx, one))
	eventually(t, func() error {
		err := direct.Get(ctx, client.ObjectKeyFromObject(one), &copied)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the secret is still there: %v", err)
	})
}

func register(t *testing.T, direct client.Client, namespace string, authority []byte, port int) {
	address := fmt.Sprintf("https://127.0.0.1:%d/check", port)
	none, fail := admissionv1.SideEffectClassNone, admissionv1.Fail
	configuration := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "check.seatrial.test", SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionv1.WebhookClientConfig{URL: &address, CABundle: authority},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	must(t, direct.Create(t.Context(), configuration))
	t.Cleanup(func() {
		if err := direct.Delete(context.Background(), configuration); err != nil {
			t.Errorf("delete the webhook: %v", err)
		}
	})
}

func freePort(t *testing.T) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// certificates makes a self-signed certificate for loopback; it is its own authority.
func certificates(t *testing.T) (directory string, authority []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	directory = t.TempDir()
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must(t, os.WriteFile(filepath.Join(directory, "tls.crt"), authority, 0o600))
	text := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})
	must(t, os.WriteFile(filepath.Join(directory, "tls.key"), text, 0o600))
	return directory, authority
}
