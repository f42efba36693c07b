//go:build realcodex

package appserver_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// commandsOnly are the variables that Codex adds to the environment of the model's commands, but not to that of a check, and
// PATH: Codex puts a folder of its own before it, and has the rest from a snapshot of the user's shell, which a check starts.
var commandsOnly = []string{
	"PATH", "CODEX_CI", "CODEX_SESSION_ID", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION", "COLORTERM", "GH_PAGER", "GIT_PAGER", "LANG", "LC_ALL", "LC_CTYPE", "NO_COLOR", "PAGER", "TERM",
}

// TestRealCheckEnvironment compares, name by name, the environment of a check with that of a command of the model, for the
// program's own client and for two clients of a server that they share. No key is in it, by whatever it is named.
func TestRealCheckEnvironment(t *testing.T) {
	for _, name := range servertest.KeyVariables {
		t.Setenv(name, "sk-"+name)
	}
	t.Setenv("OWN_ONLY", "yes")
	t.Setenv("SAME", "own")
	env := func(file string) providertest.Turn {
		return providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "env -0 >" + file, "yield_time_ms": 20000}))
	}
	for name, tt := range map[string]struct {
		origins []*engine.Origin
		config  string
	}{
		"own":            {[]*engine.Origin{nil}, ""},
		"shared":         {[]*engine.Origin{origin("a"), origin("b")}, ""},
		"strict":         {[]*engine.Origin{nil, origin("a")}, "\n[shell_environment_policy]\nignore_default_excludes = false\nset = { SET = \"by the configuration\" }\n"},
		"core":           {[]*engine.Origin{nil, origin("a")}, "\n[shell_environment_policy]\ninherit = \"core\"\n"},
		"include a list": {[]*engine.Origin{nil, origin("a")}, "\n[shell_environment_policy]\ninclude_only = [\"PATH\", \"HOME\", \"SAME\"]\n"},
	} {
		if !nightly.Tests() && name != "shared" && name != "strict" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			const policy = "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\n"
			r := newReal(t, policy, env("command0.env"), providertest.Say("done"), env("command1.env"), providertest.Say("done"))
			more := servertest.KeysConfig
			if tt.config != "" {
				more = tt.config
			}
			r.configure(t, more)
			for i, from := range tt.origins {
				ctx := t.Context()
				if from != nil {
					ctx = engine.WithOrigin(ctx, *from)
				}
				conv := must.Get(r.engine.Start(ctx, protocol.Config{Cwd: r.cwd}, &recorder{}))(t)
				must.OK(t, conv.Turn(t.Context(), text("go")))
				why, err := conv.(engine.Checker).Check(t.Context(), engine.Line{ID: "check", Text: fmt.Sprintf("env -0 >check%d.env", i), Limit: time.Minute})
				must.OK(t, err)
				must.Equal(t, "why", "", why)
				command := servertest.Environ(t, filepath.Join(r.cwd, fmt.Sprintf("command%d.env", i)))
				check := servertest.Environ(t, filepath.Join(r.cwd, fmt.Sprintf("check%d.env", i)))
				differ(t, command, check)
				if tt.config == "" {
					servertest.NoKeys(t, check)
				}
				if from != nil && (check["OWN_ONLY"] != "" || name == "shared" && check["SAME"] != from.Folder) {
					t.Errorf("the check of client %d has the environment of another one: %v", i, check)
				}
			}
		})
	}
}

// origin is a client with an environment of its own.
func origin(name string) *engine.Origin {
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "SAME=" + name, "ONLY_" + name + "=yes"}
	for _, key := range servertest.KeyVariables {
		environ = append(environ, key+"=sk-"+key)
	}
	return &engine.Origin{Folder: name, Environ: environ}
}

// differ compares two environments but for what Codex adds to the one.
func differ(t *testing.T, command, check map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(command)) {
		if value, is := check[name]; (!is || value != command[name]) && !slices.Contains(commandsOnly, name) {
			t.Errorf("%s of a command is %q, of a check %q", name, command[name], value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(check)) {
		if _, is := command[name]; !is {
			t.Errorf("only the check has %s=%q", name, check[name])
		}
	}
}
