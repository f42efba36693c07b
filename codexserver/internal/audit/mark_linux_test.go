package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// TestMarks lets records end that share an open file, as those of workers do. None of their marks stays.
func TestMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := safefile.OpenLog(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stays := audit.On(file)
	write(t, stays, 0, 1)
	for i := range 3 {
		l := audit.On(file)
		write(t, l, i+1, i+2)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := locks(t, path); got != 1 {
		t.Errorf("%d marks, want 1", got)
	}
	if err := stays.Close(); err != nil {
		t.Fatal(err)
	}
	if got := locks(t, path); got != 0 {
		t.Errorf("%d marks after the end of all", got)
	}
}

// locks returns how many locks a file has.
func locks(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(all), fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino))
}
