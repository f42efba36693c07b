//go:build realcodex

package box_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "record what the real Codex does under each profile")

// TestRealProfiles compares the verdicts of the files with those of the Codex that CODEX_BIN names: by day of some.
func TestRealProfiles(t *testing.T) {
	codex := codexSandbox(t)
	for _, file := range profilesFiles {
		list := readProfiles(t, file)
		for i, p := range list {
			if i%nightly.Number(10, 1) != 0 && !*update {
				continue
			}
			t.Run(p.name, func(t *testing.T) {
				if os.Getuid() != 0 && slices.Contains(rootOnly, p.name) {
					t.Skip("Codex fails, because it makes folders in /")
				}
				got := p.try(t, codex)
				if !*update {
					must.Equal(t, "the outcome", p.outcome, got, cmp.AllowUnexported(outcome{}))
				}
				list[i].outcome = got
			})
		}
		if *update && !t.Failed() {
			writeProfiles(t, file, list)
		}
	}
}

// rootOnly are the profiles under which Codex runs commands for root alone.
var rootOnly = []string{"root-write-deny", "root-write-read", "everything-but"}

// codexSandbox returns what runs a program in the sandbox of the real Codex, under the profile that config.toml chooses. Codex
// runs itself there: it is below @/bin, which a profile that does not let all be read must give.
func codexSandbox(t *testing.T) launch {
	program := must.Get(filepath.EvalSymlinks(os.Getenv("CODEX_BIN")))(t)
	if filepath.Ext(program) == ".js" { // npm's, which starts the program of another package
		found := must.Get(filepath.Glob(filepath.Join(program, "../../../codex-*/vendor/*/bin/codex")))(t)
		must.Equal(t, "programs of Codex", 1, len(found))
		program = found[0]
	}
	vendored, once := filepath.Dir(filepath.Dir(program)), boxtest.FolderOutsideTmp(t)
	for _, name := range codexFiles {
		to := filepath.Join(once, name)
		must.OK(t, os.MkdirAll(filepath.Dir(to), 0o777), copyProgram(filepath.Join(vendored, name), to))
	}
	return func(t *testing.T, s setting, argv ...string) (string, error) {
		home := s.home + "/.codex"
		must.OK(t, os.MkdirAll(home, 0o777), os.WriteFile(home+"/config.toml", []byte(s.config), 0o666))
		for _, name := range codexFiles {
			to := filepath.Join(s.top, "bin", name)
			must.OK(t, os.MkdirAll(filepath.Dir(to), 0o777), os.Link(filepath.Join(once, name), to))
		}
		cmd := exec.CommandContext(t.Context(), s.top+"/bin/bin/codex", append([]string{"sandbox", "--"}, argv...)...)
		cmd.Dir, cmd.Env = s.work, append(s.env(), "CODEX_HOME="+home)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			return "", errors.New(stderr.String() + err.Error())
		}
		return stdout.String(), nil
	}
}

// codexFiles are the programs of Codex's package that its sandbox needs.
var codexFiles = []string{"codex-package.json", "bin/codex", "codex-path/rg", "codex-resources/bwrap"}
