//go:build unix

package rollout_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestNoRoom runs these tests with a limit on the size of files, which cuts writes in the
// middle of a line like a full disk.
func TestNoRoom(t *testing.T) {
	const child = "ROLLOUT_TEST_NO_ROOM"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoRoom$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "--- PASS") < 3 {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	must.OK(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	room := func(t *testing.T, size int64) {
		t.Helper()
		limit := was
		if size != math.MaxInt64 {
			limit.Cur = uint64(size)
		}
		must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	}
	t.Run("append", func(t *testing.T) {
		w := create(t)
		info := must.Get(os.Stat(w.Path()))(t)
		var want []string
		failed := 0
		for i := range 50 { // the limit is met at a different byte of a line each time
			room(t, info.Size()+100*int64(i)+int64(i))
			text := fmt.Sprint("message ", i)
			want = append(want, text)
			if w.Item(userMessage(text)) != nil { // a later one writes it
				failed++
			}
		}
		if failed == 0 {
			t.Error("no line met the limit")
		}
		room(t, math.MaxInt64)
		must.OK(t, w.Close()) // writes what was missed
		must.Equal(t, "result", want, load(t, w))
	})
	t.Run("create", func(t *testing.T) {
		home := t.TempDir()
		path := rollout.Path(home, id, time.Now())
		room(t, 10)
		_, err := rollout.Create(path, meta, nil)
		room(t, math.MaxInt64)
		if err == nil {
			t.Fatal("there was room")
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		if _, err := rollout.Create(path, meta, nil); err != nil {
			t.Errorf("after the failed start: %v", err)
		}
	})
}

// TestNamedPipe replaces the file by a named pipe: Load and Open fail at once.
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	must.OK(t, syscall.Mkfifo(path, 0o600))
	if _, err := rollout.Load(path); err == nil || !strings.Contains(err.Error(), "rollout.jsonl is a named pipe") {
		t.Errorf("load: %v", err)
	}
	if err := rollout.At(path, nil).Take(func() error { return nil }); err == nil || !strings.Contains(err.Error(), "rollout.jsonl is not a regular file") {
		t.Errorf("open: %v", err)
	}
}
