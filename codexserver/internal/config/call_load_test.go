package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestCallShapesInTheNativeEngine checks that a call's config cannot change a setting that a
// call may not change, in any of its shapes.
func TestCallShapesInTheNativeEngine(t *testing.T) {
	dir := home(t, map[string]string{"config.toml": `
model_provider = "local"
notify = ["mine"]
[model_providers.local]
base_url = "http://localhost:1"
[mcp_servers.files]
command = "files"
[mcp_servers."a.b"]
command = "ab"
[shell_environment_policy]
exclude = ["MINE*"]
`})
	cwd := callFolder(t)
	load := func(call protocol.Config) *config.Config {
		t.Helper()
		c, err := config.Load(config.Layers{Home: dir, Call: call})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	own := load(protocol.Config{Cwd: cwd})
	for _, shape := range callShapes(t) {
		if shape[0] != "ok" && shape[0] != "warn" {
			continue // CallKeys refuses it
		}
		keys, _, err := config.CallKeys(members(t, shape[1]), cwd, false)
		if err != nil {
			t.Fatalf("%s: %v", shape[1], err)
		}
		if _, ok := keys["approval_policy"]; ok && keys["approval_policy"][0] == '{' {
			continue
		}
		if strings.Contains(shape[1], "allowed_domains") {
			continue // a setting of the current Codex
		}
		got := load(protocol.Config{Cwd: cwd, FromCall: true, Overrides: keys})
		for name, s := range got.MCPServers { // a call may switch servers off
			if s.Enabled != nil && !*s.Enabled {
				s.Enabled = nil
				got.MCPServers[name] = s
			}
		}
		delete(got.MCPServers, "happy")
		type fixedKeys struct {
			Providers map[string]config.Provider
			Servers   map[string]config.MCPServer
			Notify    []string
			Set       map[string]string
			Profile   bool
			Named     []string
		}
		of := func(c *config.Config) fixedKeys {
			return fixedKeys{c.ModelProviders, c.MCPServers, c.Notify, c.ShellEnvironment.Set, c.ShellEnvironment.UseProfile, c.NamedRoots}
		}
		if diff := cmp.Diff(of(own), of(got), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-files +with the call):\n%s", shape[1], diff)
		}
		if !slices.Contains(got.ShellEnvironment.Exclude, "MINE*") {
			t.Errorf("%s: a pattern from the files is missing: %q", shape[1], got.ShellEnvironment.Exclude)
		}
	}
}

