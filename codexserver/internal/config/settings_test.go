package config_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestLockedOverHTTP lists the arguments that calls over HTTP may not choose.
func TestLockedOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		unlocked, everywhere []string
		want                 string
	}{
		{nil, nil, "[approval-policy config profile sandbox]"},
		{[]string{"config"}, nil, "[approval-policy profile sandbox]"},
		{[]string{"config"}, []string{"config", "model"}, "[config model approval-policy profile sandbox]"},
	} {
		h := &config.HTTP{UnlockedArguments: tt.unlocked}
		must.Equal(t, fmt.Sprint(tt), tt.want, fmt.Sprint(h.Locked(tt.everywhere)))
	}
}

// TestLoadHTTP reads the table http for another program's keys.
func TestLoadHTTP(t *testing.T) {
	type table struct {
		URL string `json:"url"`
	}
	for _, tt := range []struct{ file, arg, url, problem string }{
		{file: "shared = true"},
		{file: "[http]\nurl = \"a\"", url: "a"},
		{file: "[http]\nurl = \"a\"", arg: "http.url=b", url: "b"},
		{file: "[http", problem: "FILE:1:"},
		{file: "\n[http]\nulr = \"a\"", problem: "FILE:3: http.ulr: unknown key"},
		{file: "[http]\nurl = 1", problem: "FILE:2: http.url: want a string"},
		{file: "http = 1", problem: "FILE:1: http: want a table"},
		{file: "[http]\nurl = \"bad\"", problem: "FILE:2: http.url: is bad"},
		{arg: "http.url=bad", problem: "-c http.url: is bad"},
		{arg: "http", problem: "-c http: want KEY=VALUE"},
	} {
		dir := home(t, map[string]string{config.SettingsFile: tt.file})
		var args []string
		if tt.arg != "" {
			args = []string{tt.arg}
		}
		var got table
		err := config.LoadHTTP(dir, args, &got, func() error {
			if got.URL == "bad" {
				return errors.New("http.url: is bad")
			}
			return nil
		})
		if want := strings.Replace(tt.problem, "FILE", filepath.Join(dir, config.SettingsFile), 1); want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q %s: %v, want %s", tt.file, tt.arg, err, want)
			}
		} else if err != nil || got.URL != tt.url {
			t.Errorf("%q %s: %q, %v", tt.file, tt.arg, got.URL, err)
		}
	}
}

// TestLinked makes links in a home as programs that manage configuration files do.
func TestLinked(t *testing.T) {
	testenv.NeedsLinks(t)
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	home := filepath.Join(top, "home")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(home, "codex-mcp"), 0o755), os.MkdirAll(filepath.Join(top, "dots", "prompts"), 0o755),
		os.Symlink("../dots/first", filepath.Join(home, "config.toml")), os.Symlink("second", filepath.Join(top, "dots", "first")),
		os.WriteFile(filepath.Join(top, "dots", "second"), nil, 0o600),
		os.Symlink(filepath.Join(top, "dots", "missing"), filepath.Join(home, "codex-mcp.toml")),
		os.Symlink("../../dots/rules", filepath.Join(home, "codex-mcp", "rules.json")),
		os.Symlink("../dots/prompts", filepath.Join(home, "prompts")),
		os.Symlink("../texts/one.md", filepath.Join(top, "dots", "prompts", "one.md")), // which is below dots, not below home
		os.Symlink("loop", filepath.Join(home, "loop")),
		os.Symlink("../dots/none/../../odd/one", filepath.Join(home, "odd")), os.Mkdir(filepath.Join(top, "odd"), 0o755), // which dots decides
		os.WriteFile(filepath.Join(home, "auth.json"), nil, 0o600),
	} {
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
	}
	var got []string
	for _, path := range config.Linked(home) {
		if rel := strings.TrimPrefix(path, top+string(filepath.Separator)); !slices.Contains(got, rel) {
			got = append(got, rel)
		}
	}
	slices.Sort(got)
	want := []string{"dots", "dots/first", "dots/missing", "dots/prompts", "dots/rules", "dots/second", "dots/texts/one.md", "home/loop"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := config.Linked(filepath.Join(top, "none")); got != nil {
		t.Errorf("without a home: %q", got)
	}
}

