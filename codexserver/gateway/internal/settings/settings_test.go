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
	"github.com/go-json-experiment/json"
)

var hashOfA, hashOfB = "sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("b", 64)

func load(t *testing.T, text string) (settings.HTTP, error) {
	t.Helper()
	home := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(home, config.SettingsFile), []byte(text), 0o600))
	shared, _, err := config.LoadSettings(home, nil)
	must.OK(t, err)
	return settings.Load(home, nil, shared)
}

// TestPrincipals reads users with every field, and with the required ones only.
func TestPrincipals(t *testing.T) {
	got, err := load(t, `
[limits]
tasks = 5
[http]
url = "https://codex.example.com/mcp"
[http.oauth]
issuer = "https://login.example.com"
[http.principals.ann]
folders = ["/srv/ann"]
[http.principals.ben]
tokens = ["`+hashOfB+`"]
subject = "ben@example.com"
scopes = ["codex:run"]
folders = ["/srv/ben", "/srv/team"]
home = "/home/ben/.codex"
[http.principals.ben.limits]
turns = 1
tasks = 2
`)
	must.OK(t, err)
	want := settings.HTTP{
		HTTP:       config.HTTP{Drain: 30 * time.Second, Gateway: []string{"http.oauth", "http.principals"}},
		WorkerIdle: time.Hour,
		URL:        "https://codex.example.com/mcp",
		OAuth:      settings.OAuth{Issuer: "https://login.example.com", Audience: "https://codex.example.com/mcp", Claim: "sub"},
		Principals: map[string]settings.Principal{
			"ann": {
				Subject: "ann", Scopes: []string{"codex:run", "codex:approve", "codex:read"}, Folders: []string{"/srv/ann"},
				Limits: settings.PrincipalLimits{Turns: 16, Tasks: 5},
			},
			"ben": {
				Tokens: []string{hashOfB}, Subject: "ben@example.com", Scopes: []string{"codex:run"},
				Folders: []string{"/srv/ben", "/srv/team"}, Home: "/home/ben/.codex",
				Limits: settings.PrincipalLimits{Turns: 1, Tasks: 2},
			},
		},
	}
	must.Equal(t, "the settings", want, got)
}

func TestInvalidPrincipals(t *testing.T) {
	token := `tokens = ["` + hashOfA + `"]` + "\n"
	folders := `folders = ["/srv/ann"]` + "\n"
	ann := "[http.principals.ann]\n"
	oauth := "[http]\nurl = \"https://codex.example.com/mcp\"\n[http.oauth]\nissuer = \"https://login.example.com\"\n"
	for _, tt := range []struct{ name, file, want string }{
		{"no token", ann + folders, "http.principals.ann.tokens: missing"},
		{"a token in plain text", ann + folders + `tokens = ["secret"]`, "http.principals.ann.tokens: want sha256:"},
		{"no folder", ann + token, "http.principals.ann.folders: missing"},
		{"a relative folder", ann + token + `folders = ["srv"]`, `"srv" is not an absolute path`},
		{"the root", ann + token + `folders = ["/"]`, `"/" is not an absolute path`},
		{"a relative home", ann + token + folders + `home = "ann"`, "http.principals.ann.home"},
		{"a name", "[http.principals.\"../ann\"]\n" + token + folders, `http.principals."../ann": want a name`},
		{"a scope", ann + token + folders + `scopes = ["run"]`, `http.principals.ann.scopes: "run" is not one of`},
		{"no scope", ann + token + folders + `scopes = []`, "http.principals.ann.scopes: empty"},
		{"a limit", ann + token + folders + "[http.principals.ann.limits]\nturns = -1", "http.principals.ann.limits"},
		{"an unknown key", ann + token + folders + "token = \"x\"", "http.principals.ann.token: unknown key"},
		{"one token of two users", ann + token + folders + "[http.principals.ben]\n" + token + "folders = [\"/srv/ben\"]", "http.principals.ben.tokens: ann has the same token"},
		{"one subject of two users", oauth + ann + folders + "[http.principals.ben]\nsubject = \"ann\"\nfolders = [\"/srv/ben\"]", `http.principals.ben.subject: ann has the subject "ann" too`},
		{"a subject without OAuth", ann + token + folders + `subject = "x"`, "http.principals.ann.subject: has no effect without http.oauth"},
		{"an issuer in plain text", "[http]\nurl = \"https://codex.example.com/mcp\"\n[http.oauth]\nissuer = \"http://login.example.com\"\n" + ann + folders, "http.oauth.issuer: want an https URL"},
		{"no issuer", "[http.oauth]\naudience = \"x\"\n", "http.oauth.issuer: missing"},
		{"metrics on all addresses", "[http]\nmetrics = \"0.0.0.0:9464\"\n", "http.metrics: want an address of this machine"},
		{"no resource", "[http.oauth]\nissuer = \"https://login.example.com\"\n" + ann + folders, "http.url: missing"},
		{"no users", oauth, "http.principals: missing"},
		{"a resource with a password", "[http]\nurl = \"https://a:b@codex.example.com/mcp\"\n", `http.url: want an https URL without a query, not "https://a:xxxxx@`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.file)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestSubjectsOfNames checks that no user and no node has a name that is more than one part of a
// subject of NATS, or of a key, or that another name could look like.
func TestSubjectsOfNames(t *testing.T) {
	for _, name := range []string{
		"", ".", "a.b", "*", ">", "a.>", "a b", "a\tb", "a\r\nPUB x 1", "a\x00", "A", "Ann", "_ann", "-ann", "a/b", "a=b", "$KV", "ä", "\u0430nn", "a\u200b", strings.Repeat("x", 64),
	} {
		if settings.CheckPrincipalName(name) == nil {
			t.Errorf("%q is a name", name)
		}
		if text, err := json.Marshal(name); err != nil || name == "" {
			continue // the name of the machine is taken
		} else if _, err := loadService(t, "[node]\nname = "+string(text)+"\n"); err == nil {
			t.Errorf("%q is the name of a node", name)
		}
	}
	must.Check(t, settings.CheckPrincipalName(strings.Repeat("x", 63)))
}
