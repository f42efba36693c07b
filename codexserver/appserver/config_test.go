package appserver_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

func raw(pairs ...string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return m
}

// TestConfig translates the configuration of a caller into parameters of today's Codex.
func TestConfig(t *testing.T) {
	base := "be terse"
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	for _, test := range []struct {
		name    string
		cfg     protocol.Config
		options appserver.Options
		version string
		want    string // parameters of thread/start, but for the sandbox
		fails   string // or what the refusal says
	}{
		{"nothing", protocol.Config{}, appserver.Options{}, "", `{}`, ""},
		{"all", protocol.Config{Model: "m", ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite,
			BaseInstructions: &base, IncludePlanTool: new(true), IncludeApplyPatchTool: new(true), Overrides: raw("k", `{"a":{"b":1}}`, "c.d", `"e"`)},
			appserver.Options{AskUser: true}, "",
			`{"model":"m","approvalPolicy":"never","approvalsReviewer":"user","baseInstructions":"be terse","config":{"k.a.b":1,"c.d":"e"}}`, ""},
		{"prompts", protocol.Config{DeveloperInstructions: new("role"), CompactPrompt: new("sum \"up\"")}, appserver.Options{}, "",
			`{"developerInstructions":"role","config":{"compact_prompt":"sum \"up\""}}`, ""},
		{"prompts over keys", protocol.Config{CompactPrompt: new(""), Overrides: raw("compact_prompt", `"key"`, "developer_instructions", `"key"`)}, appserver.Options{}, "",
			`{"config":{"compact_prompt":"","developer_instructions":"key"}}`, ""},
		{"on-failure", protocol.Config{ApprovalPolicy: protocol.ApprovalOnFailure}, appserver.Options{}, "", `{"approvalPolicy":"on-request"}`, ""},
		{"an earlier Codex", protocol.Config{}, appserver.Options{}, "0.154.0", `{"config":{"features.shell_snapshot":false}}`, ""},
		{"policy as a key", protocol.Config{Overrides: raw("approval_policy", `"untrusted"`)}, appserver.Options{}, "", `{"approvalPolicy":"untrusted"}`, ""},
		{"policy twice", protocol.Config{ApprovalPolicy: protocol.ApprovalNever, Overrides: raw("approval_policy", `"untrusted"`)}, appserver.Options{}, "", `{"approvalPolicy":"never"}`, ""},
		{"policy by default", protocol.Config{}, appserver.Options{Overrides: map[string]any{"approval_policy": "on-failure"}}, "", `{"approvalPolicy":"on-request"}`, ""},
		{"finer policy", protocol.Config{Overrides: raw("approval_policy", `{"granular":{"rules":true}}`)}, appserver.Options{}, "", `{"config":{"approval_policy.granular.rules":true}}`, ""},
		{"removed keys", protocol.Config{Overrides: raw("include_plan_tool", `true`, "include_apply_patch_tool", `false`)}, appserver.Options{}, "", `{}`, ""},
		{"profile", protocol.Config{Profile: "old"}, appserver.Options{}, "", `{"approvalPolicy":"untrusted","config":{"model":"old-model","tools.web_search":true}}`, ""},
		{"profile as a key", protocol.Config{Overrides: raw("profile", `"old"`, "model", `"mine"`)}, appserver.Options{}, "", `{"approvalPolicy":"untrusted","config":{"model":"mine","tools.web_search":true}}`, ""},
		{"profile by default", protocol.Config{}, appserver.Options{Overrides: map[string]any{"profile": "new"}}, "", `{"config":{"model":"new-model"}}`, ""},
		{"override over a profile", protocol.Config{Profile: "old"}, appserver.Options{Overrides: map[string]any{"tools": map[string]any{"web_search": false}}}, "",
			`{"approvalPolicy":"untrusted","config":{"model":"old-model"}}`, ""}, // the app-server was started with it
		{"unknown profile", protocol.Config{Profile: "nosuch"}, appserver.Options{}, "", ``, "nosuch.config.toml"},
		{"profile elsewhere", protocol.Config{Profile: "../x"}, appserver.Options{}, "", ``, "not a name"},
		{"profile no string", protocol.Config{Overrides: raw("profile", `5`)}, appserver.Options{}, "", ``, "profile is not a string"},
		{"dotted name", protocol.Config{Overrides: raw("mcp_servers", `{"a.b":{"command":"c"}}`)}, appserver.Options{}, "", `{"config":{"mcp_servers":{"a.b":{"command":"c"}}}}`, ""},
		{"no folder", protocol.Config{Cwd: "/no/such/folder"}, appserver.Options{}, "", ``, "argument /cwd: /no/such/folder does not exist"},
		{"not a folder", protocol.Config{Cwd: file}, appserver.Options{}, "", ``, "argument /cwd: " + file + " is not a folder"},
		{"duplicate keys", protocol.Config{Overrides: raw("k", `{"a":1,"a":2}`)}, appserver.Options{}, "", ``, "k"},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			writeFile(t, filepath.Join(home, "config.toml"), "[profiles.old]\nmodel = \"old-model\"\napproval_policy = \"untrusted\"\n[profiles.old.tools]\nweb_search = true\n")
			writeFile(t, filepath.Join(home, "new.config.toml"), "model = \"new-model\"\n")
			bubble(t, func(t *testing.T, f *fake) {
				f.home = home
				if test.version != "" {
					f.version = test.version
				}
				sent := f.keep("thread/start")
				_, err := f.engine(test.options).Start(t.Context(), test.cfg, &recorder{})
				if test.fails != "" {
					var fault *engine.ConfigError
					if !errors.As(err, &fault) || !strings.Contains(err.Error(), test.fails) {
						t.Errorf("error %v, want %q", err, test.fails)
					}
					if strings.HasPrefix(test.fails, "argument /cwd") && len(f.runs) > 0 {
						t.Error("Codex was started")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				want := loose(t, test.want).(map[string]any)
				want["sandbox"] = "read-only" // in any case
				if diff := cmp.Diff(any(want), loose(t, withoutExclude(t, (*sent)[0]))); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// withoutExclude removes the excluded variables from the parameters of thread/start.
func withoutExclude(t *testing.T, params string) string {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(params), &p); err != nil {
		t.Fatal(err)
	}
	config, _ := p["config"].(map[string]any)
	if _, ok := config["shell_environment_policy.exclude"]; !ok {
		t.Errorf("no key is withheld: %s", params)
	}
	if delete(config, "shell_environment_policy.exclude"); len(config) == 0 {
		delete(p, "config")
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
