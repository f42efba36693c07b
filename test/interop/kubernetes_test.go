package interop

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/certtest"
	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// example is packaging/kubernetes/codex-mcp.yml.
type example struct {
	t       *testing.T
	text    string
	config  map[string]string               // files by name
	pods    map[string]core.PodTemplateSpec // by workload; those of the chart of NATS have only labels
	selects map[string]labels.Selector      // by object, with the ports of a policy
	ports   map[string]string               // of each Service and policy
	claims  []string                        // volumes that exist, or that a StatefulSet makes
}

func readExample(t *testing.T) *example {
	t.Helper()
	text, err := os.ReadFile("../../packaging/kubernetes/codex-mcp.yml")
	if err != nil {
		t.Fatal(err)
	}
	nats := core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/name": "nats", "app.kubernetes.io/component": "nats"}}}
	e := &example{t: t, text: string(text), pods: map[string]core.PodTemplateSpec{"nats": nats}, selects: map[string]labels.Selector{}, ports: map[string]string{}}
	for object := range strings.SplitSeq(e.text, "\n---\n") {
		e.add([]byte(object))
	}
	return e
}

// strict decodes an object, which may have no unknown and no repeated fields.
func strict[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	if err := yaml.UnmarshalStrict(text, &v); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return v
}

func (e *example) add(text []byte) {
	var about meta.PartialObjectMetadata
	if err := yaml.Unmarshal(text, &about); err != nil {
		e.t.Fatal(err)
	}
	id := about.Kind + " " + about.Name
	if about.Kind != "Namespace" && about.Namespace != "codex-mcp" {
		e.t.Errorf("%s is in the namespace %q", id, about.Namespace)
	}
	selects := func(key string, s *meta.LabelSelector) {
		selector, err := meta.LabelSelectorAsSelector(s)
		if err != nil {
			e.t.Errorf("%s: %v", key, err)
		}
		e.selects[key] = selector
	}
	switch about.APIVersion + " " + about.Kind {
	case "v1 Namespace":
		strict[core.Namespace](e.t, text)
	case "v1 ConfigMap":
		e.config = strict[core.ConfigMap](e.t, text).Data
	case "v1 PersistentVolumeClaim":
		e.claims = append(e.claims, strict[core.PersistentVolumeClaim](e.t, text).Name)
	case "v1 Service":
		s := strict[core.Service](e.t, text)
		e.selects[id] = labels.SelectorFromSet(s.Spec.Selector)
		for _, p := range s.Spec.Ports {
			e.ports[id] += fmt.Sprint(p.Port, p.TargetPort.String())
		}
	case "apps/v1 Deployment":
		d := strict[apps.Deployment](e.t, text)
		e.pods[d.Name] = d.Spec.Template
		selects(id, d.Spec.Selector)
	case "apps/v1 StatefulSet":
		s := strict[apps.StatefulSet](e.t, text)
		e.pods[s.Name] = s.Spec.Template
		selects(id, s.Spec.Selector)
		selects("Service "+s.Spec.ServiceName+" of the "+id, s.Spec.Selector)
		for _, c := range s.Spec.VolumeClaimTemplates {
			e.claims = append(e.claims, c.Name)
		}
	case "policy/v1 PodDisruptionBudget":
		selects(id, strict[policy.PodDisruptionBudget](e.t, text).Spec.Selector)
	case "networking.k8s.io/v1 NetworkPolicy":
		p := strict[networking.NetworkPolicy](e.t, text)
		selects(id, &p.Spec.PodSelector)
		for _, in := range p.Spec.Ingress {
			for _, from := range in.From {
				selects(id+" from, to "+in.Ports[0].Port.String(), from.PodSelector)
			}
		}
	default:
		e.t.Fatalf("no schema for %s %s", about.APIVersion, about.Kind)
	}
}

