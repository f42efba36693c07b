//go:build unix

package box_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// bench is a folder with programs. The folder w is writable.
type bench struct {
	t        *testing.T
	top      string
	programs *box.Programs
}

func newBench(t *testing.T) *bench {
	t.Helper()
	top := boxtest.Folder(t)
	b := &bench{t, top, &box.Programs{Temporary: []string{}}}
	boxtest.Lay(t, top, "w/bin/", "w2/", "safe/", "other/")
	b.programs.Add(b.at("w"), b.at("w2"))
	return b
}

func (b *bench) at(name string) string { return filepath.Join(b.top, name) }

// sh runs a script in the folder. Its function program makes a program.
func (b *bench) sh(script string) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "sh", "-ec", `program() { printf '#!/bin/sh\necho %s "$@"\n' "$1" >"$1"; chmod +x "$1"; }; `+script)
	cmd.Dir = b.top
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%s: %v: %s", script, err, out)
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name   string
		lay    string
		search string // a PATH
		find   string
		want   string // "" refuses
	}{
		{"safe", "program safe/git", "safe", "git", "safe/git"},
		{"planted first", "program safe/git; program w/bin/git", "w/bin:safe", "git", "safe/git"},
		{"only planted", "program w/bin/git", "w/bin", "git", ""},
		{"a folder that is a link to a writable one", "program w/bin/git; ln -s ../w/bin safe/bin; program other/git", "safe/bin:other", "git", "other/git"},
		{"a folder that a writable link leads to", "program safe/git; ln -s ../safe w/link; program other/git", "w/link:other", "git", "other/git"},
		{"a link to a writable program", "program w/git; ln -s ../w/git safe/git; program other/git", "safe:other", "git", "other/git"},
		{"a link by way of a writable folder", "program safe/real; ln -s ../safe/real w/hop; ln -s ../w/hop safe/git; program other/git", "safe:other", "git", "other/git"},
		{"a link that leads back out", "program safe/real; ln -s ../w/../safe/real safe/git; program other/git", "safe:other", "git", "other/git"},
		{"a loop of links", "ln -s git safe/git; program other/git", "safe:other", "git", "other/git"},
		{"a relative folder", "program other/git", ".:w/../safe:other", "git", "other/git"},
		{"another name of the folder", "program w/bin/git; program other/git", "w/../w/bin/:other", "git", "other/git"},
		{"by its path", "program safe/git", "", "safe/git", "safe/git"},
		{"by a writable path", "program w/bin/git", "", "w/bin/git", ""},
		{"by the path of a link", "program w/git; ln -s ../w/git safe/git", "", "safe/git", ""},
		{"a moved folder", "program w/bin/git; mv w moved; mkdir w; program other/git", "moved/bin:other", "git", "other/git"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.sh(tt.lay)
			t.Chdir(b.top)
			var path []string
			for folder := range strings.SplitSeq(tt.search, ":") {
				if folder != "." {
					folder = b.top + "/" + folder
				}
				path = append(path, folder)
			}
			got, err := b.programs.Find(tt.find, b.top, strings.Join(path, ":"))
			var refused *box.ProgramError
			if tt.want == "" && !errors.As(err, &refused) || tt.want != "" && (err != nil || got != b.at(tt.want)) {
				t.Errorf("%s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// TestStartAgain starts a program whose folder becomes writable later.
func TestStartAgain(t *testing.T) {
	b := newBench(t)
	b.sh("program safe/tool; ln -s ../safe other/link")
	path, err := b.programs.Find("tool", "", b.at("other/link"))
	must.OK(t, err)
	started := 0
	start := func() error {
		return b.programs.Start(exec.CommandContext(t.Context(), path), func() error { started++; return nil })
	}
	if err := start(); err != nil {
		t.Error(err)
	}
	b.programs.Given(b.at("other"))
	var refused *box.ProgramError
	if err := start(); !errors.As(err, &refused) || started != 1 {
		t.Errorf("%v after %d starts", err, started)
	}
	for path, want := range map[string]bool{"safe/tool": false, "other/link/tool": true, "w/x": true, "safe/missing": true} {
		if got := b.programs.Writable(b.at(path)); got != want {
			t.Errorf("%s is writable: %t", path, got)
		}
	}
	if _, err := b.programs.Find("safe/missing", b.top, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing program: %v", err)
	}
	if _, err := b.programs.Find("missing", b.top, b.at("safe")); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a missing program, by its name: %v", err)
	}
	more := &box.Programs{Temporary: []string{}, More: b.programs.Folders}
	if _, err := more.Find("tool", "", b.at("other/link")); !errors.As(err, &refused) {
		t.Errorf("a folder of More: %v", err)
	}
}

// TestMovedFolders checks that a folder stays writable wherever it is moved, and so does the one that takes its name.
func TestMovedFolders(t *testing.T) {
	b := newBench(t)
	for _, moved := range []string{"first", "second"} {
		b.programs.Add(b.at("w"))
		b.sh("mv w " + moved + "; mkdir w; cd " + moved + "; program tool")
		var refused *box.ProgramError
		if _, err := b.programs.Find(moved+"/tool", b.top, ""); !errors.As(err, &refused) {
			t.Errorf("%s: %v", moved, err)
		}
	}
}

// TestInterpreter starts scripts whose interpreter env would search.
func TestInterpreter(t *testing.T) {
	for _, tt := range []struct {
		name, lay string
		want      string // the output, "" if it is refused
	}{
		{"safe", "printf '#!/usr/bin/env tool\n' >safe/script; program safe/tool", "safe/tool SCRIPT x"},
		{"planted", "printf '#!/usr/bin/env tool\n' >safe/script; program safe/tool; program w/bin/tool", "safe/tool SCRIPT x"},
		{"only planted", "printf '#!/usr/bin/env tool\n' >safe/script; program w/bin/tool", ""},
		{"with words", "printf '#!/usr/bin/env -S tool -y\n' >safe/script; program safe/tool; program w/bin/tool", "safe/tool -y SCRIPT x"},
		{"with a PATH", "printf '#!/usr/bin/env -S PATH=/x tool\n' >safe/script; program safe/tool; mkdir safe/PATH=; program safe/PATH=/x", ""},
		{"with an option", "printf '#!/usr/bin/env -i\n' >safe/script; program safe/tool; cp safe/tool safe/-i", ""},
		{"without a word", "printf '#!/usr/bin/env\n' >safe/script", ""},
		{"a long script", "{ printf '#!/usr/bin/env tool\n'; printf '# %300s\n' x; } >safe/script; program safe/tool; program w/bin/tool", "safe/tool SCRIPT x"},
		{"a binary", "cp /usr/bin/printf safe/script", "x"},
		{"env itself planted", "printf '#!%s/w/bin/env tool\n' \"$PWD\" >safe/script; program safe/tool; cp safe/tool w/bin/env", ""},
		{"planted by its path", "printf '#!%s/w/bin/tool\n' \"$PWD\" >safe/script; program w/bin/tool", ""},
		{"a script that env searches", "printf '#!/usr/bin/env shim\n' >safe/script; printf '#!/usr/bin/env tool\n' >safe/shim; chmod +x safe/shim; program safe/tool; program w/bin/tool", "safe/tool safe/shim SCRIPT x"},
		{"a script by its path", "printf '#!%s/safe/shim\n' \"$PWD\" >safe/script; printf '#!/bin/sh\necho \"$@\"' >safe/shim; chmod +x safe/shim", "SCRIPT x"},
		{"planted behind a script", "printf '#!%s/safe/shim\n' \"$PWD\" >safe/script; printf '#!%s/w/bin/tool\n' \"$PWD\" >safe/shim; chmod +x safe/shim; program w/bin/tool", ""},
		{"env behind a script", "printf '#!%s/safe/shim\n' \"$PWD\" >safe/script; printf '#!/usr/bin/env tool\n' >safe/shim; chmod +x safe/shim; program w/bin/tool; program safe/tool", ""},
		{"itself", "printf '#!%s/safe/script\n' \"$PWD\" >safe/script", ""},
		{"not a script", "program w/bin/tool; program safe/script", "safe/script x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.sh(tt.lay + "; chmod +x safe/script")
			cmd := exec.CommandContext(t.Context(), b.at("safe/script"), "x")
			cmd.Env = []string{"PATH=" + b.at("w/bin") + ":" + b.at("safe") + ":/usr/bin:/bin"}
			var out strings.Builder
			cmd.Stdout = &out
			err := b.programs.Start(cmd, cmd.Start)
			if err == nil {
				err = cmd.Wait()
			}
			got := strings.TrimSpace(strings.ReplaceAll(out.String(), b.at("safe/script"), "SCRIPT"))
			got = strings.ReplaceAll(got, b.top+"/", "")
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestEnviron(t *testing.T) {
	b := newBench(t)
	b.sh("ln -s w/bin link")
	path := strings.Join([]string{b.at("w/bin"), ".", b.at("safe"), b.at("link"), b.at("missing"), "/usr/bin"}, ":")
	env, was := b.programs.Environ([]string{"PATH=/x", "A=b", "PATH=" + path, "C=d", "PATH"})
	if diff := cmp.Diff([]string{"A=b", "C=d", "PATH=" + b.at("safe") + ":/usr/bin"}, env); diff != "" || was != path {
		t.Errorf("%s (-want +got)\n%s", was, diff)
	}
}

// TestGiven checks that a working folder with the user's home does not rule out the user's programs.
func TestGiven(t *testing.T) {
	b := newBench(t)
	t.Setenv("HOME", b.at("home/user"))
	b.sh("mkdir -p home/user/bin home/user/work; program home/user/bin/tool")
	find := func() bool {
		_, err := b.programs.Find("tool", "", b.at("home/user/bin"))
		return err == nil
	}
	for _, folder := range []string{"home/user", "home", "home/user/work"} {
		b.programs.Given(b.at(folder))
		if !find() {
			t.Errorf("given %s, no program is found", folder)
		}
	}
	b.programs.Given("/", "relative")
	b.programs.Add("/")
	if !find() {
		t.Error("given /, no program is found")
	}
	for folder, home := range map[string]string{"safe": "", "safe2": b.at("none")} {
		b.sh("mkdir -p " + folder)
		t.Setenv("HOME", home)
		b.programs.Given(b.at(folder))
		if !b.programs.Writable(b.at(folder)) {
			t.Errorf("with the home %q a working folder is not recorded", home)
		}
	}
	b.programs.Add(b.at("home/user"))
	if find() {
		t.Error("a program is found in a writable folder")
	}
}

// TestTemporaryFolders checks that a program in a folder for temporary files starts only if
// the user has named it by its path.
func TestTemporaryFolders(t *testing.T) {
	b := newBench(t)
	b.sh("program safe/tool")
	programs := &box.Programs{Temporary: []string{b.top}}
	var refused *box.ProgramError
	if _, err := programs.Find("tool", "", b.at("safe")); !errors.As(err, &refused) {
		t.Errorf("by its name: %v", err)
	}
	for _, add := range []string{"", b.top} { // commands can write most such folders
		programs.Add(add)
		if _, err := programs.Find(b.at("safe/tool"), b.top, ""); err != nil {
			t.Errorf("by its path: %v", err)
		}
	}
	programs.Add(b.at("safe"))
	if _, err := programs.Find(b.at("safe/tool"), "", ""); !errors.As(err, &refused) {
		t.Errorf("in a working folder there: %v", err)
	}
	t.Setenv("TMPDIR", b.at("other"))
	for _, system := range []string{"/tmp", "/var/tmp", "/dev/shm", b.at("other")} {
		dir, err := os.MkdirTemp(system, "programs")
		if errors.Is(err, fs.ErrNotExist) {
			continue // not every system has all
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		must.OK(t, errors.Join(err, os.WriteFile(filepath.Join(dir, "tool"), nil, 0o700)))
		if _, err := (&box.Programs{}).Find("tool", "", dir); !errors.As(err, &refused) {
			t.Errorf("in %s: %v", system, err)
		}
	}
}
