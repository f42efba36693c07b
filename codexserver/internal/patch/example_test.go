package patch_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
)

func Example() {
	dir, err := os.MkdirTemp("", "patch")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	p, err := patch.Parse(`*** Begin Patch
*** Add File: greeting.txt
+hello
*** End Patch`)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := p.Plan(patch.Folder{Path: dir}, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := plan.Apply(); err != nil {
		fmt.Println(err)
		return
	}
	content, err := os.ReadFile(filepath.Join(dir, "greeting.txt"))
	fmt.Printf("%s%s%v\n", plan.Summary(), content, err)
	// Output:
	// Success. Updated the following files:
	// A greeting.txt
	// hello
	// <nil>
}
