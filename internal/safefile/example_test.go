package safefile_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

func Example() {
	dir, err := os.MkdirTemp("", "safefile")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "state")
	if err := safefile.Write(name, []byte("whole"), 0o600); err != nil {
		panic(err)
	}
	text, err := safefile.Read(name, 64)
	fmt.Printf("%s, %v\n", text, err)
	_, err = safefile.Read(dir, 64)
	fmt.Println("a folder can be read:", err == nil)
	// Output:
	// whole, <nil>
	// a folder can be read: false
}
