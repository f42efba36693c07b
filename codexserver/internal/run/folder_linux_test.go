package run_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// TestExact starts nothing behind a symbolic link when the folder is exact.
func TestExact(t *testing.T) {
	base := boxtest.Folder(t)
	dir, link := filepath.Join(base, "dir"), filepath.Join(base, "link")
	boxtest.Lay(t, base, "dir/sub/", "link -> dir")
	processes := boxtest.Starter(t)
	for _, tt := range []struct {
		dir   string
		exact bool
		want  string // "" fails
	}{
		{dir, true, dir}, {dir + "/sub", true, dir + "/sub"}, {link, false, dir}, {link, true, ""}, {link + "/sub", true, ""}, {dir + "/none", true, ""},
	} {
		spec := run.Spec{Argv: []string{"/bin/pwd", "-P"}, Dir: tt.dir, Exact: tt.exact, Env: path}
		got, err := processes.Run(t.Context(), spec, nil)
		var start *run.StartError
		if tt.want == "" && !errors.As(err, &start) || tt.want != "" && (err != nil || got.Stdout != tt.want+"\n") {
			t.Errorf("%s, exact %t: %q, %v, want %q", tt.dir, tt.exact, got.Stdout, err, tt.want)
		}
	}
}
