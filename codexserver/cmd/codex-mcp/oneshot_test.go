package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

const (
	sayHello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}}` + "\n"
	callOnce = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"work"}}}` + "\n"
)

// oneShot pipes an input into a program and returns its answer and its standard error.
func oneShot(t *testing.T, program, policy, input string, model *providertest.Server, env []string, args ...string) (answer map[string]any, f folders, stderr string) {
	t.Helper()
	f = newFolders(t)
	config := fmt.Sprintf("approval_policy = %q\n"+configOf, policy, model.BaseURL())
	writeConfig(t, f.home, config)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdin = f.cwd, strings.NewReader(input)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.user, "CODEX_HOME=" + f.home}, env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v:\n%s", err, &said)
	}
	for line := range bytes.Lines(out) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if m["id"] == 1.0 {
			answer = m
		}
	}
	return answer, f, said.String()
}

// TestEndToEndOneShot pipes requests into the program, as in codex-mcp <request.json. The
// command takes longer than the server waits after a client has gone.
func TestEndToEndOneShot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, policy, input string
		args                []string
		made                bool
		says                string
	}{
		{"a call alone", "never", callOnce, nil, true, "Finished."},
		{"a call alone, with a question", "untrusted", callOnce, nil, false, "cannot show approval requests"},
		{"a session", "never", sayHello + callOnce, nil, false, "the client closed the connection"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			model := providertest.New(providertest.Call(providertest.Shell("c", "sh", "-c", "sleep 0.5; touch made")), providertest.Say("Finished."))
			t.Cleanup(model.Close)
			bin := built(t)
			answer, f, _ := oneShot(t, bin, tt.policy, tt.input, model, nil, append([]string{"-engine", "native"}, tt.args...)...)
			if got := line(answer); !strings.Contains(got, tt.says) {
				t.Errorf("answered %s, want %q", got, tt.says)
			}
			if _, err := os.Stat(filepath.Join(f.cwd, "made")); (err == nil) != tt.made {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

// TestEndToEndCalledCodex starts the program by a link called codex, which is
// also the first codex of its PATH, with a command line that cannot be changed.
func TestEndToEndCalledCodex(t *testing.T) {
	t.Parallel()
	bin := built(t)
	dir := t.TempDir()
	link := filepath.Join(dir, "codex")
	if err := os.Symlink(bin, link); err != nil {
		t.Fatal(err)
	}
	model := providertest.New(providertest.Say("Served."))
	t.Cleanup(model.Close)
	// The PATH has no other Codex.
	answer, _, stderr := oneShot(t, link, "never", callOnce, model, []string{"PATH=" + dir, "CODEX_BIN="}, "-m", "gpt-5.3-codex", "mcp-server", "-log", "info")
	if got := line(answer); !strings.Contains(got, "Served.") {
		t.Errorf("answered %s", got)
	}
	if !strings.Contains(stderr, "name=native") || !strings.Contains(stderr, "is codex-mcp itself, and not Codex") {
		t.Errorf("standard error holds\n%s", stderr)
	}
	if got := string(model.Requests()[0].Body); !strings.Contains(got, `"model":"gpt-5.3-codex"`) {
		t.Errorf("the model was asked %s", got)
	}
}
