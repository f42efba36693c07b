package box_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestOwnPrograms checks where a program that the server starts for itself may write, and that it has no network.
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
			must.OK(t, err)
			res := ran(t, run.Spec{
				Argv: []string{"bash", "-c", "for d in one two outside; do { echo x >$d/file; chmod 705 $d; } 2>/dev/null; done; exec 3<>/dev/tcp/127.0.0.1/9"},
				Dir:  base, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c, Timeout: time.Minute,
			})
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
			must.OK(t, err)
			if (info.Mode().Perm() == 0o705) != tt.chmod {
				t.Errorf("the mode of a folder is %v, want it changed: %t", info.Mode(), tt.chmod)
			}
		})
	}
	base := tree(t, "file")
	for _, name := range []string{"missing", "file"} {
		if _, err := (&box.Programs{}).Confine(filepath.Join(base, name)); err == nil {
			t.Errorf("%s is a writable folder", name)
		}
	}
}

// TestPrograms runs shells, git and a compiler, which the sandbox must not disturb.
func TestPrograms(t *testing.T) {
	program, err := exec.LookPath("go")
	must.OK(t, err)
	cache, dir := tree(t), tree(t, "tmp/")
	c := confine(t, write(cache), dir)
	env := []string{
		"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir + "/tmp",
		"GOCACHE=" + cache, "GOFLAGS=-buildvcs=false", "GOPROXY=off", "GOTOOLCHAIN=local", "GOENV=off",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	for _, script := range []string{
		`set -e; for i in 1 2 3; do echo $i; done | sort -r | head -1 > out; test "$(cat < out)" = 3; cat <(echo x) >/dev/null`,
		`set -e; echo x | tee /dev/stderr > /dev/stdout; test -r /dev/fd/0; head -c 3 /dev/zero > /dev/null; mkdir -p d; install -m 755 out d/; cp -p d/out d/two; mv d/two three`,
		`set -e; ulimit -c 0; nice -n 1 true; taskset -p $$ > /dev/null`,
		`set -e; mkdir repo; cd repo; git init -q; seq 5000 > a; git add a; git commit -qm a; git grep -q --threads=4 4999; git gc -q; git status --short`,
		`set -e; mkdir lib; cd lib; printf 'module m\ngo 1.26\n' > go.mod; printf 'package m\nfunc F() int { return 7 }\n' > m.go
		go build . && test -n "$(ls $GOCACHE)"`,
	} {
		res := ran(t, run.Spec{Argv: []string{"bash", "-c", script}, Dir: dir, Env: env, Confinement: c, Timeout: 5 * time.Minute})
		if res.ExitCode != 0 {
			t.Errorf("%s\n%d %s", script, res.ExitCode, res.Aggregated)
		}
	}
}
