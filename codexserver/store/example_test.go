package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/store"
)

// A home is copied to another disk, and from there to another machine.
func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	home := filepath.Join(dir, "home")
	first, err := store.OpenDir(filepath.Join(dir, "disk"), 1)
	if err != nil {
		panic(err)
	}
	m, err := store.Open(context.Background(), home, first, nil)
	if err != nil {
		panic(err)
	}
	// A server with codexserver.Options.Store and native.Options.Store, for example, accepts a
	// rule.
	rules := filepath.Join(home, "codex-mcp", "rules.json")
	fmt.Println(m.Put(rules, []byte("{}")), m.Ready(context.Background()))

	// The machine dies. Its successor has a higher epoch.
	second, err := store.OpenDir(filepath.Join(dir, "disk"), 2)
	if err != nil {
		panic(err)
	}
	elsewhere := filepath.Join(dir, "other home")
	if _, err := store.Open(context.Background(), elsewhere, second, nil); err != nil {
		panic(err)
	}
	text, err := os.ReadFile(filepath.Join(elsewhere, "codex-mcp", "rules.json"))
	fmt.Println(string(text), err)
	// What was not dead can write no more.
	fmt.Println(m.Ready(context.Background()))
	// Output:
	// <nil> <nil>
	// {} <nil>
	// another server has taken over this store
}