// TestNarrowEnvironment checks that a call can hide variables from commands, but cannot
// show them more.
func TestNarrowEnvironment(t *testing.T) {
	const wide = "a call may narrow the configuration's, not widen it; calls.trusted"
	for _, tt := range []struct {
		name, file, call string
		want             config.ShellEnvironment
		err              string
	}{
		{"nothing", `exclude = ["A"]`, `{}`, config.ShellEnvironment{Exclude: []string{"A"}}, ""},
		{"all to core", "", `{"inherit":"core"}`, config.ShellEnvironment{Inherit: "core"}, ""},
		{"all to all", "", `{"inherit":"all"}`, config.ShellEnvironment{Inherit: "all"}, ""},
		{"core to none", `inherit = "core"`, `{"inherit":"none"}`, config.ShellEnvironment{Inherit: "none"}, ""},
		{"core to all", `inherit = "core"`, `{"inherit":"all"}`, config.ShellEnvironment{}, "shell_environment_policy.inherit: " + wide},
		{"core to empty", `inherit = "core"`, `{"inherit":""}`, config.ShellEnvironment{}, "shell_environment_policy.inherit: " + wide},
		{"none to core", `inherit = "none"`, `{"inherit":"core"}`, config.ShellEnvironment{}, wide},
		{"unknown value", "", `{"inherit":"Core"}`, config.ShellEnvironment{}, `"Core" is not one of`},
		{"wrong type", "", `{"inherit":1}`, config.ShellEnvironment{}, "shell_environment_policy.inherit: want a string"},
		{"exclude is added", `exclude = ["A"]`, `{"exclude":["B"]}`, config.ShellEnvironment{Exclude: []string{"A", "B"}}, ""},
		{"nothing to exclude", `exclude = ["A"]`, `{"exclude":[]}`, config.ShellEnvironment{Exclude: []string{"A"}}, ""},
		{"only", "", `{"include_only":["A*"]}`, config.ShellEnvironment{IncludeOnly: []string{"A*"}}, ""},
		{"fewer", `include_only = ["A*", "B"]`, `{"include_only":["a*"]}`, config.ShellEnvironment{IncludeOnly: []string{"a*"}}, ""},
		{"one of them", `include_only = ["A*"]`, `{"include_only":["ab"]}`, config.ShellEnvironment{IncludeOnly: []string{"ab"}}, ""},
		{"another", `include_only = ["A*"]`, `{"include_only":["B"]}`, config.ShellEnvironment{}, "shell_environment_policy.include_only: " + wide},
		{"a wider pattern", `include_only = ["A*"]`, `{"include_only":["*"]}`, config.ShellEnvironment{}, wide},
		{"a pattern that may be wider", `include_only = ["A*"]`, `{"include_only":["A?*"]}`, config.ShellEnvironment{}, wide},
		{"no pattern", `include_only = ["A*"]`, `{"include_only":[]}`, config.ShellEnvironment{}, wide},
		{"default excludes", `ignore_default_excludes = true`, `{"ignore_default_excludes":false}`, config.ShellEnvironment{}, ""},
		{"no default excludes", "", `{"ignore_default_excludes":true}`, config.ShellEnvironment{}, wide},
		{"profile", "", `{"experimental_use_profile":true}`, config.ShellEnvironment{}, wide},
		{"set", "", `{"set":{"PATH":"/tmp"}}`, config.ShellEnvironment{}, "shell_environment_policy.set: " + wide},
		{"set is kept", `set = { A = "1" }`, `{"inherit":"none"}`, config.ShellEnvironment{Inherit: "none", Set: map[string]string{"A": "1"}}, ""},
	} {
		file := "[shell_environment_policy]\n" + tt.file
		call := protocol.Config{FromCall: true, Overrides: raw("shell_environment_policy", tt.call)}
		c, err := load(t, file, config.Layers{Call: call})
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.err)
		case tt.err == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.err == "":
			if diff := cmp.Diff(tt.want, c.ShellEnvironment, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
		if tt.err == "" || strings.Contains(tt.err, wide) {
			call.FromCall = false // as in the user's configuration
			loaded(t, file, config.Layers{Call: call})
		}
	}
}

// TestNamedRoots checks that the roots of the configuration do not include a writable root of
// a call.
func TestNamedRoots(t *testing.T) {
	const file = "[sandbox_workspace_write]\nwritable_roots = [\"/file\"]\n[profiles.p.sandbox_workspace_write]\nwritable_roots = [\"/profile\"]"
	call := raw("sandbox_workspace_write", `{"writable_roots":["/call"]}`)
	for _, tt := range []struct {
		name  string
		flags map[string]any
		call  protocol.Config
		want  []string
		roots []string
	}{
		{"file", nil, protocol.Config{FromCall: true}, []string{"/file"}, []string{"/file"}},
		{"profile", nil, protocol.Config{FromCall: true, Profile: "p", Overrides: call}, []string{"/profile"}, []string{"/call"}},
		{"flag", map[string]any{"sandbox_workspace_write.writable_roots": []any{"/flag"}}, protocol.Config{FromCall: true, Overrides: call}, []string{"/flag"}, []string{"/call"}},
		{"call", nil, protocol.Config{FromCall: true, Overrides: call}, []string{"/file"}, []string{"/call"}},
		{"user's configuration", nil, protocol.Config{Overrides: call}, []string{"/call"}, []string{"/call"}},
	} {
		c := loaded(t, file, config.Layers{Overrides: tt.flags, Call: tt.call})
		if diff := cmp.Diff([][]string{tt.want, tt.roots}, [][]string{c.NamedRoots, c.SandboxWorkspaceWrite.WritableRoots}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
