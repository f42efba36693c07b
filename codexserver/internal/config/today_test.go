package config_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

const granular = "approval_policy = { granular = { sandbox_approval = true, rules = true, mcp_elicitations = true } }\n"

func TestTodaysConfig(t *testing.T) {
	type result struct {
		Policy    protocol.ApprovalPolicy
		Declines  bool
		Effort    protocol.ReasoningEffort
		Search    bool
		WebSearch config.WebSearch
		Notes     int
	}
	usual := func(change func(*result)) result {
		r := result{Policy: protocol.ApprovalOnRequest}
		change(&r)
		return r
	}
	for _, tt := range []struct {
		name, file string
		want       result
	}{
		{"nothing", "", usual(func(*result) {})},
		{"granular", granular, usual(func(r *result) { r.Notes = 1 })},
		{"granular without approvals", strings.Replace(granular, "sandbox_approval = true", "sandbox_approval = false", 1),
			usual(func(r *result) { r.Policy, r.Notes = protocol.ApprovalNever, 1 })},
		{"granular without questions of servers", strings.Replace(granular, "elicitations = true", "elicitations = false, request_permissions = true", 1),
			usual(func(r *result) { r.Declines, r.Notes = true, 1 })},
		{"effort max", "model_reasoning_effort = \"max\"", usual(func(r *result) { r.Effort = "max" })},
		{"effort none", "model_reasoning_effort = \"none\"", usual(func(r *result) { r.Effort = "none" })},
		{"an unknown effort", "model_reasoning_effort = \"utmost\"", usual(func(r *result) { r.Effort, r.Notes = "utmost", 1 })},
		{"the old key", "[tools]\nweb_search = true", usual(func(r *result) { r.Search = true })},
		{"a table alone", "[tools.web_search]\ncontext_size = \"low\"", usual(func(r *result) { r.WebSearch.ContextSize, r.Notes = "low", 1 })},
		{"a table and live", "web_search = \"live\"\n[tools.web_search]\nallowed_domains = [\"a.com\"]\nlocation = { country = \"NL\" }", usual(func(r *result) {
			r.Search, r.WebSearch = true, config.WebSearch{AllowedDomains: []string{"a.com"}, Location: config.Location{Country: "NL"}}
		})},
		{"cached", "web_search = \"cached\"", usual(func(r *result) { r.Search, r.WebSearch.Cached = true, true })},
		{"disabled wins", "web_search = \"disabled\"\n[tools]\nweb_search = true", usual(func(*result) {})},
	} {
		c := loaded(t, tt.file, config.Layers{})
		got := result{c.ApprovalPolicy, c.DeclineElicitations, c.ReasoningEffort, c.Tools.WebSearch, c.WebSearch, len(c.Notes)}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s\n%q", tt.name, d, c.Notes)
		}
	}
}

// TestTodaysConfigInLayers checks that overrides are read like the file, and that a
// string replaces a table.
func TestTodaysConfigInLayers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		layers config.Layers
		want   protocol.ApprovalPolicy
	}{
		{"a string over a table", config.Layers{Overrides: map[string]any{"approval_policy": "untrusted"}}, protocol.ApprovalUntrusted},
		{"a key of the table", config.Layers{Overrides: map[string]any{"approval_policy.granular.sandbox_approval": false}}, protocol.ApprovalNever},
		{"the argument", config.Layers{Call: protocol.Config{ApprovalPolicy: protocol.ApprovalOnFailure}}, protocol.ApprovalOnFailure},
		{"a table of the call", config.Layers{Call: protocol.Config{Overrides: raw("approval_policy",
			`{"granular":{"sandbox_approval":false,"rules":false,"mcp_elicitations":false}}`)}}, protocol.ApprovalNever},
		{"true over a table", config.Layers{Overrides: map[string]any{"tools.web_search": true}}, protocol.ApprovalOnRequest},
	} {
		if c := loaded(t, granular+"[tools.web_search]\ncontext_size = \"low\"\n", tt.layers); c.ApprovalPolicy != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, c.ApprovalPolicy, tt.want)
		}
	}
}

