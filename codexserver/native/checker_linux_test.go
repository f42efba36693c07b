package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestChecks plays the tables of checks and of set-ups with the native engine.
func TestChecks(t *testing.T) {
	e := servertest.CheckEngine{Model: hostileModel, Layers: box.RoomsAvailable() == nil, Open: func(t *testing.T, home, folder string, calls setting.Calls) servertest.Server {
		e := open(t, native.Options{CodexHome: home, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}})
		return codexserver.New(e, &codexserver.Options{Home: home, Folder: folder, Calls: calls})
	}}
	e.TestChecks(t, func(n int) bool { return servertest.Plays(n, *whole) })
	t.Run("set-ups", func(t *testing.T) {
		e.TestSetups(t, func(n int) bool { return servertest.Plays(n, *whole) })
	})
}

// TestCheckedAnswers says what a check does to an answer: a failed one drops no output, and a model without a word is not
// done because its check passes.
func TestCheckedAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, check, schema, want string
		says                      []string // by the model
		limits                    native.Limits
	}{
		{"a failed check keeps the output", "exit 1", `{"type":"object"}`, `incomplete false {"n":3}`, []string{`{"n":1}`, `{"n":2}`, `{"n":3}`}, native.Limits{}},
		{"the last answer counts", "[ -e made ] || { echo >made; exit 1; }", `{"type":"object"}`, `completed true {"n":2}`, []string{`{"n":1}`, `{"n":2}`}, native.Limits{}},
		{"no word, and the check passes", "true", "", "incomplete true ", []string{"", ""}, native.Limits{}},
		{"no word, and the check fails", "exit 1", "", "incomplete false ", []string{"", "", "", "", "", ""}, native.Limits{}},
		{"a limit counts all tries", "exit 1", "", "failed false ", []string{"a", "b", "c"}, native.Limits{ModelRequests: 2}},
		{"the time counts all tries", "sleep 1; exit 1", "", "failed false ", []string{"a", "b", "c"}, native.Limits{WallTime: 2 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			boxtest.Need(t)
			var turns []providertest.Turn
			for _, text := range tt.says {
				turns = append(turns, providertest.Say(text))
			}
			model := providertest.New(turns...)
			t.Cleanup(model.Close)
			home := servertest.CodexHome(t, model.BaseURL(), "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\n")
			cwd := t.TempDir()
			c := servertest.Connect(t, codexserver.New(open(t, native.Options{CodexHome: home, Limits: tt.limits}), &codexserver.Options{Home: home, Folder: cwd}), nil)
			members := ""
			if tt.schema != "" {
				members = `,"output-schema":` + tt.schema
			}
			var r struct{ StructuredContent protocol.TurnResult }
			parse(t, []byte(c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"p","cwd":%q,"check":%q%s}`, cwd, tt.check, members))), &r)
			did := &r.StructuredContent
			if did.Check.Passed == nil {
				t.Fatalf("%+v", did)
			}
			all := strings.Join(c.Events(), " ")
			must.Equal(t, "begins and ends of "+all, "1 1", fmt.Sprint(strings.Count(all, "task_started"), strings.Count(all, "task_complete")+strings.Count(all, " error")))
			must.Equal(t, "the result", tt.want, fmt.Sprint(did.Status, " ", *did.Check.Passed, " ", string(did.Output)))
		})
	}
}

// TestCheckEnvironment compares the environment of a check with that of a command, in which no key is, by whatever it is named.
func TestCheckEnvironment(t *testing.T) {
	boxtest.Need(t)
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PLAIN=yes"}
	for _, name := range servertest.KeyVariables {
		environ = append(environ, name+"=sk-"+name)
	}
	model := providertest.New(providertest.Call(providertest.Tool("c1", "shell", map[string]any{"command": []string{"bash", "-lc", "env -0 >command.env"}})), providertest.Say("done"))
	t.Cleanup(model.Close)
	home := servertest.CodexHome(t, model.BaseURL(), "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\n")
	file := filepath.Join(home, "config.toml")
	must.OK(t, os.WriteFile(file, append(must.Get(os.ReadFile(file))(t), servertest.KeysConfig...), 0o600))
	cwd := t.TempDir()
	c := servertest.Connect(t, codexserver.New(open(t, native.Options{CodexHome: home, Environ: environ}), &codexserver.Options{Home: home, Folder: cwd}), nil)
	said := c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"p","cwd":%q,"check":"env -0 >check.env"}`, cwd))
	command, check := servertest.Environ(t, filepath.Join(cwd, "command.env")), servertest.Environ(t, filepath.Join(cwd, "check.env"))
	must.Equal(t, "environment after "+said, command, check)
	servertest.NoKeys(t, check)
}
