package appserver_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// program returns an engine that runs the test binary as a codex of that kind.
func program(t *testing.T, kind string, o appserver.Options) *appserver.Engine {
	t.Helper()
	self := must.Get(os.Executable())(t)
	t.Setenv(asCodex, kind)
	t.Setenv(ofTest, rand.Text())
	o.Path = self
	if o.CodexHome == "" {
		o.CodexHome = t.TempDir()
	}
	e := must.Get(appserver.New(&o))(t)
	t.Cleanup(func() { e.Close() })
	return e
}

func TestProgram(t *testing.T) {
	overrides := map[string]any{
		"model": `m"1`, "approval_policy": "never", "profile": "p", "limits": map[string]any{"wall_time": 1},
		"a": map[string]any{"b": true, "n": 5, "list": []any{"x", map[string]any{"k": 1.5}}},
	}
	for _, tt := range []struct {
		kind, version string
		overrides     map[string]any
		policy, model string // of the report, "" for any; the fake's model is its arguments
		fails         string // "" if it is usable
	}{
		{"fine", "0.169.0", nil, "", "", ""},
		{"fine", "0.169.0", overrides, "", `app-server -c a.b=true -c a.list=['x', {k = 1.5}] -c a.n=5 -c model='m"1'`, ""},
		{"untrusted", "0.169.0", nil, "untrusted", "", ""},
		{"old", "0.59.0", nil, "", "", "codex 0.59.0 is too old: 0.154.0 or newer is needed; update it with `npm i -g @openai/codex@latest`"},
		{"none", "0.42.0", nil, "", "", "codex 0.42.0 is too old"},
		{"broken", "0.169.0", nil, "", "", "codex app-server has ended (exit status 1): Error: the key [redacted] is broken"},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			home := t.TempDir()
			writeFile(t, filepath.Join(home, "p.config.toml"), "")
			e := program(t, tt.kind, appserver.Options{CodexHome: home, Overrides: tt.overrides})
			h := &recorder{}
			conv, err := e.Start(t.Context(), protocol.Config{}, h)
			var old *appserver.TooOldError
			if err != nil != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) || errors.As(err, &old) != strings.Contains(tt.fails, "too old") {
				t.Errorf("error %v", err)
			}
			for range 2 {
				if conv != nil && (conv.Turn(t.Context(), text("go")) != nil || h.answer() != "done") {
					t.Errorf("%q", h.types())
				}
			}
			r := e.Check(t.Context())
			if r.Usable() != (tt.fails == "") || r.Version != tt.version || !strings.Contains(r.Problem, tt.fails) || r.Usable() && (r.Home == "" || r.Path == "") {
				t.Errorf("report %+v", r)
			}
			if tt.policy != "" && r.ApprovalPolicy != tt.policy || tt.model != "" && r.Model != tt.model {
				t.Errorf("report %+v", r)
			}
		})
	}
}

