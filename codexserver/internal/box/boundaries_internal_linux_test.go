package box

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestMountsBoundary reads a line of mountinfo with as many fields as it needs, one less and one more. Of two mounts at one
// place the last one counts.
func TestMountsBoundary(t *testing.T) {
	for n, want := range map[int]int{4: 0, 5: 1, 6: 1} {
		line := strings.Join([]string{"1", "2", "8:1", "/", "/mnt", "rw"}[:n], " ")
		must.Equal(t, line, want, len(readMounts(line+"\n")))
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"place", "below", "above"} {
		must.OK(t, os.Mkdir(in(name), 0o700))
	}
	must.OK(t, os.WriteFile(in("place/file"), nil, 0o600))
	must.OK(t, os.Link(in("place/file"), in("below/file")), os.Link(in("place/file"), in("above/file")))
	all := mounts{
		{device: "8:1", root: "/x", point: in("place")}, {device: "8:2", root: "/x", point: in("place")},
		{device: "8:1", root: "/x", point: in("below")}, {device: "8:2", root: "/x", point: in("above")},
	}
	must.Equal(t, "the other paths of a file", []string{in("above/file")}, all.others(in("place/file")))
}
