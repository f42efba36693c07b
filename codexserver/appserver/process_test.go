package appserver_test

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// program returns an engine that runs the test binary as a codex of that kind.
func program(t *testing.T, kind string, o appserver.Options) *appserver.Engine {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asCodex, kind)
	t.Setenv(ofTest, rand.Text())
	o.Path = self
	if o.CodexHome == "" {
		o.CodexHome = t.TempDir()
	}
	e, err := appserver.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func TestProgram(t *testing.T) {
	e := program(t, "fine", appserver.Options{})
	h := &recorder{}
	conv := start(t, e, h)
	for range 2 {
		if err := conv.Turn(t.Context(), text("go")); err != nil || h.answer() != "done" {
			t.Fatalf("%v, %q", err, h.answer())
		}
	}
	report := e.Check(t.Context())
	if !report.Usable() || report.Version != "0.169.0" || report.Home == "" || report.Path == "" {
		t.Errorf("report %+v", report)
	}
}

func TestUnusableProgram(t *testing.T) {
	for _, test := range []struct {
		kind, version string
		old           bool
		says          string
	}{
		{"old", "0.59.0", true, "codex 0.59.0 is too old: 0.154.0 or newer is needed"},
		{"none", "0.42.0", true, "codex 0.42.0 is too old"},
		{"broken", "0.169.0", false, "codex app-server has ended (exit status 1): Error: the key [redacted] is broken"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			e := program(t, test.kind, appserver.Options{})
			_, err := e.Start(t.Context(), protocol.Config{}, &recorder{})
			var old *appserver.TooOldError
			if err == nil || !strings.Contains(err.Error(), test.says) || errors.As(err, &old) != test.old {
				t.Errorf("error %v", err)
			}
			if r := e.Check(t.Context()); r.Usable() || r.Version != test.version || !strings.Contains(r.Problem, test.says) {
				t.Errorf("report %+v", r)
			}
		})
	}
}

func TestUntrustedInTheFile(t *testing.T) {
	e := program(t, "untrusted", appserver.Options{})
	report := e.Check(t.Context())
	if !report.Usable() || report.ApprovalPolicy != "untrusted" {
		t.Errorf("report %+v", report)
	}
}

func TestOverridesOnTheCommandLine(t *testing.T) {
	e := program(t, "fine", appserver.Options{Overrides: map[string]any{
		"model": `m"1`, "approval_policy": "never", "profile": "p", "limits": map[string]any{"wall_time": 1},
		"a": map[string]any{"b": true, "n": 5, "list": []any{"x", map[string]any{"k": 1.5}}},
	}})
	want := `app-server -c a.b=true -c a.list=['x', {k = 1.5}] -c a.n=5 -c model='m"1'`
	if got := e.Check(t.Context()).Model; got != want {
		t.Errorf("arguments %s, want %s", got, want)
	}
}

// TestDeafProgramIsKilled kills a program that ignores the end of its input and signals,
// with all that it started.
func TestDeafProgramIsKilled(t *testing.T) {
	e := program(t, "deaf", appserver.Options{})
	start(t, e, &recorder{})
	begun := time.Now()
	e.Close()
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if left := left(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}
