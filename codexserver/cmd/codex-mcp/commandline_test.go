package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFlagsOfCodex passes every flag of codex mcp-server before and after each name of the
// command.
func TestFlagsOfCodex(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		flags     []string
		overrides []string
		folder    string
		warning   string // the start continues
		refusal   string // the start ends
	}{
		{flags: []string{"-c", "model=o3"}, overrides: []string{"model=o3"}},
		{flags: []string{"--config", "model=o3"}, overrides: []string{"model=o3"}},
		{flags: []string{"-engine", "native"}},
		{flags: []string{"-engine=native", "-log", "debug", "-trace", "/dev/null"}},
		{flags: []string{"-engine", "nosuch"}, refusal: "want auto, codex or native"},
		{flags: []string{"-m", "o3"}, overrides: []string{`model="o3"`}},
		{flags: []string{"--model", "5"}, overrides: []string{`model="5"`}},
		{flags: []string{"--model=o\"3"}, overrides: []string{`model="o\"3"`}},
		{flags: []string{"-s", "workspace-write"}, overrides: []string{`sandbox_mode="workspace-write"`}},
		{flags: []string{"--sandbox", "danger-full-access"}, overrides: []string{`sandbox_mode="danger-full-access"`}, warning: "sandbox_mode=danger-full-access"},
		{flags: []string{"-s", "none"}, refusal: "want read-only, workspace-write or danger-full-access"},
		{flags: []string{"-a", "untrusted"}, overrides: []string{`approval_policy="untrusted"`}},
		{flags: []string{"--ask-for-approval=never"}, overrides: []string{`approval_policy="never"`}, warning: "approval_policy=never"},
		{flags: []string{"-c", "approval_policy=never"}, overrides: []string{"approval_policy=never"}, warning: "approval_policy=never"},
		{flags: []string{"-c", `sandbox_mode="danger-full-access"`}, overrides: []string{`sandbox_mode="danger-full-access"`}, warning: "sandbox_mode=danger-full-access"},
		{flags: []string{"-a", "always"}, refusal: "want untrusted, on-failure, on-request or never"},
		{flags: []string{"-p", "fast"}, overrides: []string{`profile="fast"`}},
		{flags: []string{"--profile", "fast"}, overrides: []string{`profile="fast"`}},
		{flags: []string{"-C", dir}, folder: dir},
		{flags: []string{"--cd=" + dir}, folder: dir},
		{flags: []string{"--cd", filepath.Join(dir, "none")}, refusal: "is not a folder"},
		{flags: []string{"--enable", "web_search_request"}, overrides: []string{"features.web_search_request=true"}},
		{flags: []string{"--disable=apps"}, overrides: []string{"features.apps=false"}},
		{flags: []string{"--enable", "a=b\nc"}, refusal: "want the name of a feature"},
		{flags: []string{"--strict-config"}},
		{flags: []string{"-m", "one", "-c", "model=two"}, overrides: []string{`model="one"`, "model=two"}}, // the last one counts

		{flags: []string{"--full-auto"}, refusal: "--full-auto is not a flag of this program: write --sandbox workspace-write --ask-for-approval on-request"},
		{flags: []string{"--yolo"}, refusal: "write --sandbox danger-full-access --ask-for-approval never"},
		{flags: []string{"--dangerously-bypass-approvals-and-sandbox"}, refusal: "write --sandbox danger-full-access --ask-for-approval never"},
		{flags: []string{"--oss"}, refusal: "write -c model_provider=oss"},
		{flags: []string{"--local-provider", "ollama"}, refusal: "write -c model_provider=NAME"},
		{flags: []string{"-i", "picture.png"}, refusal: "--image is not a flag of this program"},
		{flags: []string{"--image=picture.png"}, refusal: "--image is not a flag of this program"},
		{flags: []string{"--remote", "ws://x"}, refusal: "starts an app-server of its own"},
		{flags: []string{"--", "fix the tests"}, refusal: "unknown command \"fix the tests"},
		{flags: []string{"--search"}, warning: "--search has no effect here: write -c tools.web_search=true"},
		{flags: []string{"--add-dir", dir}, warning: "sandbox_workspace_write.writable_roots"},
		{flags: []string{"--no-alt-screen"}, warning: "--no-alt-screen has no effect here"},
		{flags: []string{"--approve-for-me"}, warning: "--approve-for-me has no effect here"},
		{flags: []string{"--dangerously-bypass-hook-trust"}, warning: "--dangerously-bypass-hook-trust has no effect here"},
		{flags: []string{"--nosuch"}, refusal: "unknown "},
		{flags: []string{"-x"}, refusal: "unknown "},
	} {
		for _, word := range [][]string{nil, {"mcp-server"}, {"mcp"}, {"mcp", "serve"}} {
			for _, line := range [][]string{slices.Concat(tt.flags, word), slices.Concat(word, tt.flags)} {
				o, err := parse("codex-mcp", line, io.Discard)
				if tt.refusal != "" {
					if err == nil || !strings.Contains(err.Error(), tt.refusal) {
						t.Errorf("%q: %v, want %q", line, err, tt.refusal)
					}
					continue
				}
				if err != nil || o.run == nil {
					t.Errorf("%q: %v", line, err)
					continue
				}
				if diff := cmp.Diff(tt.overrides, o.overrides); diff != "" || o.folder != tt.folder {
					t.Errorf("%q: folder %q, overrides (-want +got):\n%s", line, o.folder, diff)
				}
				t.Setenv("CODEX_HOME", t.TempDir())
				c, err := configure(o, os.Getenv, o.logger(io.Discard))
				if err != nil {
					t.Errorf("%q: %v", line, err)
					continue
				}
				var stderr bytes.Buffer
				c.warn(o, &stderr)
				if got := stderr.String(); !strings.Contains(got, tt.warning) || (got == "") != (tt.warning == "") {
					t.Errorf("%q: warned %q, want %q", line, got, tt.warning)
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
		if got := programName(argv0); got != want {
			t.Errorf("%q: %q, want %q", argv0, got, want)
		}
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
