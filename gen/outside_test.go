//go:build outside

package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/moduleproxy"
	"github.com/google/go-cmp/cmp"
)

// TestOtherModule follows docs/embed/embedding.md in the module of somebody else, who has the modules from a proxy: it
// generates the types of the Agent Client Protocol, talks to the agent that uses them, and reads a message with
// those of version 2 and of the Debug Adapter Protocol.
func TestOtherModule(t *testing.T) {
	t.Parallel()
	_, page, _ := strings.Cut(string(readFile(t, "../docs/embed/embedding.md")), "\n## Types from your own schema\n")
	command := regexp.MustCompile("(?m)^go (run .*/gen .*)$").FindStringSubmatch(page)
	program := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(page)
	if command == nil || program == nil {
		t.Fatal("docs/embed/embedding.md has no command or no program")
	}
	dir, env := t.TempDir(), moduleproxy.Environment(t, "..")
	writeFile(t, filepath.Join(dir, "main.go"), []byte(program[1]))
	writeFile(t, filepath.Join(dir, "more_test.go"), []byte(`package main

import (
	"testing"

	"example.org/agent/acp2"
	"example.org/agent/dap"
)

func TestMore(t *testing.T) {
	var prompt acp2.PromptRequest
	if err := acp2.DecodeStrict([]byte(`+"`"+`{"sessionId":"s1","prompt":[{"type":"text","text":"hello"}]}`+"`"+`), &prompt); err != nil {
		t.Error(err)
	} else if block, ok := prompt.Prompt[0].(*acp2.ContentBlockText); !ok || block.Text != "hello" {
		t.Errorf("%#v", prompt)
	}
	var stopped dap.StoppedEvent
	if err := dap.DecodeStrict([]byte(`+"`"+`{"seq":1,"type":"event","event":"stopped","body":{"reason":"step","threadId":7}}`+"`"+`), &stopped); err != nil || *stopped.Body.ThreadID != 7 {
		t.Errorf("%#v, %v", stopped, err)
	}
	if err := dap.DecodeStrict([]byte(`+"`"+`{"seq":1,"type":"event","event":"stopped"}`+"`"+`), &stopped); err == nil {
		t.Error("an event without its body is accepted")
	}
}
`))
	moduleproxy.Command(t, dir, env, "mod", "init", "example.org/agent")
	moduleproxy.Command(t, dir, env, "get", "github.com/codexmcp/codexmcp@"+moduleproxy.Version)
	for _, schema := range []struct{ file, out string }{{"acp", "acp"}, {"acp-v2", "acp2"}, {"dap", "dap"}} {
		writeFile(t, filepath.Join(dir, "schema.json"), unzip(t, "testdata/field/"+schema.file+".json.gz"))
		moduleproxy.Command(t, dir, env, strings.Fields(strings.Replace(command[1], "-out acp", "-out "+schema.out, 1))...)
	}
	if types := readFile(t, filepath.Join(dir, "acp", "zz_types.go")); !strings.Contains(string(types), "\n// Package acp has the types of ") {
		t.Error("the package has no comment")
	}
	moduleproxy.Command(t, dir, env, "test", ".")
	if got := moduleproxy.Command(t, dir, env, "list", "-m", "-f", "{{.Version}} {{.Replace}}", "github.com/codexmcp/codexmcp"); got != moduleproxy.Version+" <nil>\n" {
		t.Errorf("the module is %s", got)
	}

	agent := exec.CommandContext(t.Context(), "go", "run", ".")
	agent.Dir, agent.Env = dir, env
	agent.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true}}}
{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/src","mcpServers":[{"name":"files","command":"files","args":[],"env":[]}]}}
{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"hello"},{"type":"hologram"}]}}
{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"prompt":[]}}
`)
	out, err := agent.CombinedOutput()
	got := strings.SplitAfter(string(out), "\n")
	slices.Sort(got) // requests are handled at the same time
	const want = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}
{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}
{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"invalid params at /sessionId: required, but absent","data":{"path":"/sessionId"}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}
`
	if diff := cmp.Diff(want, strings.Join(got, "")); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
