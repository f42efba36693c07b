package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// pkg is a package with its mutants.
type pkg struct {
	path    string // in the module
	dir     string
	name    string
	files   map[string]string // the changed sources, by file
	mutants []*mutant
	short   bool // whether its tests run small
}

// mutant is one small change.
type mutant struct {
	id   int // in the package, from 1
	name string
	line int
	fate fate
}

// fate is what became of a mutant.
type fate int

const (
	survived fate = iota
	unreached
	killed
	timedOut
	fates
)

// load finds the mutants of the packages, with more also those of limits and errors.
func load(patterns []string, more bool) ([]*pkg, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedModule,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var all []*pkg
	for _, l := range loaded {
		for _, e := range l.Errors {
			return nil, errors.New(e.Error())
		}
		if l.Module == nil || len(l.CompiledGoFiles) == 0 {
			return nil, fmt.Errorf("%s is no package of a module", l.PkgPath)
		}
		p := &pkg{
			path:  strings.TrimPrefix(l.PkgPath, l.Module.Path+"/"),
			dir:   filepath.Dir(l.CompiledGoFiles[0]),
			name:  l.Name,
			files: map[string]string{},
		}
		names := map[string]int{}
		for i, syntax := range l.Syntax {
			file := l.CompiledGoFiles[i]
			source, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			f := &sourceFile{pkg: p, base: filepath.Base(file), source: string(source), syntax: syntax, loaded: l, names: names, more: more}
			p.files[file] = f.mutate()
		}
		all = append(all, p)
	}
	return all, nil
}
