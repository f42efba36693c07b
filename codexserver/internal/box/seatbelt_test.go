//go:build unix

package box

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeatbelt(t *testing.T) {
	readOnly := seatbelt{}.arguments()
	if diff := cmp.Diff([]string{"-p", seatbeltBase + "(deny file-write-setugid)\n", "--"}, readOnly); diff != "" {
		t.Errorf("read-only (-want +got):\n%s", diff)
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(base, "work")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(work, "sub/repo"), 0o700), os.Symlink("sub/repo", filepath.Join(work, ".git")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := seatbelt{roots: []string{work, "/other"}, protect: []string{work + "/.git", "/0/.git"}, network: true}.arguments()
	want := []string{"-p", seatbeltBase + seatbeltNetwork + `(allow file-write* (subpath (param "ROOT_0")))
(allow file-write* (subpath (param "ROOT_1")))
(deny file-write* (subpath (param "PROTECTED_0")))
(deny file-write* (subpath (param "PROTECTED_1")))
(deny file-write* (subpath (param "PROTECTED_2")))
(deny file-write-unlink (literal (param "WAY_0")))
(deny file-write-setugid)
`,
		"-D", "ROOT_0=" + work, "-D", "ROOT_1=/other",
		"-D", "PROTECTED_0=/0/.git", "-D", "PROTECTED_1=" + work + "/.git", "-D", "PROTECTED_2=" + work + "/sub/repo",
		"-D", "WAY_0=" + work + "/sub", "--",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("workspace (-want +got):\n%s", diff)
	}
}

// TestSeatbeltNames uses names that would change the profile if they were part of it.
func TestSeatbeltNames(t *testing.T) {
	plain := seatbelt{roots: []string{"/a"}, protect: []string{"/a/.git"}}.arguments()
	for _, name := range []string{
		`/a"))(allow file-write*)(allow network*);`, "/a\n(allow default)", `/a\`, `/a\")`, "/a;", "/-p", "/a=b", "/(param \"ROOT_1\")", "/a\x00b", "/\xff#|", "/é",
	} {
		got := seatbelt{roots: []string{name}, protect: []string{name + "/.git"}}.arguments()
		if len(got) != len(plain) || got[1] != plain[1] {
			t.Errorf("%q changes the profile: %q", name, got)
			continue
		}
		if key, value, _ := strings.Cut(got[3], "="); key != "ROOT_0" || value != name {
			t.Errorf("%q is passed as %q", name, got[3])
		}
	}
}

// TestSeatbeltTrial tries programs that deny too little or too much.
func TestSeatbeltTrial(t *testing.T) {
	dir := t.TempDir()
	// The script reads its arguments: $root is the root, "$@" the command.
	const read = `#!/bin/bash
while [ "$1" != -- ]; do case "$1" in ROOT_0=*) root=${1#ROOT_0=};; esac; shift; done; shift
last=${!#}
`
	for _, tt := range []struct{ name, script, want string }{
		{"denies as it should", `case "$last" in "$root"/kept/*) exit 1;; "$root"/*) test -n "$root" && exec "$@";; esac; exit 1`, ""},
		{"denies nothing", `exec "$@"`, "it does not deny writing"},
		{"denies everything", `exit 71`, "it denies writing that its profile allows: exit status 71"},
		{"does not know what is protected", `case "$last" in "$root"/*) test -n "$root" && exec "$@";; esac; exit 1`, "it does not deny writing"},
		{"fails but writes", `"$@"; case "$last" in "$root"/new) exit;; esac; exit 1`, "it does not deny writing"},
		{"leaves the network open", `case "$last" in "$root"/kept/*) exit 1;; "$root"/*) test -n "$root" || exit 1;; /*) exit 1;; esac; exec "$@"`, "it does not deny connecting"},
		{"is not there", "", "no such file"},
	} {
		program := filepath.Join(dir, tt.name)
		if tt.script != "" {
			if err := os.WriteFile(program, []byte(read+tt.script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		err := trySeatbelt(program)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}
