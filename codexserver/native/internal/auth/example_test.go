package auth_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/auth"
)

// A key is in auth.json, where Codex puts it.
func Example() {
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	if err := os.WriteFile(filepath.Join(home, "auth.json"), []byte(`{"OPENAI_API_KEY": "sk-1"}`), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(auth.Read(home))
	fmt.Println(auth.Remove(home))
	fmt.Println(auth.Read(home))
	// Output:
	// {apikey sk-1} <nil>
	// <nil>
	// { } <nil>
}
