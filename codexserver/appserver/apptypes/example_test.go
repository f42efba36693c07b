package apptypes_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/go-json-experiment/json"
)

// A question about a command, with a member that this version of the package does not know.
func Example() {
	const params = `{"threadId":"t1","turnId":"r1","itemId":"i1","startedAtMs":1,
		"command":"/bin/sh -c 'make install'","cwd":"/work","asRoot":true}`
	var q apptypes.CommandApproval
	if err := json.Unmarshal([]byte(params), &q); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(apptypes.AskItemCommandExecutionRequestApproval)
	fmt.Println(q.Command, "in", q.Cwd)
	fmt.Println("not shown above:", q.Unknown)

	// Output:
	// item/commandExecution/requestApproval
	// /bin/sh -c 'make install' in /work
	// not shown above: {"asRoot":true}
}
