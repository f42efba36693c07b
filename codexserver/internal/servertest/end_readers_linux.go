package servertest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// ReaderLeaves closes the read end of a program's output at that many random moments. A
// server without a reader of its standard error must still answer its call. The command
// ask must end its turn and fail without a reader of its standard output, or when it
// writes to a full device.
//
// Start returns the program's command with these arguments, whose agent runs
// [Daemons] if it is busy, and otherwise answers. Its folder is unset and its
// environment lacks PATH and HOME.
func ReaderLeaves(t *testing.T, moments int, start func(t *testing.T, busy bool, args ...string) *exec.Cmd) {
	begun := time.Now()
	answered(t, start, 0)
	usual := time.Since(begun)
	moment := func() time.Duration { return 1 + mathrand.N(usual) }
	for n := range moments {
		t.Run("standard error", func(t *testing.T) {
			t.Parallel()
			answered(t, start, moment())
		})
		t.Run("ask", func(t *testing.T) {
			t.Parallel()
			r, w := endPipe(t)
			s := prepareVictim(t, start(t, true, askWords(n)...))
			s.cmd.Stdout = w
			errs := s.start(t)
			w.Close()
			readFor(r, moment())
			s.fails(t, errs, "broken pipe")
		})
		t.Run("full device", func(t *testing.T) {
			t.Parallel()
			full := must.Get(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
			defer full.Close()
			s := prepareVictim(t, start(t, false, askWords(n)...))
			s.cmd.Stdout = full
			s.fails(t, s.start(t), "no space left on device")
		})
	}
}

// askWords returns the command line of the nth run.
func askWords(n int) []string {
	words := []string{"ask", "go", "-a", "never", "-s", endModes[0]}
	if n%2 == 0 {
		words = append(words, "--json")
	}
	return words
}

// answered runs a call, and checks its answer. It closes the read end of the server's
// standard error at a moment, unless that is 0.
func answered(t *testing.T, start func(*testing.T, bool, ...string) *exec.Cmd, moment time.Duration) {
	t.Helper()
	s := prepareVictim(t, start(t, false, "--log", "debug"))
	r, w := endPipe(t)
	s.cmd.Stderr = w
	in, err := s.cmd.StdinPipe()
	must.OK(t, err)
	out, stdout := endPipe(t)
	s.cmd.Stdout = stdout
	s.start(t)
	w.Close()
	stdout.Close()
	left := make(chan struct{})
	go func() {
		defer close(left)
		if moment > 0 {
			readFor(r, moment)
		} else {
			io.Copy(io.Discard, r)
		}
	}()
	fmt.Fprintf(in, firstCall, endModes[0])
	answer := ""
	for lines := bufio.NewReader(out); !strings.Contains(answer, `"id":1,`); {
		if answer, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("after %v: the call was not answered: %v", moment, err)
		}
	}
	if !strings.Contains(answer, `"result"`) || strings.Contains(answer, `"isError":true`) {
		t.Errorf("after %v: %s", moment, answer)
	}
	in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("after %v: %v", moment, err)
	}
	<-left
}

// start starts the command, and kills it when it takes too long. It returns the buffer of
// its standard error, which stays empty if that goes elsewhere.
func (s *victim) start(t *testing.T) *bytes.Buffer {
	t.Helper()
	var errs bytes.Buffer
	if s.cmd.Stderr == nil {
		s.cmd.Stderr = &errs
	}
	must.OK(t, s.cmd.Start())
	late := time.AfterFunc(endLimit, func() { s.cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		s.cmd.Process.Kill()
		s.kill()
	})
	return &errs
}

// fails waits for the end of ask, and checks that it failed for the given reason.
func (s *victim) fails(t *testing.T, errs *bytes.Buffer, why string) {
	t.Helper()
	s.cmd.Wait()
	if s.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), why) {
		t.Errorf("%v: %s", s.cmd.ProcessState, errs)
	}
	s.gone(t)
}

func endPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must.OK(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func readFor(r *os.File, moment time.Duration) {
	timer := time.AfterFunc(moment, func() { r.Close() })
	defer timer.Stop()
	io.Copy(io.Discard, r)
	r.Close()
}
