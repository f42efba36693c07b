//go:build unix

package trusted_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/trusted"
)

func Example() {
	var programs trusted.Programs
	programs.Add("/usr/local/share")
	fmt.Println(programs.Path("/usr/bin:/usr/local/share:bin"))
	// Output: /usr/bin
}
