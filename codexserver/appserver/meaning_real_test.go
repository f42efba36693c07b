//go:build realcodex

package appserver

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json/jsontext"
)

// TestRealMeaning compares what this package takes Codex's configuration to mean with what Codex makes of it: the sandbox,
// the policy and the provider of a thread that starts without any of them.
func TestRealMeaning(t *testing.T) {
	t.Parallel()
	type row struct{ name, config, lay string } // W is the working folder
	trust := func(folder, level string) string {
		return fmt.Sprintf("[projects.%q]\ntrust_level = %q\n", folder, level)
	}
	rows := []row{
		{"nothing", "", ""},
		{"a trusted folder", trust("W", "trusted"), ""}, {"an untrusted folder", trust("W", "untrusted"), ""},
		{"a trusted folder without a mode", trust("W", "trusted") + "[sandbox_workspace_write]\nnetwork_access = true\n", ""},
		{"a trusted repository", trust("W", "trusted"), "git init -q .; mkdir sub; cd sub"},
		{"a folder above a trusted one", trust("W/sub", "trusted"), "mkdir sub"},
		{"a mode over trust", "sandbox_mode = \"read-only\"\n" + trust("W", "trusted"), ""},
		{"a profile over a table", "default_permissions = \":workspace\"\n[sandbox_workspace_write]\nnetwork_access = true\n", ""},
		{"a layer of the folder", trust("W", "trusted"), "git init -q .; mkdir .codex; echo 'sandbox_mode = \"read-only\"' > .codex/config.toml"},
		{"a layer of a folder that is not trusted", "", "git init -q .; mkdir .codex; echo 'sandbox_mode = \"danger-full-access\"' > .codex/config.toml"},
		{"finer rules", "[approval_policy.granular]\nsandbox_approval = true\nrules = false\nmcp_elicitations = true\n", ""},
	}
	for m, mode := range protocol.SandboxModes() {
		for n, policy := range []protocol.ApprovalPolicy{protocol.ApprovalUntrusted, protocol.ApprovalOnRequest, protocol.ApprovalNever} {
			if !nightly.Tests() && m != n { // neither key says anything about the other
				continue
			}
			rows = append(rows, row{fmt.Sprint(mode, ", ", policy), fmt.Sprintf("sandbox_mode = %q\napproval_policy = %q\n", mode, policy), ""})
		}
		rows = append(rows, row{fmt.Sprint(mode, " with a table"), fmt.Sprintf("sandbox_mode = %q\n", mode) +
			"[sandbox_workspace_write]\nnetwork_access = true\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\nwritable_roots = [\"W/../other\"]\n", ""})
	}
	for _, profile := range slices.Sorted(maps.Keys(profileModes)) {
		rows = append(rows, row{profile, fmt.Sprintf("default_permissions = %q\n", profile), ""},
			row{profile + " of a trusted folder", fmt.Sprintf("default_permissions = %q\n", profile) + trust("W", "trusted"), ""})
	}
	for n, tt := range rows {
		if n%nightly.Number(3, 1) != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home, cwd := t.TempDir(), filepath.Join(must.Get(filepath.EvalSymlinks(t.TempDir()))(t), "w")
			must.OK(t, os.Mkdir(cwd, 0o755), os.Mkdir(filepath.Join(filepath.Dir(cwd), "other"), 0o755))
			if tt.lay != "" {
				cmd := exec.CommandContext(t.Context(), "sh", "-ec", tt.lay+"; pwd")
				cmd.Dir = cwd
				cwd = strings.TrimSpace(string(must.Get(cmd.Output())(t)))
			}
			top, _, _ := strings.Cut(cwd+"/", "/w/")
			// Keys come before tables.
			keys, tables, _ := strings.Cut("\n"+strings.ReplaceAll(tt.config, "W", top+"/w"), "\n[")
			if tables != "" {
				tables = "[" + tables
			}
			text := servertest.CodexConfig("http://127.0.0.1:9", keys+"\n") + tables
			must.OK(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600))
			e := must.Get(New(&Options{CodexHome: home}))(t)
			defer e.Close()
			c := must.Get(e.child(t.Context()))(t)
			file := must.Get(c.configuration(t.Context(), cwd))(t)
			ours := must.Get(e.configured(c, &file, cwd))(t)
			var theirs apptypes.ThreadReply
			// A policy that Codex no longer takes from its file goes with each thread.
			must.OK(t, c.call(t.Context(), startLimit, apptypes.CallThreadStart, &apptypes.ThreadParams{Cwd: cwd, ApprovalPolicy: string(c.policy)}, &theirs))
			type meaning struct {
				Sandbox  string
				Policy   protocol.ApprovalPolicy
				Provider string
			}
			plain := func(policy protocol.ApprovalPolicy) protocol.ApprovalPolicy {
				rules := jsontext.Value(policyParam(policy))
				must.OK(t, rules.Canonicalize())
				return policyOf([]byte(rules))
			}
			shown := func(s *apptypes.SandboxPolicy) string {
				return fmt.Sprintf("%s, network %s, roots %q, without /tmp %t and $TMPDIR %t", s.Type, s.NetworkAccess, s.WritableRoots, s.ExcludeSlashTmp, s.ExcludeTmpdirEnvVar)
			}
			must.Equal(t, "what Codex means", meaning{shown(&theirs.Sandbox), plain(policyOf(theirs.ApprovalPolicy)), theirs.ModelProvider},
				meaning{shown(sandboxOf(ours.Sandbox)), plain(ours.Policy), ours.Provider})
		})
	}
}
