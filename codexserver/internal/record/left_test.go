package record_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// server is a server that records.
type server struct {
	*record.Record
	log *record.Log
}

func serve(t *testing.T, path string, most int64) server {
	log := record.New(path, most)
	t.Cleanup(func() { _ = log.Close() }) // which may be the second time
	return server{record.To(log), log}
}

func (s server) begins(t *testing.T, thread, call string) {
	t.Helper()
	must.Get(s.Add(record.Line{Event: record.Begins, Thread: thread, Turn: "turn", Call: call, Principal: "ann", Facts: approval.Facts{Kind: approval.KindCommand, Command: []string{"x"}}}, false))(t)
}

func (s server) ends(t *testing.T, thread, call string) {
	t.Helper()
	must.Get(s.Add(record.Line{Event: record.Ends, Thread: thread, Turn: "turn", Call: call, Outcome: record.Outcome{Exit: new(0)}}, false))(t)
}

// pairs returns the calls of a log, and of the file before it, in their order, with their ends. The end of another server is "?".
func pairs(t *testing.T, path string) string {
	t.Helper()
	before, _ := os.ReadFile(path + ".1")
	now := must.Get(os.ReadFile(path))(t)
	var order []string
	ends := map[string]string{}
	for text := range bytes.Lines(append(before, now...)) {
		l, err := record.Parse(text)
		if err != nil || l.Event == record.Decided {
			continue
		}
		call := l.Thread + "/" + l.Call
		id := l.Server + call
		switch {
		case l.Event == record.Begins:
			order = append(order, id)
			ends[id] = call
		case l.Exit != nil:
			ends[id] += " ended"
		case l.Words == "unknown: the server ended" && l.Turn == "turn" && l.Principal == "ann" && !l.Time.IsZero():
			ends[id] += " ?"
		default:
			t.Errorf("the line %s", text)
		}
	}
	for i, id := range order {
		order[i] = ends[id]
	}
	return strings.Join(order, ", ")
}

// TestLeft kills servers between a beginning and its end. The next one that writes, or ends, appends the end, once.
func TestLeft(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		most int64
		play func(t *testing.T, path string, dead, live server)
		want string
	}{
		"a server begins": {0, func(t *testing.T, path string, dead, live server) { serve(t, path, 0).begins(t, "t", "new") }, "t/1 ended, t/2 ?, u/1, t/new"},
		"a server ends":   {0, func(t *testing.T, path string, dead, live server) { must.OK(t, live.log.Close()) }, "t/1 ended, t/2 ?, u/1"},
		"a resume, same call": {0, func(t *testing.T, path string, dead, live server) {
			s := serve(t, path, 0)
			s.begins(t, "t", "2")
			s.ends(t, "t", "2")
		}, "t/1 ended, t/2 ?, u/1, t/2 ended"},
		"in the file before": {600, func(t *testing.T, path string, dead, live server) {
			before := must.Get(os.ReadFile(path + ".1"))(t)
			must.Equal(t, "beginnings in the file before", 2, bytes.Count(before, []byte("begins")))
			serve(t, path, 600).begins(t, "t", "new")
		}, "t/1 ended, t/2 ?, u/1, t/new"},
		"a torn line": {0, func(t *testing.T, path string, dead, live server) {
			f := must.Get(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
			fmt.Fprint(f, `{"event":"begins","threadId":"torn`)
			must.OK(t, f.Close())
			serve(t, path, 0).begins(t, "t", "new")
		}, "t/1 ended, t/2 ?, u/1, t/new"},
		"many at once": {0, func(t *testing.T, path string, dead, live server) {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					s := serve(t, path, 0)
					s.begins(t, "v", "1")
					s.ends(t, "v", "1")
					must.Check(t, s.log.Close())
				})
			}
			all.Wait()
		}, "t/1 ended, t/2 ?, u/1" + strings.Repeat(", v/1 ended", 20)},
		"a command holds its file": {0, func(t *testing.T, path string, dead, live server) {
			names := must.Get(filepath.Glob(path + ".server-*"))(t)
			must.Equal(t, "files", 2, len(names))
			var held []*os.File
			for _, name := range names {
				f := must.Get(os.Open(name))(t)
				if safefile.Share(f) == nil {
					held = append(held, f)
				} else {
					must.OK(t, f.Close())
				}
			}
			must.Equal(t, "files that can be locked", 1, len(held))
			s := serve(t, path, 0)
			s.begins(t, "t", "new")
			must.Equal(t, "while it is held", "t/1 ended, t/2, u/1, t/new", pairs(t, path))
			must.OK(t, safefile.Unlock(held[0]), held[0].Close()) // a process that is being started may have a copy
			s.ends(t, "t", "new")
			must.OK(t, s.log.Close())
		}, "t/1 ended, t/2 ?, u/1, t/new ended"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "codex-mcp", "approvals.log")
			dead, live := serve(t, path, tt.most), serve(t, path, tt.most)
			dead.begins(t, "t", "1")
			dead.ends(t, "t", "1")
			dead.begins(t, "t", "2")
			live.begins(t, "u", "1")
			must.OK(t, dead.log.Kill())
			tt.play(t, path, dead, live)
			must.Equal(t, "the calls", tt.want, pairs(t, path))
			must.Check(t, serve(t, path, tt.most).log.Close()) // it has not written, and has nothing to say
			must.Equal(t, "the calls later", tt.want, pairs(t, path))
		})
	}
}

