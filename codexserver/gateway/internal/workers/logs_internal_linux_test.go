package workers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// logsOf returns what serves the logs of a user, and how many lines were nonsense. The files are in a folder.
func logsOf(t *testing.T) (connect func(user string) worker.Served, nonsense *atomic.Int32, dir string) {
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
	p := newPool(o)
	nonsense = &atomic.Int32{}
	return func(user string) worker.Served { return p.served(user, nil, func(error) { nonsense.Add(1) }) }, nonsense, dir
}

func decided(principal, more string) string {
	return fmt.Sprintf(`{"event":"decided","time":"2020-01-01T00:00:00Z","threadId":"t",%s"kind":"command","command":["ls"],"decision":"denied","by":"client"%s}`, principal, more)
}

// TestHostileLogs checks what a taken-over worker can do with what it inherits: it appends lines of its
// own user, and nothing else.
func TestHostileLogs(t *testing.T) {
	connect, nonsense, dir := logsOf(t)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	bob := connect("bob")
	if err := errors.Join(bob.Record([]byte(decided("", ""))), bob.Trace([]byte("2020-01-01T00:00:00.000Z < {\"id\": 1}"))); err != nil {
		t.Fatal(err)
	}
	before := map[string]string{"record": read("record"), "trace": read("trace")}
	if !strings.Contains(before["record"], `"principal":"bob"`) || !strings.HasSuffix(before["trace"], "Z bob < {\"id\":1}\n") {
		t.Fatal(before)
	}

	for name, tt := range map[string]struct {
		log, line string
		want      string // a part of what is written; "" if the worker is killed
	}{
		"as another user":               {"record", decided(`"principal":"bob",`, ""), `"principal":"ann"`},
		"at another time":               {"record", decided("", ""), `{"event":"decided","time":"20`},
		"a line in a line":              {"record", decided("", "") + "\n" + decided(`"principal":"bob",`, ""), ""},
		"a line in white space":         {"record", strings.Replace(decided("", ""), `["ls"]`, "[\n\r\n\"ls\"]", 1), `"command":["ls"]`},
		"a decision of another user":    {"record", decided("", `,"decisionId":"bob/x-1"`), `"decisionId":"ann/bob/x-1"`},
		"a beginning":                   {"record", `{"event":"begins","time":"2020-01-01T00:00:00Z","threadId":"t","principal":"bob","kind":"tool"}`, `"principal":"ann","kind":"tool"`},
		"no event":                      {"record", strings.Replace(decided("", ""), `"event":"decided",`, "", 1), ""},
		"nonsense":                      {"record", "bob approved", ""},
		"a message":                     {"trace", `2020-01-01T00:00:00.000Z > {"a": "b\nc"}`, ` ann > {"a":"b\nc"}`},
		"a message of another user":     {"trace", `2020-01-01T00:00:00.000Z bob < {}`, ""},
		"a message in a message":        {"trace", "x < {}\n2020-01-01T00:00:00.000Z bob < {}", ""},
		"escape sequences in a message": {"trace", "x < \"\x1b[2J\"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ann, was, bad := connect("ann"), read(tt.log), nonsense.Load()
			log := ann.Record
			if tt.log == "trace" {
				log = ann.Trace
			}
			err := log([]byte(tt.line))
			got, ok := strings.CutPrefix(read(tt.log), was)
			if !ok {
				t.Fatal("older lines have changed")
			}
			if tt.want == "" {
				if err == nil || got != "" || nonsense.Load() == bad {
					t.Errorf("%v, %q", err, got)
				}
				return
			}
			if err != nil || strings.Count(got, "\n") != 1 || !strings.Contains(got, tt.want) || strings.Contains(got, "2020-") || strings.Contains(got, `"principal":"bob",`) {
				t.Errorf("%v, %q", err, got)
			}
		})
	}
}
