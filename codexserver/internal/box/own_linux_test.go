package box_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// TestOwnPrograms checks where a program that the server starts for itself may write, and that it
// has no network.
func TestOwnPrograms(t *testing.T) {
	for _, tt := range []struct {
		name    string
		folders []string // @ is the base
		want    []string // the files that the program could write, below the base
		chmod   bool     // it may change the mode of what is there
	}{
		{"no folder", nil, nil, false},
		{"a folder", []string{"@/one"}, []string{"one"}, true},
		{"two folders, one by a link", []string{"@/one", "@/alias"}, []string{"one", "two"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := tree(t, "one/", "two/", "outside/", "alias -> @/two")
			var folders []string
			for _, folder := range tt.folders {
				folders = append(folders, base+folder[1:])
			}
			c, err := (&box.Programs{}).Confine(folders...)
			if err != nil {
				t.Fatal(err)
			}
			res, err := boxtest.Starter(t).Run(t.Context(), run.Spec{
				Argv: []string{"bash", "-c", "for d in one two outside; do { echo x >$d/file; chmod 705 $d; } 2>/dev/null; done; exec 3<>/dev/tcp/127.0.0.1/9"},
				Dir:  base, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c, Timeout: time.Minute,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !c.Denied(res) {
				t.Errorf("the network is open: %d %s", res.ExitCode, res.Aggregated)
			}
			var got []string
			for _, dir := range []string{"one", "two", "outside"} {
				if _, err := os.Stat(filepath.Join(base, dir, "file")); err == nil {
					got = append(got, dir)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("it wrote in %q, want %q", got, tt.want)
			}
			info, err := os.Stat(filepath.Join(base, "one"))
			if err != nil {
				t.Fatal(err)
			}
			if (info.Mode().Perm() == 0o705) != tt.chmod {
				t.Errorf("the mode of a folder is %v, want it changed: %t", info.Mode(), tt.chmod)
			}
		})
	}
	if _, err := (&box.Programs{}).Confine(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing folder is writable")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&box.Programs{}).Confine(file); err == nil {
		t.Error("a file is a writable folder")
	}
}