// TestDeafProgramIsKilled kills a program that ignores the end of its input and signals, with all that it started.
func TestDeafProgramIsKilled(t *testing.T) {
	e := program(t, "deaf", appserver.Options{})
	conv := start(t, e, &recorder{})
	begun := time.Now()
	e.Close()
	if err := conv.Turn(t.Context(), text("go")); err == nil {
		t.Error("a turn of a closed engine")
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if left := left(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// fineCodex is a script around the test binary as Codex.
func fineCodex(self string) string {
	return fmt.Sprintf("#!/bin/sh\n%s=fine exec %q \"$@\"\n", asCodex, self)
}

// TestFindSkipsOwnProgram puts programs called codex into the folders of a PATH: a link to the running program, a
// script that answers like codex-mcp, and a script around Codex. The last one must be run.
func TestFindSkipsOwnProgram(t *testing.T) {
	self := must.Get(os.Executable())(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name, "codex") }
	boxtest.Lay(t, dir, "empty/", "link/codex -> "+self, "linked/codex -> @/link/codex",
		"copied/codex=#!/bin/sh\n"+`echo "codex-cli 0.153.4 (codex-mcp 1.2.3, go1.26, linux/amd64)"`,
		"copy/codex=#!/bin/sh\n"+`test "$1" = --version && echo "codex-mcp 1.2.3 (go1.26, linux/amd64)" && exit; echo "unknown command" >&2; exit 2`,
		"real/codex="+fineCodex(self))
	t.Setenv("CODEX_BIN", "")
	for _, tt := range []struct {
		folders, option string
		found           string // by Find
		run             string // by the engine
		says            string
	}{
		{"link real", "", "link", "real", ""},
		{"linked link empty copied real", "", "linked", "real", ""},
		{"copy real", "codex", "copy", "real", ""},
		{"copy link", "", "copy", "", at("copy") + " is codex-mcp itself, and not Codex"},
		{"copied", "", "copied", "", at("copied") + " is codex-mcp itself, and not Codex"},
		{"real", at("copy"), "copy", "", at("copy") + " is codex-mcp itself, and not Codex"},
		{"empty", "", "", "", "codex is not in the PATH"},
	} {
		t.Run(tt.folders, func(t *testing.T) {
			var path []string
			for name := range strings.FieldsSeq(tt.folders) {
				path = append(path, filepath.Join(dir, name))
			}
			t.Setenv("PATH", strings.Join(path, string(filepath.ListSeparator)))
			found, err := appserver.FindAnywhere(tt.option)
			if want := at(tt.found); tt.found != "" && found != want || tt.found == "" && err == nil {
				t.Errorf("found %s, %v", found, err)
			}
			e := must.Get(appserver.New(&appserver.Options{Path: tt.option, CodexHome: t.TempDir()}))(t)
			defer e.Close()
			e.TrustTemporary()
			report := e.Check(t.Context())
			if tt.run != "" {
				if !report.Usable() || report.Path != at(tt.run) {
					t.Errorf("report %+v", report)
				}
				return
			}
			var none *appserver.NotFoundError
			if !errors.As(report.Err, &none) || !strings.Contains(report.Problem, tt.says) || strings.Contains(report.Problem, "not found") != strings.HasSuffix(tt.says, "PATH") {
				t.Errorf("report %+v", report)
			}
		})
	}
}

// TestPlantedCodex has callers name folders in which a Codex has been planted. A planted
// Codex that starts leaves a file.
func TestPlantedCodex(t *testing.T) {
	self, err := os.Executable()
	must.OK(t, err)
	const refused = "a codex was found, but "
	for _, tt := range []struct {
		name    string
		folders string // in the PATH
		option  string
		cfg     protocol.Config // with names for folders
		err     string
	}{
		{"the working folder", "work/bin real", "", protocol.Config{Cwd: "work"}, ""},
		{"the server's folder", "work/bin real", "", protocol.Config{}, ""},
		{"no other Codex", "work/bin", "", protocol.Config{Cwd: "work"}, refused},
		{"a path", "real", "work/bin/codex", protocol.Config{Cwd: "work"}, refused},
		{"elsewhere", "work/bin real", "", protocol.Config{Cwd: "other"}, "planted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			trap := "#!/bin/sh\ntouch '" + at("planted") + "'\n"
			boxtest.Lay(t, dir, "work/bin/codex="+trap, "work/bin/helper="+trap, "more/codex="+trap, "other/", "real/codex="+strings.Replace(fineCodex(self), "\n", "\nhelper\n", 1))
			var path []string
			for name := range strings.FieldsSeq(tt.folders) {
				path = append(path, at(name))
			}
			t.Setenv("PATH", strings.Join(append(path, "/usr/bin", "/bin"), string(filepath.ListSeparator)))
			t.Setenv("CODEX_BIN", "")
			o := &appserver.Options{CodexHome: t.TempDir()}
			if tt.option != "" {
				o.Path = at(tt.option)
			}
			e, err := appserver.New(o)
			must.OK(t, err)
			defer e.Close()
			e.TrustTemporary()
			if tt.cfg.Cwd == "" {
				t.Chdir(at("work"))
			} else {
				tt.cfg.Cwd = at(tt.cfg.Cwd)
			}
			_, err = e.Start(t.Context(), tt.cfg, &recorder{})
			_, planted := os.Stat(at("planted"))
			switch {
			case tt.err == "planted": // shows that it is a trap
				if planted != nil {
					t.Error("the planted Codex did not start, and nobody can write it")
				}
			case planted == nil:
				t.Error("the planted Codex started")
			case tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
}

// TestRefusedRestart kills a Codex in a folder that has become writable.
func TestRefusedRestart(t *testing.T) {
	self := must.Get(os.Executable())(t)
	dir := t.TempDir()
	boxtest.Lay(t, dir, "codex="+fineCodex(self))
	e := must.Get(appserver.New(&appserver.Options{Path: filepath.Join(dir, "codex"), CodexHome: t.TempDir()}))(t)
	defer e.Close()
	if report := e.Check(t.Context()); report.Err != nil {
		t.Fatal(report.Err)
	}
	must.Get(e.Start(t.Context(), protocol.Config{Cwd: dir}, &recorder{}))(t)
	p := must.Get(os.FindProcess(e.PID()))(t)
	must.OK(t, p.Kill())
	for {
		_, err := e.Start(t.Context(), protocol.Config{}, &recorder{})
		if err != nil && strings.Contains(err.Error(), "lies in a folder that commands can write") {
			return
		}
		if err == nil && e.PID() != p.Pid || t.Context().Err() != nil {
			t.Fatalf("it started again: %v", err)
		}
	}
}
