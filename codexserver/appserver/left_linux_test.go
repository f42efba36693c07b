package appserver_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// left returns the processes that the test's app-server left behind.
func left(t *testing.T) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		env, _ := os.ReadFile(file) // nothing of a process that has ended
		if bytes.Contains(env, []byte(ofTest+"="+os.Getenv(ofTest)+"\x00")) {
			found = append(found, filepath.Dir(file))
		}
	}
	return found
}
