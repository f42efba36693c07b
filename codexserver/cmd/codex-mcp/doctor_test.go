package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine/enginetest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

func TestDoctor(t *testing.T) {
	model := providertest.New()
	defer model.Close()
	local := fmt.Sprintf("model = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nbase_url = %q\n", model.BaseURL())
	for _, tt := range []struct {
		name, config string
		code         int
		want         string // in the screen
		problem      string // in the JSON
	}{
		{"fine", local, 0, "tasks can run", ""},
		{"no key", local + "env_key = \"CODEXMCP_TEST_NO_SUCH_KEY\"\n", 1, "or set CODEXMCP_TEST_NO_SUCH_KEY to a key", "the model provider needs a key: set CODEXMCP_TEST_NO_SUCH_KEY"},
		{"no answer", strings.Replace(local, model.BaseURL(), "http://127.0.0.1:1/v1", 1), 1, "or make the provider answer", "nothing listens at http://127.0.0.1:1/v1"},
		{"broken file", "model = \n", 1, "config.toml", "config.toml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("CODEX_HOME", home)
			writeConfig(t, home, tt.config)
			var screen, data, stderr bytes.Buffer
			if code := run(t.Context(), "codex-mcp", []string{"-engine", "native", "doctor"}, &screen, &stderr); code != tt.code {
				t.Errorf("exit status %d, want %d", code, tt.code)
			}
			if !strings.Contains(screen.String(), tt.want) {
				t.Errorf("the screen lacks %q:\n%s", tt.want, &screen)
			}
			if code := run(t.Context(), "codex-mcp", []string{"doctor", "-json", "-engine", "native"}, &data, &stderr); code != tt.code {
				t.Errorf("exit status %d, want %d", code, tt.code)
			}
			var d diagnosis
			if err := json.Unmarshal(data.Bytes(), &d); err != nil {
				t.Fatalf("%v:\n%s", err, &data)
			}
			if (d.Problem == "") != (tt.problem == "") || !strings.Contains(d.Problem, tt.problem) {
				t.Errorf("problem %q, want %q", d.Problem, tt.problem)
			}
		})
	}
}

// TestDoctorBrokenRules names a file of accepted rules that cannot be read. Turns can run without
// it; more is asked.
func TestDoctorBrokenRules(t *testing.T) {
	model := providertest.New()
	defer model.Close()
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	writeConfig(t, home, fmt.Sprintf("model = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nbase_url = %q\n", model.BaseURL()))
	file := filepath.Join(home, "codex-mcp", "rules.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, broken := range map[string]bool{`{"version":1,"last":0,"rules":null}`: false, `{"version":1,`: true} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var screen, stderr bytes.Buffer
		code := run(t.Context(), "codex-mcp", []string{"-engine", "native", "doctor"}, &screen, &stderr)
		row := regexp.MustCompile(`(?m)^warning +` + regexp.QuoteMeta(file) + `: .*; none of these rules counts$`)
		if code != 0 || row.MatchString(screen.String()) != broken {
			t.Errorf("%s: exit status %d:\n%s", text, code, &screen)
		}
	}
}

// TestDoctorBrokenConfiguration checks that doctor never calls a broken configuration fine:
// it names the file, the line and the key, and no package of ours.
func TestDoctorBrokenConfiguration(t *testing.T) {
	for _, tt := range []struct{ file, text, want string }{
		{"config.toml", "model = \n", ":1:9: unexpected character"},
		{"config.toml", "\nmodel = 7\n", ":2: model: want a string, have a number"},
		{"config.toml", "sandbox_mode = \"none\"\n", ":1: sandbox_mode: "},
		{"codex-mcp.toml", "[approvals]\ntimeout = \n", ":2:11: unexpected character"},
		{"codex-mcp.toml", "[approvals]\non_error = \"approve\"\n", ":2: approvals.on_error: "},
		{"codex-mcp.toml", "[approvals]\non_errr = \"deny\"\n", ":2: approvals.on_errr: unknown key"},
	} {
		home := t.TempDir()
		t.Setenv("CODEX_HOME", home)
		path := filepath.Join(home, tt.file)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, engine := range []string{"native", "auto"} {
			var data, screen, stderr bytes.Buffer
			args := []string{"-engine", engine, "-codex", filepath.Join(home, "none"), "doctor"}
			if code := run(t.Context(), "codex-mcp", args, &screen, &stderr); code != 1 {
				t.Errorf("%s: exit status %d", tt.text, code)
			}
			if code := run(t.Context(), "codex-mcp", append(args, "-json"), &data, &stderr); code != 1 {
				t.Errorf("%s: exit status %d", tt.text, code)
			}
			var d diagnosis
			if err := json.Unmarshal(data.Bytes(), &d); err != nil {
				t.Fatal(err)
			}
			for name, got := range map[string]string{"configuration": d.Configuration, "problem": d.Problem} {
				if !strings.HasPrefix(got, path+tt.want) {
					t.Errorf("%s is %q, want %q", name, got, path+tt.want)
				}
			}
			if !strings.Contains(screen.String(), "no task can run: "+d.Configuration+"\n") || strings.Contains(screen.String(), "connection: ") {
				t.Errorf("the screen:\n%s", &screen)
			}
		}
	}
}

