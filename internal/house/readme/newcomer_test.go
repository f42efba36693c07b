//go:build newcomer && unix

package readme_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestTwoCommands runs the commands of the README's first script in a fresh clone as a newcomer does: with empty
// caches, an empty home, and Go and git in the PATH. They leave the clone as it was.
func TestTwoCommands(t *testing.T) {
	page := must.Get(os.ReadFile("../../../README.md"))(t)
	script := regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindSubmatch(page)
	if script == nil {
		t.Fatal("the README has no script")
	}
	lines := strings.Split(string(script[1]), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "git clone ") || !slices.Contains(lines, "go test ./...") {
		t.Fatalf("want a clone and two commands, have %q", lines)
	}
	top := t.TempDir()
	clone, home := filepath.Join(top, "clone"), filepath.Join(top, "home")
	if out, err := exec.Command("git", "clone", "-q", "../../..", clone).CombinedOutput(); err != nil { // it is not published
		t.Fatalf("%v: %s", err, out)
	}
	must.OK(t, os.Mkdir(home, 0o700))
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + top, "LANG=C.UTF-8", "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw"}
	for _, name := range []string{"GOPROXY", "GOSUMDB", "GONOSUMDB"} {
		env = append(env, name+"="+strings.TrimSpace(string(must.Get(exec.Command("go", "env", name).Output())(t))))
	}
	for _, line := range lines[1:] {
		if strings.HasSuffix(line, "--demo") {
			line += " || [ $? = 1 ]" // without a terminal nobody decides
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", line)
		cmd.Dir, cmd.Env = clone, env
		begin := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		p := cmd.ProcessState
		t.Logf("%s: %.0f s, %.0f s of CPU", line, time.Since(begin).Seconds(), (p.UserTime() + p.SystemTime()).Seconds())
	}
	status := exec.Command("git", "status", "--porcelain")
	status.Dir = clone
	if left := must.Get(status.Output())(t); len(left) > 0 {
		t.Errorf("the commands changed the clone:\n%s", left)
	}
}
