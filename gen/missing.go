package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// missing returns an error that says which names of the package in dir are used in the generated files, and are
// declared neither there nor in other files of dir. Most are of types that are written by hand in the base package.
func missing(dir string, files map[string][]byte) error {
	sources := make(map[string]any) // nil is read from the file
	for name, text := range files {
		sources[name] = text
	}
	written, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, path := range written {
		if name := filepath.Base(path); !strings.HasPrefix(name, "zz_") {
			sources[name] = nil
		}
	}
	fset, parsed := token.NewFileSet(), []*ast.File(nil)
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), sources[name], parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
	}
	names := make(map[string]bool)
	check := types.Config{
		Importer: noImports{}, // of what is imported nothing is missing
		Error: func(err error) {
			wrong, _ := errors.AsType[types.Error](err)
			if name, ok := strings.CutPrefix(wrong.Msg, "undefined: "); ok && token.IsIdentifier(name) {
				names[name] = true
			}
		},
	}
	_, _ = check.Check(dir, fset, parsed, nil) // the errors have come to Error
	if len(names) > 0 {
		return fmt.Errorf("%s lacks %s: -base takes them from the package above, or write them by hand", dir,
			strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	return nil
}

// noImports imports no package. What is used of one is then not checked.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not looked at") }
