package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
)

// playDemo runs a turn in which a script takes the place of the model, in a temporary folder with a
// configuration of its own. It removes the folder at the end.
func (a *askOptions) playDemo(
	signalled context.Context, console *terminal.Console, signals <-chan os.Signal,
) (code int) {
	tmp, _ := filepath.EvalSymlinks(os.TempDir()) // of one that is not there, MkdirTemp has the error
	dir, err := os.MkdirTemp(tmp, "codex-mcp-demo")
	defer func() {
		code = max(code, exit(console.Err, os.RemoveAll(dir)))
	}()
	home := filepath.Join(dir, "home")
	a.folder = filepath.Join(dir, "work")
	a.folders = []string{a.folder}
	if err == nil {
		err = errors.Join(os.Mkdir(home, 0o700), os.Mkdir(a.folder, 0o700))
	}
	if err != nil {
		exit(console.Err, err)
		return terminal.StatusImpossible
	}
	a.engine = "native"
	// The flags of the user come between: they may set the policy, but not the provider.
	a.overrides = append(append([]string{
		"model=demo-script", `approval_policy="untrusted"`, `sandbox_mode="workspace-write"`,
	}, a.overrides...), "model_provider=demo",
		"model_providers.demo.base_url=http://demo.invalid/v1", "model_providers.demo.wire_api=responses")
	fmt.Fprintf(console.Err, "codex-mcp: demo: a script takes the place of the model; it works in %s, which is "+
		"removed at the end\n", a.folder)
	task := &terminal.Task{Prompt: "Show what codex-mcp does.", Folder: a.folder, JSON: a.json}
	getenv := func(name string) string {
		if name == "CODEX_HOME" {
			return home
		}
		return os.Getenv(name)
	}
	// also if nobody could decide
	if code = a.askOn(signalled, task, console, getenv, signals); code <= terminal.StatusFailed {
		fmt.Fprintf(console.Err, "\nNext: %s doctor says what a task with a real model needs.\nREADME.md says how to "+
			"install %[1]s.\n", a.name)
	}
	return code
}
