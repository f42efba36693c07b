package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestEndToEndPlantedPrograms has a command of one conversation put programs into a folder
// of the server's PATH. Then a conversation elsewhere begins, with a snapshot, a review, a
// worktree and an MCP server. A planted program that runs leaves a file where no command
// can write.
func TestEndToEndPlantedPrograms(t *testing.T) {
	for _, tt := range []struct {
		name string
		cwd  string // of the conversation whose command plants
		args []string
	}{
		{"the working folder of another conversation", "venv", nil},
		{"a configured writable folder", "other", []string{"-c", "sandbox_workspace_write.writable_roots=[%q]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolders(t)
			// Folders for temporary files have never counted.
			top, err := os.MkdirTemp(".", "planted-*")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(top) })
			if top, err = filepath.Abs(top); err != nil {
				t.Fatal(err)
			}
			at := func(name string) string { return filepath.Join(top, name) }
			for _, name := range []string{"venv/bin", "other", "repo"} {
				if err := os.MkdirAll(at(name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			repo := exec.CommandContext(t.Context(), "sh", "-c", "git init -q && echo 1 >a && git add a && git -c user.name=a -c user.email=a@b commit -qm x && echo 2 >a")
			repo.Dir = at("repo")
			if out, err := repo.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			script := fmt.Sprintf("for n in git tool; do printf '#!/bin/sh\\ntouch %s-%%s\\nexec /usr/bin/git \"$@\"\\n' $n >bin/$n && chmod +x bin/$n; done; ls bin", at("ran"))
			model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
				if strings.Contains(string(r.Body), "plant them") && len(r.ToolOutputs()) == 0 {
					return providertest.Call(providertest.Shell("c1", "sh", "-c", "cd "+at("venv")+" && "+script))
				}
				return providertest.Say(`{"findings":[],"overall_correctness":"patch is correct","overall_explanation":"x","overall_confidence_score":1}`)
			}})
			t.Cleanup(model.Close)
			t.Setenv("PATH", at("venv/bin")+":"+os.Getenv("PATH"))
			args := []string{"-c", "approval_policy=never", "-c", "sandbox_mode=workspace-write", "-c", "calls.full_access=allow", "-c", `mcp_servers.planted.command="tool"`}
			for _, arg := range tt.args {
				args = append(args, strings.ReplaceAll(arg, "%q", fmt.Sprintf("%q", at("venv"))))
			}
			s := startHTTP(t, f, model, args...)
			call := func(name, arguments string) string {
				t.Helper()
				status, body, err := s.tool(name, arguments)
				if status != 200 || err != nil {
					t.Fatalf("%s %s: %d %s %v", name, arguments, status, body, err)
				}
				return body
			}
			call("codex", fmt.Sprintf(`{"prompt":"plant them","cwd":%q}`, at(tt.cwd)))
			planted, err := os.ReadDir(at("venv/bin"))
			if err != nil || len(planted) != 2 {
				t.Fatalf("the command planted %v, %v", planted, err)
			}
			call("codex", fmt.Sprintf(`{"prompt":"work","cwd":%q}`, at("repo")))
			if body := call("codex-review", fmt.Sprintf(`{"target":"uncommitted","cwd":%q}`, at("repo"))); strings.Contains(body, `"isError":true`) {
				t.Errorf("no review: %s", body)
			}
			if body := call("codex", fmt.Sprintf(`{"prompt":"work","cwd":%q,"worktree":true}`, at("repo"))); strings.Contains(body, `"isError":true`) {
				t.Errorf("no worktree: %s", body)
			}
			if ran, err := filepath.Glob(at("ran-*")); err != nil || len(ran) > 0 {
				t.Errorf("planted programs ran: %v %v", ran, err)
			}
			if log := s.errors(); strings.Contains(log, "no snapshot") {
				t.Errorf("git of the system was not used: %s", log)
			}
		})
	}
}
