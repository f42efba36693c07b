package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func loadService(t *testing.T, text string) (settings.Service, error) {
	t.Helper()
	home := t.TempDir()
	if text != "" {
		must.OK(t, os.WriteFile(filepath.Join(home, settings.ServiceFile), []byte(text), 0o600))
	}
	return settings.LoadService(home)
}

// TestService reads settings from the file.
func TestService(t *testing.T) {
	got, err := loadService(t, `
[nats]
url = "nats://127.0.0.1:4222, tls://nats.example.com"
credentials = "/etc/nats.creds"
ca = "/etc/ca"
cert = "/etc/cert"
key = "/etc/key"
roles = ["front"]
replicas = 3
lease = "3s"
[link]
address = "a.example.com:4520"
[node]
name = "a"
`)
	want := settings.Service{
		NATS: settings.NATS{
			URL: "nats://127.0.0.1:4222, tls://nats.example.com", Credentials: "/etc/nats.creds", CA: "/etc/ca", Cert: "/etc/cert", Key: "/etc/key",
			Roles: []string{"front"}, Replicas: 3, Lease: config.Duration(3 * time.Second),
		},
		Link: settings.Link{Address: "a.example.com:4520", Listen: ":4520", CA: "/etc/ca", Cert: "/etc/cert", Key: "/etc/key"},
		Node: settings.Node{Name: "a"},
	}
	must.OK(t, err)
	must.Equal(t, "the settings", want, got)
	must.Equal(t, "the hidden files", []string{"/etc/nats.creds", "/etc/key"}, got.Files())
	alone, err := loadService(t, "")
	if err != nil || alone.NATS.URL != "" || time.Duration(alone.NATS.Lease) != 15*time.Second || !alone.NATS.Has(settings.RoleFront) || !alone.NATS.Has(settings.RoleNode) || settings.CheckPrincipalName(alone.Node.Name) != nil {
		t.Errorf("without a file: %+v, %v", alone, err)
	}
}

// TestForWorkers checks which arguments workers get, in each way to write a key: no hash of a token, and no password of NATS.
func TestForWorkers(t *testing.T) {
	got, err := settings.ForWorkers([]string{"-", "model=x", "http.hosts=[]", " http .principals={}", "'http'={}", `"http".hosts=[]`, "httpx.a=1", `"a.http".b=1`, "a.http=1", `"http`})
	must.OK(t, err)
	must.Equal(t, "the arguments", []string{"-", "model=x", "httpx.a=1", `"a.http".b=1`, "a.http=1"}, got)
	for _, arg := range []string{"nats.url=nats://u:p@127.0.0.1", " nats .url=u:p", `"nats".url=u:p`, "'nats' .url=u:p", "nats={url='u:p'}", "nats", "link.key=u:p", "node.name=u:p"} {
		if got, err := settings.ForWorkers([]string{"a=b", arg}); err == nil || got != nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q: %q, %v", arg, got, err)
		}
	}
}

// TestInvalidService checks that wrong settings fail and name the key.
func TestInvalidService(t *testing.T) {
	const url = "[nats]\nurl = 'nats://127.0.0.1:4222'\n"
	for text, want := range map[string]string{
		"[nats]\nurl = 'http://127.0.0.1'\n":                          "nats.url",
		"[nats]\nurl = 'nats://a,b'\n":                                "nats.url",
		"[nats]\nurl = 'nats://127.0.0.1,nats://u:secret@10.0.0.1'\n": "messages with 10.0.0.1, and",
		"[nats]\nurl = 'nats://x.example'\ncredentials = '/c'\n":      "nats.url: others on the network", // without TLS
		"[nats]\nurl = 'nats://[fd00::1]:4222,tls://x'\n":             "nats.url: others on the network",
		"[nats]\nurl = 'nats://u:secret@127.0.0.1:x'\n":               "nats.url: want URLs",
		"[nats]\nreplicas = 3\n":                                      "nats.url: missing",
		url + "roles = ['x']\n":                                       "nats.roles",
		url + "roles = []\n":                                          "nats.roles: empty",
		url + "credentials = 'x'\n":                                   "nats.credentials",
		url + "cert = '/x'\n":                                         "nats.cert and nats.key",
		url + "replicas = 9\n":                                        "nats.replicas",
		url + "lease = '2999ms'\n":                                    "nats.lease",
		url + "lease = true\n":                                        "duration",
		url + "unknown = 1\n":                                         "unknown",
		"[node]\nname = 'A b'\n":                                      "node.name",
		"[nats\n":                                                     settings.ServiceFile,
	} {
		if _, err := loadService(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%.60q: the error has the password: %v", text, err)
		}
	}
	for _, url := range []string{"nats://localhost", "nats://[::1]:4222", "nats://u:p@127.0.0.1:4222, tls://nats.example.com", "nats://nats.example.com'\nca = '/etc/ca.pem"} {
		if _, err := loadService(t, "[nats]\nurl = '"+url+"'\n"); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
