package native_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// offered returns the names of the tools of a request, and their length in bytes.
func offered(t *testing.T, body []byte) (names string, size int) {
	t.Helper()
	var request struct{ Tools []json.RawMessage }
	parse(t, body, &request)
	for _, one := range request.Tools {
		size += len(one)
		var named struct {
			Name     string
			Function struct{ Name string }
		}
		parse(t, one, &named)
		names += " " + named.Name + named.Function.Name
	}
	return strings.TrimSpace(names), size
}

// TestOfferedTools checks which tools each wire and setting offers, and that the file tools with
// the shell need at most 2,500 tokens of four bytes.
func TestOfferedTools(t *testing.T) {
	const files, codex = "shell read list search edit write", "shell"
	for _, tt := range []struct {
		wire  string
		tools setting.Tools
		want  string
	}{
		{"chat", "", files}, {"chat", setting.ToolsAuto, files}, {"responses", setting.ToolsAuto, codex},
		{"chat", setting.ToolsCodex, codex}, {"responses", setting.ToolsFiles, files},
	} {
		t.Run(fmt.Sprint(tt.wire, tt.tools), func(t *testing.T) {
			model := providertest.New(providertest.Say("ok"))
			t.Cleanup(model.Close)
			b := &bench{cwd: t.TempDir(), engine: open(t, native.Options{CodexHome: t.TempDir(), Tools: tt.tools, Overrides: map[string]any{
				"model": "m", "model_provider": "p", "model_providers.p.base_url": model.BaseURL(), "model_providers.p.wire_api": tt.wire, "tools.view_image": false,
			}})}
			turn(t, b.start(t, &host{}, protocol.Config{}), say("go"))
			body := model.Requests()[0].Body
			names, size := offered(t, body)
			diff(t, "tools", tt.want, names)
			t.Logf("%d bytes of tools, %d of the request", size, len(body))
			if size > 4*2500 {
				t.Errorf("the tools have %d bytes", size)
			}
			diff(t, "several calls are allowed", tt.wire == "responses" && tt.want == files, strings.Contains(string(body), `"parallel_tool_calls":true`))
			diff(t, "the instructions explain patches", tt.want != files, strings.Contains(string(body), "*** Begin Patch"))
		})
	}
	if _, err := native.New(&native.Options{CodexHome: t.TempDir(), Tools: "all"}); err == nil {
		t.Error("unknown tools are accepted")
	}
}

// TestManyReads checks that several reads of one answer end in the order of the calls.
func TestManyReads(t *testing.T) {
	var calls []providertest.ToolCall
	var want []string
	for i := range 6 {
		calls = append(calls, providertest.Tool(fmt.Sprint("c", i), "read", map[string]any{"path": fmt.Sprint("f", i)}))
		want = append(want, fmt.Sprintf("begin c%d", i), fmt.Sprintf("end c%d 1\ttext %d\n", i, i))
	}
	b := setup(t, "", native.Limits{}, providertest.Call(calls...), providertest.Say("done"))
	for i := range 6 {
		write(t, filepath.Join(b.cwd, fmt.Sprint("f", i)), fmt.Sprintf("text %d\n", i))
	}
	h := &host{exec: allow} // asked where there is no sandbox
	turn(t, b.start(t, h, protocol.Config{}), say("read"))
	var got []string
	for _, m := range h.events {
		switch m := m.(type) {
		case protocol.ExecCommandBegin:
			got = append(got, "begin "+m.CallID)
		case protocol.ExecCommandEnd:
			got = append(got, "end "+m.CallID+" "+m.Stdout)
		}
	}
	diff(t, "events", want, got)
	validRequests(t, b.provider)
}

// TestContinueFileTools cuts the file of a turn with the file tools after each of its lines, where
// each call that the file has is done, and continues the turn. No change is made twice.
func TestContinueFileTools(t *testing.T) {
	t.Parallel()
	b := setup(t, "", native.Limits{})
	path, lines := b.linesOf(t, protocol.Config{},
		providertest.Tool("c1", "write", map[string]any{"path": "a", "content": "x\n"}),
		providertest.Tool("c2", "edit", map[string]any{"path": "a", "old": "x", "new": "xy"}),
		providertest.Tool("c3", "read", map[string]any{"path": "a"}),
	)
	begun := false
	for i, line := range lines {
		begun = begun || strings.Contains(line, `"user_message"`)
		if !begun {
			continue
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			text := strings.Join(lines[:i+1], "")
			write(t, path, text)
			file := filepath.Join(b.cwd, "a")
			_ = os.Remove(file)
			for _, done := range []struct{ id, content string }{{"c1", "x\n"}, {"c2", "xy\n"}} {
				if strings.Contains(text, `"call_id":"`+done.id) {
					write(t, file, done.content)
				}
			}
			h := &host{exec: allow}
			answer, _, err := continued(t, b, path, "key", h)
			content, _ := os.ReadFile(file)
			if err != nil || string(content) != "xy\n" || !strings.HasPrefix(answer, "done: ") {
				t.Errorf("%q, %v; the file has %q", answer, err, content)
			}
		})
	}
	if !begun {
		t.Error("the turn is not in the file")
	}
}
