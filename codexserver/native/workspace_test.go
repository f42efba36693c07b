package native_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

func TestExecOneOff(t *testing.T) {
	e, _ := inHome(t, native.Options{Environ: []string{"PATH=" + os.Getenv("PATH"), "SEEN=yes", "MY_TOKEN=secret"}},
		map[string]string{"config.toml": "sandbox_mode = \"danger-full-access\"\n"})
	dir := t.TempDir()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		p    protocol.ExecOneOffCommandParams
		want protocol.ExecOneOffCommandResult
	}{
		{"plain", protocol.ExecOneOffCommandParams{Command: []string{"echo", "hi"}}, protocol.ExecOneOffCommandResult{Stdout: "hi\n"}},
		{"both streams and a status", protocol.ExecOneOffCommandParams{Command: []string{"sh", "-c", "echo out; echo err >&2; exit 7"}},
			protocol.ExecOneOffCommandResult{ExitCode: 7, Stdout: "out\n", Stderr: "err\n"}},
		{"the server's folder", protocol.ExecOneOffCommandParams{Command: []string{"pwd", "-P"}}, protocol.ExecOneOffCommandResult{Stdout: wd + "\n"}},
		{"another folder", protocol.ExecOneOffCommandParams{Command: []string{"pwd"}, Cwd: dir}, protocol.ExecOneOffCommandResult{Stdout: dir + "\n"}},
		{"a folder below the server's", protocol.ExecOneOffCommandParams{Command: []string{"pwd", "-P"}, Cwd: "testdata/.."}, protocol.ExecOneOffCommandResult{Stdout: wd + "\n"}},
		{"the environment's policy", protocol.ExecOneOffCommandParams{Command: []string{"sh", "-c", "echo $SEEN$MY_TOKEN"}}, protocol.ExecOneOffCommandResult{Stdout: "yes\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := e.ExecOneOff(t.Context(), tt.p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error("(-want +got)\n" + diff)
			}
		})
	}
	short, none := int64(1), int64(-1)
	for _, tt := range []struct {
		name string
		p    protocol.ExecOneOffCommandParams
		want string
	}{
		{"too slow", protocol.ExecOneOffCommandParams{Command: []string{"tail", "-f", os.DevNull}, TimeoutMs: &short}, "timed out"},
		{"too slow from the start", protocol.ExecOneOffCommandParams{Command: []string{"tail", "-f", os.DevNull}, TimeoutMs: &none}, "timed out"},
		{"missing program", protocol.ExecOneOffCommandParams{Command: []string{"no_such_bin"}}, "no_such_bin"},
		{"no folder", protocol.ExecOneOffCommandParams{Command: []string{"echo"}, Cwd: filepath.Join(dir, "no")}, "working folder"},
		{"a faulty word", protocol.ExecOneOffCommandParams{Command: []string{"echo", "\x00"}}, "NUL"},
	} {
		var refused *engine.RefusedError
		if _, err := e.ExecOneOff(t.Context(), tt.p); err == nil || errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", tt.name, err, tt.want)
		}
	}
	var refused *engine.RefusedError
	if _, err := e.ExecOneOff(t.Context(), protocol.ExecOneOffCommandParams{}); !errors.As(err, &refused) {
		t.Errorf("no command: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.ExecOneOff(ctx, protocol.ExecOneOffCommandParams{Command: []string{"echo"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestExecOneOffConfined checks that a command with a sandbox policy runs confined or not at
// all. Without a policy the configured one, read-only, applies.
func TestExecOneOffConfined(t *testing.T) {
	e, _ := inHome(t, native.Options{}, nil)
	for _, tt := range []struct {
		name   string
		policy *protocol.SandboxPolicy
		writes bool
	}{
		{"as configured", nil, false},
		{"read-only", &protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, false},
		{"workspace", &protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}, true},
		{"unknown", &protocol.SandboxPolicy{Mode: "bogus"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			p := protocol.ExecOneOffCommandParams{Command: []string{"sh", "-c", "echo x > file; echo x > ../beside"}, Cwd: filepath.Join(dir, "cwd"), SandboxPolicy: tt.policy}
			if err := os.Mkdir(p.Cwd, 0o700); err != nil {
				t.Fatal(err)
			}
			result, err := e.ExecOneOff(t.Context(), p)
			var refused *engine.RefusedError
			if err != nil && !errors.As(err, &refused) {
				t.Fatal(err)
			}
			if err == nil && result.ExitCode == 0 {
				t.Error("the command could write outside")
			}
			if _, gone := os.Stat(filepath.Join(p.Cwd, "file")); gone == nil && !tt.writes {
				t.Error("the command wrote in its folder")
			} else if gone != nil && tt.writes && err == nil {
				t.Error("the command could not write in its folder")
			}
			if _, gone := os.Stat(filepath.Join(dir, "beside")); gone == nil {
				t.Error("the command wrote outside its folder")
			}
		})
	}
}

func TestSavedConfig(t *testing.T) {
	e, home := inHome(t, native.Options{Overrides: map[string]any{"model": "flag"}}, map[string]string{"config.toml": "# c\nmodel = \"a\"\n"})
	model, effort := "b", protocol.EffortHigh
	if err := e.SetDefaultModel(t.Context(), protocol.SetDefaultModelParams{Model: &model, ReasoningEffort: &effort}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(home, "config.toml")); err != nil || string(text) != "# c\nmodel = \"b\"\nmodel_reasoning_effort = \"high\"\n" {
		t.Errorf("%s, %v", text, err)
	}
	got, err := e.SavedConfig(t.Context())
	want := &protocol.UserSavedConfig{Model: &model, ModelReasoningEffort: effort, Profiles: map[string]protocol.SavedProfile{}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestSearchFiles(t *testing.T) {
	e, home := inHome(t, native.Options{}, map[string]string{"abexy": ""})
	got, err := e.SearchFiles(t.Context(), protocol.FuzzyFileSearchParams{Query: "abe", Roots: []string{home}})
	want := &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{{Root: home, Path: "abexy", FileName: "abexy", Score: 88, Indices: []uint32{0, 1, 2}}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestGitDiffToRemoteRefused(t *testing.T) {
	e, home := inHome(t, native.Options{}, nil)
	for _, cwd := range []string{home, filepath.Join(home, "no"), "relative", ""} {
		var refused *engine.RefusedError
		if _, err := e.GitDiffToRemote(t.Context(), cwd); !errors.As(err, &refused) {
			t.Errorf("%q: %v", cwd, err)
		}
	}
}
