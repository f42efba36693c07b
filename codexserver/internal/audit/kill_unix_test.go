//go:build unix

package audit_test

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/internal/memdir"
)

const serverEnv = "AUDIT_TEST_SERVER"

func TestMain(m *testing.M) {
	if path := os.Getenv(serverEnv); path != "" {
		serveEffects(path)
		return
	}
	os.Exit(memdir.Run(m))
}

// killLimit is the size of a file: small enough that files are replaced many times.
const killLimit = 1 << 20

// serveEffects is a server that works until it is killed. Each effect makes a file.
func serveEffects(path string) {
	l, err := audit.Open(path, killLimit)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	for i := 0; ; i++ {
		id := fmt.Sprintf("%d-%d", os.Getpid(), i)
		lines := effect(id)
		for n, line := range lines {
			if n == 2 {
				if err := os.WriteFile(filepath.Join(filepath.Dir(path), "effect-"+id), nil, 0o600); err != nil {
					fmt.Println(err)
					os.Exit(1)
				}
			}
			if _, err := l.Write(line); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	}
}

var kills = flag.Int("kills", 20, "kill this `number` of servers")

// TestKilled kills servers, two of which write at a time. The record verifies each time, has every effect
// and its decision, and at most one unfinished effect for each killed server, which the next one closes.
func TestKilled(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log")
	began := func() *exec.Cmd {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), serverEnv+"="+path)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
			t.Fatalf("the server says %q, %v", line, err)
		}
		return cmd
	}
	for n := 0; n < *kills; n += 2 {
		both := []*exec.Cmd{began(), began()}
		for _, cmd := range both {
			<-time.After(time.Duration(rand.IntN(3000)) * time.Microsecond)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
		}
		r := verify(t, path, nil)
		if len(r.Faults) > 0 || len(r.Unfinished) > 2 {
			t.Fatalf("after %d kills: %v, %d unfinished", n+2, r.Faults, len(r.Unfinished))
		}
		for _, cmd := range both {
			checkKept(t, path, cmd.Process.Pid, r)
		}
		if n%20 == 0 {
			l := open(t, path, killLimit)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if r := verify(t, path, nil); len(r.Faults) > 0 || len(r.Unfinished) > 0 {
				t.Fatalf("after %d kills and a start: %v, %d unfinished", n+2, r.Faults, len(r.Unfinished))
			}
		}
	}
}

// checkKept checks the lines of a server that was killed. They have no gap, and their last one is not older than the last
// effect that has happened. Only lines that the chain no longer has, because their file was replaced, are not there.
func checkKept(t *testing.T, path string, pid int, r *audit.Report) {
	t.Helper()
	var kept []int // the lines of effect i are 3i, 3i+1 and 3i+2
	if err := audit.Read(audit.Paths(path), func(l audit.Line) error {
		for kind, id := range []string{l.ID, l.ID, l.Of} {
			var i int
			if rest, ok := strings.CutPrefix(id, fmt.Sprintf("%c%d-", "dee"[kind], pid)); ok {
				if _, err := fmt.Sscan(rest, &i); err != nil {
					return err
				}
				kept = append(kept, 3*i+kind)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(filepath.Dir(path), fmt.Sprintf("effect-%d-*", pid)))
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, name := range made {
		var i int
		if _, err := fmt.Sscan(name[strings.LastIndexByte(name, '-')+1:], &i); err != nil {
			t.Fatal(err)
		}
		last = max(last, 3*i+1)
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	size := int64(0)
	for _, name := range audit.Paths(path) {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	dropped := r.First > 1
	for i, line := range kept {
		if line != kept[0]+i {
			t.Fatalf("server %d: line %d follows line %d", pid, line, kept[max(0, i-1)])
		}
	}
	switch {
	case dropped && size < killLimit-1<<10:
		t.Fatalf("records before %d are gone, and the files have only %d bytes", r.First, size)
	case len(kept) == 0:
		if last >= 0 && !dropped {
			t.Fatalf("server %d: effects have happened, and the record has none of them", pid)
		}
	case kept[0] > 0 && !dropped:
		t.Fatalf("server %d: the first line is %d, and no file was replaced", pid, kept[0])
	case kept[len(kept)-1] < last:
		t.Fatalf("server %d: effect %d has happened, and the last line is %d", pid, last/3, kept[len(kept)-1])
	}
	t.Logf("server %d: %d lines kept of %d; first %d, head %d, %d bytes", pid, len(kept), last+1, r.First, r.Head.N, size)
}
