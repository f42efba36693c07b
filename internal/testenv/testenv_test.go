package testenv_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestForget checks that what a user has for other programs is gone, and that what the machine needs remains.
func TestForget(t *testing.T) {
	for name, stays := range map[string]bool{
		"GIT_DIR": false, "git_dir": false, "GIT_GOFLAGS": false, "OPENAI_API_KEY": false, "CODEX_HOME": false,
		"LC_ALL": false, "http_proxy": false, "EDITOR": false, "USER": false, "LOGNAME": false, "TERM": false,
		"XDG_CONFIG_HOME": false, "PYTHONPATH": false, "NODE_OPTIONS": false,
		"CODEX_BIN": true, "CODEXMCP_NIGHTLY": true, "PATH": true, "TMPDIR": true, "GOFLAGS": true, "GOPROXY": true,
		"TESTENV_TEST_ROLE": true,
	} {
		t.Setenv(name, os.Getenv(name)+"x")
		testenv.Forget()
		if _, ok := os.LookupEnv(name); ok != stays {
			t.Errorf("%s stays: %v", name, ok)
		}
	}
	t.Setenv("TMPDIR", "/a folder with é")
	if testenv.Forget(); !testenv.Plain(os.TempDir()) {
		t.Errorf("temporary files are in %s", os.TempDir())
	}
	if got := os.Getenv("GIT_CONFIG_GLOBAL"); got != os.DevNull {
		t.Errorf("git reads %s", got)
	}
}

// TestWriteProgram writes programs and runs them, while other processes start all the time.
func TestWriteProgram(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Modes)
	whole := must.Get(os.ReadFile(must.Get(exec.LookPath("true"))(t)))(t)
	done := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.Command("true").Run()
				}
			}
		})
	}
	for range 150 {
		path := filepath.Join(t.TempDir(), "program")
		must.OK(t, testenv.WriteProgram(path, whole))
		if err := exec.Command(path).Run(); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	others.Wait()
}

func TestNobody(t *testing.T) {
	if _, err := net.Dial("tcp", testenv.Nobody(t)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the connection fails with %v", err)
	}
}
