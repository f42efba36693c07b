package repo

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPack has git read packs with objects of many sizes, and check their sums.
func TestPack(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q", "--bare")
	var want []string
	for _, sizes := range [][]int{{0}, {1, 15, 16, 17, 2047, 2048, 1<<16 - 1, 1 << 16, 300_000}} {
		k := newPack()
		var files []blob
		for _, n := range sizes {
			data := strings.Repeat(string(rune('a'+len(files))), n)
			id := k.add(packBlob, data)
			if again := k.add(packBlob, data); again != id {
				t.Errorf("%x, and the second time %x", id, again)
			}
			files = append(files, blob{name: fmt.Sprintf("d/f%d", len(files)), mode: 0o100644, id: id})
			want = append(want, fmt.Sprintf("%x blob %d", id, n))
		}
		tree := k.addTree(files)
		if err := k.write(filepath.Join(dir, "objects", "pack")); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(git("ls-tree", "-r", tree), "\n"); got != len(sizes) {
			t.Errorf("the tree has %d files, want %d", got, len(sizes))
		}
	}
	var got []string
	for line := range strings.Lines(git("cat-file", "--batch-all-objects", "--batch-check")) {
		if strings.Contains(line, "blob") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("git reads\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	git("fsck", "--full", "--strict")
	packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.idx"))
	if err != nil || len(packs) != 2 {
		t.Fatalf("packs %q, %v", packs, err)
	}
	git(append([]string{"verify-pack", "-v"}, packs...)...)
}
