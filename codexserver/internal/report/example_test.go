package report_test

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A watch reports a turn from its log. Without a folder for snapshots it has the changes of patches.
func Example() {
	log, turn := turnlog.NewStore(turnlog.MaxInMemory).New(), turnlog.NewTurn()
	w := report.New(turn, report.Options{})
	w.Begin(context.Background(), protocol.SessionConfigured{SessionID: "t", Model: "m", Cwd: "/work"}, nil)
	log.Add(turn, "", protocol.PatchApplyBegin{CallID: "1", Changes: map[string]protocol.FileChange{
		"/work/a.go": {Add: &protocol.FileContent{Content: "package a\n"}},
	}})
	log.Add(turn, "", protocol.PatchApplyEnd{CallID: "1", Success: true})
	log.Add(turn, "", protocol.ExecCommandBegin{CallID: "2", Command: []string{"go", "build"}, Cwd: "/work"})
	log.Add(turn, "", protocol.ExecCommandEnd{CallID: "2", ExitCode: 1})
	w.End(nil)
	r := w.Result()
	fmt.Println(r.Status, r.ChangesFrom)
	for _, change := range r.Changes {
		fmt.Println(change.Kind, change.Path, change.By)
	}
	for _, command := range r.Commands {
		fmt.Println(command.Command, *command.ExitCode)
	}
	// Output:
	// completed events
	// add a.go patch
	// go build 1
}
