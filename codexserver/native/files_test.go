package native_test

import (
	"encoding/json"
	"fmt"
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
