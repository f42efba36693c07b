package main

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// packageFiles parses the package without its tests.
func packageFiles(t *testing.T) (*token.FileSet, []*ast.File) {
	names, err := filepath.Glob(filepath.Join(projectPackage, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return fset, files
}

// TestImports checks that the package imports only the standard library and one JSON
// package.
func TestImports(t *testing.T) {
	_, files := packageFiles(t)
	for _, f := range files {
		for _, i := range f.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(path, ".") && !strings.HasPrefix(path, "github.com/go-json-experiment/json") && !strings.HasPrefix(path, "github.com/codexmcp/codexmcp/mcptypes/") {
				t.Errorf("the package imports %s", path)
			}
		}
	}
}

// TestEveryNameIsDocumented checks that every name in go doc has a comment.
func TestEveryNameIsDocumented(t *testing.T) {
	fset, files := packageFiles(t)
	p, err := doc.NewFromFiles(fset, files, "mcptypes")
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	check := func(name, text string) {
		if names++; strings.TrimSpace(text) == "" {
			t.Errorf("%s has no comment", name)
		}
	}
	checkValues := func(values []*doc.Value) {
		for _, v := range values {
			for _, s := range v.Decl.Specs {
				spec := s.(*ast.ValueSpec)
				text := spec.Doc.Text()
				if len(v.Decl.Specs) == 1 {
					text += v.Doc
				}
				check(spec.Names[0].Name, text)
			}
		}
	}
	checkFuncs := func(prefix string, funcs []*doc.Func) {
		for _, f := range funcs {
			check(prefix+f.Name, f.Doc)
		}
	}
	check("the package", p.Doc)
	checkValues(slices.Concat(p.Consts, p.Vars))
	checkFuncs("", p.Funcs)
	for _, typ := range p.Types {
		check(typ.Name, typ.Doc)
		checkValues(slices.Concat(typ.Consts, typ.Vars))
		checkFuncs("", typ.Funcs)
		checkFuncs(typ.Name+".", typ.Methods)
		if s, ok := typ.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					if name.IsExported() {
						check(typ.Name+"."+name.Name, f.Doc.Text()+f.Comment.Text())
					}
				}
			}
		}
	}
	if names < 700 {
		t.Errorf("only %d names found", names)
	}
}
