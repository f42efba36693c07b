package native_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestTodaysConfigReachesTheProvider checks that the settings of today's config.toml which the
// provider understands are in the request.
func TestTodaysConfigReachesTheProvider(t *testing.T) {
	for _, tt := range []struct{ name, config, want string }{
		{"effort", "model_reasoning_effort = \"max\"\nmodel_supports_reasoning_summaries = true", `"reasoning":{"effort":"max"`},
		{"live", "web_search = \"live\"", `{"type":"web_search"}`},
		{"cached", "web_search = \"cached\"", `{"type":"web_search","external_web_access":false}`},
		{"settings", "web_search = \"live\"\ntools.web_search = { context_size = \"low\", allowed_domains = [\"a.com\"], location = { country = \"NL\" } }",
			`{"type":"web_search","filters":{"allowed_domains":["a.com"]},"search_context_size":"low","user_location":{"country":"NL","type":"approximate"}}`},
		{"settings alone", "tools.web_search = { context_size = \"low\" }", ""},
	} {
		b := setup(t, tt.config+"\n---\nwire_api = \"responses\"", native.Limits{}, providertest.Say("ok"))
		turn(t, b.start(t, &host{}, protocol.Config{}), say("hi"))
		got := lastRequest(b)
		if !strings.Contains(got, tt.want) || tt.want == "" && strings.Contains(got, "web_search") {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}

func TestNotesAreLoggedOnce(t *testing.T) {
	b := setup(t, "model_reasoning_effort = \"utmost\"", native.Limits{}, providertest.Say("ok"))
	var log bytes.Buffer
	e, err := native.New(&native.Options{CodexHome: b.home, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b.engine = e
	for range 3 {
		b.start(t, &host{}, protocol.Config{})
	}
	if n := strings.Count(log.String(), "utmost"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

func TestToolsOfMCPServersAsConfigured(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, config string
		want         []string // the tools that are offered
	}{
		{"all", "", []string{"toy__ask_me", "toy__die", "toy__echo", "toy__fail"}},
		{"enabled", `enabled_tools = ["echo", "fail"]`, []string{"toy__echo", "toy__fail"}},
		{"asked about", `tools = { echo = { approval_mode = "prompt" } }`, []string{"toy__ask_me", "toy__die", "toy__fail"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, toy(tt.config), native.Limits{}, providertest.Say("ok"))
			turn(t, b.start(t, &host{}, protocol.Config{}), say("hi"))
			for _, name := range []string{"toy__ask_me", "toy__die", "toy__echo", "toy__fail"} {
				wanted := strings.Contains(strings.Join(tt.want, " "), name)
				if strings.Contains(lastRequest(b), `"`+name+`"`) != wanted {
					t.Errorf("%s is offered: %v", name, !wanted)
				}
			}
		})
	}
}

func TestQuestionsOfMCPServersDeclined(t *testing.T) {
	policy := "approval_policy = { granular = { sandbox_approval = true, rules = true, mcp_elicitations = false } }\n"
	b := setup(t, "", native.Limits{}, providertest.Call(providertest.ToolCall{ID: "c1", Name: "toy__ask_me", Arguments: `{}`}), providertest.Say("ok"))
	rewrite(t, b, `approval_policy = "untrusted"`+"\n", policy, toy(""))
	h := &elicitHost{host: &host{}}
	turn(t, b.start(t, h, protocol.Config{}), say("use it"))
	if h.params != "" {
		t.Errorf("the user was asked %s", h.params)
	}
	if out := b.provider.Requests()[1].LastToolOutput(); !strings.Contains(out, `decline`) {
		t.Errorf("the server received %s", out)
	}
}

// rewrite replaces a part of config.toml and adds tables at its end.
func rewrite(t *testing.T, b *bench, old, replacement, tables string) {
	t.Helper()
	path := filepath.Join(b.home, "config.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), old, replacement, 1) + strings.TrimPrefix(tables, "---\n")
	write(t, path, changed)
}
