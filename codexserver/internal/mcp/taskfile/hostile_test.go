package taskfile_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

const secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// TestHostileIDs checks that an invalid id leads to no file.
func TestHostileIDs(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	task := create(t, s)
	must.OK(t, os.WriteFile(filepath.Join(home, "task-x."+secret+".json"), []byte("{}"), 0o600))
	before := names(t, home)
	for _, id := range []string{
		"", ".", "..", "x", "x.", "." + secret, secret, "x." + secret[1:], "x." + secret + strings.Repeat("A", 101), strings.Repeat("x", 102) + "." + secret,
		"../../task-x." + secret, "x/../../../task-x." + secret, `..\..\task-x.` + secret, "x." + secret + "/..", "x." + secret + "/../../../x",
		task.ID + "/", task.ID + ".json", task.ID + "\x00", "\x00" + task.ID, task.ID + " ", " " + task.ID, task.ID + ".", task.ID + "\n", task.ID + "::$DATA",
		"C:" + secret, "C:x." + secret, "/etc/passwd", "x.y." + secret, "x..." + secret, "~." + secret, "%2e%2e%2f." + secret, "*." + secret, "x?." + secret,
		"ｘ." + secret, "é." + secret, "x.ＡBCDEFGHIJKLMNOPQRSTUVWXYZ", "x.ſBCDEFGHIJKLMNOPQRSTUVWXYZ", "x\u202e." + secret, "\xff." + secret,
		strings.Repeat("x", 1<<20) + "." + secret,
	} {
		unknown(t, s, id)
		if _, err := s.Create(taskfile.Task{ID: id, Status: modern.TaskStatusWorking}); err == nil || len(err.Error()) > 2000 {
			t.Errorf("%.300q was created, or the error is %.300v", id, err)
		}
		if _, err := s.Update(taskfile.Task{ID: id, Status: modern.TaskStatusWorking}); err == nil {
			t.Errorf("%.300q was changed", id)
		}
	}
	for _, thread := range []string{"", "a.b", "a/b", "..", "con.", strings.Repeat("x", 102), "ü"} {
		if id, err := taskfile.NewID(thread); err == nil {
			t.Errorf("%q has the task %q", thread, id)
		}
	}
	// On a file system that ignores case this is another name of the task's file.
	unknown(t, s, strings.ToLower(task.ID))
	unknown(t, s, strings.ToUpper(task.ID))
	if after := names(t, home); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	found(t, s, task, taskfile.Self)
}

func names(t *testing.T, home string) string {
	t.Helper()
	var all []string
	err := filepath.Walk(home, func(path string, _ os.FileInfo, err error) error {
		all = append(all, path)
		return err
	})
	must.OK(t, err)
	return strings.Join(all, "\n")
}

// TestHostileFiles checks that a foreign file is neither read nor replaced.
func TestHostileFiles(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(file, good string) error // good is a file of a task
		want any
	}{
		{"link", func(file, good string) error { return os.Symlink(good, file) }, new(*safefile.KindError)},
		{"dangling link", func(file, good string) error { return os.Symlink(good+"no", file) }, new(*safefile.KindError)},
		{"folder", func(file, _ string) error { return os.Mkdir(file, 0o700) }, new(*safefile.KindError)},
		{"endless", func(file, _ string) error {
			return errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 64<<20+1))
		}, new(*safefile.SizeError)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			s := newStore(t, home)
			good, bad := create(t, s), create(t, s)
			file := path(home, bad.ID)
			must.OK(t, os.Remove(file), tt.make(file, path(home, good.ID)))
			if got, _, err := s.Get(bad.ID); !errors.As(err, tt.want) || errors.Is(err, taskfile.ErrUnknown) {
				t.Errorf("%+v, %v", got, err)
			}
			if list, err := s.Gone(); !errors.As(err, tt.want) || len(list) != 0 {
				t.Errorf("%+v, %v", list, err)
			}
			bad.Message = "changed"
			if _, err := s.Update(bad); tt.name != "endless" && !errors.As(err, tt.want) {
				t.Errorf("Update: %v", err)
			}
			found(t, s, good, taskfile.Self)
		})
	}
}

// TestSwap checks that a file under another task's name does not count as that task.
func TestSwap(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	one, two := create(t, s), create(t, s)
	must.OK(t, os.Rename(path(home, one.ID), path(home, two.ID)))
	unknown(t, s, two.ID)
	unknown(t, s, one.ID)
	id := strings.ToLower(two.ID)
	two.Message = "again"
	two = update(t, s, two)
	must.OK(t, os.Rename(path(home, two.ID), path(home, id)))
	unknown(t, s, id)
}

// TestTooLarge checks that a task too large to be read is not written.
func TestTooLarge(t *testing.T) {
	s := newStore(t, t.TempDir())
	task := create(t, s)
	large := task
	large.Message = strings.Repeat("x", 64<<20)
	var size *safefile.SizeError
	if _, err := s.Update(large); !errors.As(err, &size) {
		t.Errorf("Update: %.300v", err)
	}
	found(t, s, task, taskfile.Self)
}

// TestNoFolder checks that every call fails if the home is not a folder.
func TestNoFolder(t *testing.T) {
	home := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(home, nil, 0o600))
	s := newStore(t, home)
	if _, err := s.Create(taskfile.Task{ID: newID(t), Status: modern.TaskStatusWorking}); err == nil {
		t.Error("a task was made")
	}
	if _, _, err := s.Get(newID(t)); err == nil {
		t.Error("a task was found")
	}
}

