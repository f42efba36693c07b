package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestFlagsOfCodex passes every flag of codex mcp-server, which testdata/flags.txt has, before and after each name of the command.
func TestFlagsOfCodex(t *testing.T) {
	in := strings.NewReplacer("DIR", t.TempDir(), `\n`, "\n", `\_`, " ")
	for row := range strings.Lines(string(must.Get(os.ReadFile("testdata/flags.txt"))(t))) {
		if row[0] == '#' {
			continue
		}
		var flags []string
		cells := append(strings.Split(strings.TrimSuffix(row, "\n"), " | "), "", "", "")
		for flag := range strings.FieldsSeq(cells[0]) {
			flags = append(flags, in.Replace(flag))
		}
		overrides, warning, refusal := strings.Fields(in.Replace(cells[1])), cells[2], cells[3]
		for _, word := range [][]string{nil, {"mcp-server"}, {"mcp"}, {"mcp", "serve"}} {
			for _, line := range [][]string{slices.Concat(flags, word), slices.Concat(word, flags)} {
				o, err := parse("codex-mcp", line, io.Discard)
				if refusal != "" {
					must.Fail(t, strings.Join(line, " "), refusal, err)
					continue
				}
				if err != nil || o.run == nil || !slices.Equal(strings.Fields(o.folder+" "+strings.Join(o.overrides, " ")), overrides) {
					t.Errorf("%q: %v, folder %q, overrides %q", line, err, o.folder, o.overrides)
					continue
				}
				t.Setenv("CODEX_HOME", t.TempDir())
				c := must.Get(configure(o, os.Getenv, o.logger(io.Discard)))(t)
				var stderr bytes.Buffer
				c.warn(o, &stderr)
				if got := stderr.String(); !strings.Contains(got, warning) || (got == "") != (warning == "") {
					t.Errorf("%q: warned %q, want %q", line, got, warning)
				}
			}
		}
	}
}

// TestProgramName takes the name of the command from those of links to it. testdata/golden/names.txt has what differs.
func TestProgramName(t *testing.T) {
	for argv0, want := range map[string]string{
		"codex": "codex", "/usr/local/bin/codex": "codex", "codex.exe": "codex",
		"codex-mcp": "codex-mcp", "/tmp/x/codex-mcp.exe": "codex-mcp", "codexx": "codex-mcp", "": "codex-mcp",
	} {
		must.Equal(t, argv0, want, programName(argv0))
	}
}

// TestFullDevice prints to a full device. servertest.ReaderLeaves does so in the turns of ask.
func TestFullDevice(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, line := range []string{"--version", "--help", "completion bash", "doctor --engine native", "doctor --engine native --json"} {
		var stderr bytes.Buffer
		if code := run(t.Context(), "codex-mcp", strings.Fields(line), full, &stderr); code != 1 || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%s: exit status %d: %s", line, code, &stderr)
		}
	}
}

// TestEndToEndCalledCodex starts the program by a link called codex, which is
// also the first codex of its PATH, with a command line that cannot be changed.
func TestEndToEndCalledCodex(t *testing.T) {
	t.Parallel()
	bin := built(t)
	dir := t.TempDir()
	link := filepath.Join(dir, "codex")
	must.OK(t, os.Symlink(bin, link))
	f, model := prepare(t, "never", providertest.Say("Served."))
	cmd := exec.CommandContext(t.Context(), link, "-m", "gpt-5.3-codex", "mcp-server", "--log", "info")
	cmd.Dir, cmd.Env = f.cwd, []string{"PATH=" + dir, "HOME=" + f.user, "CODEX_HOME=" + f.home, "CODEX_BIN="} // the PATH has no other Codex
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"work"}}}` + "\n")
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"Served.", "name=native", "Codex cannot be used: "} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, no %q in\n%s", err, want, out)
		}
	}
	if got := string(model.Requests()[0].Body); !strings.Contains(got, `"model":"gpt-5.3-codex"`) {
		t.Errorf("the model was asked %s", got)
	}
}