// TestLeftByAFault has a folder in the place of the log when the end is written. The next server appends it.
func TestLeftByAFault(t *testing.T) {
	testenv.NeedsUnix(t, testenv.OpenFiles)
	path := filepath.Join(t.TempDir(), "approvals.log")
	s := serve(t, path, 0)
	s.begins(t, "t", "1")
	must.OK(t, os.Rename(path, path+"-"), os.Mkdir(path, 0o700))
	if _, err := s.Add(record.Line{Event: record.Ends, Thread: "t", Call: "1"}, false); err == nil {
		t.Error("the end was written")
	}
	must.OK(t, os.Remove(path), os.Rename(path+"-", path), s.log.Close())
	must.Equal(t, "the calls", "t/1", pairs(t, path))
	s = serve(t, path, 0)
	s.begins(t, "t", "2")
	s.ends(t, "t", "2")
	must.Check(t, s.log.Close())
	must.Equal(t, "the calls later", "t/1 ?, t/2 ended", pairs(t, path))
	must.Equal(t, "files", "[]", fmt.Sprint(must.Get(filepath.Glob(path+".*"))(t)))
}

// recordsAt names a variable that makes the test binary a server that records at the path of its value.
const recordsAt = "CODEX_TEST_RECORDS_AT"

// TestServer is that server: it begins and ends calls until it is killed.
func TestServer(t *testing.T) {
	path := os.Getenv(recordsAt)
	if path == "" {
		return // a test, not a server
	}
	s := serve(t, path, 0)
	for n := 0; ; n++ {
		call := fmt.Sprint(n)
		s.begins(t, "t", call)
		if n == 3 {
			fmt.Println("it records")
		}
		if n%4 != 3 {
			s.ends(t, "t", call)
		}
		if n%4 == 0 && n > 3 {
			s.ends(t, "t", fmt.Sprint(n-1))
		}
		<-time.After(time.Millisecond)
	}
}

// TestLeftByKilled kills servers of one log while others record to it, and ends the last ones in order. Each beginning has one
// end then, and the one that lives all the time was given none by others.
func TestLeftByKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "approvals.log")
	lives := serve(t, path, 0)
	lives.begins(t, "lives", "1")
	run := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestServer$")
		cmd.Env = append(os.Environ(), recordsAt+"="+path)
		out := must.Get(cmd.StdoutPipe())(t)
		must.OK(t, cmd.Start())
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "it records\n" {
			t.Fatalf("%q, %v", line, err)
		}
		return cmd
	}
	last := run()
	for range 20 {
		next := run()
		<-time.After(rand.N(10 * time.Millisecond))
		must.OK(t, last.Process.Kill())
		_ = last.Wait()
		last = next
	}
	must.OK(t, last.Process.Kill())
	_ = last.Wait()
	s := serve(t, path, 0)
	s.begins(t, "t", "new")
	s.ends(t, "t", "new")
	must.OK(t, s.log.Close())
	calls := strings.Split(pairs(t, path), ", ")
	must.Equal(t, "the call of the one that lives", "lives/1", calls[0])
	left := 0
	for _, call := range calls[1:] {
		if _, ends, _ := strings.Cut(call, " "); ends == "?" {
			left++
		} else if ends != "ended" {
			t.Errorf("the call %s", call)
		}
	}
	if left == 0 {
		t.Error("no server was killed within a call")
	}
	lives.ends(t, "lives", "1")
	must.OK(t, lives.log.Close())
	must.Equal(t, "files", "[]", fmt.Sprint(must.Get(filepath.Glob(path+".*"))(t)))
}
