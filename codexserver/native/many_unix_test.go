//go:build unix

package native_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestManyConversations runs 150 conversations at once in a process with at most 128 descriptors. A third of as many
// are in a turn before the model answers the first. All are answered, and afterwards they hold no descriptors.
func TestManyConversations(t *testing.T) {
	t.Parallel()
	const child = "NATIVE_TEST_MANY"
	const n = 150 // more than descriptors
	if home := os.Getenv(child); home != "" {
		runMany(t, home, n)
		return
	}
	answer := make(chan struct{})
	turns := make([]providertest.Turn, 2*n)
	for i := range turns {
		turns[i] = providertest.Say("hello")
		turns[i].Wait = answer
	}
	b := setup(t, "", native.Limits{}, turns...)
	cmd := exec.Command(os.Args[0], "-test.run=^TestManyConversations$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+b.home)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	begun := false
	for lines := bufio.NewScanner(io.TeeReader(out, &said)); lines.Scan(); {
		if lines.Text() == "as many as may have begun" {
			begun = true
			close(answer)
		}
	}
	if !begun {
		close(answer)
	}
	if err := cmd.Wait(); err != nil || !begun || !strings.Contains(said.String(), "--- PASS") {
		t.Errorf("%v\n%.4000s", err, said.String())
	}
}

func runMany(t *testing.T, home string, n int) {
	few := syscall.Rlimit{Cur: 128, Max: 128}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	e := open(t, native.Options{CodexHome: home, Environ: []string{"HOME=" + home}})
	var begun atomic.Int32
	begins := func() { // or fails, so that the others need not wait
		if uint64(begun.Add(1)) == few.Cur/3 {
			fmt.Println("as many as may have begun")
		}
	}
	count := func(m protocol.EventMsg) { // see below
		if _, ok := m.(protocol.BackgroundEvent); ok {
			begins()
		}
	}
	var all sync.WaitGroup
	var answered atomic.Int32
	for range n {
		all.Go(func() {
			h := &host{on: count}
			c, err := e.Start(t.Context(), protocol.Config{Cwd: home}, h)
			if err != nil {
				t.Error(err)
				begins()
				return
			}
			t.Cleanup(func() { closed(t, c) })
			// The turn says so in an event, once it has its rollout.
			appendTo(t, configured(t, h).RolloutPath, "{}\n")
			if err := c.Turn(t.Context(), say("hi")); err != nil {
				t.Error(err)
				begins()
				return
			}
			answered.Add(1)
		})
	}
	all.Wait()
	diff(t, "answered", n, int(answered.Load()))
	if open, err := filepath.Glob("/proc/self/fd/*"); err != nil || len(open) > 100 {
		t.Errorf("%d descriptors are open, %v", len(open), err)
	}
	rollouts, err := filepath.Glob(filepath.Join(home, "sessions", "*", "*", "*", "*.jsonl"))
	if err != nil || len(rollouts) != n {
		t.Errorf("%d rollouts, %v", len(rollouts), err)
	}
	for _, path := range rollouts {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "hello") {
			t.Errorf("%s lacks the answer: %v", path, err)
		}
	}
}
