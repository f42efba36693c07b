package config_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseOverride(t *testing.T) {
	for _, tt := range []struct {
		in    string
		key   string
		value any
		err   string
	}{
		{in: "model=gpt-5", key: "model", value: "gpt-5"},
		{in: `model="gpt-5"`, key: "model", value: "gpt-5"},
		{in: " model = gpt-5 ", key: "model", value: "gpt-5"},
		{in: "a.b=true", key: "a.b", value: true},
		{in: "a=1", key: "a", value: int64(1)},
		{in: "a=1.5", key: "a", value: 1.5},
		{in: `a=["x", "y"]`, key: "a", value: []any{"x", "y"}},
		{in: "a={b=1}", key: "a", value: map[string]any{"b": int64(1)}},
		{in: "a=b=c", key: "a", value: "b=c"},
		{in: "a=", key: "a", value: ""},
		{in: "a='quoted text", key: "a", value: "quoted text"},
		{in: "a=1\nb = 2", key: "a", value: "1\nb = 2"},
		{in: "a=2025-01-02", key: "a", value: "2025-01-02"},
		{in: "a=2s", key: "a", value: "2s"},
		{in: `projects."/a.b".trust_level=trusted`, key: `projects."/a.b".trust_level`, value: "trusted"},
		{in: "novalue", err: "-c novalue: want KEY=VALUE"},
		{in: "=x", err: "-c =x: want KEY=VALUE"},
		{in: "a..b=x", err: `-c: key "a..b": want a name before and after each dot`},
		{in: `a."b=x`, err: "unterminated basic string"},
		{in: `a."b"c=x`, err: "expected '='"},
	} {
		key, value, err := config.ParseOverride(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %q", tt.in, err, tt.err)
			}
		} else if d := cmp.Diff([]any{tt.key, tt.value}, []any{key, value}); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.in, err, d)
		}
	}
}

const file = `
model = "from file"
model_context_window = 1
approval_policy = "never"
model_provider = "local"
[model_providers.local]
base_url = "http://localhost:1"
http_headers = { "X-A" = "file" }
[profiles.fast]
model = "from profile"
model_context_window = 2
model_verbosity = "low"
[tui]
anything = "goes"
`

