package safefile_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// TestLog appends to a log with two writers in each of two logs, as two processes do: it is renamed when it is
// full, no line is torn, and the newest lines are kept.
func TestLog(t *testing.T) {
	const lines, most = 200, 4096
	path := filepath.Join(t.TempDir(), "log")
	var writing sync.WaitGroup
	var l *safefile.Log
	for who := range 4 {
		if who%2 == 0 {
			var err error
			if l, err = safefile.OpenLog(path, most); err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		l := l
		writing.Go(func() {
			for n := range lines {
				if _, err := fmt.Fprintf(l, "%d %d %s.\n", who, n, strings.Repeat("x", n%97)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	var all []byte
	for _, name := range []string{path + ".1", path} {
		data, err := os.ReadFile(name)
		if err != nil || len(data) > most {
			t.Errorf("%s has %d bytes, %v", name, len(data), err)
		}
		all = append(all, data...)
	}
	last := map[string]int{}
	for line := range bytes.Lines(all) {
		var who, n int
		if got, err := fmt.Sscanf(string(line), "%d %d ", &who, &n); got != 2 || err != nil || !bytes.HasSuffix(line, []byte(".\n")) {
			t.Fatalf("torn: %q", line)
		}
		if before, ok := last[fmt.Sprint(who)]; ok && n != before+1 {
			t.Errorf("writer %d: line %d follows line %d", who, n, before)
		}
		last[fmt.Sprint(who)] = n
	}
	for who, n := range last {
		if n != lines-1 {
			t.Errorf("the last line of writer %s is %d", who, n)
		}
	}
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 2 {
		t.Errorf("files: %v, %v", left, err)
	}
}

// TestLogSize fills a log to its last byte.
func TestLogSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := safefile.OpenLog(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i, want := range []string{"", "", "12345\n78\n\n"} {
		if _, err := l.Write([]byte([]string{"12345\n", "78\n\n", "longer than all\n"}[i])); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path + ".1"); string(got) != want || err != nil && want != "" {
			t.Errorf("after write %d: %q, %v", i, got, err)
		}
	}
}

// TestLogTorn appends to a log whose last line was cut, as when the system stops while it is written.
func TestLogTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("one\ntw"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := safefile.OpenLog(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, write := range []func([]byte) (int, error){l.Write, l.WriteSync} {
		if n, err := write([]byte("three\n")); n != 6 || err != nil {
			t.Error(n, err)
		}
	}
	if got, err := os.ReadFile(path); string(got) != "one\ntw\nthree\nthree\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
