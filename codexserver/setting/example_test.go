package setting_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/setting"
)

func Example() {
	fmt.Println("stuck after", setting.DefaultStall)
	// Output: stuck after 5m0s
}