// TestKubernetes checks the example against the schemas of Kubernetes, and that its parts fit together.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	e := readExample(t)
	got := map[string][]string{}
	for object, selector := range e.selects {
		for _, name := range slices.Sorted(maps.Keys(e.pods)) {
			if selector.Matches(labels.Set(e.pods[name].Labels)) {
				got[object] = append(got[object], name)
			}
		}
	}
	front, node := []string{"codex-mcp-front"}, []string{"codex-mcp-node"}
	if diff := cmp.Diff(map[string][]string{
		"Deployment codex-mcp-front": front, "PodDisruptionBudget codex-mcp-front": front, "Service codex-mcp": front,
		"StatefulSet codex-mcp-node": node, "PodDisruptionBudget codex-mcp-node": node, "Service codex-mcp-node": node,
		"Service codex-mcp-node of the StatefulSet codex-mcp-node": node,
		"NetworkPolicy codex-mcp-node":                             node, "NetworkPolicy codex-mcp-node from, to 4520": front,
		"NetworkPolicy nats": {"nats"}, "NetworkPolicy nats from, to 4222": {"codex-mcp-front", "codex-mcp-node"}, "NetworkPolicy nats from, to 6222": {"nats"},
	}, got); diff != "" {
		t.Errorf("the pods of each object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"Service codex-mcp": "443https", "Service codex-mcp-node": "45200"}, e.ports); diff != "" {
		t.Errorf("the ports of services (-want +got):\n%s", diff)
	}
	var shared struct {
		Drain struct{ Timeout string }
	}
	if err := toml.Unmarshal([]byte(e.config["codex-mcp.toml"]), &shared); err != nil {
		t.Fatal(err)
	}
	drain, err := time.ParseDuration(shared.Drain.Timeout)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(front, node) {
		pod := e.pods[name].Spec
		if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= drain {
			t.Errorf("%s is killed after %v, while it drains for %v", name, grace, drain)
		}
		if *pod.AutomountServiceAccountToken || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != 10001 {
			t.Errorf("%s: its token or its user", name)
		}
		c := pod.Containers[0]
		if proc := c.SecurityContext.ProcMount; (proc != nil && *proc == core.UnmaskedProcMount) != (pod.HostUsers != nil && !*pod.HostUsers) {
			t.Errorf("%s: the API refuses procMount: Unmasked without hostUsers: false", name)
		}
		ports := map[string]int32{}
		for _, p := range c.Ports {
			ports[p.Name] = p.ContainerPort
		}
		for path, probe := range map[string]*core.Probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe} {
			get := probe.HTTPGet
			if get.Path != path || get.Scheme != core.URISchemeHTTPS || !slices.Contains(c.Args, fmt.Sprintf("--listen=0.0.0.0:%d", ports[get.Port.String()])) {
				t.Errorf("%s: the probe %+v does not fit %q", name, get, c.Args)
			}
		}
		if address := fmt.Sprintf("--config=link.address=$(POD_NAME).codex-mcp-node.codex-mcp.svc:%d", ports["link"]); name == node[0] && (ports["link"] != 4520 || !slices.Contains(c.Args, address)) {
			t.Errorf("%s: %q lacks %s", name, c.Args, address)
		}
	}
}