var kills = flag.Int("kills", nightly.Number(12, 400), "how many servers are killed")

// childHome is the environment variable with the home of the server that TestChild runs.
const childHome = "TASKFILE_TEST_HOME"

// TestChild is the server that other tests start. It creates and finishes tasks, three at a
// time, and prints a line after each step, until its standard input ends.
func TestChild(t *testing.T) {
	home := os.Getenv(childHome)
	if home == "" {
		return // another test has to start it
	}
	s := taskfile.New(home, nil)
	end := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(end)
	}()
	failed := make(chan error)
	for range 3 {
		go func() {
			for {
				select {
				case <-end:
					failed <- nil
					return
				default:
				}
				if err := oneTask(s); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	must.OK(t, <-failed, <-failed, <-failed, s.Close())
}

func oneTask(s *taskfile.Store) error {
	id, err := taskfile.NewID(thread)
	if err != nil {
		return err
	}
	task, err := s.Create(taskfile.Task{ID: id, Tool: "codex", Status: modern.TaskStatusWorking})
	if err != nil {
		return err
	}
	fmt.Println("created", id)
	task.Message = strings.Repeat("x", rand.N(20_000))
	if task, err = s.Update(task); err != nil {
		return err
	}
	task.Message, task.Status, task.Result = "", modern.TaskStatusCompleted, result(id)
	if _, err = s.Update(task); err != nil {
		return err
	}
	fmt.Println("finished", id)
	return nil
}

func result(id string) jsontext.Value {
	return jsontext.Value(`{"content":"` + strings.Repeat(id, 100) + `"}`)
}

// child starts TestChild and returns its output by line.
func child(t *testing.T, home string) (cmd *exec.Cmd, in io.Closer, out *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childHome+"="+home)
	stdin := must.Get(cmd.StdinPipe())(t)
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.OK(t, cmd.Start())
	return cmd, stdin, bufio.NewScanner(stdout)
}

// check compares a task with the last line that its server printed about it.
func check(t *testing.T, s *taskfile.Store, word, id string) {
	t.Helper()
	task, owner, err := s.Get(id)
	switch {
	case err != nil:
		t.Errorf("%s, and then: %v", word, err)
	case isFinished(task) != (owner == taskfile.NoOwner), !isFinished(task) && owner != taskfile.Gone:
		t.Errorf("%s, and then: %s, served by %v", word, task.Status, owner)
	case word == "finished" && !isFinished(task):
		t.Errorf("finished, and then: %s", task.Status)
	case isFinished(task) && string(task.Result) != string(result(id)):
		t.Errorf("%s, and then the result is %s", word, task.Result)
	}
}

// TestKill checks that a killed server leaves no torn file and loses no task that it announced.
func TestKill(t *testing.T) {
	home := t.TempDir()
	s := taskfile.New(home, nil)
	count := map[string]int{}
	for n := range *kills {
		cmd, _, out := child(t, home)
		kill := func() { _ = cmd.Process.Kill() }
		if n%4 == 0 { // perhaps while the process starts
			time.AfterFunc(rand.N(40*time.Millisecond), kill)
		}
		said := map[string]string{}
		for first := true; out.Scan(); first = false {
			if first && n%4 != 0 {
				time.AfterFunc(rand.N(20*time.Millisecond), kill)
			}
			if word, id, ok := strings.Cut(out.Text(), " "); ok {
				said[id] = word
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the server ended by itself")
		}
		for id, word := range said {
			check(t, s, word, id)
			count[word]++
		}
	}
	if count["created"] == 0 || count["finished"] == 0 {
		t.Errorf("the servers printed too little: %v", count)
	}
	if _, err := s.Gone(); err != nil {
		t.Error(err)
	}
	t.Logf("%d were reported as finished, and %d as created only", count["finished"], count["created"])
	sweep(t, s, taskfile.KeepGone+time.Hour)
	if left, err := os.ReadDir(folder(home)); err != nil || len(left) != 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

// TestTwoProcesses runs two processes that serve and sweep tasks in one folder.
func TestTwoProcesses(t *testing.T) {
	home := t.TempDir()
	s := newStore(t, home)
	cmd, in, out := child(t, home)
	finished := map[string]bool{}
	for out.Scan() {
		word, id, ok := strings.Cut(out.Text(), " ")
		if !ok {
			continue
		}
		task, owner, err := s.Get(id)
		want := taskfile.NoOwner
		if !isFinished(task) {
			want = taskfile.Other // it ends when its tasks have
		}
		if err != nil || owner != want {
			t.Errorf("%s is %s, served by %v, %v", word, task.Status, owner, err)
		}
		if err == nil && task.Server.PID != cmd.Process.Pid {
			t.Errorf("served by process %d, want %d", task.Server.PID, cmd.Process.Pid)
		}
		finished[id] = finished[id] || word == "finished"
		if own := create(t, s); len(finished)%2 == 0 {
			found(t, s, complete(t, s, own), taskfile.NoOwner)
		}
		sweep(t, s, 0)
		if len(finished) >= 20 {
			_ = in.Close()
		}
	}
	must.OK(t, cmd.Wait())
	for id, done := range finished {
		if !done {
			t.Errorf("%s did not finish", id)
		}
		check(t, s, "finished", id)
	}
}

func isFinished(t taskfile.Task) bool { return t.Status == modern.TaskStatusCompleted }
