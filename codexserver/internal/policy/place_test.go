//go:build unix

package policy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
)

func Example() {
	p := policy.Place{Dir: "/nowhere", Env: []string{"PATH=/usr/bin:/bin"}, Roots: []string{"/nowhere"}}
	for _, argv := range [][]string{{"ls", "-l"}, {"./ls"}, {"sh", "-c", "ls && $X"}} {
		_, yes := p.Replaceable(argv)
		fmt.Println(argv, yes)
	}
	// Output:
	// [ls -l] false
	// [./ls] true
	// [sh -c ls && $X] true
}

func TestReplaceable(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(base, "work")
	for _, file := range []string{"work/own", "work/venv/bin/tool", "work/data", "work/shells/sh", "system/tool", "system/other", "system/sh",
		"system/env", "system/nice", "system/nohup", "system/timeout", "system/xargs", "system/find"} {
		path, mode := filepath.Join(base, file), os.FileMode(0o700)
		if file == "work/data" {
			mode = 0o600
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"alias":            "work",                     // the root by a second name
		"system/into":      filepath.Join(work, "own"), // a link into the root
		"system/through":   "../work/out",              // a link of the root on the way to a program outside
		"work/out":         filepath.Join(base, "system/other"),
		"system/loop":      "loop",
		"system/elsewhere": "other",
	} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.MkdirAll(filepath.Join(base, "linked"), 0o777), os.Symlink("../work/data", filepath.Join(base, "linked/.bash_profile")),
		os.MkdirAll(filepath.Join(base, "own"), 0o777), os.WriteFile(filepath.Join(base, "own/.bash_profile"), nil, 0o600),
		os.MkdirAll(filepath.Join(work, "bare"), 0o777),
		os.MkdirAll(filepath.Join(work, "home"), 0o777), os.WriteFile(filepath.Join(work, "home/.zshenv"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for home, want := range map[string]bool{
		"linked": true, "own": false, "none": false, "work/bare": false, "work/home": true, "alias/home": true,
	} {
		p := policy.Place{Dir: work, Env: []string{"PATH=" + filepath.Join(base, "system"), "HOME=" + filepath.Join(base, home)}, Roots: []string{work}}
		if _, yes := p.Replaceable([]string{"sh", "-lc", "tool"}); yes != want {
			t.Errorf("with a profile in %s: %t", home, yes)
		}
		if _, yes := p.Replaceable([]string{"tool"}); yes {
			t.Errorf("without a shell, with a profile in %s: %t", home, yes)
		}
	}
	system, venv := filepath.Join(base, "system"), filepath.Join(work, "venv/bin")
	for _, tt := range []struct {
		name, path, dir string
		roots           []string
		argv            []string
		want            string // "no", "not found", or the program below base
	}{
		{"a program of the system", system, work, []string{work}, []string{"tool"}, "no"},
		{"by its path", system, work, []string{work}, []string{filepath.Join(base, "system/tool")}, "no"},
		{"through a link of the system", system, work, []string{work}, []string{"elsewhere"}, "no"},
		{"a root that is missing", system, work, []string{filepath.Join(base, "none")}, []string{"tool"}, "no"},
		{"of the workspace", system, work, []string{work}, []string{"./own"}, "work/own"},
		{"of the workspace, by its path", system, work, []string{work}, []string{filepath.Join(work, "own")}, "work/own"},
		{"by another name of the workspace", system, work, []string{work}, []string{filepath.Join(base, "alias/own")}, "alias/own"},
		{"in a root by another name", system, work, []string{filepath.Join(base, "alias")}, []string{"./own"}, "work/own"},
		{"from another folder", system, base, []string{work}, []string{"work/own"}, "work/own"},
		{"in PATH", venv + ":" + system, work, []string{work}, []string{"tool"}, "work/venv/bin/tool"},
		{"later in PATH", system + ":" + venv, work, []string{work}, []string{"tool"}, "no"},
		{"a link into the workspace", system, work, []string{work}, []string{"into"}, "system/into"},
		{"a link of the workspace on the way", system, work, []string{work}, []string{"through"}, "system/through"},
		{"everything is a root", system, work, []string{"/"}, []string{"tool"}, "system/tool"},
		{"missing", system, work, []string{work}, []string{"none"}, "not found"},
		{"no program", system, work, []string{work}, []string{"./data"}, "not found"},
		{"a circle of links", system, work, []string{work}, []string{"loop"}, "not found"},
		{"up and away", system, work, []string{work}, []string{"../system/tool"}, "not found"},
		{"a script", system, work, []string{work}, []string{"sh", "-c", "tool && other"}, "no"},
		{"a script with one of the workspace", system, work, []string{work}, []string{"sh", "-c", "tool && ./own"}, "work/own"},
		{"a script that computes one", system, work, []string{work}, []string{"sh", "-c", "$X"}, "not found"},
		{"a script where the current folder is in PATH", system + ":", work, []string{work}, []string{"sh", "-c", "tool"}, "not found"},
		{"a file for a shell", system, work, []string{work}, []string{"sh", "own"}, "not found"},

		{"a starter of a program of the system", system, work, []string{work}, []string{"env", "A=1", "tool", "./data", "-x"}, "no"},
		{"a starter", system, work, []string{work}, []string{"env", "A=1", "./own"}, "not found"},
		{"a starter by its path", system, work, []string{work}, []string{filepath.Join(system, "env"), "./own"}, "not found"},
		{"starters", system, work, []string{work}, []string{"timeout", "5", "nice", "-n", "3", "./own"}, "not found"},
		{"a starter in PATH", venv + ":" + system, work, []string{work}, []string{"nohup", "tool"}, "not found"},
		{"a starter in a script", system, work, []string{work}, []string{"sh", "-c", "tool; env ./own"}, "not found"},
		{"a starter of words in a word", system, work, []string{work}, []string{"env", "-S./own x"}, "not found"},
		{"a starter of a shell", system, work, []string{work}, []string{"nice", "sh", "own"}, "not found"},
		{"any program", system, work, []string{work}, []string{"other", "--start='./own x'"}, "not found"},
		{"a file that is no program", system, work, []string{work}, []string{"other", "./data"}, "no"},
		{"a script with a function", system, work, []string{work}, []string{"sh", "-c", "f() { tool; }; f"}, "not found"},
		{"a script that loads another", system, work, []string{work}, []string{"sh", "-c", ". ./data; tool"}, "not found"},
		{"a script that changes the folder", system, work, []string{work}, []string{"sh", "-c", "cd /; tool"}, "no"},
		{"a script that changes the folder of a program", system, base, []string{work}, []string{"sh", "-c", "cd work; system/tool"}, "not found"},
		{"a program cd", venv + ":" + system, work, []string{work}, []string{"cd"}, "not found"},
		{"a shell of the workspace", filepath.Join(work, "shells") + ":" + system, work, []string{work}, []string{"sh", "-c", "tool"}, "work/shells/sh"},
		{"a shell in short options", system, work, []string{work}, []string{"other", "-fsh"}, "not found"},
		{"more words than are counted", system, work, []string{work}, append([]string{"tool"}, make([]string, 1000)...), "not found"},
		{"more words than are checked", system, work, []string{work}, []string{"tool", strings.Repeat("-", 1000)}, "not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policy.Place{Dir: tt.dir, Env: []string{"PATH=/none", "PATH=" + tt.path}, Roots: tt.roots}
			path, yes := p.Replaceable(tt.argv)
			got := "no"
			if yes {
				got = "not found"
			}
			if path != "" {
				if got, err = filepath.Rel(base, path); err != nil {
					t.Fatal(err)
				}
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestSeparators checks after which characters a program may take the rest of a word for a name,
// and before which.
func TestSeparators(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"work/own", "system/tool", "system/sh"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(base, file)), 0o777), os.WriteFile(filepath.Join(base, file), nil, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	p := policy.Place{Dir: base + "/work", Env: []string{"PATH=" + base + "/system"}, Roots: []string{base + "/work"}}
	for c := range rune(0x80) {
		name := strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./", c)
		for word, want := range map[string]bool{
			"./own" + string(c) + "x": !name,
			"x" + string(c) + "sh":    !name || c == '/',
			// What follows a short option may be its value, up to a separator.
			"-" + string(c) + "xsh": name,
		} {
			if _, yes := p.Replaceable([]string{"tool", word}); yes != want {
				t.Errorf("%q: %t", word, yes)
			}
		}
	}
	if _, yes := p.Replaceable([]string{"tool", "--xsh"}); yes {
		t.Error("a long option has no value within")
	}
}

// TestLeadsThrough has paths that cannot be followed.
func TestLeadsThrough(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{30, 100} { // links that lead to each other, one by one
		for i := range n {
			to := fmt.Sprintf("%d-%d", n, i+1)
			if i == n-1 {
				to = base
			}
			if err := os.Symlink(to, filepath.Join(base, fmt.Sprintf("%d-%d", n, i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for path, want := range map[string]bool{
		"relative": true, strings.TrimPrefix(base, "/"): true, base + "/none": true, base: false, base + "/././/": false, base + "/30-0": false, base + "/100-0": true,
	} {
		if got := policy.LeadsThrough(path, nil); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}
