package page

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTasks shows the tasks of other processes while the page is open. Each change is shown
// once, with hidden characters made visible.
func TestTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		var tasks atomic.Value
		tasks.Store([]Task{{Thread: "t", Status: "working", Message: "a\x1b[2Jb\nc\u202ed" + strings.Repeat("x", 1000), Server: "process 1", Began: 7}})
		p := newPage("127.0.0.1:1", &Options{Tasks: func() []Task { calls.Add(1); return tasks.Load().([]Task) }})
		ended := make(chan struct{})
		go func() { defer close(ended); p.lookAtTasks() }()
		defer func() { close(p.done); <-ended }()

		<-time.After(time.Minute)
		if n := calls.Load(); n > 0 {
			t.Errorf("looked %d times while the page is not open", n)
		}
		_, before, _ := p.board.since(0)
		defer p.work.remove(p.work.add())
		<-time.After(taskPace)
		synctest.Wait()
		u, seen, _ := p.board.since(before)
		want := []Task{{Thread: "t", Status: "working", Message: `a\x1b[2Jb c\u{202e}d`, Server: "process 1", Began: 7}}
		if u.Tasks == nil || len(*u.Tasks) != 1 || len((*u.Tasks)[0].Message) > 600 || len(u.Conversations) > 0 {
			t.Fatalf("%+v", u)
		}
		got := slices.Clone(*u.Tasks)
		got[0].Message, _, _ = strings.Cut(got[0].Message, "xxx")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}

		tasks.Store(append([]Task(nil), tasks.Load().([]Task)...))
		<-time.After(10 * taskPace)
		synctest.Wait()
		if u, now, _ := p.board.since(seen); u.Tasks != nil && now > seen {
			t.Errorf("the same tasks are shown again: %+v", u)
		}
		tasks.Store(make([]Task, maxTasks+1))
		<-time.After(taskPace)
		synctest.Wait()
		u, seen, _ = p.board.since(seen)
		if u.Tasks == nil || len(*u.Tasks) != maxTasks {
			t.Errorf("%d tasks are too many to be shown", maxTasks+1)
		}
		tasks.Store([]Task(nil))
		<-time.After(taskPace)
		synctest.Wait()
		if u, _, _ = p.board.since(seen); u.Tasks == nil || len(*u.Tasks) != 0 {
			t.Errorf("tasks that are gone stay: %+v", u)
		}
	})
}