func home(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// load loads config.toml with a text, and other layers.
func load(t *testing.T, file string, l config.Layers) (*config.Config, error) {
	t.Helper()
	l.Home = home(t, map[string]string{"config.toml": file})
	return config.Load(l)
}

// loaded is [load] without an error.
func loaded(t *testing.T, file string, l config.Layers) *config.Config {
	t.Helper()
	c, err := load(t, file, l)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

// settings loads codex-mcp.toml with a text, and arguments.
func settings(t *testing.T, file string, args ...string) (s *config.Settings, codex map[string]any, err error) {
	t.Helper()
	return config.LoadSettings(home(t, map[string]string{config.SettingsFile: file}), args)
}

func raw(members ...string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for i := 0; i < len(members); i += 2 {
		out[members[i]] = json.RawMessage(members[i+1])
	}
	return out
}

// TestByteOrderMark reads files as editors of Windows write them.
func TestByteOrderMark(t *testing.T) {
	dir := home(t, map[string]string{"config.toml": "\ufeff" + file, "codex-mcp.toml": "\ufeff[approvals]\npage_port = 7\n"})
	c, err := config.Load(config.Layers{Home: dir})
	if err != nil || c.Model != "from file" {
		t.Errorf("%+v, %v", c, err)
	}
	if s, _, err := config.LoadSettings(dir, nil); err != nil || s.Approvals.PagePort != 7 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestPrecedence(t *testing.T) {
	type result struct {
		Model     string
		Window    int64
		Verbosity string
	}
	for _, tt := range []struct {
		name      string
		overrides map[string]any
		call      protocol.Config
		want      result
	}{
		{"file", nil, protocol.Config{}, result{"from file", 1, ""}},
		{"profile", nil, protocol.Config{Profile: "fast"}, result{"from profile", 2, "low"}},
		{"profile of -c", map[string]any{"profile": "fast"}, protocol.Config{}, result{"from profile", 2, "low"}},
		{"profile of the call's config", nil, protocol.Config{Overrides: raw("profile", `"fast"`)}, result{"from profile", 2, "low"}},
		{"profile made of -c", map[string]any{"profiles.own.model": "made"}, protocol.Config{Profile: "own"}, result{"made", 1, ""}},
		{"-c over profile", map[string]any{"model": "from -c"}, protocol.Config{Profile: "fast"}, result{"from -c", 2, "low"}},
		{"config over -c", map[string]any{"model": "from -c", "model_context_window": int64(3)},
			protocol.Config{Profile: "fast", Overrides: raw("model", `"from config"`)}, result{"from config", 3, "low"}},
		{"argument over config", map[string]any{"model": "from -c"},
			protocol.Config{Model: "argument", Overrides: raw("model", `"from config"`)}, result{"argument", 1, ""}},
		{"null is ignored", nil, protocol.Config{Overrides: raw("model", `null`)}, result{"from file", 1, ""}},
	} {
		c := loaded(t, file, config.Layers{Overrides: tt.overrides, Call: tt.call})
		if got := (result{c.Model, c.ContextWindow, c.Verbosity}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestTablesAreMerged(t *testing.T) {
	c := loaded(t, file, config.Layers{
		Overrides: map[string]any{"model_providers.local.wire_api": "responses", "approvals.timeout": "1s"},
		Call: protocol.Config{Overrides: raw(
			"model_providers", `{"local":{"http_headers":{"X-B":"call"}}}`,
			"model_providers.local.query_params", `{"v":"1"}`)}})
	want := config.Provider{
		BaseURL: "http://localhost:1", WireAPI: config.WireResponses,
		HTTPHeaders: map[string]string{"X-A": "file", "X-B": "call"},
		QueryParams: map[string]string{"v": "1"},
	}
	if d := cmp.Diff(want, c.Provider()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDefaults(t *testing.T) {
	c := loaded(t, "", config.Layers{})
	if c.Model != "gpt-5-codex" || c.ApprovalPolicy != protocol.ApprovalOnRequest || c.SandboxMode != protocol.SandboxReadOnly ||
		c.Provider().WireAPI != config.WireResponses || !c.Provider().RequiresOpenAIAuth {
		t.Errorf("defaults %+v", c)
	}
}

// TestErrorsNameTheKey has files that are refused. No error shows a value that may be a secret.
func TestErrorsNameTheKey(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"model = \"a\"\nx = [1,,\n", "config.toml:2:8: expected"},
		{"\ufeffmodel = \"a\"\nx = [1,,\n", "config.toml:2:8: expected"},
		{"\xff\xfem\x00o\x00", "config.toml: the file is UTF-16, and TOML is UTF-8: save it as UTF-8"},
		{"\xfe\xff\x00m\x00o", "config.toml: the file is UTF-16"},
		{"m\x00o\x00", "config.toml: the file is UTF-16"},
		{"model = \"a\"\n\ufeffx = 1\n", "config.toml:2:1:"},
		{"model = \"a\"\nmodel = \"b\"\n", "config.toml:2:"},
		{`model_context_window = "big"`, "model_context_window: want an integer, have a string"},
		{`model = 7`, "model: want a string, have a number"},
		{"[model_providers.\"a.b\"]\nbase_url = true", `model_providers."a.b".base_url: want a string, have a boolean`},
		{`notify = ["a", 1]`, "notify.1: want a string"},
		{`tools = "all"`, "tools: want a table, have a string"},
		{`approval_policy = "always"`, `approval_policy: "always" is not one of`},
		{`sandbox_mode = "none"`, `sandbox_mode: "none"`},
		{"[model_providers.x]\nwire_api = \"soap\"", "model_providers.x.wire_api"},
		{`profile = "nosuch"`, `config.toml:1: profile: there is no "nosuch"`},
		{"\nprofile = 1", `config.toml:2: profile: want a string`},
		{strings.Repeat("#", 4<<20+1), "config.toml has more than 4194304 bytes"},
		{`model_provider = "nosuch"`, `config.toml:1: model_provider: there is no "nosuch"`},
		{"[model_providers.x.http_headers]\nAuthorization = [\"hunter2\"]", "model_providers.x.http_headers.Authorization: want a string, have an array"},
		{"model = \"m\"\napproval_policy = { granular = { sandbox_approval = \"yes\", rules = true, mcp_elicitations = true } }", "config.toml:2: approval_policy.granular.sandbox_approval: want a boolean"},
		{"approval_policy = { granular = { sandbox_approval = true } }", "approval_policy.granular: "},
		{"approval_policy = { reject = {} }", "config.toml:1: approval_policy: want untrusted, on-failure, on-request or never, or a table"},
		{"approval_policy = 5", "config.toml:1: approval_policy: want a string"},
		{"model_reasoning_effort = \"\"", "config.toml:1: model_reasoning_effort: is empty"},
		{"model_reasoning_effort = 3", "config.toml:1: model_reasoning_effort: want a string"},
		{"web_search = \"bogus\"", `config.toml:1: web_search: "bogus" is not one of`},
		{"web_search = true", "config.toml:1: web_search: want a string"},
		{"[tools.web_search]\ncontext_size = \"huge\"", `config.toml:2: tools.web_search.context_size: "huge" is not one of`},
		{"[tools.web_search]\nallowed_domains = \"a.com\"", "config.toml:2: tools.web_search.allowed_domains: want an array"},
		{"tools = { web_search = \"on\" }", "tools.web_search: want a boolean"},
		{"openai_base_url = 1", "config.toml:1: openai_base_url: want a string"},
	} {
		if _, err := load(t, tt.file, config.Layers{}); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.80q: %v, want %q", tt.file, err, tt.want)
		}
	}
}

// TestLayersThatCannotBeRead has keys of the command line and of a call with an empty segment, and
// a member twice.
func TestLayersThatCannotBeRead(t *testing.T) {
	for _, layers := range []config.Layers{
		{Overrides: map[string]any{"a..b": 1}},
		{Call: protocol.Config{Overrides: raw("a", `{"b":1,"b":2}`)}},
		{Call: protocol.Config{Overrides: raw("a..b", `1`)}},
	} {
		layers.Home = t.TempDir()
		if _, err := config.Load(layers); err == nil {
			t.Errorf("%+v was loaded", layers)
		}
	}
	if _, err := config.Load(config.Layers{Home: home(t, map[string]string{"config.toml": strings.Repeat("#", 4<<20)})}); err != nil {
		t.Errorf("the longest file: %v", err)
	}
}

func TestSettings(t *testing.T) {
	s, codex, err := settings(t, "[approvals]\non_cancel = \"deny\"\ntimeout = \"1m\"\n[limits]\ntokens = 5\n",
		"approvals.timeout=2s", "model=x", "approvals.where=both", "limits.wall_time=1h", "tools.web_search=true")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(elicit.Options{OnCancel: "deny", Timeout: 2 * time.Second}, s.Approvals.Options); d != "" {
		t.Errorf("approvals (-want +got):\n%s", d)
	}
	if s.Approvals.Where != "both" || !s.Approvals.Pages() || s.Approvals.PagePort != 0 {
		t.Errorf("%q, page on port %d", s.Approvals.Where, s.Approvals.PagePort)
	}
	if d := cmp.Diff(setting.Limits{ModelRequests: 1000, Tokens: 5, WallTime: time.Hour, Command: 2 * time.Minute}, s.Limits); d != "" {
		t.Errorf("limits (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]any{"model": "x", "tools": map[string]any{"web_search": true}}, codex); d != "" {
		t.Errorf("for the engine (-want +got):\n%s", d)
	}
}

func TestInvalidSettings(t *testing.T) {
	const atFile = "FILE" // stands for the path of codex-mcp.toml
	for _, tt := range []struct{ name, file, flag, want string }{
		{"syntax", "[approvals", "", atFile + ":1:10: expected"},
		{"unknown key", "[approvals]\non_cancle = \"deny\"", "", atFile + ":2: approvals.on_cancle: unknown key; do you mean approvals.on_cancel?"},
		{"unknown table", "[aprovals]\n", "", atFile + ":1: aprovals: unknown key; do you mean approvals?"},
		{"word", "", "approvals.on_error=approve", `-c approvals.on_error: "approve" is not deny, abort or fail-call`},
		{"word in the file", "# note\n[approvals]\n\non_error = \"approve\"", "", atFile + `:4: approvals.on_error: "approve" is not deny, abort or fail-call`},
		{"time", "", "approvals.timeout=soon", "-c approvals.timeout: want a duration"},
		{"time in the file", "approvals.timeout = \"soon\"", "approvals.on_error=deny", atFile + ":1: approvals.timeout: want a duration"},
		{"flag over file", "approvals.timeout = \"1s\"", "approvals.timeout=soon", "-c approvals.timeout: want a duration"},
		{"negative", "", "approvals.timeout=-1s", "-c approvals.timeout: want a duration"},
		{"locked", "calls.locked_arguments = [\"confg\"]", "", atFile + `:1: calls.locked_arguments: "confg" is not one of`},
		{"tools", "", `calls.tools=["codex-nap"]`, `-c calls.tools: "codex-nap" is not one of codex-interrupt`},
		{"a type", "", `calls.tools=[1]`, `-c calls.tools.0: want a string, have a number`},
		{"unlocked", "[http]\nunlocked_arguments = [\"cwd\"]", "", atFile + `:2: http.unlocked_arguments: "cwd" is not one of`},
		{"port", "", "approvals.page_port=65536", "-c approvals.page_port: 65536 is not a port"},
		{"where", "", "approvals.where=here", `-c approvals.where: "here" is not client, page or both`},
		{"where of a client", "", "approvals.clients={x=\"here\"}", `-c approvals.clients: x: "here" is not client, page or both`},
		{"time of a command", "[limits]\ncommand = 0", "", atFile + ":2: limits.command: want at least 1ms"},
		{"no value", "", "novalue", "-c novalue: want KEY=VALUE"},
		{"patience", "[calls]\npatience = 0.5", "", atFile + `:2: calls.patience: want "auto", 0, or a second or more`},
		{"patience before now", "", "calls.patience=-5", "-c calls.patience: want"},
		{"patience of another type", "", "calls.patience=true", "-c calls.patience: want"},
		{"patience that is short", "", "calls.patience=999ms", "-c calls.patience: want"},
		{"port below 0", "", "approvals.page_port=-1", "-c approvals.page_port: -1 is not a port"},
		{"origin that is no address", "", "approvals.page_origin=page", "-c approvals.page_origin: want https://HOST"},
		{"origin without TLS", "", "approvals.page_origin=http://pages.example", "-c approvals.page_origin: want https"},
		{"origin with a path", "", "approvals.page_origin=https://pages.example/codex", "-c approvals.page_origin: want https://HOST"},
		{"origin without a port", "", "approvals.page_origin=https://pages.example", "-c approvals.page_origin: it needs approvals.page_port"},
		{"requests", "", "limits.model_requests=-1", "-c limits.model_requests: want at least 0"},
		{"tokens", "", "limits.tokens=-1", "-c limits.tokens: want at least 0"},
		{"tasks", "", "limits.tasks=0", "-c limits.tasks: want at least 1"},
		{"result", "", "limits.result=4095", "-c limits.result: want at least 4096"},
		{"command", "", "limits.command=999us", "-c limits.command: want at least 1ms"},
		{"notifier", `notify.command=["", "x"]`, "", atFile + ":1: notify.command: want a program"},
		{"notifier with a NUL", `notify.command=["x", "a\u0000"]`, "", atFile + ":1: notify.command: a word has a NUL"},
		{"tasks that", "", "calls.tasks=always", `-c calls.tasks: "always" is not auto or never`},
		{"model's tools", "model_tools='all'", "", atFile + `:1: model_tools: "all" is not auto, files or codex`},
		{"another provider", "failover.to = [{provider = 'b'}]", "", atFile + ":1: failover.to: to[0]: it needs a provider and a model"},
		{"no table", "sandbox = 'x'", "", atFile + ":1: sandbox: want a table, have a string"},
		{"rule that is a text", "approvals.allow = [\"go test\"]", "", atFile + ":1: approvals.allow.0: want a list"},
		{"rule with a number", "approvals.allow = [[\"go\", 1]]", "", atFile + ":1: approvals.allow.0: want a list"},
		{"rule without words", "approvals.allow = [{command = []}]", "", atFile + ":1: approvals.allow.0: want a list"},
		{"rule without a command", "approvals.allow = [{outside = true}]", "", atFile + ":1: approvals.allow.0: want a list"},
		{"rule with another key", "approvals.allow = [{command = [\"go\"], outsid = true}]", "", atFile + ":1: approvals.allow.0: want a list"},
		{"rule with another type", "approvals.allow = [{command = [\"go\"], outside = \"yes\"}]", "", atFile + ":1: approvals.allow.0: want a list"},
		{"a key of the file alone", "", "sandbox.strict=true", "-c sandbox.strict: is set in codex-mcp.toml"},
		{"a table of the file alone", "", "notify.command=['x']", "-c notify.command: is set in codex-mcp.toml"},
		{"another of the file alone", "", "shared=true", "-c shared: is set in codex-mcp.toml"},
	} {
		var flags []string
		if tt.flag != "" {
			flags = []string{tt.flag}
		}
		dir := home(t, map[string]string{config.SettingsFile: tt.file})
		_, _, err := config.LoadSettings(dir, flags)
		want := strings.Replace(tt.want, atFile, filepath.Join(dir, config.SettingsFile), 1)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, want)
		}
	}
}

// TestHome finds the folder of the configuration, and its profiles.
func TestHome(t *testing.T) {
	user := t.TempDir()
	t.Setenv("HOME", user)
	for env, want := range map[string]string{"": filepath.Join(user, ".codex"), "/etc/codex": "/etc/codex"} {
		if got, err := config.Home(func(string) string { return env }); got != want || err != nil {
			t.Errorf("CODEX_HOME=%s: %q, %v, want %q", env, got, err, want)
		}
	}
	t.Setenv("HOME", "")
	if got, err := config.Home(func(string) string { return "" }); err == nil {
		t.Errorf("without a home: %q", got)
	}
}

func TestProfiles(t *testing.T) {
	dir := home(t, map[string]string{"config.toml": file + "[profiles.b]\n", "fast.config.toml": "", "a.config.toml": "", ".config.toml": "", "notes.toml": ""})
	if err := os.Mkdir(filepath.Join(dir, "folder.config.toml"), 0o700); err != nil {
		t.Fatal(err)
	}
	for home, want := range map[string][]string{dir: {"a", "b", "fast"}, filepath.Join(dir, "none"): nil} {
		got, err := config.Profiles(home)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	}
	for _, wrong := range []string{home(t, map[string]string{"config.toml": "x"}), filepath.Join(dir, "a.config.toml")} {
		if got, err := config.Profiles(wrong); err == nil {
			t.Errorf("%s: %q", wrong, got)
		}
	}
}

// TestKeyVariables checks that every variable with a key is named: commands do not get these.
func TestKeyVariables(t *testing.T) {
	c := loaded(t, `
[model_providers.b]
env_key = "B_KEY"
[model_providers.a]
env_key = "SAME_KEY"
env_http_headers = { "X-Key" = "A_HEADER" }
[mcp_servers.s]
url = "http://localhost"
bearer_token_env_var = "S_TOKEN"
env_http_headers = { "X-Key" = "SAME_KEY" }
[mcp_servers.t]
command = "t"
bearer_token_env_var = ""
`, config.Layers{})
	if d := cmp.Diff([]string{"A_HEADER", "B_KEY", "SAME_KEY", "S_TOKEN"}, c.KeyVariables()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSandbox(t *testing.T) {
	const table = "[sandbox_workspace_write]\nwritable_roots = [\"/r\"]\n"
	for file, want := range map[string]protocol.SandboxPolicy{
		"sandbox_mode = \"read-only\"\n" + table + "network_access = true\n": {Mode: protocol.SandboxReadOnly},
		"sandbox_mode = \"workspace-write\"\n" + table:                       {Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{"/r"}},
		"sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nnetwork_access = true\nexclude_slash_tmp = true\n": {
			Mode: protocol.SandboxWorkspaceWrite, NetworkAccess: true, ExcludeSlashTmp: true},
		"sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nexclude_tmpdir_env_var = true\n": {
			Mode: protocol.SandboxWorkspaceWrite, ExcludeTmpdirEnvVar: true},
	} {
		if d := cmp.Diff(want, loaded(t, file, config.Layers{}).Sandbox()); d != "" {
			t.Errorf("%s(-want +got):\n%s", file, d)
		}
	}
}

// TestSearchWeb switches the web search for one call.
func TestSearchWeb(t *testing.T) {
	for _, tt := range []struct {
		file    string
		on      bool
		want    bool
		problem string
	}{
		{file: "", on: true, want: true},
		{file: "web_search = \"live\"", on: false},
		{file: "web_search = \"disabled\"", on: true, problem: `the configuration has web_search = "disabled"`},
		{file: "web_search = \"disabled\"", on: false},
		{file: "model_provider = \"oss\"", on: true, problem: `the provider "oss" has no web search: it uses wire_api = "chat", and only "responses" has one`},
		{file: "model_provider = \"x\"\n[model_providers.x]\n", on: true, problem: `it uses wire_api = "chat", and only "responses"`},
		{file: "model_provider = \"oss\"", on: false},
	} {
		c, err := load(t, tt.file, config.Layers{Call: protocol.Config{WebSearch: &tt.on}})
		if tt.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%q, %t: %v, want %s", tt.file, tt.on, err, tt.problem)
			}
		} else if err != nil || c.Tools.WebSearch != tt.want {
			t.Errorf("%q, %t: %v, want %t", tt.file, tt.on, err, tt.want)
		}
	}
}

// TestArgumentsAreKeys checks that each argument of a call reaches its key, and that a call does not
// set a setting of the server.
func TestArgumentsAreKeys(t *testing.T) {
	c := loaded(t, "", config.Layers{Call: protocol.Config{
		Effort: "low", DeveloperInstructions: new("d"), CompactPrompt: new("c"), IncludePlanTool: new(true), IncludeApplyPatchTool: new(true), BaseInstructions: new("b"), Cwd: "/w"}})
	got := []any{c.ReasoningEffort, c.DeveloperInstructions, c.CompactPrompt, c.IncludePlanTool, c.IncludeApplyPatchTool, c.BaseInstructions, c.Cwd}
	if d := cmp.Diff([]any{protocol.ReasoningEffort("low"), "d", "c", true, true, new("b"), "/w"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, key := range []string{"approvals.on_error", "limits", "shared", "sandbox.strict"} {
		if _, err := load(t, "", config.Layers{Call: protocol.Config{Overrides: raw(key, `"x"`)}}); err == nil || !strings.HasPrefix(err.Error(), key+": is set for the whole server") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestCheckFolder(t *testing.T) {
	dir := home(t, map[string]string{"file": ""})
	for path, want := range map[string]string{
		"": "", dir: "", dir + "/none": "argument /cwd: " + dir + "/none does not exist", dir + "/file": "argument /cwd: " + dir + "/file is not a folder",
		dir + "/file/x": "argument /cwd: stat ",
	} {
		err := config.CheckFolder(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestSettingsAtTheirLimits has the least and the greatest values that are allowed, each way to write a value, and
// how options say them.
func TestSettingsAtTheirLimits(t *testing.T) {
	patience := func(d time.Duration) func(*config.Settings) {
		return func(s *config.Settings) { s.Patience = d }
	}
	timeout := func(d time.Duration) func(*config.Settings) {
		return func(s *config.Settings) { s.Approvals.Timeout = d }
	}
	rule := func(outside bool, command ...string) config.Rule {
		return config.Rule{Command: command, Outside: outside}
	}
	allow := func(rules ...config.Rule) func(*config.Settings) {
		return func(s *config.Settings) { s.Approvals.Allow = rules }
	}
	for _, tt := range []struct {
		file, arg string
		change    func(*config.Settings) // of the defaults
	}{
		{"", "approvals.page_port=32", func(s *config.Settings) { s.Approvals.PagePort = 32 }}, // and a time-out that nobody set stays open
		{"", "approvals.timeout=0", timeout(-1)},
		{"", "approvals.timeout=30s", timeout(30 * time.Second)},
		{"", "calls.patience=45", patience(45 * time.Second)},
		{"", "calls.patience=1.5", patience(1500 * time.Millisecond)},
		{"", `calls.patience="2m"`, patience(2 * time.Minute)},
		{"", "calls.patience=2m", patience(2 * time.Minute)},
		{"", "calls.patience=0", patience(-1)},
		{"", "calls.patience=0s", patience(-1)},
		{"", "calls.patience=auto", patience(0)},
		{`approvals.allow = [["go", "test"], {command = ["git", "push"], outside = true}, {command = ["make"]}]`, "",
			allow(rule(false, "go", "test"), rule(true, "git", "push"), rule(false, "make"))},
		{"[[approvals.allow]]\ncommand = [\"go\"]\noutside = true", "", allow(rule(true, "go"))},
		{"", `approvals.allow=[["go"], {command=["make"], outside=true}]`, allow(rule(false, "go"), rule(true, "make"))},
		{"", "", func(*config.Settings) {}},
		{"shared = true\nmodel_tools = \"files\"\napprovals = { page_port = 65535, clients = { x = \"page\" }, log = \"\" }\nsandbox = { helper = [\"h\"], strict = true }\n" +
			"limits = { model_requests = 0, tokens = 7, tasks = 1, result = 4096, command = \"1ms\", wall_time = \"1s\" }\n" +
			"calls = { tasks = \"never\", resume = false, grace = \"0s\", changes = false, tools = [], trusted = true, always_load = true, locked_arguments = [\"cwd\"], full_access = \"deny\" }\n" +
			"notify = { command = [\"x\", \"\"] }\n[http]\ndrain_timeout = \"3s\"\nworker_idle = \"1m\"\nmetrics = \":9\"\noauth = { issuer = \"\", audience = \"\" }\n" +
			"[http.principals.ann]\ntokens = []\n[[failover.to]]\nprovider = \"b\"\nmodel = \"m\"", "",
			func(s *config.Settings) {
				s.Shared, s.ModelTools, s.Sandbox = true, setting.ToolsFiles, setting.Sandbox{Helper: []string{"h"}, Strict: true}
				s.Approvals.PagePort, s.Approvals.Clients, s.Approvals.Log = 65535, map[string]setting.Where{"x": setting.WherePage}, new("")
				s.Limits = setting.Limits{ModelRequests: -1, Tokens: 7, WallTime: time.Second, Command: time.Millisecond}
				s.Tasks, s.Changes = setting.Tasks{Never: true, NoResume: true, Limit: 1, Grace: -1}, setting.Changes{Off: true}
				s.Calls = setting.Calls{Tools: []string{}, TrustedCalls: true, AlwaysLoad: true, LockedArguments: []string{"cwd"}, FullAccess: setting.FullAccessDeny, MaxResult: 4096}
				s.Notify, s.HTTP = []string{"x", ""}, config.HTTP{Drain: 3 * time.Second, Gateway: []string{"http.metrics", "http.principals"}}
				s.Failover.To = []setting.FailoverTo{{Provider: "b", Model: "m"}}
			}},
		{"[http]\noauth = {}\nmetrics = \"\"\nprincipals = {}\n", "", func(*config.Settings) {}},
	} {
		want := &config.Settings{
			Calls:      setting.Calls{Tools: config.Choosable, FullAccess: setting.FullAccessAsk, MaxResult: setting.DefaultResult},
			Approvals:  config.ApprovalSettings{Asking: setting.Asking{Where: setting.WhereClient}},
			ModelTools: setting.ToolsAuto,
			Tasks:      setting.Tasks{Grace: time.Second, Limit: 64},
			HTTP:       config.HTTP{Drain: 30 * time.Second},
			Limits:     setting.Limits{ModelRequests: 1000, Tokens: -1, WallTime: -1, Command: 2 * time.Minute},
		}
		tt.change(want)
		var args []string
		if tt.arg != "" {
			args = []string{tt.arg}
		}
		got, codex, err := settings(t, tt.file, args...)
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || err != nil || len(codex) > 0 {
			t.Errorf("%s%s: %v, for Codex %v (-want +got):\n%s", tt.file, tt.arg, err, codex, d)
		}
	}
}

// TestOldKeys checks that a key that is gone is unknown, and which key its error names.
func TestOldKeys(t *testing.T) {
	for file, meant := range map[string]string{
		"trusted_calls = true": "calls.trusted", "locked_arguments = []": "calls.locked_arguments", "always_load = true": "calls.always_load",
		"tools = []": "calls.tools", "[tools]\nx = 1": "calls.tools", "tasks.mode = 'never'": "calls.tasks", "tasks.grace = 0": "calls.grace", "tasks.resume = false": "calls.resume",
		"changes.track = false": "calls.changes", "changes.files = 1": "calls.changes", "drain.timeout = 0": "http.drain_timeout", "keep.log = 0": "approvals.log",
		"approvals.max_pending = 1": "", "approvals.legacy_flat = true": "", "limits.response_bytes = 1": "", "failover.wait = '1s'": "",
		"notify.after = 0": "", "approvals.on_eror = 'deny'": "approvals.on_error", "[aprovals]": "approvals", "nonsense = 1": "",
	} {
		_, _, err := settings(t, file)
		want := ": unknown key"
		if meant != "" {
			want += "; do you mean " + meant + "?"
		}
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}

func FuzzParseOverride(f *testing.F) {
	for _, s := range []string{"a=1", `a."b.c"=[1]`, "a=\"", "=", "a.b.c={x=1}", "a=1979-05-27"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, value, err := config.ParseOverride(s)
		if err != nil {
			return
		}
		// An accepted override changes the configuration, or the error names its key.
		_, err = config.Load(config.Layers{Home: t.TempDir(), Overrides: map[string]any{key: value}})
		if err != nil && err.Error() == "" {
			t.Error("an error without a message")
		}
	})
}

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
	s, codex, err := settings(t, "", "sandbox=workspace-write", "http=x", "approvals=never", "limits=5", "model=m", `"approvals"=1`)
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
		if _, _, err := settings(t, "", wrong); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

const faulty = `model = "m"
# a comment
sandbox_mode = "none"
colour = "blue"
model_provider = "x"

[model_providers.x]
name = "x"
base_url = "http://127.0.0.1/v1"
wire = "chat"
request_max_retries = "many"

[profiles.p]
approval_policy = "sometimes"
modle = "n"

[tui]
theme = "dark"
`

func TestErrorsNameTheLine(t *testing.T) {
	dir := home(t, map[string]string{"config.toml": faulty, "q.config.toml": "\nsandbox_mode = \"open\"\n"})
	retries := map[string]any{"model_providers.x.request_max_retries": 1} // which mends a part
	for _, tt := range []struct {
		layer config.Layers
		flags map[string]any
		want  string // follows the folder if it begins with /
	}{
		{config.Layers{}, nil, "/config.toml:11: model_providers.x.request_max_retries: want an integer, have a string"},
		{config.Layers{}, retries, `/config.toml:3: sandbox_mode: "none" is not one of`},
		{config.Layers{Call: protocol.Config{Profile: "p", Sandbox: "read-only"}}, retries, `/config.toml:14: approval_policy: "sometimes" is not one of`},
		{config.Layers{Call: protocol.Config{Profile: "q"}}, retries, `/q.config.toml:2: sandbox_mode: "open" is not one of`},
		{config.Layers{Overrides: map[string]any{"sandbox_mode": "half"}}, retries, `-c sandbox_mode: "half" is not one of`},
		{config.Layers{Call: protocol.Config{Sandbox: "all"}}, retries, `sandbox_mode: "all" is not one of`},
		{config.Layers{Overrides: map[string]any{"model_provider": "y", "sandbox_mode": "read-only"}}, retries, `-c model_provider: there is no "y"`},
	} {
		tt.layer.Home = dir
		if tt.layer.Overrides == nil {
			tt.layer.Overrides = map[string]any{}
		}
		maps.Copy(tt.layer.Overrides, tt.flags)
		_, err := config.Load(tt.layer)
		if want := strings.Replace(tt.want, "/", dir+"/", 1); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		var missing *config.MissingError
		if errors.As(err, &missing) != strings.Contains(tt.want, "there is no") {
			t.Errorf("a missing name: %v", err)
		}
	}
}

// TestUnknownKeys lists the keys without an effect, in the native engine and for Codex, which knows more. That the
// configuration can be loaded is not needed.
func TestUnknownKeys(t *testing.T) {
	for _, tt := range []struct {
		file        string
		overrides   map[string]any
		want, codex string // FILE stands for the path; a line each
	}{
		{"", nil, "", ""},
		{faulty, nil, "FILE:4: colour\nFILE:10: model_providers.x.wire\nFILE:15: profiles.p.modle: do you mean model?",
			"FILE:4: colour: do you mean cloud?\nFILE:10: model_providers.x.wire\nFILE:15: profiles.p.modle: do you mean model?"},
		{"modle = \"m\"\n[otel]\nenvironment = \"x\"\n", map[string]any{"modl": "m", "otel": 1},
			"FILE:1: modle: do you mean model?\n-c modl: do you mean model?", "FILE:1: modle: do you mean model?\n-c modl: do you mean model?"},
		{`hooks = {}
personality = "pragmatic"
[tools]
view_image = true
fly = true
[mcp_servers.s]
command = "c"
env_vars = ["A"]
enabled_tools = ["a"]
[mcp_servers.s.tools.a]
approval_mode = "approve"
[permissions.strict]
[nosuch.table]
a = 1
[shell_environment_policy]
exlude = []
`, nil, `FILE:1: hooks: no hook runs
FILE:13: nosuch
FILE:12: permissions: sandbox_mode decides what commands may touch
FILE:8: mcp_servers.s.env_vars
FILE:16: shell_environment_policy.exlude: do you mean exclude?
FILE:5: tools.fly`, `FILE:13: nosuch
FILE:8: mcp_servers.s.env_vars
FILE:16: shell_environment_policy.exlude: do you mean exclude?
FILE:5: tools.fly`},
		{"", map[string]any{
			"model": "m", "otel": map[string]any{"exporter": "none"}, // these keys are known
			"reasoning_effort": "high", "approval_polcy": "untrusted", "aprovals": 1, "model_providers": map[string]any{"x": map[string]any{"base_ulr": "y", "name": "x"}}, "default_permissions": ":read-only", "a.b": 1, "approvals_reviewer": "x", "auto_review": true,
		}, `-c "a.b"
-c approval_polcy: do you mean approval_policy?
-c approvals_reviewer: the user is asked
-c aprovals: do you mean approvals?
-c auto_review: the user is asked
-c default_permissions: sandbox_mode decides what commands may touch
-c reasoning_effort
-c model_providers.x.base_ulr: do you mean base_url?`, `-c "a.b"
-c approval_polcy: do you mean approval_policy?
-c aprovals: do you mean approvals?
-c reasoning_effort
-c model_providers.x.base_ulr: do you mean base_url?`},
	} {
		dir := home(t, map[string]string{"config.toml": tt.file})
		var found []string
		_, _ = config.Load(config.Layers{Home: dir, Overrides: tt.overrides, Unknown: func(key string) { found = append(found, key) }})
		for _, of := range [][2]string{{tt.want, strings.Join(found, "\n")}, {tt.codex, strings.Join(config.UnknownToCodex(dir, tt.overrides), "\n")}} {
			if diff := cmp.Diff(strings.ReplaceAll(of[0], "FILE", dir+"/config.toml"), of[1]); diff != "" {
				t.Errorf("%s %v (-want +got):\n%s", tt.file, tt.overrides, diff)
			}
		}
	}
}

// TestMisspelt checks that an argument of the command line that is a typo away from a key of approvals or
// of the sandbox is an error, and nothing else is.
func TestMisspelt(t *testing.T) {
	for arg, meant := range map[string]string{
		"approval_polcy=never":                            "approval_policy",
		"approval-policy=never":                           "approval_policy",
		"aproval_policy=never":                            "approval_policy",
		"sandbox_mod=read-only":                           "sandbox_mode",
		"sandboxmode=read-only":                           "sandbox_mode",
		"sandbox_workspace_wrte.writable_roots=1":         "sandbox_workspace_write",
		"sandbox_workspace_write.network_acces=1":         "network_access",
		"sandbox_workspace_write.exclude_slash_tpm=true":  "exclude_slash_tmp",
		"sandbox_workspace_write={exclude_slashtmp=true}": "exclude_slash_tmp",
		"aprovals.timeout='1m'":                           "approvals",
		"cals.full_access='deny'":                         "calls",
		"sandbx.helper=[]":                                "sandbox",
		"trusted_call=true":                               "calls.trusted",
		"locked_argument=[]":                              "calls.locked_arguments",
		"shell_enviroment_policy.inherit='none'":          "shell_environment_policy",
		"profiles.x.sandbox_mdoe=read-only":               "sandbox_mode",
		"modle=m":                                         "",
		"approval_policy=never":                           "",
		"approvals_reviewer=x":                            "",
		"sandbox_workspace_write.another_thing=1":         "",
		"profiles.sandbox_mod.model=m":                    "",
		"model_providers.sandbox_mod.name=m":              "",
		"tools.web_search=true":                           "",
	} {
		key, _, _ := strings.Cut(arg, "=")
		if strings.Contains(arg, "={") {
			key += ".exclude_slashtmp"
		}
		if meant == "sandbox_workspace_write" || meant == "approvals" || meant == "calls" || meant == "sandbox" || meant == "shell_environment_policy" {
			key, _, _ = strings.Cut(key, ".")
		}
		want := ""
		if meant != "" {
			want = "-c " + key + ": unknown key; do you mean " + meant + "?"
		}
		if _, _, err := settings(t, "", arg); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}

func TestSecrets(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		values           []string
	}{
		{"none", "a text", "a text", nil},
		{"whole", "wrong key key-123456!", "wrong key [redacted]!", []string{"key-123456"}},
		{"twice", "key-123456key-123456", "[redacted][redacted]", []string{"key-123456"}},
		{"one contains the others", "wrong key hunter1 hunter2 hunter2-static", "wrong key [redacted]", []string{"hunter1", "hunter2", "hunter1 hunter2 hunter2-static"}},
		{"the shorter first", "is key-123456-more", "is [redacted]", []string{"key-123456", "key-123456-more"}},
		{"they overlap", "abcdefghijkl", "[redacted]", []string{"abcdefgh", "efghijkl"}},
		{"with itself", "xabababababy", "x[redacted]y", []string{"ababab"}},
		{"a scheme", "no TOKEN-123, no Bearer TOKEN-123", "no [redacted], no [redacted]", []string{"Bearer TOKEN-123"}},
		{"the text is cut", "wrong key key-12", "wrong key [redacted]", []string{"key-123456"}},
		{"the cut leaves little", "wrong key key", "wrong key key", []string{"key-123456"}},
		{"too short", "a 1 is no secret", "a 1 is no secret", []string{"1", "", "v1 x"}},
	} {
		if got := config.NewSecrets(tt.values...).Hide(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
