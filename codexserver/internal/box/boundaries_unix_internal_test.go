//go:build unix

package box

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestInterpreterBoundary reads the first line of a script as far as the system does, and as many words of env as it needs.
func TestInterpreterBoundary(t *testing.T) {
	long := func(n int) string { return "/" + strings.Repeat("x", n-1-len("#!")) }
	for _, tt := range []struct {
		head, program, searched string
		args                    int
		unclear                 bool
	}{
		{"", "", "", 0, false},
		{"#!", "", "", 0, false},
		{"#!/bin/sh", "/bin/sh", "", 0, false},
		{"#!" + long(maxLine-1), long(maxLine - 1), "", 0, false},
		{"#!" + long(maxLine), long(maxLine), "", 0, false},
		{"#!" + long(maxLine+1), long(maxLine), "", 0, false},
		{"#!/usr/bin/env", "/usr/bin/env", "", 0, true},
		{"#!/usr/bin/env -S", "/usr/bin/env", "", 0, true},
		{"#!/usr/bin/env node", "/usr/bin/env", "node", 0, false},
		{"#!/usr/bin/env -S node", "/usr/bin/env", "node", 0, false},
		{"#!/usr/bin/env -S node -x", "/usr/bin/env", "node", 1, false},
	} {
		file := filepath.Join(t.TempDir(), "script")
		must.OK(t, os.WriteFile(file, []byte(tt.head), 0o600))
		program, searched, args, err := interpreterOf(file)
		if program != tt.program || searched != tt.searched || len(args) != tt.args || (err != nil) != tt.unclear {
			t.Errorf("%q: %q, %q, %q, %v", tt.head, program, searched, args, err)
		}
	}
}

// TestInterpretersBoundary starts scripts that are the interpreters of each other, as many as the system allows, and one
// more.
func TestInterpretersBoundary(t *testing.T) {
	dir := t.TempDir()
	file := func(n int) string { return filepath.Join(dir, fmt.Sprint(n)) }
	must.OK(t, testenv.WriteProgram(file(0), []byte("\x7fELF")))
	for n := range maxScripts + 1 {
		must.OK(t, testenv.WriteProgram(file(n+1), []byte("#!"+file(n)+"\n")))
	}
	for n, fits := range map[int]bool{0: true, 1: true, maxScripts - 1: true, maxScripts: true, maxScripts + 1: false} {
		if _, err := (&starts{dir: dir}).program(file(n), maxScripts); (err == nil) != fits {
			t.Errorf("%d scripts: %v", n, err)
		}
	}
}

// TestPlantedBoundary takes each program of a folder for one that a command names if it has more words than are searched.
func TestPlantedBoundary(t *testing.T) {
	dir := t.TempDir()
	p := &Programs{More: func() []string { return []string{dir} }, Temporary: []string{}}
	for n, all := range map[int]bool{maxWords - 1: false, maxWords: false, maxWords + 1: true} {
		got := p.Planted(slices.Repeat([]string{"x"}, n), dir, []string{"PATH=" + dir})
		if slices.Contains(got, filepath.Join(dir, "*")) != all {
			t.Errorf("%d words: %q", n, got)
		}
	}
}
