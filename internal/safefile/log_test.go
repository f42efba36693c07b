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

// TestLog appends to a log with two writers, as two processes do: it is renamed when it is
// full, no line is torn, and the newest lines are kept.
func TestLog(t *testing.T) {
	const lines, most = 200, 4096
	path := filepath.Join(t.TempDir(), "log")
	var writing sync.WaitGroup
	for who := range 2 {
		l, err := safefile.OpenLog(path, most)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
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