// TestKubernetesStarts starts a front and a node as the example does, beside NATS with TLS. The files are where the volumes put them,
// the addresses are on loopback. A request of the example's user goes through both.
func TestKubernetesStarts(t *testing.T) {
	t.Parallel()
	bin, err := gateway()
	if err != nil {
		t.Fatal(err)
	}
	server, err := build("nats-server", "../../codexserver/gateway", "github.com/nats-io/nats-server/v2")
	if err != nil {
		t.Fatal(err)
	}
	token, err := exec.Command(bin, "--new-token", "ann").Output()
	if err != nil {
		t.Fatal(err)
	}
	hash := regexp.MustCompile("sha256:[0-9a-f]{64}")
	e := readExample(t)
	e.config["codex-mcp.toml"] = hash.ReplaceAllString(e.config["codex-mcp.toml"], string(hash.Find(token)))
	secrets, ca := e.secrets()

	dir, err := os.MkdirTemp(scratch, "k") // which goes after the processes
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range secrets["codex-mcp-service"] {
		put(t, filepath.Join(dir, name), text)
	}
	put(t, filepath.Join(dir, "nats.conf"), []byte(`listen: "127.0.0.1:-1", jetstream { store_dir: store }
tls { cert_file: gateway.pem, key_file: gateway.key, ca_file: ca.pem, verify: true }`))
	nats := start(t, []string{"env", "-C", dir, server, "-c", "nats.conf"}, nil, stderrOf, "Listening for client connections on ")

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca}}}
	t.Cleanup(client.CloseIdleConnections)
	url := ""
	for _, of := range []struct{ name, begins string }{{"codex-mcp-node", "health at "}, {"codex-mcp-front", "serving MCP at "}} {
		pod := e.pods[of.name].Spec
		root := filepath.Join(dir, of.name)
		local := strings.NewReplacer(
			"/etc/codex-mcp", root+"/etc/codex-mcp", "/srv/codex", root+"/srv/codex", "nats.codex-mcp.svc:4222", nats, "--listen=0.0.0.0:4517", "--listen=127.0.0.1:0",
			"--listen=0.0.0.0:4519", "--listen=127.0.0.1:0", "codex-mcp-node-0.codex-mcp-node.codex-mcp.svc:4520", "127.0.0.1:0",
		)
		e.mount(root, pod, secrets, local)
		before := files(t, root)
		env := map[string]string{"PATH": "/usr/bin:/bin", "CODEX_HOME": "/etc/codex-mcp"} // the latter is that of the image
		for _, v := range pod.Containers[0].Env {
			switch {
			case v.ValueFrom == nil:
				env[v.Name] = v.Value
			case v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "metadata.name":
				env[v.Name] = of.name + "-0"
			default:
				ref := v.ValueFrom.SecretKeyRef
				env[v.Name] = string(secrets[ref.Name][ref.Key])
			}
			if env[v.Name] == "" {
				t.Errorf("%s: %s has no value", of.name, v.Name)
			}
		}
		argv, words := []string{bin}, []string{}
		for _, arg := range pod.Containers[0].Args {
			for name, value := range env {
				arg = strings.ReplaceAll(arg, "$("+name+")", value)
			}
			argv = append(argv, local.Replace(arg))
		}
		for name, value := range env {
			words = append(words, name+"="+local.Replace(value))
		}
		line := start(t, argv, words, stderrOf, of.begins)
		url, _, _ = strings.Cut(line, ";")
		for _, path := range []string{"/readyz", "/healthz"} {
			answer, err := client.Get(regexp.MustCompile("/(healthz|mcp)$").ReplaceAllString(url, path))
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s: %s", of.name, path, answer.Status)
			}
		}
		if diff := cmp.Diff(before, files(t, root)); diff != "" {
			t.Errorf("%s writes where it cannot:\n%s", of.name, diff)
		}
	}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(hello))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "codex.example.com"
	first, _, _ := bytes.Cut(token, []byte("\n"))
	for name, value := range map[string]string{"Authorization": "Bearer " + string(first), "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
		request.Header.Set(name, value)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"serverInfo"`)) {
		t.Errorf("a request through both: %s, %v\n%s", answer.Status, err, body)
	}
}

func stderrOf(cmd *exec.Cmd) (io.ReadCloser, error) { return cmd.StderrPipe() }

// secrets returns the Secrets that the comments of the example make, with their files, and the authority of all certificates.
func (e *example) secrets() (secrets map[string]map[string][]byte, ca *x509.CertPool) {
	cert, key := certtest.New(e.t, "gateway.example.com")
	ca = x509.NewCertPool()
	ca.AppendCertsFromPEM(cert)
	secrets = map[string]map[string][]byte{}
	for _, line := range regexp.MustCompile(`(?m)^# - kubectl create secret (generic|tls) (\S+) (.*)$`).FindAllStringSubmatch(e.text, -1) {
		files := map[string][]byte{}
		for word := range strings.FieldsSeq(line[3]) {
			from, value, _ := strings.Cut(word, "=")
			switch {
			case from == "--from-file" && strings.HasSuffix(value, ".key"), from == "--key":
				files[map[bool]string{true: "tls.key", false: value}[from == "--key"]] = key
			case from == "--from-file", from == "--cert":
				files[map[bool]string{true: "tls.crt", false: value}[from == "--cert"]] = cert
			case from == "--from-literal":
				name, text, _ := strings.Cut(value, "=")
				files[name] = []byte(text)
			default:
				e.t.Errorf("%s: %s", line[0], word)
			}
		}
		secrets[line[2]] = files
	}
	return secrets, ca
}

// mount puts the files of the volumes of a pod below root, as the kubelet does.
func (e *example) mount(root string, pod core.PodSpec, secrets map[string]map[string][]byte, local *strings.Replacer) {
	volumes := map[string]core.VolumeSource{}
	for _, name := range e.claims {
		volumes[name] = core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}
	}
	for _, v := range pod.Volumes {
		if claim := v.PersistentVolumeClaim; claim != nil && !slices.Contains(e.claims, claim.ClaimName) {
			e.t.Errorf("there is no volume %s", claim.ClaimName)
		}
		volumes[v.Name] = v.VolumeSource
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		v, ok := volumes[m.Name]
		at, files := filepath.Join(root, m.MountPath), map[string][]byte{}
		if err := os.MkdirAll(at, 0o700); err != nil {
			e.t.Fatal(err)
		}
		switch {
		case v.ConfigMap != nil:
			for name, text := range e.config {
				files[name] = []byte(local.Replace(text))
			}
		case v.Secret != nil:
			files, ok = secrets[v.Secret.SecretName]
		case m.Name == "folders":
			put(e.t, filepath.Join(at, "ann", "README"), nil) // in the folder of the user
		}
		if !ok {
			e.t.Errorf("nothing makes the volume %s, or its secret", m.Name)
		}
		for name, text := range files {
			put(e.t, filepath.Join(at, "..now", name), text)
			if err := os.Symlink(filepath.Join("..now", name), filepath.Join(at, name)); err != nil {
				e.t.Fatal(err)
			}
		}
	}
}

// put writes a file in a folder that it makes.
func put(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// files lists the files below root that are not in a writable volume.
func files(t *testing.T, root string) (list []string) {
	t.Helper()
	if err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if d.IsDir() && (strings.HasSuffix(file, "/etc/codex-mcp/codex-mcp") || strings.HasSuffix(file, "/srv/codex")) {
			return fs.SkipDir
		}
		list = append(list, file)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return list
}
