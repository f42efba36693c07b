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
	"github.com/google/go-cmp/cmp"
)

// offered returns the names of the tools of a request, and their length in bytes.
func offered(t *testing.T, body []byte) (names string, size int) {
	t.Helper()
	var request struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	for _, one := range request.Tools {
		size += len(one)
		var named struct {
			Name     string
			Function struct{ Name string }
		}
		if err := json.Unmarshal(one, &named); err != nil {
			t.Fatal(err)
		}
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
			e, err := native.New(&native.Options{CodexHome: t.TempDir(), Tools: tt.tools, Overrides: map[string]any{
				"model": "m", "model_provider": "p", "model_providers.p.base_url": model.BaseURL(), "model_providers.p.wire_api": tt.wire, "tools.view_image": false,
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() })
			c, err := e.Start(t.Context(), protocol.Config{Cwd: t.TempDir()}, &host{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			turn(t, c, say("go"))
			body := model.Requests()[0].Body
			names, size := offered(t, body)
			if names != tt.want {
				t.Errorf("tools %q, want %q", names, tt.want)
			}
			t.Logf("%d bytes of tools, %d of the request", size, len(body))
			if size > 4*2500 {
				t.Errorf("the tools have %d bytes", size)
			}
			if several := strings.Contains(string(body), `"parallel_tool_calls":true`); several != (tt.wire == "responses" && tt.want == files) {
				t.Errorf("the request allows several calls: %t", several)
			}
			if has := strings.Contains(string(body), "*** Begin Patch"); has == (tt.want == files) {
				t.Errorf("the instructions explain patches: %t", has)
			}
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
		if err := os.WriteFile(filepath.Join(b.cwd, fmt.Sprint("f", i)), fmt.Appendf(nil, "text %d\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	validRequests(t, b.provider)
}

// TestContinueFileTools cuts the file of a turn with the file tools after each of its lines, where
// each call that the file has is done, and continues the turn. No change is made twice.
func TestContinueFileTools(t *testing.T) {
	t.Parallel()
	b := setup(t, "", native.Limits{})
	b.provider.Add(stepModel(
		providertest.Tool("c1", "write", map[string]any{"path": "a", "content": "x\n"}),
		providertest.Tool("c2", "edit", map[string]any{"path": "a", "old": "x", "new": "xy"}),
		providertest.Tool("c3", "read", map[string]any{"path": "a"}),
	))
	h := &host{exec: allow}
	c := b.start(t, h, protocol.Config{})
	in := say("go")
	in.Key = "key"
	turn(t, c, in)
	path := configured(t, h).RolloutPath
	closed(t, c)
	lines := strings.SplitAfter(strings.TrimSuffix(rolloutText(t, path), "\n"), "\n")
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
