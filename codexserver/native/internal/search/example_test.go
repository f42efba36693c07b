package search_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/search"
)

// The letters of a query occur in a path in their order. Those at the beginning of a word score
// higher.
func ExampleFiles() {
	root, err := os.MkdirTemp("", "root")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	for _, name := range []string{"read_me.go", "remove.go", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			fmt.Println(err)
		}
	}
	for _, f := range search.Files(context.Background(), "rm", []string{root}) {
		fmt.Println(f.Path)
	}
	// Output:
	// read_me.go
	// remove.go
}
