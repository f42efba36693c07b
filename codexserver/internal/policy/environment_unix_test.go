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

// TestVariablesTwice names variables twice. The last one counts, as for the program that gets them: the first one does
// not take its place if that is left out.
func TestVariablesTwice(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		env  []string
		want []string
	}{
		{[]string{"LANG=C", "LANG=C.UTF-8"}, []string{"LANG=C.UTF-8", "PATH=/usr/bin:/bin"}},
		{[]string{"EDITOR=" + program, "EDITOR=/bin/sh"}, []string{"EDITOR=/bin/sh", "PATH=/usr/bin:/bin"}},
		{[]string{"EDITOR=/bin/sh", "EDITOR=" + program}, []string{"PATH=/usr/bin:/bin"}},
		{[]string{"PATH=/bin", "LANG=C", "PATH=/usr/bin"}, []string{"LANG=C", "PATH=/usr/bin"}},
	} {
		p := policy.Place{Dir: dir, Env: append([]string{"PATH=/usr/bin:/bin"}, tt.env...), Roots: []string{dir}}
		if u := p.Unasked([]string{"true", "x"}); !slices.Equal(u.Env, tt.want) {
			t.Errorf("%q: %q, %s", tt.env, u.Env, u.Why)
		}
	}
}
