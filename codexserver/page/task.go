package page

import (
	"slices"
	"time"

	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

// A Task is a task that another process runs for its own client. The page shows it. Only
// that process can answer its questions or stop it.
type Task struct {
	// Thread is the id of the task's conversation.
	Thread string `json:"thread"`
	// Status is the task's status, such as "working" or "completed".
	Status string `json:"status"`
	// Message describes what the task does now.
	Message string `json:"message"`
	// Server names the process that runs it.
	Server string `json:"server"`
	// Began is a Unix time in ms.
	Began int64 `json:"began"`
}

const (
	// taskPace is how often the page reads the tasks of other processes.
	taskPace = 2 * time.Second
	// maxTasks is how many of them the page shows.
	maxTasks = 100
)

// lookAtTasks updates the tasks on the board while a browser shows the page. It returns
// when the page is closed.
func (p *Page) lookAtTasks() {
	ticker := time.NewTicker(taskPace)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
			if p.Watched() {
				p.board.showTasks(p.options.Tasks())
			}
		}
	}
}

// showTasks replaces the tasks of other processes on the board.
func (b *board) showTasks(tasks []Task) {
	shown := make([]Task, min(len(tasks), maxTasks))
	for i := range shown {
		t := tasks[i]
		shown[i] = Task{line(utf8text.Brief(t.Thread, 200)), line(utf8text.Brief(t.Status, 40)), line(utf8text.Brief(t.Message, 500)), line(utf8text.Brief(t.Server, 200)), t.Began}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Equal(shown, b.tasks) {
		return
	}
	b.tasks = shown
	b.revision++
	b.tasksRevision = b.revision
	b.wake()
}
