package decide_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
)

func ExampleExec() {
	in := decide.Input{Policy: "untrusted", Sandbox: "workspace-write", SandboxAvailable: true}
	for _, script := range []string{"ls | head -1", "ls > list"} {
		in.Command = []string{"bash", "-lc", script}
		fmt.Println(script, "asks:", decide.Exec(in).Action == decide.Ask)
	}
	// Output:
	// ls | head -1 asks: false
	// ls > list asks: true
}
