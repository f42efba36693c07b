//go:build unix

package box_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
)

func ExamplePrograms() {
	var programs box.Programs
	programs.Add("/usr/local/share")
	fmt.Println(programs.Path("/usr/bin:/usr/local/share:bin"))
	// Output: /usr/bin
}
