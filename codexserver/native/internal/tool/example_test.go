//go:build unix

package tool_test

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func Example() {
	var processes run.Starter
	defer processes.Close()
	toolbox := tool.New(tool.Options{Environ: []string{"PATH=/usr/bin:/bin"}, Processes: &processes, Sandbox: &fakeSandbox{missing: box.ErrUnavailable}})
	turn := toolbox.Turn(tool.Context{
		Cwd: "/", ApprovalPolicy: protocol.ApprovalNever, Host: &host{},
		SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly},
	})
	for _, arguments := range []string{`{"command":7}`, `{"command":["rm","x"]}`} {
		res, err := turn.Call(context.Background(), tool.Call{ID: "1", Name: "shell", Arguments: arguments})
		fmt.Printf("%.60s %v\n", res.Output, err)
	}
	// Output:
	// failed to parse function arguments: command: want an array,  <nil>
	// not run: there is no sandbox on this system, and the approva <nil>
}
