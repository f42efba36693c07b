package setting_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/setting"
)

func Example() {
	fmt.Println("results of", setting.DefaultResult, "bytes")
	// Output: results of 80000 bytes
}
