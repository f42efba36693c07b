package mcp_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// TestMemoryOfFinishedTasks finishes many tasks with results of 40 kB, of which the
// server keeps little in memory: 2 to 4 kB a task, depending on what the runtime keeps at the moment.
func TestMemoryOfFinishedTasks(t *testing.T) {
	const warm, tasks, most = 20, 60, 10 << 10
	release := make(chan struct{})
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		<-release
		words := strings.Repeat("x", 40_000)
		host.Emit(protocol.TaskComplete{LastAgentMessage: &words})
		return nil
	})
	p := pollers(t, 1, e, &codexserver.Options{Tasks: codexserver.TaskOptions{Grace: -1}})[0]
	var before uint64
	for i := range warm + tasks {
		if i == warm {
			before = heap()
		}
		id := newTask(t, p, "go")
		release <- struct{}{}
		for done := false; !done; {
			_, done = getTask(t, p, id).(*modern.CompletedTask)
		}
	}
	grown := (int64(heap()) - int64(before)) / tasks
	t.Logf("a finished task takes %d bytes", grown)
	if grown > most {
		t.Errorf("a finished task takes %d bytes, want at most %d", grown, most)
	}
}

// heap returns how many bytes of the heap are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // also what had a finalizer
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestTaskFileStatus reads the file of a running task, as another process does.
func TestTaskFileStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
			<-time.After(10 * time.Second)
			host.Emit(protocol.ExecCommandBegin{CallID: "1", Command: []string{"go", "test"}, Cwd: "/"})
			<-ctx.Done()
			return ctx.Err()
		})
		o := &codexserver.Options{}
		p := pollers(t, 1, e, o)[0]
		id := newTask(t, p, "go")
		<-time.After(20 * time.Second)
		synctest.Wait()
		task, owner, err := taskfile.New(o.Home, nil).Get(id)
		if err != nil || owner != taskfile.Other || task.Message != "running go test" {
			t.Errorf("%+v, %v, %v", task, owner, err)
		}
		if at := task.Updated; time.Since(at) != 11*time.Second { // when the command began
			t.Errorf("the file was written %v ago", time.Since(at))
		}
	})
}
