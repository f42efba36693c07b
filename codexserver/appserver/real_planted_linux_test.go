//go:build realcodex

package appserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

// TestRealStartsNothing has the real Codex work in a repository that names programs for it. None of them
// starts, and the user's config.toml stays as it is. In a repository that the user has trusted in
// Codex, they do start. By day, each is played in one of the two folders.
func TestRealStartsNothing(t *testing.T) {
	const write, full = protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess
	for n, tt := range []struct {
		name   string
		file   string // of the user's configuration
		cfg    protocol.Config
		starts string // among others; "" is nothing at all
	}{
		{"nothing", "", protocol.Config{}, ""},
		{"the folder may be written", "", protocol.Config{Sandbox: write}, ""},
		{"the folder may be written, and nobody is asked", "", protocol.Config{Sandbox: write, ApprovalPolicy: protocol.ApprovalNever}, ""},
		{"full access", "", protocol.Config{Sandbox: full, ApprovalPolicy: protocol.ApprovalNever}, ""},
		{"by a key", "", protocol.Config{Overrides: raw("sandbox_mode", `"workspace-write"`)}, ""},
		{"as configured", `sandbox_mode = "workspace-write"`, protocol.Config{}, ""},
		{"full access as configured", `sandbox_mode = "danger-full-access"`, protocol.Config{}, ""},
		{"by a profile of permissions", `default_permissions = ":workspace"`, protocol.Config{}, ""},
		{"trusted", "", protocol.Config{Sandbox: write}, "server"},
	} {
		for m, below := range []string{"", "a/b"} {
			if !nightly.Tests() && n%2 != m {
				continue
			}
			t.Run(tt.name+"/"+below, func(t *testing.T) {
				t.Parallel()
				marks := filepath.Join(t.TempDir(), "marks")
				r := newReal(t, tt.file)
				more := "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
				if tt.starts != "" {
					more += fmt.Sprintf("[projects.%q]\ntrust_level = \"trusted\"\n", r.cwd)
				}
				r.configure(t, more)
				file := filepath.Join(r.home, "config.toml")
				whole, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				r.initGit(t)
				program := servertest.Plant(t, r.cwd, marks)
				cfg := tt.cfg
				cfg.Cwd = filepath.Join(r.cwd, below)
				if err := os.MkdirAll(cfg.Cwd, 0o755); err != nil {
					t.Fatal(err)
				}
				check := func(when string) {
					t.Helper()
					if now, err := os.ReadFile(file); err != nil || string(now) != string(whole) {
						t.Errorf("%s, config.toml is another one (%v):\n%s", when, err, now)
					}
					if started, _ := os.ReadFile(marks); tt.starts == "" && len(started) > 0 {
						t.Errorf("%s, there started %q", when, started)
					}
				}
				r.restart(t)
				h := &recorder{exec: func(context.Context, protocol.ExecApprovalRequest) elicit.Outcome {
					return elicit.Outcome{Decision: elicit.Denied}
				}}
				turn := func(when string, c engine.Conversation) {
					t.Helper()
					script := []providertest.Turn{providertest.Say("done")}
					if tt.cfg.Sandbox != full && !strings.Contains(tt.file, "danger") && !strings.Contains(tt.file, "permissions") { // else the model may write the marks
						script = append([]providertest.Turn{providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": program + " rule", "yield_time_ms": 20000}))}, script...)
					}
					r.Add(script...)
					if err := c.Turn(t.Context(), text("go")); err != nil {
						t.Fatal(err)
					}
					check(when)
				}
				conv := r.start(t, h, cfg)
				check("at the start")
				turn("after a turn", conv)
				turn("after another turn", conv)
				r.restart(t)
				again := r.resume(t, conv, h, protocol.Config{Keep: func(protocol.Access) bool { return true }})
				check("after a restart")
				turn("after a resumed turn", again)
				r.Add(providertest.Say(`{"findings":[]}`))
				if err := again.Turn(t.Context(), protocol.TurnInput{Items: protocol.TextInput("p"), Review: &protocol.Review{Target: protocol.ReviewUncommitted}}); err != nil {
					t.Error(err)
				}
				r.engine.Close() // what it has started has written by then
				check("at the end")
				if started, _ := os.ReadFile(marks); !strings.Contains(string(started), tt.starts) {
					t.Errorf("there started %q, and not %s", started, tt.starts)
				}
			})
		}
	}
}
