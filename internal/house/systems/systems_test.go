//go:build systems

// Package systems_test checks the types of the code for the systems that the gate does not run on.
package systems_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestSystems checks that the packages and their tests compile for the systems that the gate does
// not run on. It checks their types from source: to compile them takes many times as long.
func TestSystems(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"darwin/arm64", "windows/amd64", "linux/arm64"} {
		goos, goarch, _ := strings.Cut(system, "/")
		for _, dir := range []string{".", "codexserver/gateway"} {
			if dir != "." && goos != "linux" {
				continue // the gateway is for Linux
			}
			t.Run(goos+"/"+dir, func(t *testing.T) {
				roots, err := packages.Load(&packages.Config{
					Mode: packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
						packages.NeedTypes | packages.NeedSyntax | packages.NeedModule,
					Dir:   filepath.Join(root, dir),
					Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
					Tests: true,
					ParseFile: func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
						file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
						if file != nil && !strings.HasPrefix(name, root) {
							for _, d := range file.Decls {
								if f, ok := d.(*ast.FuncDecl); ok {
									f.Body = nil
								}
							}
						}
						return file, err
					},
				}, "./...")
				if err != nil {
					t.Fatal(err)
				}
				tests := 0
				packages.Visit(roots, nil, func(p *packages.Package) {
					if p.Module == nil || !p.Module.Main || strings.HasSuffix(p.ID, ".test") {
						return // the bodies of its functions are not read
					}
					if strings.HasSuffix(p.ID, ".test]") {
						tests++
					}
					for _, e := range p.Errors {
						t.Error(e)
					}
				})
				if tests < 5 {
					t.Errorf("only %d packages with tests", tests)
				}
			})
		}
	}
}
