package clients

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// Typed objects go over the wire as protobuf, or as JSON.
func TestTypedObjects(t *testing.T) {
	for _, content := range []string{"application/vnd.kubernetes.protobuf", "application/json"} {
		t.Run(content, func(t *testing.T) {
			config, _, namespace := connect(t)
			config = rest.CopyConfig(config)
			config.ContentType, config.AcceptContentTypes = content, content+",application/json"
			client, err := kubernetes.NewForConfig(config)
			must(t, err)
			maps := client.CoreV1().ConfigMaps(namespace)
			watch, err := maps.Watch(t.Context(), metav1.ListOptions{})
			must(t, err)
			defer watch.Stop()

			one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"a": "1"}}
			made, err := maps.Create(t.Context(), one, metav1.CreateOptions{})
			must(t, err)
			if made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() {
				t.Errorf("not filled in: %+v", made.ObjectMeta)
			}
			_, err = maps.Create(t.Context(), one, metav1.CreateOptions{})
			if !errors.IsAlreadyExists(err) {
				t.Errorf("a second one: %v", err)
			}
			stale := made.DeepCopy()
			made.Data["a"] = "2"
			made, err = maps.Update(t.Context(), made, metav1.UpdateOptions{})
			must(t, err)
			_, err = maps.Update(t.Context(), stale, metav1.UpdateOptions{})
			if !errors.IsConflict(err) {
				t.Errorf("an update over a newer version: %v", err)
			}
			patch := []byte(`{"data":{"b":"3"}}`)
			made, err = maps.Patch(t.Context(), "one", types.MergePatchType, patch, metav1.PatchOptions{})
			must(t, err)
			if made.Data["a"] != "2" || made.Data["b"] != "3" {
				t.Errorf("patched into %v", made.Data)
			}
			must(t, maps.Delete(t.Context(), "one", metav1.DeleteOptions{}))
			_, err = maps.Get(t.Context(), "one", metav1.GetOptions{})
			if !errors.IsNotFound(err) {
				t.Errorf("a deleted one: %v", err)
			}
			seen := ""
			for event := range watch.ResultChan() {
				if object, ok := event.Object.(*corev1.ConfigMap); ok && object.Name == "one" {
					seen += string(event.Type) + " "
				}
				if event.Type == "DELETED" {
					break
				}
			}
			if seen != "ADDED MODIFIED MODIFIED DELETED " {
				t.Errorf("watched %q", seen)
			}
		})
	}
}

func TestPagesOfALongList(t *testing.T) {
	_, client, namespace := connect(t)
	secrets := client.CoreV1().Secrets(namespace)
	for index := range 25 {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%02d", index)}}
		_, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{})
		must(t, err)
	}
	count, pages := 0, 0
	options := metav1.ListOptions{Limit: 10}
	for {
		list, err := secrets.List(t.Context(), options)
		must(t, err)
		count, pages = count+len(list.Items), pages+1
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	if count != 25 || pages != 3 {
		t.Errorf("%d objects on %d pages", count, pages)
	}
}

func TestServerSideApply(t *testing.T) {
	_, client, namespace := connect(t)
	maps := client.CoreV1().ConfigMaps(namespace)
	ours := applyv1.ConfigMap("m", namespace).WithData(map[string]string{"a": "1"})
	_, err := maps.Apply(t.Context(), ours, metav1.ApplyOptions{FieldManager: "ours"})
	must(t, err)
	theirs := applyv1.ConfigMap("m", namespace).WithData(map[string]string{"a": "2", "b": "1"})
	_, err = maps.Apply(t.Context(), theirs, metav1.ApplyOptions{FieldManager: "theirs"})
	if !errors.IsConflict(err) {
		t.Fatalf("a field of another manager: %v", err)
	}
	made, err := maps.Apply(t.Context(), theirs, metav1.ApplyOptions{FieldManager: "theirs", Force: true})
	must(t, err)
	if made.Data["a"] != "2" || len(made.ManagedFields) != 1 {
		t.Errorf("applied: %v, %v", made.Data, made.ManagedFields)
	}
	extracted, err := applyv1.ExtractConfigMap(made, "theirs")
	must(t, err)
	if extracted.Data["b"] != "1" {
		t.Errorf("extracted: %v", extracted.Data)
	}
}

// Informers begin with a stream of what is there, or with a list, and go on with a watch.
func TestInformers(t *testing.T) {
	_, client, namespace := connect(t)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	pods := factory.Core().V1().Pods()
	sets := factory.Apps().V1().ReplicaSets()
	pods.Informer()
	sets.Informer()
	factory.Start(t.Context().Done())
	for kind, synced := range factory.WaitForCacheSync(t.Context().Done()) {
		if !synced {
			t.Fatalf("no %v", kind)
		}
	}
	three := int32(3)
	app := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &three, Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1.27"}}},
			},
		},
	}
	deployments := client.AppsV1().Deployments(namespace)
	_, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{})
	must(t, err)
	ready := func() error {
		list, err := pods.Lister().Pods(namespace).List(labels.SelectorFromSet(app))
		if err != nil {
			return err
		}
		count := 0
		for _, pod := range list {
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					count++
				}
			}
		}
		if count != 3 || len(list) != 3 {
			return fmt.Errorf("%d of %d pods are ready", count, len(list))
		}
		return nil
	}
	eventually(t, ready)
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
		_, err = deployments.Update(t.Context(), current, metav1.UpdateOptions{})
		return err
	})
	must(t, err)
	eventually(t, func() error {
		list, err := sets.Lister().ReplicaSets(namespace).List(labels.Everything())
		if err != nil {
			return err
		}
		if len(list) != 2 {
			return fmt.Errorf("%d replica sets", len(list))
		}
		return ready()
	})
}

func TestDynamicClientAndInformer(t *testing.T) {
	config, _, namespace := connect(t)
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	services := schema.GroupVersionResource{Version: "v1", Resource: "services"}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, time.Minute, namespace, nil)
	lister := factory.ForResource(services).Lister()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "s"},
		"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}},
	}}
	made, err := client.Resource(services).Namespace(namespace).Create(t.Context(), service, metav1.CreateOptions{})
	must(t, err)
	if ip, _, _ := unstructured.NestedString(made.Object, "spec", "clusterIP"); ip == "" {
		t.Error("the service has no address")
	}
	eventually(t, func() error {
		_, err := lister.ByNamespace(namespace).Get("s")
		return err
	})
	apply := metav1.ApplyOptions{FieldManager: "go", Force: true}
	service.SetLabels(map[string]string{"a": "b"})
	_, err = client.Resource(services).Namespace(namespace).Apply(t.Context(), "s", service, apply)
	must(t, err)
}
