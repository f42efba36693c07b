package box_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// TestPrograms runs shells, git and a compiler, which the sandbox must not disturb.
func TestPrograms(t *testing.T) {
	program, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	cache, built := tree(t), builtRuntime(t)
	dir := tree(t, "tmp/")
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
		`set -e; mkdir prog; cd prog; printf 'package main\nfunc main() { c := make(chan int); go func() { c <- 7 }(); println(<-c) }\n' > main.go
		go tool compile -p main -importcfg ` + built + ` -o main.a main.go && go tool link -importcfg ` + built + ` -o prog main.a && ./prog 2>&1 | grep -q 7`,
		`set -e; mkdir lib; cd lib; printf 'module m\ngo 1.26\n' > go.mod; printf 'package m\nfunc F() int { return 7 }\n' > m.go
		go build . && test -n "$(ls $GOCACHE)"`,
	} {
		res, err := boxtest.Starter(t).Run(t.Context(), run.Spec{Argv: []string{"bash", "-c", script}, Dir: dir, Env: env, Confinement: c, Timeout: 5 * time.Minute}, nil)
		if err != nil || res.ExitCode != 0 {
			t.Errorf("%s\n%d %s %v", script, res.ExitCode, res.Aggregated, err)
		}
	}
}

// builtRuntime returns a file that lists the packages of the runtime in the user's cache, so
// that a program can be linked without compiling them.
func builtRuntime(t *testing.T) string {
	t.Helper()
	list, err := exec.Command("go", "list", "-deps", "-export", "-f", "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}", "runtime").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "importcfg")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
