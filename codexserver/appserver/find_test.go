package appserver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
)

// TestFindSkipsOwnProgram puts programs called codex into the folders of a PATH: a link to
// the running program, a script that answers like codex-mcp, and a script around Codex. The
// last one must be found.
func TestFindSkipsOwnProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name, "codex") }
	for _, name := range []string{"link", "linked", "copy", "copied", "real", "empty"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := func(name, text string) error {
		return os.WriteFile(at(name), []byte("#!/bin/sh\n"+text), 0o755)
	}
	if err := errors.Join(
		os.Symlink(self, at("link")),
		os.Symlink(at("link"), at("linked")),
		script("copied", `echo "codex-cli 0.153.4 (codex-mcp 1.2.3, go1.26, linux/amd64)"`),
		script("copy", `test "$1" = --version && echo "codex-mcp 1.2.3 (go1.26, linux/amd64)" && exit; echo "unknown command" >&2; exit 2`),
		script("real", fmt.Sprintf("%s=fine exec %q \"$@\"", asCodex, self)),
	); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODEX_BIN", "")
	for _, tt := range []struct {
		folders string
		option  string
		found   string // by Find
		run     string // by the engine
		says    string
	}{
		{"link real", "", "real", "real", ""},
		{"linked link empty real", "", "real", "real", ""},
		{"copy real", "", "copy", "real", ""},
		{"copied real", "", "copied", "real", ""},
		{"linked copy real", "codex", "copy", "real", ""},
		{"link linked", "", "", "", at("linked") + ": is codex-mcp itself, and not Codex"},
		{"copy", "", "copy", "", at("copy") + ": is codex-mcp itself, and not Codex"},
		{"copied", "", "copied", "", at("copied") + ": is codex-mcp itself, and not Codex"},
		{"copy link", "", "copy", "", "is codex-mcp itself, and not Codex"},
		{"real", at("copy"), "copy", "", at("copy") + ": is codex-mcp itself, and not Codex"},
		{"empty", "", "", "", `exec: "codex": executable file not found in $PATH`},
	} {
		t.Run(tt.folders, func(t *testing.T) {
			var path []string
			for name := range strings.FieldsSeq(tt.folders) {
				path = append(path, filepath.Join(dir, name))
			}
			t.Setenv("PATH", strings.Join(path, string(filepath.ListSeparator)))
			found, err := appserver.Find(tt.option)
			if want := at(tt.found); tt.found != "" && found != want || tt.found == "" && err == nil {
				t.Errorf("found %s, %v", found, err)
			}
			e, err := appserver.New(&appserver.Options{Path: tt.option, CodexHome: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			report := e.Check(t.Context())
			if tt.run != "" {
				if !report.Usable() || report.Path != at(tt.run) {
					t.Errorf("report %+v", report)
				}
				return
			}
			var none *appserver.NotFoundError
			if !errors.As(report.Err, &none) || !strings.Contains(report.Problem, tt.says) {
				t.Errorf("report %+v", report)
			}
		})
	}
}