func TestOpenAIBaseURL(t *testing.T) {
	for _, tt := range []struct{ file, env, want string }{
		{"", "", "https://api.openai.com/v1"},
		{"", "http://env", "http://env"},
		{`openai_base_url = "http://key"`, "http://env", "http://key"},
		{"openai_base_url = \"http://key\"\n[model_providers.openai]\nbase_url = \"http://table\"", "", "http://table"},
	} {
		if c := loaded(t, tt.file, config.Layers{OpenAIBaseURL: tt.env}); c.Provider().BaseURL != tt.want {
			t.Errorf("%q: %q, want %q", tt.file, c.Provider().BaseURL, tt.want)
		}
	}
}

func TestProfileFiles(t *testing.T) {
	dir := home(t, map[string]string{
		"config.toml":      file,
		"own.config.toml":  "model = \"own\"\nmodel_instructions_file = \"i.md\"\n",
		"fast.config.toml": "model = \"fast file\"\nmodel_instructions_file = \"/absolute.md\"\n",
		"bad.config.toml":  "model = \n",
	})
	for name, want := range map[string]string{"own": "own", "fast": "fast file"} {
		c, err := config.Load(config.Layers{Home: dir, Call: protocol.Config{Profile: name}})
		if err != nil || c.Model != want {
			t.Errorf("%s: %v, want the model %q", name, err, want)
		}
		if name == "fast" && c.InstructionsFile != "/absolute.md" {
			t.Errorf("the instructions are %q, want the absolute path", c.InstructionsFile)
		}
		if name == "own" && !strings.HasPrefix(c.InstructionsFile, dir) {
			t.Errorf("the instructions are %q, want a path next to the file", c.InstructionsFile)
		}
	}
	whole := home(t, map[string]string{"config.toml": "model_instructions_file = \"i.md\"\n"})
	if c, err := config.Load(config.Layers{Home: whole}); err != nil || c.InstructionsFile != whole+"/i.md" {
		t.Errorf("the instructions are %q, %v", c.InstructionsFile, err)
	}
	for name, want := range map[string]string{"bad": "bad.config.toml:1:", "../own": `there is no "../own"`, "nosuch": "is missing"} {
		if _, err := config.Load(config.Layers{Home: dir, Call: protocol.Config{Profile: name}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestAllowedTools(t *testing.T) {
	for _, tt := range []struct {
		server string
		want   string // of the tools a, b and c
	}{
		{"", "abc"},
		{`enabled_tools = ["a", "b"]` + "\n" + `disabled_tools = ["b"]`, "a"},
		{`enabled_tools = []`, ""},
		{`default_tools_approval_mode = "prompt"` + "\n" + `tools = { c = { approval_mode = "approve" } }`, "c"},
		{`tools = { a = { approval_mode = "prompt" }, b = { approval_mode = "what comes" }, c = { approval_mode = 1 } }`, ""},
		{`tools = { a = { approval_mode = "auto" }, b = {}, c = 1 }`, "abc"},
	} {
		c, got := loaded(t, "[mcp_servers.s]\n"+tt.server, config.Layers{}), ""
		for _, name := range []string{"a", "b", "c"} {
			if c.MCPServers["s"].Allows(name) {
				got += name
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.server, got, tt.want)
		}
	}
}

// TestMisplacedOverrides checks that an override that replaces one of our tables with a string
// is ignored with a note.
func TestMisplacedOverrides(t *testing.T) {
	s, codex, err := config.LoadSettings(t.TempDir(), []string{
		"sandbox=workspace-write", "http=x", "approvals=never", "limits=5", "model=m", `"approvals"=1`,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(codex) != 1 || len(s.Ignored) != 5 {
		t.Errorf("for Codex %v, ignored %q", codex, s.Ignored)
	}
	if want := "-c sandbox is ignored: sandbox is a table of codex-mcp.toml, and no key of Codex; write sandbox_mode"; s.Ignored[0] != want {
		t.Errorf("%q, want %q", s.Ignored[0], want)
	}
	for _, wrong := range []string{"approvals={nosuch=1}", "calls.trusted=1"} {
		if _, _, err := config.LoadSettings(t.TempDir(), []string{wrong}); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}
