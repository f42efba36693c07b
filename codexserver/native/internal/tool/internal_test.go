package tool

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestSeen remembers so many files, by their content.
func TestSeen(t *testing.T) {
	b := &Toolbox{seen: map[string][sha256.Size]byte{}}
	for i := range maxSeen {
		b.sees(fmt.Sprint(i), "a")
	}
	for _, path := range []string{"0", fmt.Sprint(maxSeen - 1), "none"} {
		want := path != "none"
		if seen, fresh := b.knows(path, "a"); seen != want || fresh != want {
			t.Errorf("%s: seen %t, fresh %t, want %t", path, seen, fresh, want)
		}
	}
	if seen, fresh := b.knows("0", "b"); !seen || fresh {
		t.Errorf("another content: seen %t, fresh %t", seen, fresh)
	}
	b.sees("one more", "a")
	must.Equal(t, "files after one more", 1, len(b.seen))
}

// TestLineShellOfWindows checks which shell runs lines there, and that it is not one of another system.
func TestLineShellOfWindows(t *testing.T) {
	for programs, want := range map[string][]string{
		"ps/pwsh git/bash":                    {"pwsh", "-NoProfile", "-Command"},
		"System32/bash System32/powershell":   {"powershell", "-NoProfile", "-Command"},
		"git/bash":                            {"bash", "-lc"},
		"System32/bash":                       {"cmd", "/c"},
		"WindowsApps/bash System32/sh git/sh": {"cmd", "/c"},
		"":                                    {"cmd", "/c"},
	} {
		top := t.TempDir()
		var folders []string
		for program := range strings.FieldsSeq(programs) {
			path := filepath.Join(top, program)
			if runtime.GOOS == "windows" {
				path += ".exe"
			}
			must.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
			must.OK(t, testenv.WriteProgram(path, nil))
			folders = append(folders, filepath.Dir(path))
		}
		path := "PATH=" + strings.Join(folders, string(filepath.ListSeparator))
		must.Equal(t, fmt.Sprintf("with %q", programs), want, lineShell("windows", []string{path}))
	}
}
