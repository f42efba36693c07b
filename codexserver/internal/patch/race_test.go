//go:build unix

package patch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestApplyInARace replaces folders with links while patches are applied, and checks that nothing is written outside.
func TestApplyInARace(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	work, outside := filepath.Join(top, "work"), filepath.Join(top, "outside")
	writeTree(t, work, map[string]string{"dir/file": "0\n"})
	writeTree(t, outside, map[string]string{"file": "0\n"})
	dir, gone := filepath.Join(work, "dir"), filepath.Join(work, "gone")
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			// Each step may fail, because a patch has made a folder in between.
			_ = os.Rename(dir, gone)
			_ = os.Symlink(outside, dir)
			_ = os.Remove(dir)
			_ = os.Rename(gone, dir)
		}
	})
	applied := 0
	rounds := 150
	if testing.Short() {
		rounds = 50
	}
	for i := range rounds {
		for _, text := range []string{
			"*** Update File: dir/file\n@@\n-0\n+0\n+1", "*** Update File: dir/file\n@@\n-1",
			fmt.Sprintf("*** Add File: dir/new%d\n+x", i), fmt.Sprintf("*** Add File: dir/deep%d/new\n+x", i),
		} {
			plan, err := planOf(work, text)
			if err != nil || !plan.Within([]string{work}) {
				continue
			}
			if plan.Apply() == nil {
				applied++
			}
		}
	}
	close(stop)
	swapping.Wait()
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside has %v, %v", entries, err)
	}
	check(t, filepath.Join(outside, "file"), "0\n")
	t.Logf("%d patches were applied", applied)
}
