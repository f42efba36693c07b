package record_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/google/go-cmp/cmp"
)

// TestMain runs the process of TestLogProcesses.
func TestMain(m *testing.M) {
	if path := os.Getenv("AUDIT_TEST_LOG"); path != "" {
		writeLines(record.New(path, 0), os.Getenv("AUDIT_TEST_NAME"))
		return
	}
	os.Exit(m.Run())
}

const linesTested = 200

// writeLines writes decisions and calls, each with the id of the writer.
func writeLines(l *record.Log, name string) {
	for i := range linesTested {
		line := record.Line{Event: record.Decided, Thread: "t", DecisionID: fmt.Sprint(name, "-", i), Subject: record.Subject{Command: []string{strings.Repeat("x", i)}}}
		if i%2 == 1 {
			line.Event = record.Begins
		}
		text, err := line.Append(nil, true)
		if err == nil {
			_, err = l.Write(append(text, '\n'))
		}
		if err != nil {
			panic(err)
		}
	}
}

// TestLogProcesses has several processes and goroutines write one log. Each line is there once, and whole.
func TestLogProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "codex-mcp", "approvals.log")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	for i := range 3 {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), "AUDIT_TEST_LOG="+path, fmt.Sprint("AUDIT_TEST_NAME=process", i))
		writing.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	l := record.New(path, 0)
	for i := range 2 {
		writing.Go(func() { writeLines(l, fmt.Sprint("own", i)) })
	}
	writing.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for line := range bytes.Lines(text) {
		got, err := record.Parse(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		found[got.DecisionID]++
	}
	for _, name := range []string{"process0", "process1", "process2", "own0", "own1"} {
		for i := range linesTested {
			if id := fmt.Sprint(name, "-", i); found[id] != 1 {
				t.Errorf("%s is there %d times", id, found[id])
			}
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
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
	if err := os.WriteFile(filepath.Dir(path), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	line := []byte("{\"event\":\"decided\"}\n")
	if n, err := l.Write(line); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := os.Remove(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Write(line); n != len(line) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got, err := os.ReadFile(path); string(got) != string(line) || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := record.New(path, 0).Close(); err != nil {
		t.Error(err)
	}
}

// TestLogPlace refuses what is no regular file.
func TestLogPlace(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"a link":      func(path string) error { return os.Symlink(target, path) },
		"a hard link": func(path string) error { return os.Link(target, path) },
		"a folder":    func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(dir, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if err := record.New(path, 0).Open(); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	if got, err := os.ReadFile(target); len(got) > 0 || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestOn writes lines to a file that is already open.
func TestOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := safefile.OpenLog(path, 0)
	if err != nil {
		t.Fatal(err)
	}
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
		in                  record.Subject
		words, changes      int
		left, most, longest int
	}{
		"short":        {record.Subject{Command: []string{"a", "b"}, Changes: []record.Change{{Path: "/a", Diff: "+x\n"}}}, 2, 1, 0, 10, 3},
		"a command":    {record.Subject{Command: []string{"a", long, "b", "c"}}, 3, 0, 0, 70 << 10, 0},
		"a long diff":  {record.Subject{Changes: []record.Change{{Path: "/a", Diff: long}, {Path: "/b", Diff: "+x\n"}}}, 0, 1, 1, 70 << 10, 70 << 10},
		"many changes": {record.Subject{Changes: record.ChangesOf(many, true)}, 0, 1724, 1276, 70 << 10, 10},
		"a question":   {record.Subject{Question: []byte(`{"message":"` + long + `"}`)}, 0, 0, 0, 70 << 10, 0},
		"a move":       {record.Subject{Changes: record.ChangesOf(map[string]protocol.FileChange{"/a": {Update: &protocol.FileUpdate{MovePath: &to}}}, false)}, 0, 1, 0, 10, 0},
	} {
		before := slices.Clone(tt.in.Command)
		command := tt.in.Command
		got := tt.in
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
		if diff := cmp.Diff(before, command); diff != "" {
			t.Errorf("%s: the command of the caller has changed", name)
		}
	}
}
