package taskfile_test

import (
	"fmt"
	"os"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
)

// A task that a server did not finish is seen as lost by the next one.
func Example() {
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	first, next := taskfile.New(home, nil), taskfile.New(home, nil)
	defer next.Close()
	id, err := taskfile.NewID("0199a213-81c0-7800-8aa1-bbab2a035a53")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := first.Create(taskfile.Task{ID: id, Tool: "codex", Status: taskfile.Working}); err != nil {
		fmt.Println(err)
		return
	}
	_, owner, err := next.Get(id)
	fmt.Println(owner == taskfile.Gone, err)
	first.Close()
	task, owner, err := next.Get(id)
	fmt.Println(owner == taskfile.Gone, err, task.Status, task.Thread())
	// Output:
	// false <nil>
	// true <nil> working 0199a213-81c0-7800-8aa1-bbab2a035a53
}
