package box_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var readOnly = protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}

// TestInterleaved runs confined and free commands at the same time. The confined ones
// cannot write; the others and the process itself are not affected.
func TestInterleaved(t *testing.T) {
	const workers = 8
	each := 50
	if *whole {
		each = 1000
	}
	base := fixture(t)
	work, outside := filepath.Join(base, "work"), filepath.Join(base, "outside/dir")
	confinement := confine(t, readOnly, work)
	jobs := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for n := range jobs {
				script, start, want := fmt.Sprintf("echo x > %s/free-%d", outside, n), (*exec.Cmd).Start, 0
				if n%2 == 1 {
					script, start, want = fmt.Sprintf("echo x > %s/confined-%d", outside, n), confinement.Start, 2
				}
				cmd := exec.Command("/bin/sh", "-c", script)
				cmd.Dir = work
				err := start(cmd)
				if err == nil {
					_ = cmd.Wait() // the code is checked
				}
				if err != nil || cmd.ProcessState.ExitCode() != want {
					t.Errorf("%q: %v %v", script, cmd.ProcessState, err)
				}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Errorf("this process cannot listen: %v", err)
					continue
				}
				l.Close()
				if err := os.WriteFile(fmt.Sprintf("%s/own-%d", outside, n), nil, 0o666); err != nil {
					t.Errorf("this process cannot write: %v", err)
				}
			}
		})
	}
	for n := range 2 * each {
		jobs <- n
	}
	close(jobs)
	wg.Wait()
	for pattern, want := range map[string]int{"free-*": each, "confined-*": 0, "own-*": 2 * each} {
		found, err := filepath.Glob(filepath.Join(outside, pattern))
		if err != nil || len(found) != want {
			t.Errorf("%d files %s, want %d: %v", len(found), pattern, want, err)
		}
	}
}

// TestDo confines a function of this process, and nothing else.
func TestDo(t *testing.T) {
	base := fixture(t)
	confinement := confine(t, readOnly, filepath.Join(base, "work"))
	path := filepath.Join(base, "work/new")
	err := confinement.Do(func() error { return os.WriteFile(path, nil, 0o666) })
	if !os.IsPermission(err) {
		t.Errorf("confined: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Errorf("outside: %v", err)
	}
}
