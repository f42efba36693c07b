package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// socketAttack makes a command of the model listen where the next client of a shared server looks
// for it, and returns what that client tells it. There was a shared server before.
type socketAttack struct {
	// kind says how the folder of the sockets may have become writable.
	kind string
	// root is a writable folder of config.toml, and call has arguments of the call. A ~ is $CODEX_HOME,
	// a $ the folder of $XDG_RUNTIME_DIR.
	root string
	call map[string]any
}

var socketAttacks = []socketAttack{
	{kind: "the working folder", call: map[string]any{"cwd": "~/codex-mcp/run"}},
	{kind: "a writable folder of the call", call: map[string]any{"config": map[string]any{"sandbox_workspace_write.writable_roots": []any{"~/codex-mcp/run"}}}},
	{kind: "a writable folder of config.toml", root: "~/codex-mcp/run"},
	{kind: "in a writable folder of config.toml", root: "~"},
	{kind: "`$XDG_RUNTIME_DIR`", call: map[string]any{"cwd": "$"}},
}

// socketRows returns the attacks.
func socketRows() (rows []attack) {
	for _, a := range socketAttacks {
		rows = append(rows, attack{name: "a socket in the place of the shared server's: " + a.kind, try: a.try, never: map[string]string{
			"bridge": codexOwn + "; a client refuses every server in a sandbox",
		}})
	}
	return rows
}

func (a socketAttack) try(v *victim) string {
	runtime, report := v.temporary(), v.temporary()
	place := strings.NewReplacer("~", v.home, "$", runtime)
	roots := []string{report, runtime}
	if a.root != "" {
		roots = append(roots, place.Replace(a.root))
	}
	text, err := json.Marshal(roots)
	if err != nil {
		v.t.Fatal(err)
	}
	v.serve(confined+fmt.Sprintf("\n[sandbox_workspace_write]\nwritable_roots = %s\n", text), "calls.full_access = \"allow\" # the attack is what comes after a person's approval\n")
	client := func() *process {
		p := launch(v.t, v.folders, exec.Command("env", "XDG_RUNTIME_DIR="+runtime, "CLIENTS_KEY=hunter2", built(v.t), "--shared", "-engine", "native"))
		p.hello(`{}`)
		p.stdin.Close()
		p.wait()
		return p
	}
	stop := func() {
		cmd := exec.CommandContext(context.Background(), built(v.t), "shared", "stop")
		cmd.Env = []string{"HOME=" + v.user, "CODEX_HOME=" + v.home, "XDG_RUNTIME_DIR=" + runtime}
		_ = cmd.Run() // it may meet the command
	}
	client()
	stop()
	var logs []string
	for _, dir := range []string{filepath.Join(v.home, "codex-mcp", "run"), filepath.Join(runtime, "codex-mcp")} {
		found, _ := filepath.Glob(filepath.Join(dir, "*.log"))
		logs = append(logs, found...)
	}
	if len(logs) != 1 {
		v.t.Fatalf("logs of a shared server: %q", logs)
	}
	name := strings.TrimSuffix(filepath.Base(logs[0]), ".log")

	self, err := os.Executable()
	if err != nil {
		v.t.Fatal(err)
	}
	v.says(v.script("c1", fmt.Sprintf("%s=%s %s %s %s/codex-mcp/run %s/codex-mcp", forgerOf, report, self, name, v.home, runtime)))
	arguments := map[string]any{"prompt": "go", "background": true}
	for key, value := range a.call {
		switch value := value.(type) {
		case string:
			arguments[key] = place.Replace(value)
		case map[string]any:
			config := map[string]any{}
			for name, roots := range value {
				config[name] = []any{place.Replace(roots.([]any)[0].(string)), report} // in place of those of config.toml
			}
			arguments[key] = config
		}
	}
	thread := v.thread(v.call("codex", arguments))
	if thread == "" {
		return "" // the call is refused
	}
	defer stop()
	defer os.WriteFile(filepath.Join(report, "stop"), nil, 0o600)
	until(v.t, "the command does not run", func() bool { return v.exists(filepath.Join(report, "ready")) != "" })
	client()
	if err := os.WriteFile(filepath.Join(report, "stop"), nil, 0o600); err != nil {
		v.t.Fatal(err)
	}
	v.call("codex-wait", map[string]any{"threadIds": []string{thread}})
	said, err := os.ReadFile(filepath.Join(report, "said"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		v.t.Fatal(err)
	}
	if bytes.Contains(said, []byte("hunter2")) {
		return "a command got the client's environment"
	}
	return ""
}

// temporary returns a new folder with a short path, in which a socket fits.
func (v *victim) temporary() string {
	v.t.Helper()
	dir, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
