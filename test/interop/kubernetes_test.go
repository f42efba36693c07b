package interop

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// strict decodes an object, which may have no unknown and no repeated fields.
func strict[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return v
}

// TestKubernetes checks the example against the schemas of Kubernetes, and that its parts fit together.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../packaging/kubernetes/codex-mcp.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config core.ConfigMap
	var service core.Service
	var deployment apps.Deployment
	var claim core.PersistentVolumeClaim
	for object := range strings.SplitSeq(string(text), "\n---\n") {
		var about meta.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(object), &about); err != nil {
			t.Fatal(err)
		}
		if about.Kind != "Namespace" && about.Namespace != "codex-mcp" {
			t.Errorf("%s is in the namespace %q", about.Kind, about.Namespace)
		}
		switch about.APIVersion + " " + about.Kind {
		case "v1 Namespace":
			strict[core.Namespace](t, object)
		case "v1 ConfigMap":
			config = strict[core.ConfigMap](t, object)
		case "v1 Service":
			service = strict[core.Service](t, object)
		case "apps/v1 Deployment":
			deployment = strict[apps.Deployment](t, object)
		case "v1 PersistentVolumeClaim":
			claim = strict[core.PersistentVolumeClaim](t, object)
		default:
			t.Fatalf("no schema for %s %s", about.APIVersion, about.Kind)
		}
	}
	for name, file := range config.Data {
		var any map[string]any
		if err := toml.Unmarshal([]byte(file), &any); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	pod := deployment.Spec.Template
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) || !labels.SelectorFromSet(deployment.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
		t.Errorf("the selectors do not find the pod: %v", pod.Labels)
	}
	container := pod.Spec.Containers[0]
	if !slices.ContainsFunc(container.Ports, func(p core.ContainerPort) bool { return p.Name == service.Spec.Ports[0].TargetPort.String() }) {
		t.Errorf("the service has no port of the pod: %v", container.Ports)
	}
	for _, m := range container.VolumeMounts {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("no volume for %s", m.MountPath)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap != nil && v.ConfigMap.Name != config.Name || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName != claim.Name {
			t.Errorf("the volume %s is of nothing", v.Name)
		}
	}
}
