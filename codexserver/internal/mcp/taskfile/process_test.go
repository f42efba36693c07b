package taskfile_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

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
	must(t, <-failed, <-failed, <-failed, s.Close())
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
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
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

// TestKill checks that a killed server leaves no torn file and loses no task that it
// announced.
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
	for days := range 2 { // the first sweep finds the lost tasks, which are then kept for a day
		sweep(t, s, time.Duration(days+1)*(taskfile.Keep+time.Hour))
	}
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
	must(t, cmd.Wait())
	for id, done := range finished {
		if !done {
			t.Errorf("%s did not finish", id)
		}
		check(t, s, "finished", id)
	}
}

func isFinished(t taskfile.Task) bool { return t.Status == modern.TaskStatusCompleted }
