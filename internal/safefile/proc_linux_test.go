package safefile_test

import (
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

func TestInProc(t *testing.T) {
	for path, want := range map[string]bool{"/proc/self/status": true, "/proc": true, t.TempDir(): false, "/sys": false} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := safefile.InProc(f); got != want || err != nil {
			t.Errorf("%s: %v, %v", path, got, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got, err := safefile.InProc(f); got || err == nil {
			t.Errorf("%s, closed: %v, %v", path, got, err)
		}
	}
}
