package workers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// logsOf returns a pool with both logs, and the ends that the worker of a user inherits. Their
// services report to ended.
func logsOf(t *testing.T) (connect func(user string) (record, trace *workerlink.Log, raw []*os.File), ended chan error, dir string) {
	t.Helper()
	dir = t.TempDir()
	o := Options{HTTP: settings.HTTP{Principals: map[string]settings.Principal{"ann": {}, "bob": {}}}}
	for name, to := range map[string]**safefile.Log{"record": &o.Record, "trace": &o.Trace} {
		var err error
		if *to, err = safefile.OpenLog(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*to).Close() })
	}
	p, ended := newPool(o), make(chan error, 100)
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	return func(user string) (record, trace *workerlink.Log, raw []*os.File) {
		var logs []*workerlink.Log
		for _, serve := range p.served(user, nil) {
			conn, end, err := socketPair()
			if err != nil {
				t.Fatal(err)
			}
			serving.Go(func() { ended <- serve(conn) })
			own, err := net.FileConn(end)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { errors.Join(own.Close(), end.Close()) })
			raw, logs = append(raw, end), append(logs, workerlink.NewLog(own))
		}
		return logs[0], logs[1], raw
	}, ended, dir
}

func decided(principal, more string) string {
	return fmt.Sprintf(`{"event":"decided","time":"2020-01-01T00:00:00Z","threadId":"t",%s"kind":"command","command":["ls"],"decision":"denied","by":"client"%s}`, principal, more)
}

// TestHostileLogs checks what a taken-over worker can do with what it inherits: it appends lines of its
// own user, and nothing else.
func TestHostileLogs(t *testing.T) {
	connect, ended, dir := logsOf(t)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	bobs, bobTrace, _ := connect("bob")
	if _, err := bobs.Write([]byte(decided("", "") + "\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := bobTrace.Write([]byte("2020-01-01T00:00:00.000Z < {\"id\": 1}\n")); err != nil {
		t.Fatal(err)
	}
	before := map[string]string{"record": read("record"), "trace": read("trace")}
	if !strings.Contains(before["record"], `"principal":"bob"`) || !strings.HasSuffix(before["trace"], "Z bob < {\"id\":1}\n") {
		t.Fatal(before)
	}

	_, _, raw := connect("ann")
	for _, end := range raw {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_TRUNC} {
			if f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", end.Fd()), flag, 0); err == nil {
				t.Errorf("what a worker inherits can be opened again: %s", f.Name())
			}
		}
		if err := end.Truncate(0); err == nil {
			t.Error("what a worker inherits can be emptied")
		}
	}

	for name, tt := range map[string]struct {
		log, line string
		want      string // a part of what is written; "" if the connection ends
	}{
		"as another user":               {"record", decided(`"principal":"bob",`, ""), `"principal":"ann"`},
		"as two users":                  {"record", decided(`"principal":"ann","principal":"bob",`, ""), ""},
		"at another time":               {"record", decided("", ""), `{"event":"decided","time":"20`},
		"a line in a line":              {"record", decided("", "") + "\n" + decided(`"principal":"bob",`, ""), ""},
		"a line in white space":         {"record", strings.Replace(decided("", ""), `["ls"]`, "[\n\r\n\"ls\"]", 1), `"command":["ls"]`},
		"a line in a text":              {"record", decided("", `,"detail":"a\n{\"principal\":\"bob\"}"`), `"detail":"a\n{`},
		"another member":                {"record", decided("", `,"Principal":"bob"`), ""},
		"a decision of another user":    {"record", decided("", `,"decisionId":"bob/x-1"`), `"decisionId":"ann/bob/x-1"`},
		"a beginning":                   {"record", `{"event":"begins","time":"2020-01-01T00:00:00Z","threadId":"t","principal":"bob","kind":"tool"}`, `"principal":"ann","kind":"tool"`},
		"no decision":                   {"record", `{"event":"decided"}`, ""},
		"no event":                      {"record", strings.Replace(decided("", ""), `"event":"decided",`, "", 1), ""},
		"nonsense":                      {"record", "bob approved", ""},
		"a message":                     {"trace", `2020-01-01T00:00:00.000Z > {"a": "b\nc"}`, ` ann > {"a":"b\nc"}`},
		"a message of another user":     {"trace", `2020-01-01T00:00:00.000Z bob < {}`, ""},
		"another user in the time":      {"trace", `bob < {}`, " ann < {}"},
		"a message in a message":        {"trace", "x < {}\n2020-01-01T00:00:00.000Z bob < {}", ""},
		"a message in white space":      {"trace", "x < [\n1\n,2]", " ann < [1,2]"},
		"words after a message":         {"trace", "x < {} bob < {}", ""},
		"escape sequences in a message": {"trace", "x < \"\x1b[2J\"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			record, trace, _ := connect("ann")
			was := read(tt.log)
			log := record
			if tt.log == "trace" {
				log = trace
			}
			_, err := log.Write([]byte(tt.line + "\n"))
			got, ok := strings.CutPrefix(read(tt.log), was)
			if !ok {
				t.Fatal("older lines have changed")
			}
			if tt.want == "" {
				if err == nil || got != "" || <-ended == nil {
					t.Errorf("%v, %q", err, got)
				}
				return
			}
			if err != nil || strings.Count(got, "\n") != 1 || !strings.Contains(got, tt.want) || strings.Contains(got, "2020-") || strings.Contains(got, `"principal":"bob",`) {
				t.Errorf("%v, %q", err, got)
			}
		})
	}

	// A worker that stops in a line, and one that announces too much, hold nobody up.
	_, _, slow := connect("ann")
	for _, end := range slow {
		if _, err := end.Write([]byte{0, 0, 1, 0, 'x'}); err != nil {
			t.Fatal(err)
		}
	}
	_, _, long := connect("ann")
	for _, end := range long {
		if _, err := end.Write([]byte{0xff, 0xff, 0xff, 0xff}); err != nil {
			t.Fatal(err)
		}
		if <-ended == nil {
			t.Error("a line that is too long ends nothing")
		}
	}
	if _, err := bobs.Write([]byte(decided("", "") + "\n")); err != nil {
		t.Error(err)
	}
	if got := read("record"); !strings.HasPrefix(got, before["record"]) || strings.Count(got, `"principal":"bob"`) != 2 {
		t.Errorf("the lines of bob: %s", got)
	}
}
