package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestIndexWithoutItsPart copies no index whose shared part cannot be linked: git would read it without that.
func TestIndexWithoutItsPart(t *testing.T) {
	m := &mirror{gitDir: t.TempDir(), scratch: t.TempDir()}
	for _, name := range []string{"index", "sharedindex.1"} {
		must.OK(t, os.WriteFile(filepath.Join(m.gitDir, name), []byte("x"), 0o600))
	}
	index := filepath.Join(m.scratch, "index")
	if _, err := m.copyIndex(); err == nil || exists(index) { // there is no folder for the link
		t.Errorf("%v, and the index is written: %t", err, exists(index))
	}
	must.OK(t, os.Mkdir(m.folder(), 0o700))
	if _, err := m.copyIndex(); err != nil || !exists(index) {
		t.Errorf("with a folder for the link: %v, and the index is written: %t", err, exists(index))
	}
}

// TestMirrorEndsAtAnError makes nothing more in a mirror after its first error.
func TestMirrorEndsAtAnError(t *testing.T) {
	m := &mirror{gitDir: t.TempDir(), scratch: t.TempDir()}
	m.commonDir = m.gitDir
	must.OK(t, os.WriteFile(filepath.Join(m.gitDir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600))
	for _, name := range []string{"refs", "objects"} {
		must.OK(t, os.Mkdir(filepath.Join(m.gitDir, name), 0o700))
	}
	must.OK(t, os.Mkdir(m.folder(), 0o700))
	must.OK(t, os.Mkdir(filepath.Join(m.folder(), "refs"), 0o700)) // where a link is to be
	if err := m.share(); err == nil || exists(filepath.Join(m.folder(), "lent")) {
		t.Errorf("%v, and the objects are linked: %t", err, exists(filepath.Join(m.folder(), "lent")))
	}
}
