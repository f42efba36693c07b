package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/go-json-experiment/json"
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
	create(s, "done", taskfile.Task{Status: taskfile.Completed, Message: "done", Result: result(t, hostile, false)})
	create(s, "failed", taskfile.Task{Status: taskfile.Completed, Message: "ended with an error", Result: result(t, "no "+hostile, true)})
	create(s, "cancelled", taskfile.Task{Status: taskfile.Cancelled, Message: "cancelled by the client"})
	return ids, s
}

func result(t *testing.T, text string, isError bool) jsontext.Value {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"content": []map[string]any{
		{"type": "text", "text": text}, {"type": "text", "text": "more"},
		{"type": "text", "text": "for the model", "annotations": map[string]any{"audience": []string{"assistant"}}},
	}, "isError": isError})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// control matches characters that a terminal interprets.
var control = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2028\u2029]")

// TestTasks shows tasks and changes none.
func TestTasks(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	ids, _ := keptTasks(t, home)
	before := files(t, home)
	for _, tt := range []struct {
		args string // NAME stands for an id
		code int
		want []string
	}{
		{"tasks", 0, []string{"working", "running a", "lost", "the server ended", "completed", "cancelled by the client", "process ", ids["live"], ids["lost"], ids["done"]}},
		{"tasks --json", 0, []string{`"id":"` + ids["live"] + `","threadId":"thread-live","tool":"codex","status":"working"`, `"serves":true`, `"status":"lost"`, `"pid":`}},
		{"tasks live", 0, []string{"task     " + ids["live"] + "\n", "thread   thread-live\n", "status   working\n", "doing    running a", "server   process "}},
		{"tasks done", 0, []string{"status   completed\n", "kept     until ", "\n\nab", "\n\nmore\n"}},
		{"tasks --follow done", 0, []string{"\n\nab"}},
		{"tasks done --json", 0, []string{`"result":{`, `"content":[{`, `\u202e`, `"serves":false`}},
		{"tasks failed", 1, []string{"status   completed\n", "no a"}},
		{"tasks cancelled", 1, []string{"status   cancelled\n"}},
		{"tasks cut", 0, []string{"status   cut\n", "the next server continues it", "which has ended"}},
		{"tasks lost", 1, []string{"status   lost\n", "codex-reply continues", "which has ended"}},
		{"tasks thread-do", 0, []string{"thread   thread-done\n"}},
	} {
		args := strings.Fields(tt.args)
		if id := ids[args[len(args)-1]]; id != "" {
			args[len(args)-1] = id
		} else if id := ids[args[min(1, len(args)-1)]]; id != "" {
			args[1] = id
		}
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), "codex-mcp", args, &stdout, &stderr); code != tt.code || stderr.Len() > 0 {
			t.Errorf("%s: exit status %d, want %d\n%s", tt.args, code, tt.code, &stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%s: no %q in\n%s", tt.args, want, &stdout)
			}
		}
		if !strings.Contains(tt.args, "--json") && strings.Contains(stdout.String(), "for the model") {
			t.Errorf("%s: shows a text that is only for the model\n%s", tt.args, &stdout)
		}
		if found := control.FindString(stdout.String()); found != "" {
			t.Errorf("%s: %q moves the cursor or hides text", tt.args, found)
		}
		if strings.Contains(tt.args, "--json") {
			for line := range strings.Lines(stdout.String()) {
				if !jsontext.Value(line).IsValid() {
					t.Errorf("%s: no JSON: %s", tt.args, line)
				}
			}
		}
	}
	if diff := cmp.Diff(before, files(t, home)); diff != "" {
		t.Errorf("the files have changed:\n%s", diff)
	}
}

// files returns the contents of the files below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all[path] = ""
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTasksOfAnEmptyHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	for args, want := range map[string]string{
		"tasks": "no tasks\n", "tasks --json": "", "tasks x": `unknown task "x"; codex-mcp tasks lists the ids`, "tasks ../x": `unknown task "../x"`,
		"tasks --follow": "--follow: want the id of a task", "tasks a b": `tasks: want one ID, found "a b"`,
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), "codex-mcp", strings.Fields(args), &stdout, &stderr)
		if got := stdout.String() + stderr.String(); !strings.Contains(got, want) || (code == 0) != (stderr.Len() == 0) {
			t.Errorf("%s: exit status %d, %s", args, code, got)
		}
	}
	if made := slices.Collect(maps.Keys(files(t, home))); len(made) != 1 {
		t.Errorf("the command made files: %q", made)
	}
}

// TestTasksWithABadFile checks that the other tasks are shown, and that an error names the bad
// file.
func TestTasksWithABadFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	ids, _ := keptTasks(t, home)
	bad := filepath.Join(home, "codex-mcp", "tasks", "task-"+ids["done"]+".json")
	if err := os.WriteFile(bad, []byte(`{"id":"`+hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), "codex-mcp", []string{"tasks"}, &stdout, &stderr); code != 1 || !strings.Contains(stdout.String(), ids["live"]) || !strings.Contains(stderr.String(), ids["done"]) {
		t.Errorf("exit status %d\n%s--\n%s", code, &stdout, &stderr)
	}
	if found := control.FindString(stderr.String()); found != "" {
		t.Errorf("%q moves the cursor or hides text", found)
	}
}

// TestFollowTask follows a task until another store has finished it.
func TestFollowTask(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	ids, s := keptTasks(t, home)
	task, _, err := s.Get(ids["live"])
	if err != nil {
		t.Fatal(err)
	}
	out := make(lines, 100)
	code := make(chan int, 1)
	go func() { code <- run(t.Context(), "codex-mcp", []string{"tasks", "-f", ids["live"]}, out, out) }()
	out.await(t, "status   working")
	task.Status, task.Message = taskfile.InputRequired, "waiting for approval of `git push`"
	if task, err = s.Update(task); err != nil {
		t.Fatal(err)
	}
	out.await(t, "input_required  waiting for approval of `git push` (process ")
	task.Status, task.Message, task.Result = taskfile.Completed, "done", result(t, "It is done.", false)
	if _, err := s.Update(task); err != nil {
		t.Fatal(err)
	}
	out.await(t, "It is done.\n")
	if c := <-code; c != 0 {
		t.Errorf("exit status %d", c)
	}
}

// lines holds what was written, one item for each write.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

func (l lines) await(t *testing.T, want string) {
	t.Helper()
	for late := time.After(limit); ; {
		select {
		case got := <-l:
			if strings.Contains(got, want) {
				return
			}
		case <-late:
			t.Fatalf("%q was not written", want)
		}
	}
}

// TestTasksOfOthers checks the list of the page: running tasks of other processes, and those
// that ended recently.
func TestTasksOfOthers(t *testing.T) {
	home := t.TempDir()
	old, err := taskfile.NewID("thread-old")
	if err != nil {
		t.Fatal(err)
	}
	before := taskfile.New(home, &taskfile.Options{Now: func() time.Time { return time.Now().Add(-2 * time.Hour) }})
	if _, err := before.Create(taskfile.Task{ID: old, Status: taskfile.Completed, Result: []byte(`{}`)}); err != nil {
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
