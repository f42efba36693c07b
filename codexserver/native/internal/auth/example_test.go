package auth_test

import (
	"fmt"
	"os"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/auth"
)

// A key is in auth.json, where Codex finds it too.
func Example() {
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	keeper := auth.New(home, nil)
	for _, change := range []func() error{func() error { return keeper.SaveAPIKey("sk-1") }, keeper.Remove} {
		if err := change(); err != nil {
			fmt.Println(err)
		}
		key, err := auth.APIKey(home)
		fmt.Printf("%q %v\n", key, err)
	}
	// Output:
	// "sk-1" <nil>
	// "" <nil>
}
