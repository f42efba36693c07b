package permission_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
)

// A profile lets commands write in the folder of the conversation, but for what it denies.
func ExampleProfile_Resolve() {
	p := permission.Profile{Name: "the profile work", Whole: true, Rules: []permission.Rule{
		{Path: permission.Root, Access: permission.Read},
		{Path: permission.Workspace, Access: permission.Write},
		{Path: permission.Workspace + "/**/.env", Access: permission.Deny},
	}}
	set := p.Resolve(permission.Places{Cwd: "/work"})
	for _, path := range []string{"/etc/hosts", "/work/main.go", "/work/.git/config", "/work/api/.env"} {
		fmt.Println(path, set.Of(path))
	}
	fmt.Println(set.Check("/work/api/.env"))
	// Output:
	// /etc/hosts read
	// /work/main.go write
	// /work/.git/config read
	// /work/api/.env deny
	// /work/api/.env: denied by the profile work
}
