//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEndToEndNotify runs the real program of the configuration, and attacks it: by the words of the
// model and of a call, from the repository, and by a program that a command can write.
func TestEndToEndNotify(t *testing.T) {
	t.Parallel()
	const hostile = "`touch pwned`; $(touch pwned) \x1b]0;title\a' \" \\ --help"
	for _, tt := range []struct {
		name   string
		config string // of the call
		at     func(f folders) string
		runs   bool
	}{
		{"in the user's folder", "", func(f folders) string { return filepath.Join(f.user, "notify") }, true},
		{"where commands write", "", func(f folders) string { return filepath.Join(f.cwd, "notify") }, false},
		{"of a call", `,"config":{"notify":["touch","called"],"notify.command":["touch","called"]}`, func(f folders) string { return filepath.Join(f.user, "notify") }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, _ := prepare(t, "never", providertest.Say(hostile))
			out := filepath.Join(f.user, "out")
			script := fmt.Sprintf("#!/bin/sh\n{ echo $#; pwd; env; } > '%[1]s.env'\nprintf '%%s' \"$2\" > '%[1]s.tmp'\nmv '%[1]s.tmp' '%[1]s'\n", out)
			must.OK(t, testenv.WriteProgram(tt.at(f), []byte(script)))
			// A file of the repository is no configuration.
			repository := "[notify]\ncommand = [\"touch\", \"repository\"]\n"
			for _, name := range []string{"codex-mcp.toml", ".codex/codex-mcp.toml"} {
				write(t, filepath.Join(f.cwd, name), repository)
			}
			settings := fmt.Sprintf("[notify]\ncommand = [%q, \"first\"]\n", tt.at(f))
			write(t, filepath.Join(f.home, "codex-mcp.toml"), settings)
			p := launch(t, f, exec.Command("env", "OTEL_EXPORTER_OTLP_HEADERS=secret=1", built(t), "--engine", "native"))
			p.hello(`{}`)
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"work"%s}}}`, tt.config))
			p.expect(map[string]any{"id": 1.0})
			until(t, "it did not run", func() bool {
				_, err := os.Stat(out)
				return err == nil || !tt.runs && strings.Contains(p.errors(), "cannot be started")
			})
			p.stdin.Close()
			p.wait()
			for _, dir := range []string{f.cwd, f.user, f.home} {
				for _, name := range []string{"pwned", "called", "repository"} {
					if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
						t.Errorf("%s was made in %s", name, dir)
					}
				}
			}
			got, err := os.ReadFile(out)
			if !tt.runs {
				if err == nil || !strings.Contains(p.errors(), "cannot be started") {
					t.Errorf("it ran: %s\n%s", got, p.errors())
				}
				return
			}
			var m map[string]any
			if err := json.Unmarshal(got, &m); err != nil || m["type"] != "agent-turn-complete" || m["last-assistant-message"] != hostile || m["status"] != "completed" || m["thread-id"] == "" {
				t.Errorf("%s, %v", got, err)
			}
			env, err := os.ReadFile(out + ".env")
			if err != nil || !strings.HasPrefix(string(env), "2\n"+f.user+"\n") || strings.Contains(string(env), "OTEL_") {
				t.Errorf("%v: %s", err, env)
			}
		})
	}
}
