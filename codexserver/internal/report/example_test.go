package report_test

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A collector watches a turn. Without a folder for snapshots it reports the changes of patches.
func Example() {
	c := report.New(report.Options{})
	c.Begin(context.Background(), protocol.SessionConfigured{SessionID: "t", Model: "m", Cwd: "/work"}, nil)
	c.Event(protocol.PatchApplyBegin{CallID: "1", Changes: map[string]protocol.FileChange{
		"/work/a.go": {Add: &protocol.FileContent{Content: "package a\n"}},
	}})
	c.Event(protocol.PatchApplyEnd{CallID: "1", Success: true})
	c.Event(protocol.ExecCommandBegin{CallID: "2", Command: []string{"go", "build"}, Cwd: "/work"})
	c.Event(protocol.ExecCommandEnd{CallID: "2", ExitCode: 1})
	c.End(nil)
	r := c.Report()
	fmt.Println(r.Status, r.ChangesFrom)
	for _, change := range r.Changes {
		fmt.Println(change.Kind, change.Path, change.Origin)
	}
	for _, command := range r.Commands {
		fmt.Println(command.Shown, command.Exit.Code)
	}
	// Output:
	// completed events
	// add a.go patch
	// go build 1
}
