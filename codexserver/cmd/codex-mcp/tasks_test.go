package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// hostile moves the cursor, changes colours, sets the title, turns the direction of
// text and begins lines of its own.
const hostile = "a\x1b[2J\x1b]0;title\x07\x1b[31mb\rc\u202ed\u009b1Ae\nf\tg\u2028h\x00i"

// TestServerOfATask checks what a row says of the server of a task.
func TestServerOfATask(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host  string
		owner taskfile.Owner
		want  string
	}{
		{host, taskfile.Other, "process 7"},
		{host, taskfile.Gone, "process 7, which has ended"},
		{"elsewhere.example", taskfile.Other, "process 7 on elsewhere.example"},
	} {
		if got := server(taskfile.Task{Server: taskfile.Server{PID: 7, Host: tt.host}}, tt.owner); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// keptTasks makes the tasks of a home: one of a running server, two whose server is gone, of
// which the next one continues one, and three that have ended.
func keptTasks(t *testing.T, home string) (ids map[string]string, s *taskfile.Store) {
	t.Helper()
	ids = map[string]string{}
	create := func(s *taskfile.Store, name string, then taskfile.Task) {
		id, err := taskfile.NewID("thread-" + name)
		if err != nil {
			t.Fatal(err)
		}
		task, err := s.Create(taskfile.Task{ID: id, Tool: "codex", Status: taskfile.Working, Message: "running " + hostile, Resume: then.Resume})
		if then.Status != "" && err == nil {
			task.Status, task.Message, task.Result = then.Status, then.Message, then.Result
			_, err = s.Update(task)
		}
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = id
	}
	gone := taskfile.New(home, nil)
	create(gone, "lost", taskfile.Task{})
	create(gone, "cut", taskfile.Task{Resume: jsontext.Value(`{}`)})
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	s = taskfile.New(home, nil)
	t.Cleanup(func() { s.Close() })
	create(s, "live", taskfile.Task{})
	create(s, "done", taskfile.Task{Status: taskfile.Completed, Message: "done", Result: []byte(`{}`)})
	create(s, "failed", taskfile.Task{Status: taskfile.Completed, Message: "ended with an error", Result: []byte(`{}`)})
	create(s, "cancelled", taskfile.Task{Status: taskfile.Cancelled, Message: "cancelled by the client"})
	return ids, s
}

// control matches characters that a terminal interprets.
var control = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2028\u2029]")

// TestTasksOfOthers checks the list of the page: running tasks of other processes, and those
// that ended recently.
func TestTasksOfOthers(t *testing.T) {
	home := t.TempDir()
	old, err := taskfile.NewID("thread-old")
	if err != nil {
		t.Fatal(err)
	}
	made, err := taskfile.New(home, nil).Create(taskfile.Task{ID: old, Status: taskfile.Completed, Result: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	made.Updated = made.Updated.Add(-2 * time.Hour)
	if data, err := json.Marshal(made); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(filepath.Join(home, "codex-mcp", "tasks", "task-"+old+".json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	ids, _ := keptTasks(t, home) // of this process, before the page is opened: as of another one
	tasks := (&configuration{home: home}).otherTasks()
	keptTasks(t, home) // of this very server
	var got []string
	for _, task := range tasks() {
		got = append(got, task.Thread+" "+task.Status)
		if task.Server == "" || task.Message == "" || task.Began == 0 {
			t.Errorf("%+v", task)
		}
	}
	slices.Sort(got)
	want := []string{"thread-cancelled cancelled", "thread-cut cut", "thread-done completed", "thread-failed completed", "thread-live working", "thread-lost lost"}
	if diff := cmp.Diff(want, got); diff != "" || len(ids) != len(want) {
		t.Errorf("(-want +got):\n%s", diff)
	}
	many := t.TempDir()
	for i := range 51 {
		id, err := taskfile.NewID(fmt.Sprint("thread-", i))
		if err == nil {
			_, err = taskfile.New(many, nil).Create(taskfile.Task{ID: id, Status: taskfile.Completed, Result: []byte(`{}`)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if tasks := (&configuration{home: many}).otherTasks()(); len(tasks) != 50 {
		t.Errorf("%d of 51 tasks are listed", len(tasks))
	}
}
