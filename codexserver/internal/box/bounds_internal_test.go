//go:build unix

package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestFoldersAtTheSameTime judges the folders of several conversations at the same time. Each name
// leads to one folder from then on.
func TestFoldersAtTheSameTime(t *testing.T) {
	var f Programs
	top, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	var names []string
	for i := range 4 {
		names = append(names, filepath.Join(top, fmt.Sprint(i)))
		must.OK(t, os.Mkdir(names[i], 0o700))
	}
	no := errors.New("no")
	refuse := func(name, _ string, _ fs.FileInfo) error {
		if name == names[3] {
			return no
		}
		return nil
	}
	got, errs := make([][]*folder, 8), make([][]error, 8)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i], errs[i] = f.judge(names, refuse) })
	}
	all.Wait()
	for n, folders := range got {
		for i, one := range folders {
			if err := errs[n][i]; i == 3 && !errors.Is(err, no) || i < 3 && (err != nil || one != got[0][i] || one.path != names[i]) {
				t.Errorf("%s: %+v, %v", names[i], one, err)
			}
		}
	}
}
