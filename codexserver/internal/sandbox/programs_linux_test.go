package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

// TestPrograms runs shells, git and a compiler, which the sandbox must not disturb.
func TestPrograms(t *testing.T) {
	program, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	cache := tree(t, ".")
	for _, tier := range tiersHere(t) {
		dir := tree(t, "tmp")
		c, err := sandbox.New(sandbox.Options{Tier: tier}).Confine(write(cache), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		env := []string{
			"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir + "/tmp",
			"GOCACHE=" + cache, "GOFLAGS=-buildvcs=false", "GOPROXY=off", "GOTOOLCHAIN=local", "GOENV=off",
			"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		}
		scripts := []string{
			`set -e; for i in 1 2 3; do echo $i; done | sort -r | head -1 > out; test "$(cat < out)" = 3; cat <(echo x) >/dev/null`,
			`set -e; echo x | tee /dev/stderr > /dev/stdout; test -r /dev/fd/0; head -c 3 /dev/zero > /dev/null; mkdir -p d; install -m 755 out d/; cp -p d/out d/two; mv d/two three`,
			`set -e; ulimit -c 0; nice -n 1 true; taskset -p $$ > /dev/null`,
			`set -e; mkdir repo; cd repo; git init -q; seq 5000 > a; git add a; git commit -qm a; git grep -q --threads=4 4999; git gc -q; git status --short`,
			`set -e; mkdir prog; cd prog; printf 'module m\ngo 1.26\n' > go.mod
			printf 'package main\nfunc main() { c := make(chan int); go func() { c <- 7 }(); println(<-c) }\n' > main.go
			go build -o prog . && ./prog 2>&1 | grep -q 7`,
		}
		if testing.Short() {
			scripts = scripts[:len(scripts)-1] // nothing of ours runs in the compiler
		}
		for _, script := range scripts {
			res, err := proc.Run(t.Context(), proc.Spec{Argv: []string{"bash", "-c", script}, Dir: dir, Env: env, Starter: c, Timeout: 5 * time.Minute}, nil)
			if err != nil || res.ExitCode != 0 {
				t.Errorf("%s: %s\n%d %s %v", tier, script, res.ExitCode, res.Aggregated, err)
			}
		}
	}
}
