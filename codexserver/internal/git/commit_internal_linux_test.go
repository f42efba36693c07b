package git

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestReadReplaced reads files to be committed while a command makes their folder a link: nothing is read but what has the name.
func TestReadReplaced(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for name, text := range map[string]string{"secret/x": "SECRET", "dir/x": "x"} {
		path := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	must.OK(t, os.Symlink("secret", filepath.Join(dir, "link")), os.Symlink("secret/x", filepath.Join(dir, "file")))
	from := must.Get(openFolder(dir))(t)
	defer from.close()
	d := &draft{look: &look{mirror: &mirror{root: dir}}}
	if data, err := d.read(from, "dir/x"); string(data) != "x" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := d.read(from, "link/x"); !errors.Is(err, safefile.ErrReplaced) {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := d.read(from, "file"); err == nil {
		t.Errorf("%q", data)
	}
}
