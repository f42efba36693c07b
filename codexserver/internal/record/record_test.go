package record_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestAutomatic finds what clients answered by themselves in a log.
func TestAutomatic(t *testing.T) {
	const line = `{"event":"decided","time":"2026-11-20T11:28:31Z","kind":"command","decision":"denied","by":"page","automatic":"The client \"a\" declined %d ms after the question"}` + "\n"
	log := "half a line\n" + fmt.Sprintf(line, 2) + `{"decision":"approved","by":"client"}` + "\n" + fmt.Sprintf(line, 3)
	want := []string{`2026-11-20 11:28:31: The client "a" declined 3 ms after the question (denied, by page)`}
	must.Equal(t, "the lines", want, record.Automatic([]byte(log), 3))
}

// TestStamp takes lines that another process wrote: its time and its principal do not count.
func TestStamp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	const made = `{"event":"decided","time":"2020-01-01T00:00:00Z","decisionId":"x-1","threadId":"t","principal":"eve","kind":"command","decision":"approved","by":"client","rule":7,"feedback":"é"}`
	const stamped = `{"event":"decided","time":"2026-01-02T02:04:05Z","decisionId":"ann/x-1","threadId":"t","principal":"ann","kind":"command","decision":"approved","by":"client","rule":7,"feedback":"é"}`
	for _, tt := range []struct{ from, to, want string }{
		{"", "", stamped}, {`"client"`, `""`, "! no decision"}, {`"approved"`, `""`, "! no decision"},
		{`"decided"`, `"begins"`, "! one of another event"},
		{`"decided"`, `"other"`, "! no event"}, {`{"event":"decided",`, `{`, "! no event"},
		{`"rule":7`, `"rules":7`, "! not a line of the record"},
		{`"rule":7`, `"rule":7,"rule":8`, "! not a line of the record"},
		{`"t",`, `"t"`, "! not a line of the record"},
		{`"decisionId":"x-1",`, ``, strings.Replace(stamped, `"decisionId":"ann/x-1",`, "", 1)},
		{made, `{"event":"ends","time":"2020-01-01T00:00:00Z","decisionId":"x-1","threadId":"t","principal":"eve","exit":0}`, `{"event":"ends","time":"2026-01-02T02:04:05Z","decisionId":"ann/x-1","threadId":"t","principal":"ann","exit":0}`},
		{"\u00e9", "\xff", strings.Replace(stamped, "\u00e9", "\ufffd", 1)},
	} {
		line, err := record.Stamp([]byte(strings.Replace(made, tt.from, tt.to, 1)), now, "ann")
		got := string(line)
		if err != nil {
			got = "! " + err.Error()
		}
		if part, fails := strings.CutPrefix(tt.want, "! "); fails && (line != nil || !strings.Contains(got, part)) || !fails && got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.to, got, tt.want)
		}
	}
}

// TestLogBegins makes nothing before the first line, and tries again after an error.
func TestLogBegins(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "codex-mcp", "approvals.log")
	l := record.New(path, 0)
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("the folder was made")
	}
	must.OK(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
	line := []byte("{\"event\":\"decided\"}\n")
	if n, err := l.Write(line); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
	must.OK(t, os.Remove(filepath.Dir(path)))
	if n, err := l.Write(line); n != len(line) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got, err := os.ReadFile(path); string(got) != string(line) || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	must.Check(t, l.Close())
	must.Check(t, record.New(path, 0).Close())
}

// TestOn writes lines to a file that is already open.
func TestOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file := must.Get(safefile.OpenLog(path, 0))(t)
	defer file.Close()
	w := record.On(file)
	for _, line := range []string{"{\"event\":\"decided\"}\n", "{\"event\":\"ends\"}\n"} {
		if _, err := io.WriteString(w, line); err != nil {
			t.Error(err)
		}
	}
	if got, err := os.ReadFile(path); string(got) != "{\"event\":\"decided\"}\n{\"event\":\"ends\"}\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestBound shortens what a model made long, and keeps the rest.
func TestBound(t *testing.T) {
	long := strings.Repeat("é", 40<<10)
	many := map[string]protocol.FileChange{}
	for i := range 3000 {
		many[fmt.Sprintf("/work/%030d", i)] = protocol.FileChange{Add: &protocol.FileContent{Content: "x\n"}}
	}
	to := "/to"
	for name, tt := range map[string]struct {
		in                  approval.Facts
		words, changes      int
		left, most, longest int
	}{
		"short":        {approval.Facts{Command: []string{"a", "b"}, Changes: []approval.ChangeFacts{{Path: "/a", Diff: "+x\n"}}}, 2, 1, 0, 10, 3},
		"a command":    {approval.Facts{Command: []string{"a", long, "b", "c"}}, 3, 0, 0, 70 << 10, 0},
		"a long diff":  {approval.Facts{Changes: []approval.ChangeFacts{{Path: "/a", Diff: long}, {Path: "/b", Diff: "+x\n"}}}, 0, 1, 1, 70 << 10, 70 << 10},
		"many changes": {approval.Patch{Changes: many}.Facts(true), 0, 1724, 1276, 70 << 10, 10},
		"a question":   {approval.Facts{Question: []byte(`{"message":"` + long + `"}`)}, 0, 0, 0, 70 << 10, 0},
		"a move":       {approval.Patch{Changes: map[string]protocol.FileChange{"/a": {Update: &protocol.FileUpdate{MovePath: &to}}}}.Facts(false), 0, 1, 0, 10, 0},
	} {
		before := slices.Clone(tt.in.Command)
		command := tt.in.Command
		got := record.Line{Facts: tt.in}
		got.Bound()
		size, longest := len(got.Question), 0
		if len(got.Question) > 0 && !got.Question.IsValid() {
			t.Errorf("%s: it is no JSON any more: %.100s", name, got.Question)
		}
		for _, word := range got.Command {
			size += len(word)
		}
		for _, c := range got.Changes {
			size += len(c.Path) + len(c.MoveTo) + len(c.Diff)
			longest = max(longest, len(c.Diff))
		}
		if len(got.Command) != tt.words || len(got.Changes) != tt.changes || got.MoreChanges != tt.left || size > tt.most || longest > tt.longest {
			t.Errorf("%s: %d words, %d changes, %d left out, %d bytes, the longest %d", name, len(got.Command), len(got.Changes), got.MoreChanges, size, longest)
		}
		must.Equal(t, name+": the command of the caller", before, command)
	}
}
