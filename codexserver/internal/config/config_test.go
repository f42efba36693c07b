package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

func TestParseOverride(t *testing.T) {
	in := strings.NewReplacer(`\n`, "\n", `\_`, " ")
	for _, row := range shapes(t, "overrides.txt") {
		key, value, err := config.ParseOverride(in.Replace(row[1]))
		must.Fail(t, row[1], row[4], err)
		if got := fmt.Sprintf("%T %v", value, value); err == nil && (key != row[2] || strings.TrimSpace(got) != in.Replace(row[3])) {
			t.Errorf("%s: %s, %s", row, key, got)
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
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
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

func raw(key, value string) (o protocol.Overrides) {
	if err := json.Unmarshal(fmt.Appendf(nil, "{%q:%s}", key, value), &o); err != nil {
		panic(err)
	}
	return o
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
		Call: protocol.Config{Overrides: protocol.Overrides{
			"model_providers":                    map[string]any{"local": map[string]any{"http_headers": map[string]any{"X-B": "call"}}},
			"model_providers.local.query_params": map[string]any{"v": "1"}}}})
	want := config.Provider{
		BaseURL: "http://localhost:1", WireAPI: config.WireResponses,
		HTTPHeaders: map[string]string{"X-A": "file", "X-B": "call"},
		QueryParams: map[string]string{"v": "1"},
	}
	must.Equal(t, "result", want, c.Provider())
}

func TestDefaults(t *testing.T) {
	c := loaded(t, "", config.Layers{})
	if c.Model != "gpt-5-codex" || c.ApprovalPolicy != protocol.ApprovalOnRequest || c.SandboxMode != protocol.SandboxReadOnly ||
		c.Provider().WireAPI != config.WireResponses || !c.Provider().RequiresOpenAIAuth {
		t.Errorf("defaults %+v", c)
	}
}

// TestFaults has files and arguments that are refused. No error shows a value that may be a secret.
func TestFaults(t *testing.T) {
	rows := append(shapes(t, "faults.txt"),
		[]string{"config.toml", "\ufeffmodel = \"a\"\nx = [1,,\n", "", "config.toml:2:8: expected"},
		[]string{"config.toml", "model = \"a\"\n\ufeffx = 1\n", "", "config.toml:2:1:"},
		[]string{"config.toml", "\xff\xfem\x00o\x00", "", "config.toml: the file is UTF-16, and TOML is UTF-8: save it as UTF-8"},
		[]string{"config.toml", "\xfe\xff\x00m\x00o", "", "config.toml: the file is UTF-16"},
		[]string{"config.toml", "m\x00o\x00", "", "config.toml: the file is UTF-16"},
		[]string{"config.toml", strings.Repeat("#", 4<<20+1), "", "config.toml has more than 4194304 bytes"})
	for _, row := range rows {
		dir := home(t, map[string]string{row[0]: strings.ReplaceAll(row[1], `\n`, "\n")})
		var args []string
		if row[2] != "" {
			args = []string{row[2]}
		}
		_, _, err := config.LoadSettings(dir, args)
		if row[0] == "config.toml" {
			_, err = config.Load(config.Layers{Home: dir})
		}
		want, whole := strings.CutSuffix(row[3], "$")
		got := strings.TrimPrefix(fmt.Sprint(err), dir+string(filepath.Separator))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(got, want) || whole && got != want || strings.Contains(got, "hunter2") {
			t.Errorf("%.80q: %v", row, err)
		}
	}
}

// TestMisspelt writes misspelt keys of approvals and of the sandbox in each place that a person writes. Both engines read
// settings at the start; the native one reads the rest for each conversation.
func TestMisspelt(t *testing.T) {
	for typo, meant := range map[string]string{
		"approval_polcy": "approval_policy", "aproval_policy": "approval_policy", "approval-policy": "approval_policy",
		"approvalPolicy": "approval_policy", "approvals_policy": "approval_policy",
		"approvals_reviwer": "approvals_reviewer", "default_permission": "default_permissions", "permisions": "permissions",
		"sandbox_mod": "sandbox_mode", "sandbox_mdoe": "sandbox_mode", "sandboxmode": "sandbox_mode", "sandbox_modes": "sandbox_mode",
		"sandbox_workspace_wite":                          "sandbox_workspace_write",
		"writable_root":                                   "sandbox_workspace_write.writable_roots",
		"network_access":                                  "sandbox_workspace_write.network_access",
		"sandbox_workspace_write.writable_root":           "writable_roots",
		"sandbox_workspace_write.network_acces":           "network_access",
		"sandbox_workspace_write.exclude_slashtmp":        "exclude_slash_tmp",
		"sandbox_workspace_write.exclude_tmpdir_env_vars": "exclude_tmpdir_env_var",
		"shell_enviroment_policy":                         "shell_environment_policy",
		"shell_environment_policy.inherits":               "inherit",
		"shell_environment_policy.exlude":                 "exclude",
	} {
		for name, place := range map[string]struct{ file, text, key, at string }{
			"file":         {"config.toml", "# note\n" + typo + " = 1\n", typo, "config.toml:2: "},
			"table":        {"config.toml", "[profiles.x]\n" + typo + " = 1\n", "profiles.x." + typo, "config.toml:2: "},
			"profile":      {"x.config.toml", typo + " = 1\n", typo, "x.config.toml:1: "},
			"command line": {"config.toml", "", typo, "-c "},
		} {
			dir := home(t, map[string]string{place.file: place.text})
			layers, args := config.Layers{Home: dir}, []string(nil)
			if name == "profile" { // of which the start reads all
				layers.Call.Profile = "x"
			}
			if place.text == "" {
				layers.Overrides, args = map[string]any{typo: 1}, []string{typo + "=1"}
			}
			_, _, start := config.LoadSettings(dir, args)
			_, conversation := config.Load(layers)
			want := place.at + place.key + ": unknown key; do you mean " + meant + "?"
			for _, err := range []error{start, conversation} {
				if got := strings.TrimPrefix(fmt.Sprint(err), dir+string(filepath.Separator)); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
		}
	}
}

// TestLayersThatCannotBeRead has keys of the command line and of a call with an empty segment, and a member twice.
func TestLayersThatCannotBeRead(t *testing.T) {
	for _, layers := range []config.Layers{
		{Overrides: map[string]any{"a..b": 1}},
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

// TestHome finds the folder of the configuration, and its profiles.
func TestHome(t *testing.T) {
	user := t.TempDir()
	testenv.SetHome(t, user)
	etc := testenv.Path("/etc/codex")
	for env, want := range map[string]string{"": filepath.Join(user, ".codex"), etc: etc} {
		must.Equal(t, fmt.Sprint("CODEX_HOME=", env), want, must.Get(config.Home(func(string) string { return env }))(t))
	}
	testenv.SetHome(t, "")
	if got, err := config.Home(func(string) string { return "" }); err == nil {
		t.Errorf("without a home: %q", got)
	}
}

func TestProfiles(t *testing.T) {
	dir := home(t, map[string]string{"config.toml": file + "[profiles.b]\n", "fast.config.toml": "", "a.config.toml": "", ".config.toml": "", "notes.toml": ""})
	must.OK(t, os.Mkdir(filepath.Join(dir, "folder.config.toml"), 0o700))
	for home, want := range map[string][]string{dir: {"a", "b", "fast"}, filepath.Join(dir, "none"): nil} {
		got, err := config.Profiles(home)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	}
	if got, err := config.Profiles(home(t, map[string]string{"config.toml": "x"})); err == nil {
		t.Errorf("no TOML: %q", got)
	}
	testenv.NeedsUnix(t, belowFile)
	if got, err := config.Profiles(filepath.Join(dir, "a.config.toml")); err == nil {
		t.Errorf("a file: %q", got)
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
	must.Equal(t, "result", []string{"A_HEADER", "B_KEY", "SAME_KEY", "S_TOKEN"}, c.KeyVariables)
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
		must.Equal(t, file, want, loaded(t, file, config.Layers{}).Sandbox())
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
		c, err := load(t, tt.file, config.Layers{Call: protocol.Config{Choices: protocol.Choices{WebSearch: &tt.on}}})
		if tt.problem != "" {
			must.Fail(t, tt.file, tt.problem, err)
		} else if err != nil || c.Tools.WebSearch != tt.want {
			t.Errorf("%q, %t: %v, want %t", tt.file, tt.on, err, tt.want)
		}
	}
}

// TestArgumentsAreKeys checks that each argument of a call reaches its key, and that a call does not set a setting of the server.
func TestArgumentsAreKeys(t *testing.T) {
	c := loaded(t, "", config.Layers{Call: protocol.Config{
		Choices: protocol.Choices{Effort: "low", DeveloperInstructions: new("d"), CompactPrompt: new("c"), IncludePlanTool: new(true), BaseInstructions: new("b")}, IncludeApplyPatchTool: new(true), Cwd: "/w"}})
	got := []any{c.ReasoningEffort, c.DeveloperInstructions, c.CompactPrompt, c.IncludePlanTool, c.IncludeApplyPatchTool, c.BaseInstructions, c.Cwd}
	must.Equal(t, "result", []any{protocol.ReasoningEffort("low"), "d", "c", true, true, new("b"), "/w"}, got)
	for _, key := range []string{"approvals.on_error", "limits", "shared", "sandbox.strict"} {
		if _, err := load(t, "", config.Layers{Call: protocol.Config{Overrides: raw(key, `"x"`)}}); err == nil || !strings.Contains(err.Error(), ": is set for the whole server") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// belowFile is why tests end early on Windows.
const belowFile = "a path below a file is an error of its own"

func TestCheckFolder(t *testing.T) {
	dir := home(t, map[string]string{"file": ""})
	for path, want := range map[string]string{
		"": "", dir: "", dir + "/none": "argument /cwd: " + dir + "/none does not exist", dir + "/file": "argument /cwd: " + dir + "/file is not a folder",
	} {
		err := config.CheckFolder(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	testenv.NeedsUnix(t, belowFile)
	if err := config.CheckFolder(dir + "/file/x"); err == nil || !strings.HasPrefix(err.Error(), "argument /cwd: stat ") {
		t.Errorf("below a file: %v", err)
	}
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
		{"an unknown effort", "model_reasoning_effort = \"utmost\"", usual(func(r *result) { r.Effort = "utmost" })},
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
		must.Equal(t, fmt.Sprint(tt.name, c.Notes), tt.want, got)
	}
}

// TestTodaysConfigInLayers checks that overrides are read like the file, and that a string replaces a table.
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
		"fast.config.toml": fmt.Sprintf("model = \"fast file\"\nmodel_instructions_file = %q\n", testenv.Path("/absolute.md")),
		"bad.config.toml":  "model = \n",
	})
	for name, want := range map[string]string{"own": "own", "fast": "fast file"} {
		c, err := config.Load(config.Layers{Home: dir, Call: protocol.Config{Profile: name}})
		if err != nil || c.Model != want {
			t.Errorf("%s: %v, want the model %q", name, err, want)
		}
		if name == "fast" && c.InstructionsFile != testenv.Path("/absolute.md") {
			t.Errorf("the instructions are %q, want the absolute path", c.InstructionsFile)
		}
		if name == "own" && !strings.HasPrefix(c.InstructionsFile, dir) {
			t.Errorf("the instructions are %q, want a path next to the file", c.InstructionsFile)
		}
	}
	whole := home(t, map[string]string{"config.toml": "model_instructions_file = \"i.md\"\n"})
	if c, err := config.Load(config.Layers{Home: whole}); err != nil || c.InstructionsFile != filepath.Join(whole, "i.md") {
		t.Errorf("the instructions are %q, %v", c.InstructionsFile, err)
	}
	for name, want := range map[string]string{"bad": "bad.config.toml:1:", "../own": `there is no "../own"`, "nosuch": "is missing"} {
		_, err := config.Load(config.Layers{Home: dir, Call: protocol.Config{Profile: name}})
		must.Fail(t, name, want, err)
	}
}

func TestEnvVars(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  []config.EnvVar
		err   string
	}{
		{`[]`, []config.EnvVar{}, ""},
		{`["A", { name = "B" }, { name = "C", source = "local" }, { name = "D", source = "remote", later = 1 }]`,
			[]config.EnvVar{{Name: "A"}, {Name: "B"}, {Name: "C", Source: "local"}, {Name: "D", Source: "remote"}}, ""},
		{`"A"`, nil, "mcp_servers.s.env_vars: want an array, have a string"},
		{`["A", 7]`, nil, "mcp_servers.s.env_vars.1: want a name, or a table such as"},
		{`[{ source = "local" }]`, nil, "mcp_servers.s.env_vars.0: want a name, or a table such as"},
		{`[{ name = 7 }]`, nil, "mcp_servers.s.env_vars.0: want a name, or a table such as"},
		{`[{ name = "A", source = "x" }]`, nil, `mcp_servers.s.env_vars.0: source: "x" is not one of local or remote`},
	} {
		dir := home(t, map[string]string{"config.toml": "[mcp_servers.s]\nenv_vars = " + tt.value + "\n"})
		c, err := config.Load(config.Layers{Home: dir})
		if tt.err != "" {
			must.Fail(t, tt.value, tt.err, err)
			continue
		}
		must.OK(t, err)
		must.Equal(t, tt.value, tt.want, c.MCPServers["s"].EnvVars)
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
