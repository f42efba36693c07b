package page

import (
	"slices"
	"time"
)

// A Task is something that another process does for a client of its own. The page
// shows it; only that process can decide or stop anything in it.
type Task struct {
	// Thread is the id of its conversation.
	Thread string `json:"thread"`
	// Status is a word for how far it is, such as "working" or "completed".
	Status string `json:"status"`
	// Message says what it does, for a person.
	Message string `json:"message"`
	// Server says which process has it.
	Server string `json:"server"`
	// Began is a Unix time in ms.
	Began int64 `json:"began"`
}

const (
	// taskPace is how often the tasks of other processes are looked at.
	taskPace = 2 * time.Second
	// maxTasks is how many of them are shown.
	maxTasks = 100
)

// lookAtTasks keeps the tasks on the board, while the page is open, until it is
// closed.
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

// showTasks puts the tasks of other processes on the board in place of those before.
func (b *board) showTasks(tasks []Task) {
	shown := make([]Task, min(len(tasks), maxTasks))
	for i := range shown {
		t := tasks[i]
		shown[i] = Task{line(clip(t.Thread, 200)), line(clip(t.Status, 40)), line(clip(t.Message, 500)), line(clip(t.Server, 200)), t.Began}
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