func TestSettings(t *testing.T) {
	s, codex, err := settings(t, "[approvals]\non_cancel = \"deny\"\ntimeout = \"1m\"\n[limits]\ntokens = 5\n",
		"approvals.timeout=2s", "model=x", "approvals.where=both", "limits.wall_time=1h", "tools.web_search=true")
	must.OK(t, err)
	must.Equal(t, "approvals", elicit.Options{OnCancel: "deny", Timeout: 2 * time.Second}, s.Approvals.Options)
	if s.Approvals.Where != "both" || !s.Approvals.Pages() || s.Approvals.PagePort != 0 {
		t.Errorf("%q, page on port %d", s.Approvals.Where, s.Approvals.PagePort)
	}
	must.Equal(t, "limits", setting.Limits{ModelRequests: 1000, Tokens: 5, WallTime: time.Hour, Command: 2 * time.Minute}, s.Limits)
	must.Equal(t, "for the engine", map[string]any{"model": "x", "tools": map[string]any{"web_search": true}}, codex)
}

// TestSettingsAtTheirLimits has the least and the greatest values that are allowed, each way to write a value, and
// how options say them.
func TestSettingsAtTheirLimits(t *testing.T) {
	patience := func(d time.Duration) func(*config.Settings) { return func(s *config.Settings) { s.Patience = d } }
	timeout := func(d time.Duration) func(*config.Settings) {
		return func(s *config.Settings) { s.Approvals.Timeout = d }
	}
	rule := func(outside bool, command ...string) config.Rule {
		return config.Rule{Rule: approval.Rule{Command: command, Outside: outside}}
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
		{"", "approvals.timeout=30", timeout(30 * time.Second)},
		{"", "limits.tasks=0", func(s *config.Settings) { s.Tasks.Limit = math.MaxInt32 }},
		{"", "limits.result=0", func(s *config.Settings) { s.MaxResult = math.MaxInt32 }},
		{"", "calls.patience=45", patience(45 * time.Second)},
		{"", "calls.patience=1.5", patience(1500 * time.Millisecond)},
		{"", `calls.patience="2m"`, patience(2 * time.Minute)},
		{"", "calls.patience=2m", patience(2 * time.Minute)},
		{"", "calls.patience=0", patience(-1)},
		{"", "calls.patience=0s", patience(-1)},
		{"", "calls.patience=auto", patience(0)},
		{`approvals.allow = [["go", "test"], {command = ["git", "push"], outside = true}, {command = ["make"]}]`, "",
			allow(rule(false, "go", "test"), rule(true, "git", "push"), rule(false, "make"))},
		{"[approvals]\nhosts = \"ask\"\nallow = [{host = \"*.NPMjs.org\"}, [\"go\"]]\ndeny = [[\"git\", \"push\"], {host = \"evil.example.com\"}]\nask = [{host = \"proxy.golang.org\"}]", "",
			func(s *config.Settings) {
				s.Approvals.Hosts, s.Approvals.Allow = "ask", []config.Rule{{Host: "*.npmjs.org"}, rule(false, "go")}
				s.Approvals.Deny = []config.Rule{rule(false, "git", "push"), {Host: "evil.example.com"}}
				s.Approvals.Ask = []config.Rule{{Host: "proxy.golang.org"}}
			}},
		{"[[approvals.allow]]\ncommand = [\"go\"]\noutside = true", "", allow(rule(true, "go"))},
		{"", `approvals.allow=[["go"], {command=["make"], outside=true}]`, allow(rule(false, "go"), rule(true, "make"))},
		{"", "", func(*config.Settings) {}},
		{"shared = true\nmodel_tools = \"files\"\napprovals = { page_port = 65535, clients = { x = \"page\" }, log = \"\" }\nsandbox = { helper = [\"h\"], strict = true, caches = [] }\n" +
			"limits = { model_requests = 0, tokens = 7, tasks = 1, result = 4096, command = \"1ms\", wall_time = \"1s\" }\n" +
			"calls = { tasks = \"never\", resume = false, grace = \"0s\", changes = false, tools = [], trusted = true, always_load = true, locked_arguments = [\"cwd\"], full_access = \"deny\" }\n" +
			"notify = { command = [\"x\", \"\"] }\n[http]\ndrain_timeout = \"3s\"\nworker_idle = \"1m\"\nmetrics = \":9\"\noauth = { issuer = \"\", audience = \"\" }\n" +
			"[http.principals.ann]\ntokens = []\n[[failover.to]]\nprovider = \"b\"\nmodel = \"m\"", "",
			func(s *config.Settings) {
				s.Shared, s.ModelTools, s.Sandbox = true, setting.ToolsFiles, setting.Sandbox{Helper: []string{"h"}, Strict: true, Caches: []string{}}
				s.Approvals.PagePort, s.Approvals.Clients, s.Approvals.Log = 65535, map[string]setting.Where{"x": setting.WherePage}, new("")
				s.Limits = setting.Limits{ModelRequests: -1, Tokens: 7, WallTime: time.Second, Command: time.Millisecond}
				s.Tasks, s.Changes = setting.Tasks{Mode: setting.TasksNever, Resume: new(false), Limit: 1, Grace: -1}, setting.Changes{Read: new(false)}
				s.Calls = setting.Calls{Tools: []string{}, TrustedCalls: true, AlwaysLoad: true, LockedArguments: []string{"cwd"}, FullAccess: setting.FullAccessDeny, CheckTime: 10 * time.Minute, MaxResult: 4096}
				s.Notify, s.HTTP = []string{"x", ""}, config.HTTP{Drain: 3 * time.Second, Gateway: []string{"http.metrics", "http.principals"}}
				s.Failover.To = []setting.FailoverTo{{Provider: "b", Model: "m"}}
			}},
		{"approvals.reviewer = \"person\"", "limits.reconnect=0", func(s *config.Settings) {
			s.Codex = setting.Codex{Reviewer: setting.ReviewerPerson, Reconnect: -1}
		}},
		{"calls.check = \"go test ./...\"", "limits.check=\"1h\"", func(s *config.Settings) { s.Calls.Check, s.Calls.CheckTime = "go test ./...", time.Hour }},
		{"[http]\noauth = {}\nmetrics = \"\"\nprincipals = {}\n", "", func(*config.Settings) {}},
	} {
		want := &config.Settings{
			Calls:      setting.Calls{Tools: config.Choosable, FullAccess: setting.FullAccessAsk, CheckTime: 10 * time.Minute, MaxResult: setting.DefaultResult},
			Approvals:  config.ApprovalSettings{Asking: setting.Asking{Where: setting.WhereClient}, Hosts: "off"},
			ModelTools: setting.ToolsAuto,
			Tasks:      setting.Tasks{Mode: setting.TasksAuto, Resume: new(true), Grace: time.Second, Limit: 64},
			Changes:    setting.Changes{Read: new(true)},
			HTTP:       config.HTTP{Drain: 30 * time.Second},
			Limits:     setting.Limits{ModelRequests: 1000, Tokens: -1, WallTime: -1, Command: 2 * time.Minute},
			Codex:      setting.Codex{Reviewer: setting.ReviewerCodex, Reconnect: 2 * time.Minute},
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

// TestMisplacedOverrides checks that an override that replaces one of our tables with a string is ignored with a note.
func TestMisplacedOverrides(t *testing.T) {
	s, codex, err := settings(t, "", "sandbox=workspace-write", "http=x", "approvals=never", "limits=5", "model=m", `"approvals"=1`)
	must.OK(t, err)
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
