//go:build systems

package house_test

import (
	"os"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestOtherSystems finds what does not compile for other systems, tests among it. It reads all from source and compiles
// nothing. Of the gateway, whose node needs Linux, it reads what has nothing of Linux below it.
func TestOtherSystems(t *testing.T) {
	gateway := []string{"access", "broker", "jetstore", "link", "metrics", "placement", "settings"}
	for i, name := range gateway {
		gateway[i] = "./internal/" + name
	}
	for _, system := range []string{"darwin", "windows"} {
		for dir, patterns := range map[string][]string{"../..": {"./..."}, "../../codexserver/gateway": gateway} {
			found, err := packages.Load(&packages.Config{
				Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
				Dir:  dir, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"), Tests: dir == "../..",
			}, patterns...)
			if err != nil || len(found) == 0 {
				t.Fatalf("%s: %d packages, error %v", system, len(found), err)
			}
			packages.Visit(found, nil, func(p *packages.Package) {
				for _, err := range p.Errors {
					t.Errorf("%s: %v", system, err)
				}
			})
		}
	}
}
