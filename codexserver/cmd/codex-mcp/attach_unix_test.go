//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestEndToEndAttach follows a turn of a server over HTTP.
func TestEndToEndAttach(t *testing.T) {
	t.Parallel()
	testAttach(t, func(f folders) (client func() *process, ask *exec.Cmd) {
		url := serveIn(t, f, "-engine", "native").url + mcpPath
		ask = exec.Command(built(t), "ask", "--connect", url)
		ask.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.user, "CODEX_HOME=" + f.home, detector()}
		return func() *process { return start(t, f, "--connect", url) }, ask
	})
}

// testAttach begins a turn in the background with a client that cannot show questions and
// leaves. The command ask, with --attach, follows the turn; without a terminal it cannot be
// asked, so another client answers.
func testAttach(t *testing.T, serve func(f folders) (client func() *process, ask *exec.Cmd)) {
	f := newFolders(t)
	ran := filepath.Join(f.cwd, "ran")
	model := providertest.New(providertest.Call(providertest.Shell("one", "bash", "-c", "echo one >> "+ran)), providertest.Say("Finished."))
	t.Cleanup(model.Close)
	writeConfig(t, f.home, "approval_policy = \"untrusted\"\n"+fmt.Sprintf(configOf, model.BaseURL()))
	client, ask := serve(f)
	first := client()
	seen := map[int]bool{}
	first.hello(`{}`)
	first.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"work","background":true}}}`)
	result, _ := first.expect(map[string]any{"id": 1.0}, seen)["result"].(map[string]any)
	structured, _ := result["structuredContent"].(map[string]any)
	id, _ := structured["threadId"].(string)
	if id == "" {
		t.Fatalf("no conversation: %v", result)
	}
	first.stdin.Close()
	first.wait()

	var out, errs bytes.Buffer
	ask.Args = append(ask.Args, "--attach", id)
	ask.Dir, ask.Stdout, ask.Stderr = f.cwd, &out, &errs
	if err := ask.Start(); err != nil {
		t.Fatal(err)
	}
	second := client()
	seen = map[int]bool{}
	second.hello(`{"elicitation":{}}`)
	second.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex-wait","arguments":{"threadIds":[%q]}}}`, id))
	question := second.expect(map[string]any{"method": "elicitation/create"}, seen)
	second.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"action":"accept","content":{}}}`, question["id"]))
	second.expect(map[string]any{"id": 2.0}, seen)
	if err := ask.Wait(); err != nil {
		t.Errorf("ask --attach: %v\n%s", err, &errs)
	}
	if text := errs.String(); out.String() != "Finished.\n" || !strings.Contains(text, "work") || !strings.Contains(text, "approved by client") {
		t.Errorf("ask --attach printed %q and %s", out.String(), text)
	}
	if data, err := os.ReadFile(ran); string(data) != "one\n" {
		t.Errorf("what ran: %q, %v", data, err)
	}
}

// TestAttachArguments checks the command line of ask --attach.
func TestAttachArguments(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string // part of the error; "" for none
	}{
		{[]string{"--attach", "x", "--connect", "http://127.0.0.1:1/mcp"}, ""},
		{[]string{"--attach", "x"}, ""},
		{[]string{"--attach", "x", "--connect", ""}, "want the URL"},
		{[]string{"--connect", "http://127.0.0.1:1/mcp", "do it"}, "--attach"},
		{[]string{"--attach", "", "--connect", "http://127.0.0.1:1/mcp"}, "want the id"},
		{[]string{"--attach", "x", "--connect", "http://127.0.0.1:1/mcp", "do it"}, "takes no task"},
		{[]string{"--attach", "x", "--connect", "http://127.0.0.1:1/mcp", "--resume", "last"}, "--resume"},
		{[]string{"--attach", "x", "--connect", "http://127.0.0.1:1/mcp", "-m", "gpt"}, "--model"},
	} {
		_, err := parse("codex-mcp", append([]string{"ask"}, tt.args...), &bytes.Buffer{}, &bytes.Buffer{})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.want)
		}
	}
}