// TestDoctorUnknownKeys: an unknown key is probably misspelt, but turns can run.
func TestDoctorUnknownKeys(t *testing.T) {
	model := providertest.New()
	defer model.Close()
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	text := fmt.Sprintf("modle = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nbase_url = %q\n", model.BaseURL())
	writeConfig(t, home, text)
	var screen, stderr bytes.Buffer
	if code := run(t.Context(), "codex-mcp", []string{"-engine", "native", "doctor"}, &screen, &stderr); code != 0 {
		t.Errorf("exit status %d:\n%s", code, &screen)
	}
	want := "unknown key: " + filepath.Join(home, "config.toml") + ":1: modle: do you mean model?\n"
	if !strings.Contains(screen.String(), want) {
		t.Errorf("the screen lacks %q:\n%s", want, &screen)
	}
}

// TestDoctorFailover shows where a turn goes on, and why it cannot.
func TestDoctorFailover(t *testing.T) {
	model := providertest.New()
	defer model.Close()
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	writeConfig(t, home, fmt.Sprintf("model = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\nbase_url = %q\n[model_providers.paid]\nbase_url = %[1]q\nenv_key = \"CODEXMCP_TEST_NO_SUCH_KEY\"\n", model.BaseURL()))
	var screen, stderr bytes.Buffer
	args := []string{"-engine", "native", "-c", `failover.to=[{provider="local",model="n"},{provider="paid",model="p"},{provider="none",model="x"}]`, "doctor", "--verbose"}
	if code := run(t.Context(), "codex-mcp", args, &screen, &stderr); code != 0 {
		t.Errorf("exit status %d:\n%s%s", code, &screen, &stderr)
	}
	for _, want := range []string{
		"model \"n\" of provider \"local\"\n", "model \"p\" of provider \"paid\": Missing environment variable: `CODEXMCP_TEST_NO_SUCH_KEY`.\n",
		"model \"x\" of provider \"none\": it is not in model_providers\n",
	} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("the screen lacks %q:\n%s", want, &screen)
		}
	}
}

func TestCommandLine(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	for _, tt := range []struct {
		args string
		code int
		want string // on stderr or stdout
	}{
		{"-version", 0, "codex-mcp"},
		{"-nosuch", 2, "nosuch"},
		{"serve", 2, "codex-mcp http serves many"},
		{"mcp server", 2, `mcp: want no words after it, found "server"`},
		{"-engine other", 2, "want auto, codex or native"},
		{"-c novalue", 1, "novalue"},
		{"mcp-server -c approvals.timeout=soon", 1, "approvals.timeout"},
		{"-c approvals.on_error=approve mcp serve", 1, "on_error"},
		{"-log loud", 2, "--log: want debug, info, warn or error, found \"loud\"\n"},
		{"-log INFO -version", 0, "codex-mcp"},
		{"-help", 0, "Usage:"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), "codex-mcp", strings.Fields(tt.args), &stdout, &stderr)
		if code != tt.code || !strings.Contains(stdout.String()+stderr.String(), tt.want) {
			t.Errorf("%s: exit status %d, want %d and %q:\n%s%s", tt.args, code, tt.code, tt.want, &stdout, &stderr)
		}
		if tt.code == 1 && stdout.Len() > 0 {
			t.Errorf("%s: stdout holds %q", tt.args, &stdout)
		}
	}
}

// TestFeatureTable compares the table of docs/use/engines.md with the promises that tests check for both
// engines, and with the optional parts of each engine. -update rewrites the table.
func TestFeatureTable(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	c, err := configure(&options{}, os.Getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := c.native("")
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	bridge, err := c.bridge("")
	if err != nil {
		t.Fatal(err)
	}
	defer bridge.Close()
	var b strings.Builder
	b.WriteString("| an engine | native | the installed Codex |\n|---|---|---|\n")
	for _, what := range enginetest.Promises() {
		fmt.Fprintf(&b, "| %s | yes | yes |\n", what)
	}
	one, none := abilities(embedded.Engine)
	two, _ := abilities(bridge)
	for _, what := range append(one, none...) {
		if what != "run and continue conversations" {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", what, yes(slices.Contains(one, what)), yes(slices.Contains(two, what)))
		}
	}
	const file, begin, end = "../../../docs/use/engines.md", "<!-- features -->\n", "<!-- /features -->\n"
	readme, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(readme), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no place for the table")
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(b.String(), table); diff != "" {
		t.Errorf("the page's table (-want +got):\n%s", diff)
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// TestDoctorOnTerminal checks that a terminal gets rows that it need not break, and that what is said
// of Codex is said once.
func TestDoctorOnTerminal(t *testing.T) {
	const problem = "codex not found: install it with `npm i -g @openai/codex`, or name the program with --codex or CODEX_BIN"
	d := &diagnosis{Version: "v1", System: "linux/amd64", Home: "/home/you/.codex", Codex: &appserver.Report{Problem: problem},
		Engine: "native", Reason: "Codex cannot be used: " + problem, Can: []string{"resume"}}
	for width, want := range map[int]string{
		60: `result         tasks can run, with the native engine
codex-mcp      v1 on linux/amd64
configuration  /home/you/.codex
codex          codex not found: install it with ` + "`npm i -g" + `
               @openai/codex` + "`" + `, or name the program with
               --codex or CODEX_BIN
engine         native (Codex cannot be used: see codex)
               can: resume
`,
		0: `result         tasks can run, with the native engine
codex-mcp      v1 on linux/amd64
configuration  /home/you/.codex
codex          ` + problem + `
engine         native (Codex cannot be used: see codex)
               can: resume
`,
	} {
		var screen bytes.Buffer
		d.print(&screen, width, true)
		if diff := cmp.Diff(want, screen.String()); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}
