//go:build unix

package sandbox_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

func ExamplePrograms() {
	var programs sandbox.Programs
	programs.Add("/usr/local/share")
	fmt.Println(programs.Path("/usr/bin:/usr/local/share:bin"))
	// Output: /usr/bin
}
