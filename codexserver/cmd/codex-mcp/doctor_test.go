package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
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
	for text, broken := range map[string]bool{`{"version":3,"rules":null}`: false, `{"version":3,`: true} {
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

// TestSameAbilities checks that both engines have every optional part, and that docs/use/engines.md names
// each as doctor does.
func TestSameAbilities(t *testing.T) {
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
	one, missing := abilities(embedded.Engine)
	two, without := abilities(bridge)
	if missing = append(missing, without...); len(missing) > 0 {
		t.Errorf("an engine cannot %q", missing)
	}
	page, err := os.ReadFile("../../../docs/use/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range one {
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), what) {
			t.Errorf("the page does not have %q", what)
		}
	}
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("native and bridge (-want +got):\n%s", diff)
	}
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
sandbox        fine
engine         native (Codex cannot be used: see codex)
               can: resume
`,
		0: `result         tasks can run, with the native engine
codex-mcp      v1 on linux/amd64
configuration  /home/you/.codex
codex          ` + problem + `
sandbox        fine
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
