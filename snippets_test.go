package codexmcp_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// typeCheck type-checks a Go block: a whole file, or statements that may use a context named
// ctx and the project's packages by their names.
func typeCheck(t *testing.T, b block) {
	t.Helper()
	all := loaded(t)
	text := b.text
	if !strings.HasPrefix(text, "package ") {
		text = fragment(t, b.text)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, b.at, text, 0)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	config := types.Config{
		Importer: importerFunc(func(path string) (*types.Package, error) {
			if p := all[path]; p != nil {
				return p, nil
			}
			return nil, fmt.Errorf("nothing in the module imports %s", path)
		}),
		Error: func(err error) {
			if !strings.Contains(err.Error(), "declared and not used") { // the rest is the reader's
				t.Error(err)
			}
		},
	}
	config.Check("snippet", fset, []*ast.File{file}, nil) // errors went to config.Error
}

func fragment(t *testing.T, statements string) string {
	var imports strings.Builder
	imports.WriteString("import \"context\"\n")
	for path, p := range exported(t) {
		if strings.Contains(statements, p.Name()+".") {
			fmt.Fprintf(&imports, "import %q\n", module+"/"+path)
		}
	}
	return "package p\n" + imports.String() + "func _(ctx context.Context) {\n" + statements + "}\n"
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
