// Decode reads one type of mcptypes.
package main

import (
	"fmt"
	"os"

	"github.com/codexmcp/codexmcp/mcptypes"
)

func main() {
	var result mcptypes.CallToolResult
	err := mcptypes.Decode([]byte(os.Args[1]), &result)
	fmt.Println(result.IsError, err)
}
