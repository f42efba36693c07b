package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestSkill finds, reads and refuses the skill in each version of MCP that has resources.
func TestSkill(t *testing.T) {
	const (
		root  = "skill://delegating-to-codex"
		first = root + "/SKILL.md"
	)
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		c := servertest.Dial(t, codexserver.New(servertest.Script(), nil), nil)
		meta, hello, modern := "", "", version == "2026-07-28"
		if modern {
			meta = `"_meta":` + servertest.Meta
			hello = c.Ask(t, "server/discover", `{`+meta+`}`)
		} else {
			hello = c.Ask(t, "initialize", `{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
		}
		ask := func(method, members string) string {
			return c.Ask(t, method, `{`+strings.TrimSuffix(members+meta, ",")+`}`)
		}
		if version == "2025-06-18" {
			if got := ask("skills/list", ""); strings.Contains(hello, "io.modelcontextprotocol/skills") || !strings.Contains(got, "-32601") {
				t.Errorf("%s: %s, %s", version, hello, got)
			}
			continue
		}
		if !strings.Contains(hello, `"io.modelcontextprotocol/skills":{"directoryRead":true}`) {
			t.Errorf("%s: not declared: %s", version, hello)
		}
		for _, tt := range []struct{ method, members, want string }{
			{"skills/list", "", `"skills":[{"uri":"` + first},
			{"skills/list", `"cursor":"x",`, "params/cursor"},
			{"skills/get", `"uri":"` + first + `",`, `"skill":{"uri":"` + first},
			{"skills/get", `"uri":"` + root + `",`, "-32602"},
			{"skills/get", `"uri":5,`, "/uri: want a string"},
			{"skills/get", "", "/uri: "},
			{"resources/directory/read", `"uri":"` + root + `",`, `"mimeType":"inode/directory"`},
			{"resources/directory/read", `"uri":"` + first + `",`, "-32602"},
			{"resources/list", "", `"description":"How to hand`},
			{"resources/read", `"uri":"` + first + `",`, `"mimeType":"text/markdown"`},
			{"resources/read", `"uri":"` + root + `/references/results.md",`, "# What a result says"},
		} {
			got := ask(tt.method, tt.members)
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s: %s {%s}: %.300s, want %s", version, tt.method, tt.members, got, tt.want)
			}
			if cached := strings.Contains(got, `"resultType":"complete"`) && strings.Contains(got, `"ttlMs":`) && strings.Contains(got, `"cacheScope":"private"`); json.Valid([]byte(got)) && cached != modern {
				t.Errorf("%s: %s: how long it may be kept: %.300s", version, tt.method, got)
			}
		}
	}
}
