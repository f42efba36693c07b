//go:build unix

package policy_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
)

// TestVariablesOfUnasked names a socket, a file and a folder in a variable: the socket changes
// nothing, the content of the file counts, and the variable with the folder is left out.
func TestVariablesOfUnasked(t *testing.T) {
	dir, err := os.MkdirTemp("", "v") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := filepath.Join(dir, "named")
	run := func() policy.Unasked {
		p := policy.Place{Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "TMUX=" + at + ",1,0"}, Roots: []string{dir}}
		return p.Unasked([]string{"true", "x"})
	}
	none := run()
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	socket := run()
	l.Close()
	if err := os.WriteFile(at, []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := run()
	if err := os.WriteFile(at, []byte("other code"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := run()
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	folder := run()
	sums := map[string]bool{}
	for name, u := range map[string]policy.Unasked{"none": none, "socket": socket, "file": file, "other": other, "folder": folder} {
		if u.Sum == "" {
			t.Errorf("%s: no sum: %s", name, u.Why)
		}
		sums[u.Sum] = true
		if has := slices.Contains(u.Env, "TMUX="+at+",1,0"); has != (name != "folder") {
			t.Errorf("%s: %q", name, u.Env)
		}
	}
	if socket.Sum == file.Sum || file.Sum == other.Sum || none.Sum == file.Sum {
		t.Errorf("the content of the file does not count: %v", sums)
	}
}
