//go:build realcodex

package patch_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestRealPatches applies every row of testdata/patches.ndjson with the newest Codex, which CODEX_BIN names. The
// tree is ours, or the row says what Codex does instead. By day, it is every fourth row.
func TestRealPatches(t *testing.T) {
	bin := os.Getenv("CODEX_BIN")
	if bin == "" {
		t.Fatal("CODEX_BIN is not set")
	}
	// What npm links is a script that starts this program, and takes longer than the program.
	if found, _ := filepath.Glob(filepath.Join(filepath.Dir(bin), "..", "@openai", "codex-*", "vendor", "*", "bin", "codex")); len(found) == 1 {
		bin = found[0]
	}
	for n, r := range readRows(t) {
		if !nightly.Tests() && n%4 != 0 {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "work")
			writeTree(t, dir, r.Files)
			cmd := exec.CommandContext(t.Context(), bin, "--codex-run-as-apply-patch", strings.ReplaceAll(r.Patch, "@OUT", "out"))
			cmd.Dir, cmd.Env = dir, []string{"HOME=" + top, "PATH=" + os.Getenv("PATH")}
			said, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
				t.Fatal(err)
			}
			diff := cmp.Diff(r.After, readTree(t, top, dir), cmpopts.EquateEmpty())
			switch {
			case r.Newest == "" && diff != "":
				t.Errorf("Codex leaves another tree (-ours +Codex):\n%s%s", diff, said)
			case r.Newest != "" && diff == "":
				t.Errorf("Codex leaves the same tree, and not what the row says: %s", r.Newest)
			}
		})
	}
}
