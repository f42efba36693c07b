package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/spf13/cobra"
)

// goldenText compares a text with a file of testdata/golden; -update rewrites it.
func goldenText(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		must.OK(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want := must.Get(os.ReadFile(file))(t)
	must.Equal(t, name, string(want), got)
}

// TestGoldenHelp has the help of every command.
func TestGoldenHelp(t *testing.T) {
	t.Setenv("CODEX_HOME", "/CODEX_HOME")
	var all strings.Builder
	var walk func(cmd *cobra.Command, words []string)
	walk = func(cmd *cobra.Command, words []string) {
		code, stdout, stderr := runLine(t, "codex-mcp", append(slices.Clone(words), "--help")...)
		fmt.Fprintf(&all, "$ codex-mcp %s\n%s%sexit %d\n\n", strings.Join(append(words, "--help"), " "), stdout, stderr, code)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				walk(sub, append(slices.Clone(words), sub.Name()))
			}
		}
	}
	walk((&options{name: "codex-mcp"}).commands(nil), nil)
	goldenText(t, "help.txt", all.String())
}

// TestGoldenDoctor has the screen and the JSON of doctor with the native engine.
func TestGoldenDoctor(t *testing.T) {
	f, model := prepare(t, "untrusted")
	t.Setenv("HOME", f.user)
	t.Setenv("CODEX_HOME", f.home)
	t.Setenv("PATH", f.user)
	t.Setenv("TMPDIR", "/tmp")
	var all strings.Builder
	for _, words := range [][]string{{"doctor"}, {"doctor", "--json"}, {"doctor", "-c", "calls.trusted=true"}} {
		code, stdout, stderr := runLine(t, "codex-mcp", append(words, "--engine", "native", "-C", f.cwd)...)
		fmt.Fprintf(&all, "$ codex-mcp %s\n%s%sexit %d\n\n", strings.Join(words, " "), stdout, stderr, code)
	}
	text := strings.NewReplacer(f.home, "$CODEX_HOME", f.cwd, "$CWD", f.user, "$HOME", model.BaseURL(), "$BASE_URL").Replace(all.String())
	for _, r := range []struct{ old, new string }{
		{`(?m)^(codex-mcp|version|sandbox|system|commands) .*$`, `$1 <VARIES>`},
		{`"(version|go|system|sandbox|platform)": ?("[^"]*"|\{[^}]*\})`, `"$1":"<VARIES>"`},
	} {
		text = regexp.MustCompile(r.old).ReplaceAllString(text, r.new)
	}
	goldenText(t, "doctor.txt", text)
}

// wrongLines are command lines with a mistake, one on each line. A line that begins with "config:" or
// "settings:" sets the text of config.toml or codex-mcp.toml for the lines after it; a semicolon there
// ends a line.
const wrongLines = `
askk
tsaks
login
logout
auth login
exec fix the tests
e hi
run the tests
review
resume last
apply
app-server
serve
server
version
update
upgrade
install
init
setup
config
list
models
sandbox
fix the tests
mcp list
mcp add x
rules remove
rules remove 1 2
ask --engine= hi
shared nosuch
doctor all
page 1 2
completion tcsh
completion
--modle x
--aproval never
--sandobx read-only
--engin native
ask --modle x hi
ask
ask -
ask --resume
ask --resume= hi
ask --engine native --resume last hi
ask --engine native -- --resume last
ask -c approvals.log=/nosuch/log hi
ask --demo a task
ask --demo --resume last
ask --demo -C .
ask --demo --engine codex
ask --resume last -m x hi
ask -s writable hi
ask -a always hi
ask -C /nosuch hi
ask --engine other hi
http --shared
http --listen 0.0.0.0:80
http --tls-cert x
--approvals phone
--log loud
--log-format xml
-c
-c novalue
-c =x
-c approvals.timeout=soon
-c approvals.nosuch=1
-c approval_policy=always doctor
-c sandbox_mode=none doctor
-c model_provider=nosuch doctor
-c model_provider=oss -m x doctor
ask -c approval_polcy=untrusted hi
ask -c sandbox_mod=read-only -c model_provider=oss -m x hi
ask --strict-config -c modle=x hi
ask -c model_provider=oss -m x hi
ask -c model_provider=oss -c model_providers.oss.base_url=localhost:11434/v1 -m x hi
ask -c model_provider=oss -c model_providers.oss.wire_api=rest -m x hi
ask -p nosuch hi
ask hi
ask --engine codex hi
--codex /nosuch/codex ask --engine codex hi
config: modle = "m"; [model_providers.x]; base_ulr = "http://127.0.0.1:1/v1"
doctor
ask --strict-config hi
config: model = "m
doctor
ask hi
config: model = 7
ask hi
config: sandbox_mode = "write"
ask hi
config: [mcp_servers.x]; command = 3
ask hi
config:
settings: [aprovals]; where = "page"
ask hi
settings: [approvals]; wher = "page"
ask hi
settings: [approvals]; where = "phone"
ask hi
`

// TestGoldenWrongInput has the answer to each wrong command line and configuration.
func TestGoldenWrongInput(t *testing.T) {
	f := newFolders(t)
	for name, value := range map[string]string{"HOME": f.user, "CODEX_HOME": f.home, "PATH": f.user, "OPENAI_API_KEY": "", "CODEX_BIN": ""} {
		t.Setenv(name, value)
	}
	wd := must.Get(os.Getwd())(t)
	var all strings.Builder
	for words := range strings.Lines(strings.TrimPrefix(wrongLines, "\n")) {
		words = strings.TrimSpace(words)
		for kind, file := range map[string]string{"config:": "config.toml", "settings:": "codex-mcp.toml"} {
			if text, ok := strings.CutPrefix(words, kind); ok {
				write(t, filepath.Join(f.home, file), strings.ReplaceAll(strings.TrimSpace(text), "; ", "\n")+"\n")
				fmt.Fprintf(&all, "%s %s\n\n", file, strings.TrimSpace(text))
				words = ""
			}
		}
		if words == "" {
			continue
		}
		code, stdout, stderr := runLine(t, "codex-mcp", strings.Fields(words)...)
		fmt.Fprintf(&all, "$ codex-mcp %s\n%s%sexit %d\n\n", words, stdout, stderr, code)
	}
	text := strings.NewReplacer(f.home, "$CODEX_HOME", wd, "$CWD", f.user, "$HOME").Replace(all.String())
	goldenText(t, "wrong.txt", regexp.MustCompile(`(?m)^commands .*$`).ReplaceAllString(text, "commands <VARIES>"))
}
